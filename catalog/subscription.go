package catalog

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nordisk/skade-pg/catalog/store"
)

// RingSize is the number of commits that a subscription holds before it lags.
const RingSize = 1024

// Event is one commit, or the news that commits were not kept: read (From, To] with CommitsSince.
type Event struct {
	Record *Record
	Lagged bool
	// From and To are set when Lagged: the subscription goes on behind To.
	From, To uint64
}

// Subscription delivers every commit after its cursor once, in seq order, after it is durable and visible. It never makes a
// writer wait: with RingSize commits unread it drops them and says so by one Lagged event. It ends by Close, or by the
// catalog's Close. Safe for concurrent use, but events go to whichever caller comes first.
type Subscription struct {
	subs *subscribers
	wake chan struct{}

	mu struct {
		sync.Mutex
		ring   []*Record // grows to RingSize
		head   int
		len    int
		cursor uint64 // newest seq that was handed out, or that existed at the start
		newest uint64 // newest seq delivered into the ring or dropped
		lagged bool
		closed bool
	}
}

// subscribers are the subscriptions of a catalog. Without one a commit decodes and allocates nothing for them.
type subscribers struct {
	c  *Catalog
	n  atomic.Int64
	mu struct {
		sync.Mutex
		list []*Subscription
		done bool
	}
}

// SubscribeCommits subscribes first and reads the cursor then: every commit after Cursor() will be delivered, none before.
// Read the past with CommitsSince up to Cursor(). On a closed catalog Next returns ErrClosed.
func (c *Catalog) SubscribeCommits() *Subscription {
	s := &Subscription{subs: &c.subs, wake: make(chan struct{}, 1)}
	s.mu.Lock() // deliver waits here until the cursor is set
	defer s.mu.Unlock()
	c.subs.mu.Lock()
	s.mu.closed = c.subs.mu.done
	if !s.mu.closed {
		c.subs.mu.list = append(c.subs.mu.list, s)
		c.subs.n.Store(int64(len(c.subs.mu.list)))
	}
	c.subs.mu.Unlock()
	s.mu.cursor = c.CommitSeq()
	s.mu.newest = s.mu.cursor
	return s
}

// deliver hands the records of one transaction to every subscription.
func (s *subscribers) deliver(ops []store.Op) {
	if s.n.Load() == 0 {
		return
	}
	s.mu.Lock()
	list := s.mu.list
	s.mu.Unlock()
	for _, op := range ops {
		if op.Key[0] != familyRecord || op.Delete {
			continue
		}
		rec, err := decodeRecord(op.Value)
		if err != nil {
			s.c.log.Error().Err(err).Msg("commit record for subscribers")
			continue
		}
		for _, sub := range list {
			sub.push(rec)
		}
	}
}

// skip tells every subscription that commits up to seq are in the log only.
func (s *subscribers) skip(seq uint64) {
	s.mu.Lock()
	list := s.mu.list
	s.mu.Unlock()
	for _, sub := range list {
		sub.mu.Lock()
		if seq > sub.mu.newest {
			sub.dropLocked(seq)
		}
		sub.mu.Unlock()
		sub.notify()
	}
}

func (s *subscribers) close() {
	s.mu.Lock()
	list := s.mu.list
	s.mu.list, s.mu.done = nil, true
	s.n.Store(0)
	s.mu.Unlock()
	for _, sub := range list {
		sub.mu.Lock()
		sub.mu.closed = true
		sub.mu.Unlock()
		sub.notify()
	}
}

func (s *Subscription) push(rec *Record) {
	s.mu.Lock()
	switch {
	case s.mu.closed || rec.Seq <= s.mu.newest:
	case s.mu.lagged || s.mu.len == RingSize:
		s.dropLocked(rec.Seq)
	default:
		s.addLocked(rec)
	}
	s.mu.Unlock()
	s.notify()
}

func (s *Subscription) addLocked(rec *Record) {
	if s.mu.len == len(s.mu.ring) {
		grown := make([]*Record, min(max(2*len(s.mu.ring), 16), RingSize))
		for i := range s.mu.len {
			grown[i] = s.mu.ring[(s.mu.head+i)%len(s.mu.ring)]
		}
		s.mu.ring, s.mu.head = grown, 0
	}
	s.mu.ring[(s.mu.head+s.mu.len)%len(s.mu.ring)] = rec
	s.mu.len++
	s.mu.newest = rec.Seq
}

func (s *Subscription) dropLocked(newest uint64) {
	s.mu.ring, s.mu.head, s.mu.len = nil, 0, 0
	s.mu.lagged, s.mu.newest = true, newest
}

func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Cursor returns the seq behind which Next goes on.
func (s *Subscription) Cursor() uint64 { s.mu.Lock(); defer s.mu.Unlock(); return s.mu.cursor }

// C is signalled when events may be there: then call TryNext until it says no. Do not mix it with a blocked Next.
func (s *Subscription) C() <-chan struct{} { return s.wake }

// TryNext returns an event when one is there. ErrClosed after Close, once the ring is empty.
func (s *Subscription) TryNext() (Event, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.lagged:
		e := Event{Lagged: true, From: s.mu.cursor, To: s.mu.newest}
		s.mu.lagged, s.mu.cursor = false, s.mu.newest
		return e, true, nil
	case s.mu.len > 0:
		rec := s.mu.ring[s.mu.head]
		s.mu.ring[s.mu.head] = nil
		s.mu.head = (s.mu.head + 1) % len(s.mu.ring)
		s.mu.len--
		s.mu.cursor = rec.Seq
		return Event{Record: rec}, true, nil
	case s.mu.closed:
		return Event{}, false, ErrClosed
	}
	return Event{}, false, nil
}

// Next waits for an event. ErrClosed after Close, else the context's error.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		e, ok, err := s.TryNext()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Close ends the subscription; a waiting Next returns ErrClosed.
func (s *Subscription) Close() {
	s.subs.mu.Lock()
	for i, sub := range s.subs.mu.list {
		if sub == s {
			rest := append([]*Subscription(nil), s.subs.mu.list[:i]...) // deliver may be reading the old list
			s.subs.mu.list = append(rest, s.subs.mu.list[i+1:]...)
			break
		}
	}
	s.subs.n.Store(int64(len(s.subs.mu.list)))
	s.subs.mu.Unlock()
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.notify()
}
