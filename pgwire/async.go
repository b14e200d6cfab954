package pgwire

import (
	"bytes"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// longAgo is a deadline that has passed: setting it wakes whoever reads or writes.
var longAgo = time.Unix(1, 0)

// AppendNotification appends a NotificationResponse. pid is the backend that notifies, 0 for the server itself.
func AppendNotification(dst []byte, pid int32, channel, payload string) []byte {
	dropNULs(&channel, &payload)
	return encode(dst, &pgproto3.NotificationResponse{PID: uint32(pid), Channel: channel, Payload: payload})
}

// maxNotifyBytes bounds the notifications that wait for one client. They are shared by the clients that wait for them.
const maxNotifyBytes = 64 << 20

// Notify implements Asyncer.
func (c *conn) Notify(msgs ...[]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.notifyUsageLocked() >= 2 {
		return false
	}
	c.mu.notify = append(c.mu.notify, msgs...)
	for _, m := range msgs {
		c.mu.notifyBytes += len(m)
	}
	c.sendSoonLocked()
	return true
}

// NotifyUsage implements Asyncer.
func (c *conn) NotifyUsage() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notifyUsageLocked()
}

func (c *conn) notifyUsageLocked() float64 {
	return max(float64(len(c.mu.notify))/float64(c.srv.o.NotifyQueue), float64(c.mu.notifyBytes)/maxNotifyBytes)
}

// Wake implements Asyncer.
func (c *conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.news = true
	c.sendSoonLocked()
}

// sendSoonLocked wakes the connection when it waits for its client and may tell it what is queued.
func (c *conn) sendSoonLocked() {
	if c.mu.waiting && c.mu.outside && !c.mu.closed {
		_ = c.raw.SetReadDeadline(longAgo)
	}
}

// ParameterStatus implements Asyncer. A later value of a parameter replaces one that was not sent yet.
func (c *conn) ParameterStatus(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.mu.status {
		if c.mu.status[i].Name == name {
			c.mu.status[i].Value = value
			return
		}
	}
	c.mu.status = append(c.mu.status, Param{Name: name, Value: value})
}

// maxNotices bounds the notices that wait for an answer, in bytes.
const maxNotices = 64 << 10

// Notice implements Noticer.
func (c *conn) Notice(n *pgerr.Error) {
	msg := appendError(nil, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.notices)+len(msg) <= maxNotices {
		c.mu.notices = append(c.mu.notices, msg...)
	}
}

// Terminate implements Asyncer. A running statement is cancelled; a blocked read or write ends.
func (c *conn) Terminate(cause *pgerr.Error) {
	c.mu.Lock()
	if c.mu.closed || c.mu.terminate != nil {
		c.mu.Unlock()
		return
	}
	c.mu.terminate = asFatal(cause)
	var running Session
	if c.mu.busy {
		running = c.mu.session
	}
	_ = c.raw.SetReadDeadline(longAgo)
	if c.mu.writing {
		// Give a client that reads a moment to take what is in flight.
		_ = c.raw.SetWriteDeadline(time.Now().Add(killGrace / 4))
	}
	c.mu.Unlock()
	if running != nil {
		running.Cancel(c.mu.terminate)
	}
}

// drain ends the connection with 57P01 once no statement runs.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.draining = true
	if !c.mu.busy && !c.mu.midBatch {
		if c.mu.terminate == nil {
			c.mu.terminate = errShutdown
		}
		_ = c.raw.SetReadDeadline(longAgo)
	}
}

// Cancel implements Asyncer; a CancelRequest comes here too.
func (c *conn) Cancel(cause *pgerr.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.busy || c.mu.session == nil || c.mu.terminate != nil {
		return
	}
	s := c.mu.session
	c.mu.cancelled, c.mu.cause = true, cause
	_ = c.raw.SetReadDeadline(longAgo)
	if c.mu.writing && c.mu.mayBreak {
		c.mu.deadline = true
		_ = c.raw.SetWriteDeadline(longAgo)
	}
	// Under the lock: later, the statement may have ended and the next one begun.
	s.Cancel(cause)
}

// interruptRead ends the read of a running statement with cause.
func (c *conn) interruptRead(cause *pgerr.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.cancelled, c.mu.cause = true, cause
	_ = c.raw.SetReadDeadline(longAgo)
}

