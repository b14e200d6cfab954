package engine

import (
	"sync"

	"github.com/nordisk/skade-pg/pgwire"
)

// notification is one NOTIFY, delivered when its transaction commits.
type notification struct{ channel, payload string }

// listener is a session as the hub sees it.
type listener struct {
	pid  int32
	wire pgwire.Asyncer
	// mu guards what follows. It is taken after hub.mu.
	mu struct {
		sync.Mutex
		channels map[string]struct{}
		// after: commits up to this seq were before LISTEN and are not told.
		after uint64
		// lostFrom is the first seq that found the client's queue full; 0 when nothing is lost. See feed.go.
		lostFrom, lostTo uint64
		lostOn           string
	}
}

// hub delivers notifications to the sessions that LISTEN. Sending never blocks: a full queue loses the notification of a
// user's channel, as a full PostgreSQL queue refuses it, and turns commit notifications into one lagged notice.
type hub struct {
	mu struct {
		sync.RWMutex
		channels map[string]map[*listener]struct{}
	}
	feed *commitFeed
}

func newHub(feed *commitFeed) *hub {
	h := &hub{feed: feed}
	h.mu.channels = map[string]map[*listener]struct{}{}
	feed.hub = h
	return h
}

func newListener(_ pgwire.Identity, pid int32, wire pgwire.Asyncer) *listener {
	l := &listener{pid: pid, wire: wire}
	l.mu.channels = map[string]struct{}{}
	return l
}

// listen registers l for a channel. It reports whether the channel is new for l.
func (h *hub) listen(l *listener, channel string) {
	l.mu.Lock()
	_, known := l.mu.channels[channel]
	l.mu.channels[channel] = struct{}{}
	l.mu.Unlock()
	if known {
		return
	}
	if isCommitChannel(channel) {
		h.feed.join(l)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.mu.channels[channel]
	if set == nil {
		set = map[*listener]struct{}{}
		h.mu.channels[channel] = set
	}
	set[l] = struct{}{}
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
	l.mu.Unlock()
	h.mu.Lock()
	for _, c := range drop {
		delete(h.mu.channels[c], l)
		if len(h.mu.channels[c]) == 0 {
			delete(h.mu.channels, c)
		}
	}
	h.mu.Unlock()
	for _, c := range drop {
		if isCommitChannel(c) {
			h.feed.leave()
		}
	}
}

// publish delivers a committed transaction's notifications, duplicates folded as PostgreSQL folds them.
func (h *hub) publish(pid int32, ns []notification) {
	if len(ns) == 0 {
		return
	}
	seen := make(map[notification]struct{}, len(ns))
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, n := range ns {
		if _, dup := seen[n]; dup {
			continue
		}
		seen[n] = struct{}{}
		for l := range h.mu.channels[n.channel] {
			l.wire.Notify(pid, n.channel, n.payload)
		}
	}
}

// listenersOf returns the sessions on a channel.
func (h *hub) listenersOf(channel string) []*listener {
	h.mu.RLock()
	defer h.mu.RUnlock()
	set := h.mu.channels[channel]
	if len(set) == 0 {
		return nil
	}
	out := make([]*listener, 0, len(set))
	for l := range set {
		out = append(out, l)
	}
	return out
}
