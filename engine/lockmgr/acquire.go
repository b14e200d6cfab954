package lockmgr

import (
	"context"
	"slices"
	"time"
)

// Options say how a request waits. The zero value waits until the lock is free or the context ends.
type Options struct {
	// Session keeps the lock until Release, beyond the transaction.
	Session bool
	// NoWait returns ErrNotAvailable instead of waiting.
	NoWait bool
	// Timeout bounds the wait: ErrTimeout. 0 is no bound.
	Timeout time.Duration
	// Deadlock is how long to wait before looking for a circle; 0 looks at once.
	Deadlock time.Duration
	// Waits, when set, is told the tag before the wait begins, and a nil tag when it has ended.
	Waits func(tag *Tag)
}

// Acquire takes a lock, waiting for it when it must. waited reports whether it did: what was read before may be old. After an error
// nothing changed (K4).
func (o *Owner) Acquire(ctx context.Context, tag Tag, mode Mode, opt Options) (waited bool, err error) {
	o.m.mu.Lock()
	w, err := o.requestLocked(tag, mode, opt)
	o.m.mu.Unlock()
	if w == nil {
		return false, err
	}
	if opt.Waits != nil {
		opt.Waits(&w.lock.tag)
		defer opt.Waits(nil)
	}
	return true, o.await(ctx, w, opt)
}

// requestLocked takes the lock when it is free, else it queues.
func (o *Owner) requestLocked(tag Tag, mode Mode, opt Options) (*waiter, error) {
	m := o.m
	lk := m.lockLocked(tag)
	h := lk.holding(o)
	if h != nil && h.tx&mode.bit() != 0 && !opt.Session {
		return nil, nil
	}
	if h != nil && h.all&mode.bit() != 0 { // held already, if only on the other account
		m.grantLocked(lk, o, mode, opt.Session)
		return nil, nil
	}
	at := lk.place(h)
	if !lk.blocked(o, mode) && !waitsConflict(lk.queue[:at], mode) {
		m.grantLocked(lk, o, mode, opt.Session)
		return nil, nil
	}
	if opt.NoWait {
		return nil, ErrNotAvailable
	}
	w := &waiter{owner: o, lock: lk, mode: mode, session: opt.Session, since: time.Now(), wake: make(chan struct{})}
	lk.queue = slices.Insert(lk.queue, at, w)
	o.wait = w
	return w, nil
}

// place is where in the queue a request of h's owner stands: at the end, or before the first that waits for what it holds.
func (lk *lock) place(h *holding) int {
	if h != nil {
		for i, w := range lk.queue {
			if conflicts[w.mode]&h.all != 0 {
				return i
			}
		}
	}
	return len(lk.queue)
}

func waitsConflict(queue []*waiter, mode Mode) bool {
	return slices.ContainsFunc(queue, func(w *waiter) bool { return conflicts[mode]&w.mode.bit() != 0 })
}

func (o *Owner) await(ctx context.Context, w *waiter, opt Options) error {
	look := time.NewTimer(opt.Deadlock)
	defer look.Stop()
	var expired <-chan time.Time
	if opt.Timeout > 0 {
		t := time.NewTimer(opt.Timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		select {
		case <-w.wake:
			return nil
		case <-expired:
			return o.giveUp(w, ErrTimeout)
		case <-ctx.Done():
			return o.giveUp(w, context.Cause(ctx))
		case <-look.C:
			if d := o.m.checkDeadlock(w); d != nil {
				return o.giveUp(w, d)
			}
		}
	}
}

// giveUp leaves the queue. A lock that was granted at the same moment is kept, and there is no error.
func (o *Owner) giveUp(w *waiter, err error) error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if w.granted {
		return nil
	}
	w.lock.queue = slices.DeleteFunc(w.lock.queue, func(x *waiter) bool { return x == w })
	o.wait = nil
	o.m.wakeLocked(w.lock)
	return err
}
