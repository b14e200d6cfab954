package boltstore

import (
	"context"
	"sync"

	"github.com/nordisk/skade-pg/catalog/store"
)

// Bounds of the ring: a watcher that is further behind reads the store again.
const (
	ringEvents = 256
	ringBytes  = 8 << 20
)

// ring keeps the newest transactions for watches.
type ring struct {
	mu struct {
		sync.Mutex
		events []store.Event // ascending revisions
		sizes  []int
		bytes  int
		floor  uint64 // everything after this revision is in events
		closed bool
		wake   chan struct{} // closed and replaced by add; made by the first waiter
	}
}

func (r *ring) init(rev uint64) { r.mu.floor = rev }

func (r *ring) add(e store.Event) {
	size := (&store.Tx{Ops: e.Ops}).Size()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.events = append(r.mu.events, e)
	r.mu.sizes = append(r.mu.sizes, size)
	r.mu.bytes += size
	drop := 0
	for len(r.mu.events)-drop > 1 && (len(r.mu.events)-drop > ringEvents || r.mu.bytes > ringBytes) {
		r.mu.bytes -= r.mu.sizes[drop]
		r.mu.floor = r.mu.events[drop].Revision
		r.mu.events[drop] = store.Event{}
		drop++
	}
	r.mu.events, r.mu.sizes = r.mu.events[drop:], r.mu.sizes[drop:]
	r.wakeLocked()
}

func (r *ring) wakeLocked() {
	if r.mu.wake != nil {
		close(r.mu.wake)
		r.mu.wake = nil
	}
}

func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	r.wakeLocked()
}

// next returns the first event after the revision, or a channel to wait on.
func (r *ring) next(after uint64) (store.Event, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after < r.mu.floor {
		return store.Event{}, nil, store.ErrCompacted
	}
	for _, e := range r.mu.events {
		if e.Revision > after {
			return e, nil, nil
		}
	}
	if r.mu.closed {
		return store.Event{}, nil, store.ErrClosed
	}
	if r.mu.wake == nil {
		r.mu.wake = make(chan struct{})
	}
	return store.Event{}, r.mu.wake, nil
}

type watch struct {
	ring *ring
	at   uint64
}

func (w *watch) Next(ctx context.Context) (store.Event, error) {
	for {
		e, wait, err := w.ring.next(w.at)
		if err != nil {
			return e, err
		}
		if wait == nil {
			w.at = e.Revision
			return e, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return store.Event{}, ctx.Err()
		}
	}
}

func (w *watch) Close() {}