// woken is called when a read's deadline has passed: it finds out why and says whether to go on.
func (c *conn) woken() error {
	c.mu.Lock()
	_ = c.raw.SetReadDeadline(time.Time{})
	switch {
	case c.mu.terminate != nil:
		defer c.mu.Unlock()
		return c.mu.terminate
	case c.sess == nil:
		c.mu.Unlock()
		return fatal(pgerr.QueryCanceled, "canceling authentication due to timeout")
	case c.mu.cancelled && c.mu.busy:
		defer c.mu.Unlock()
		c.mu.cancelled = false
		return c.mu.cause
	}
	send := c.mu.waiting && c.mu.outside
	c.mu.Unlock()
	if !send {
		return nil
	}
	if err := c.sendQueued(true); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.letGo()
	return nil
}

// sendQueued sends what others queued, but for the last chunk of it, which it leaves in the output.
func (c *conn) sendQueued(outside bool) error {
	for c.takeQueued(outside) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// takeNotices moves queued notices into the output.
func (c *conn) takeNotices() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, c.mu.notices...)
	c.mu.notices = nil
}

// queuedChunk is about how many bytes of what others queued go out at once.
const queuedChunk = 64 << 10

// takeQueued moves what others queued into the output, before ReadyForQuery: parameters, then notifications, outside a transaction only, a
// chunk of them. It reports whether there are more.
func (c *conn) takeQueued(outside bool) (more bool) {
	c.takeNotices()
	c.mu.Lock()
	for _, p := range c.mu.status {
		c.out = encode(c.out, &pgproto3.ParameterStatus{Name: p.Name, Value: p.Value})
	}
	c.mu.status = nil
	if !outside {
		c.mu.Unlock()
		return false
	}
	n, size := 0, 0
	for ; n < len(c.mu.notify) && size < queuedChunk; n++ {
		c.out = append(c.out, c.mu.notify[n]...)
		size += len(c.mu.notify[n])
	}
	c.mu.notify, c.mu.notifyBytes = c.mu.notify[n:], c.mu.notifyBytes-size
	if len(c.mu.notify) == 0 {
		c.mu.notify = nil
	}
	news := c.mu.news && len(c.mu.notify) == 0
	if news {
		c.mu.news = false
	}
	more = len(c.mu.notify) > 0
	c.mu.Unlock()
	if news && cap(c.out) == 0 {
		c.out = takeBuffer()[:0]
	}
	if s, ok := c.sess.(Notifier); ok && news {
		if c.out, more = s.AppendNotifications(c.out); more {
			c.mu.Lock()
			c.mu.news = true
			c.mu.Unlock()
		}
	}
	return more
}

// begin marks that a message is being handled; it reports a termination that came before.
func (c *conn) begin() error {
	c.mu.Lock()
	c.mu.waiting = false
	c.mu.busy = true
	c.mu.cancelled = false
	if c.mu.draining && c.mu.terminate == nil && !c.inBatch && !c.skip {
		c.mu.terminate = errShutdown
	}
	term := c.mu.terminate
	c.mu.Unlock()
	if term != nil {
		return term
	}
	return nil
}

// between marks that no statement runs although the connection does not wait for its client: a cancel that comes now, or came too
// late for the last statement, must end neither the read of the next message nor the next statement.
func (c *conn) between() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.busy, c.mu.cancelled, c.mu.midBatch = false, false, true
}

// rest marks that the connection waits for its client. A drain or termination ends it here.
func (c *conn) rest(outside, midBatch bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.cancelled {
		// The statement ended before the cancel reached it.
		c.mu.cancelled = false
	}
	if c.mu.draining && !midBatch && c.mu.terminate == nil {
		c.mu.terminate = errShutdown
	}
	if c.mu.terminate != nil {
		return c.mu.terminate
	}
	c.mu.busy, c.mu.midBatch = false, midBatch
	c.mu.waiting, c.mu.outside = !midBatch, outside
	if c.mu.waiting && outside && (len(c.mu.notify) > 0 || c.mu.news) {
		_ = c.raw.SetReadDeadline(longAgo)
	}
	return nil
}

// cancelRequest handles a CancelRequest: pid and key must be those of BackendKeyData.
func (s *Server) cancelRequest(pid int32, key []byte) {
	s.mu.Lock()
	c := s.mu.byPID[pid]
	s.mu.Unlock()
	if c != nil && len(key) > 0 && bytes.Equal(c.key, key) {
		c.Cancel(errUserCancel)
	}
}
