package catalog

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// maxGroup bounds the requests of one group commit.
const maxGroup = 256

// queue holds the requests that wait for the serial point. The first to come leads: it takes everything that waits, commits
// it as one group and hands the lead to the first that came meanwhile.
type queue struct {
	mu struct {
		sync.Mutex
		waiting []*waiter
		leading bool
		closed  bool
		idle    chan struct{} // made by close, closed when the last leader leaves
	}
}

type waiter struct {
	ctx context.Context
	req *Request
	rec *Record
	err error
	// staged says that the group holds something of it.
	staged bool
	lead   bool      // has been told, or is about to be told, to lead
	wake   chan bool // true: lead; false: rec and err are set
}

// Commit runs one request. When it returns a record the commit is durable (C3) and visible in Cut. A request that changes
// nothing returns a nil record and no error.
//
// Requests that wait at the same time share one store transaction and its sync; each succeeds or fails alone and each gets
// its own consecutive seq (C2). Errors but ErrUnknownOutcome mean that nothing happened (C4); ErrConflict that a retry may
// help. ctx is honoured until a leader picks the request up: from there on the outcome is waited for.
func (c *Catalog) Commit(ctx context.Context, req *Request) (*Record, error) {
	if len(req.Context) > MaxContext {
		return nil, fmt.Errorf("%w: context of %d bytes, at most %d", ErrInvalidRequest, len(req.Context), MaxContext)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{ctx: ctx, req: req, wake: make(chan bool, 1)}
	lead, err := c.queue.enter(w)
	if err != nil {
		return nil, err
	}
	if !lead {
		select {
		case lead = <-w.wake:
		case <-ctx.Done():
			if c.queue.leave(w) {
				return nil, ctx.Err()
			}
			lead = <-w.wake
		}
	}
	if lead {
		c.leadGroup()
	}
	return w.rec, w.err
}

func (q *queue) enter(w *waiter) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		return false, ErrClosed
	}
	q.mu.waiting = append(q.mu.waiting, w)
	if q.mu.leading {
		return false, nil
	}
	q.mu.leading, w.lead = true, true
	return true, nil
}

// leave takes a request back that no leader has picked up.
func (q *queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.lead {
		return false
	}
	for i, x := range q.mu.waiting {
		if x == w {
			q.mu.waiting = append(q.mu.waiting[:i], q.mu.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take is the leader's: its own request is the first.
func (q *queue) take() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.mu.waiting), maxGroup)
	ws := append([]*waiter(nil), q.mu.waiting[:n]...)
	q.mu.waiting = append(q.mu.waiting[:0], q.mu.waiting[n:]...)
	return ws
}

// putBack returns requests that did not fit to the head of the queue.
func (q *queue) putBack(ws []*waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.waiting = append(append([]*waiter(nil), ws...), q.mu.waiting...)
}

// handOver ends a lead.
func (q *queue) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		for _, w := range q.mu.waiting {
			w.err = ErrClosed
			w.lead = true // cannot leave any more
			w.wake <- false
		}
		q.mu.waiting = nil
	}
	if len(q.mu.waiting) > 0 {
		next := q.mu.waiting[0]
		next.lead = true
		next.wake <- true
		return
	}
	q.mu.leading = false
	if q.mu.idle != nil {
		close(q.mu.idle)
		q.mu.idle = nil
	}
}

// close refuses new requests and waits for the leader.
func (q *queue) close() {
	q.mu.Lock()
	q.mu.closed = true
	idle := make(chan struct{})
	if q.mu.leading {
		q.mu.idle = idle
	} else {
		close(idle)
	}
	q.mu.Unlock()
	<-idle
}

// leadGroup commits one group and hands over.
func (c *Catalog) leadGroup() {
	ws := c.queue.take()
	defer c.queue.handOver()
	n := c.commitGroupSafely(ws)
	if n < len(ws) {
		c.queue.putBack(ws[n:])
	}
	for _, w := range ws[1:n] { // ws[0] is the leader itself
		w.wake <- false
	}
}

// commitGroupSafely makes a panic of ours the error of everybody in the group: waiters must not hang because a session
// above recovered the leader's panic.
func (c *Catalog) commitGroupSafely(ws []*waiter) (n int) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("group commit")
			for _, w := range ws {
				w.rec, w.err = nil, fmt.Errorf("%w: panic: %v", ErrUnknownOutcome, r)
			}
			n = len(ws)
		}
	}()
	return c.commitGroup(ws)
}

// commitGroup tries requests until the store's bounds are near, commits those that succeeded as one transaction, and
// returns how many it dealt with: at least one. rec and err of those are set.
func (c *Catalog) commitGroup(ws []*waiter) (n int) {
	g, err := c.newGroup()
	if err != nil {
		for _, w := range ws {
			w.err = err
		}
		return len(ws)
	}
	for n < len(ws) && (n == 0 || !g.full()) {
		w := ws[n]
		n++
		if w.err = w.ctx.Err(); w.err == nil {
			before := g.taken
			w.rec, w.err = g.try(w.ctx, w.req)
			w.staged = g.taken > before
		}
		if w.err != nil {
			c.counts.conflicts.Add(1)
		}
	}
	if err := g.commit(); err != nil {
		for _, w := range ws[:n] {
			if w.err == nil && w.staged {
				w.rec, w.err = nil, err
			}
		}
		return n
	}
	g.purge()
	return n
}
