package engine

import (
	"slices"
	"sync"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// notification is one NOTIFY, delivered when its transaction commits.
type notification struct{ channel, payload string }

// listener is a session as the hub sees it.
type listener struct {
	wire pgwire.Asyncer
	// mu guards what follows. It is taken after hub.mu.
	mu struct {
		sync.Mutex
		channels map[string]struct{}
		// commits are its channels on which commits are told, by name. See feed.go.
		commits []commitChannel
		told    uint64 // commits up to this seq are told, or are none of its channels'
		pending uint64 // the first commit that is to be told; 0 for none
	}
}

// hub delivers notifications to the sessions that LISTEN. Sending never blocks.
type hub struct {
	mu struct {
		sync.RWMutex
		channels map[string]*channel
	}
	feed *commitFeed
}

// channel is who listens on one.
type channel struct {
	all map[*listener]struct{}
	// calm are those of them, on a channel of commits, that the feed has not marked yet: the others need not be looked at.
	calm map[*listener]struct{}
}

func newHub(feed *commitFeed) *hub {
	h := &hub{feed: feed}
	h.mu.channels = map[string]*channel{}
	feed.hub = h
	return h
}

func newListener(wire pgwire.Asyncer) *listener {
	l := &listener{wire: wire}
	l.mu.channels = map[string]struct{}{}
	return l
}

// listen registers l for a channel.
func (h *hub) listen(l *listener, name string) {
	l.mu.Lock()
	_, known := l.mu.channels[name]
	l.mu.channels[name] = struct{}{}
	l.mu.Unlock()
	if known {
		return
	}
	if isCommitChannel(name) {
		h.feed.join(l, name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.mu.channels[name]
	if c == nil {
		c = &channel{all: map[*listener]struct{}{}, calm: map[*listener]struct{}{}}
		h.mu.channels[name] = c
	}
	c.all[l] = struct{}{}
	if isCommitChannel(name) {
		c.calm[l] = struct{}{}
	}
}

// unlisten removes l from a channel, or from all of them when channel is "*".
func (h *hub) unlisten(l *listener, channel string) {
	l.mu.Lock()
	var drop []string
	if channel == "*" {
		for c := range l.mu.channels {
			drop = append(drop, c)
		}
	} else if _, ok := l.mu.channels[channel]; ok {
		drop = append(drop, channel)
	}
	for _, c := range drop {
		delete(l.mu.channels, c)
	}
	l.mu.commits = slices.DeleteFunc(l.mu.commits, func(c commitChannel) bool { return slices.Contains(drop, c.name) })
	if len(l.mu.commits) == 0 {
		l.mu.pending = 0
	}
	l.mu.Unlock()
	h.mu.Lock()
	for _, name := range drop {
		c := h.mu.channels[name]
		delete(c.all, l)
		delete(c.calm, l)
		if len(c.all) == 0 {
			delete(h.mu.channels, name)
		}
	}
	h.mu.Unlock()
	for _, c := range drop {
		if isCommitChannel(c) {
			h.feed.leave()
		}
	}
}

// room refuses a transaction whose notifications a client that does not read them has no room for, as PostgreSQL does when its queue is full.
func (h *hub) room(ns []notification) error {
	if len(ns) == 0 {
		return nil
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, n := range ns {
		for l := range h.on(n.channel) {
			if l.wire.NotifyUsage() >= 1 {
				return pgerr.New(pgerr.ProgramLimitExceeded, "too many notifications in the NOTIFY queue").
					WithDetail("A session that listens on channel \"%s\" does not take its notifications.", n.channel)
			}
		}
	}
	return nil
}

// usage is how full the fullest queue is: pg_notification_queue_usage.
func (h *hub) usage() float64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	most := 0.0
	for _, c := range h.mu.channels {
		for l := range c.all {
			most = max(most, l.wire.NotifyUsage())
		}
	}
	return min(most, 1)
}

// publish delivers a committed transaction's notifications, duplicates folded as PostgreSQL folds them. All sessions get those of two
// transactions in one order.
func (h *hub) publish(pid int32, ns []notification) {
	if len(ns) == 0 {
		return
	}
	seen := make(map[notification]struct{}, len(ns))
	msgs := map[*listener][][]byte{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range ns {
		if _, dup := seen[n]; dup {
			continue
		}
		seen[n] = struct{}{}
		set := h.on(n.channel)
		if len(set) == 0 {
			continue
		}
		msg := pgwire.AppendNotification(nil, pid, n.channel, n.payload)
		for l := range set {
			msgs[l] = append(msgs[l], msg)
		}
	}
	for l, m := range msgs {
		l.wire.Notify(m...) // room was asked for before
	}
}

// on are the sessions on a channel. h.mu is held.
func (h *hub) on(name string) map[*listener]struct{} {
	if c := h.mu.channels[name]; c != nil {
		return c.all
	}
	return nil
}

// listened reports whether a session listens on a channel.
func (h *hub) listened(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.mu.channels[name] != nil
}

// stir calls mark for the calm sessions on a channel. Those for which it is true are calm no longer.
func (h *hub) stir(name string, mark func(l *listener) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.mu.channels[name]
	if c == nil {
		return
	}
	for l := range c.calm {
		if mark(l) {
			delete(c.calm, l)
		}
	}
}

// calm says that a session is about to take what it was marked for: from now on it has to be marked again.
func (h *hub) calm(l *listener, channels []commitChannel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cc := range channels {
		if c := h.mu.channels[cc.name]; c != nil {
			if _, ok := c.all[l]; ok {
				c.calm[l] = struct{}{}
			}
		}
	}
}

// all calls f for every session that listens.
func (h *hub) all(f func(l *listener)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, c := range h.mu.channels {
		for l := range c.all {
			f(l)
		}
	}
}
