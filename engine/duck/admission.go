package duck

import (
	"context"
	"sync"
)

// slots is the admission control: at most n statements compute at once, the others wait in arrival order. DuckDB shares
// its threads between all running statements without fairness; a queue in front of it makes the slowest of 200 equal
// statements wait for its turn and no longer.
type slots struct {
	mu struct {
		sync.Mutex
		free    int
		waiting []chan struct{} // FIFO; a closed channel is a granted slot
	}
}

func newSlots(n int) *slots {
	s := &slots{}
	s.mu.free = n
	return s
}

type slotKey struct{}

// holding marks ctx as that of a statement which holds a slot: what it waits for (a relation that runs a statement itself) must not
// wait for a slot, or all slots could wait for each other.
func holding(ctx context.Context) context.Context { return context.WithValue(ctx, slotKey{}, true) }

// acquire waits for a slot. The returned function gives it back.
func (s *slots) acquire(ctx context.Context) (release func(), err error) {
	if ctx.Value(slotKey{}) != nil {
		return func() {}, nil
	}
	s.mu.Lock()
	if s.mu.free > 0 {
		s.mu.free--
		s.mu.Unlock()
		return s.release, nil
	}
	ch := make(chan struct{})
	s.mu.waiting = append(s.mu.waiting, ch)
	s.mu.Unlock()
	select {
	case <-ch:
		return s.release, nil
	case <-ctx.Done():
		s.leave(ch)
		return nil, context.Cause(ctx)
	}
}

// leave takes ch out of the queue, or hands on the slot that it was granted meanwhile.
func (s *slots) leave(ch chan struct{}) {
	s.mu.Lock()
	for i, w := range s.mu.waiting {
		if w == ch {
			s.mu.waiting = append(s.mu.waiting[:i], s.mu.waiting[i+1:]...)
			s.mu.Unlock()
			return
		}
	}
	s.mu.Unlock()
	s.release()
}

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.waiting) == 0 {
		s.mu.free++
		return
	}
	ch := s.mu.waiting[0]
	s.mu.waiting[0] = nil
	s.mu.waiting = s.mu.waiting[1:]
	close(ch)
}
