package lockmgr

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Manager holds every lock of a process. Its zero value is ready.
type Manager struct {
	// barred counts the tables that somebody holds in AccessExclusive: what readers look at.
	barred atomic.Int64
	mu     struct {
		sync.Mutex
		locks map[Tag]*lock
	}
}

// lock is a tag that somebody holds or waits for.
type lock struct {
	tag     Tag
	mask    uint32 // modes that anybody holds
	holders []*holding
	queue   []*waiter
}

// holding is what one owner holds of a lock.
type holding struct {
	owner   *Owner
	tx      uint32       // modes held until the transaction ends
	session map[Mode]int // times a mode was taken for the session
	all     uint32
}

// waiter is a request in a queue.
type waiter struct {
	owner   *Owner
	lock    *lock
	mode    Mode
	session bool
	since   time.Time
	granted bool
	wake    chan struct{} // closed when granted
}

// Owner is a session that locks. It ends with ReleaseAll.
type Owner struct {
	m   *Manager
	pid int32
	// Guarded by the manager's mutex.
	grants []grant        // of the transaction, in the order they were taken
	rows   map[uint32]int // row locks a table in grants
	held   int            // session locks
	wait   *waiter
}

// grant is one mode of one lock that the transaction took.
type grant struct {
	lock *lock
	mode Mode
}

// Owner makes the owner of a session's locks.
func (m *Manager) Owner(pid int32) *Owner { return &Owner{m: m, pid: pid} }

// Barred reports whether any table is held in AccessExclusive. It is one atomic load: what a reader pays when there is none.
func (m *Manager) Barred() bool { return m.barred.Load() != 0 }

// lockLocked finds or makes the lock of a tag.
func (m *Manager) lockLocked(tag Tag) *lock {
	lk := m.mu.locks[tag]
	if lk == nil {
		if m.mu.locks == nil {
			m.mu.locks = map[Tag]*lock{}
		}
		lk = &lock{tag: tag}
		m.mu.locks[tag] = lk
	}
	return lk
}

func (lk *lock) holding(o *Owner) *holding {
	for _, h := range lk.holders {
		if h.owner == o {
			return h
		}
	}
	return nil
}

// blocked reports whether an owner other than o holds a mode that conflicts with mode.
func (lk *lock) blocked(o *Owner, mode Mode) bool {
	if lk.mask&conflicts[mode] == 0 {
		return false
	}
	return slices.ContainsFunc(lk.holders, func(h *holding) bool { return h.owner != o && h.all&conflicts[mode] != 0 })
}

// grantLocked gives o the lock.
func (m *Manager) grantLocked(lk *lock, o *Owner, mode Mode, session bool) {
	h := lk.holding(o)
	if h == nil {
		h = &holding{owner: o}
		lk.holders = append(lk.holders, h)
	}
	if lk.tag.Kind == Relation && mode == AccessExclusive && h.all&mode.bit() == 0 {
		m.barred.Add(1)
	}
	switch {
	case session:
		if h.session == nil {
			h.session = map[Mode]int{}
		}
		h.session[mode]++
		o.held++
	case h.tx&mode.bit() == 0:
		h.tx |= mode.bit()
		o.grants = append(o.grants, grant{lk, mode})
		if lk.tag.Kind == Row {
			if o.rows == nil {
				o.rows = map[uint32]int{}
			}
			o.rows[lk.tag.Rel]++
		}
	}
	h.all |= mode.bit()
	lk.mask |= mode.bit()
}

// settleLocked recomputes what is held of lk after o gave something back, and lets waiters in.
func (m *Manager) settleLocked(lk *lock, h *holding) {
	before := h.all
	h.all = h.tx
	for mode := range h.session {
		h.all |= mode.bit()
	}
	if lk.tag.Kind == Relation && before&^h.all&AccessExclusive.bit() != 0 {
		m.barred.Add(-1)
	}
	if h.all == 0 {
		lk.holders = slices.DeleteFunc(lk.holders, func(x *holding) bool { return x == h })
	}
	lk.mask = 0
	for _, x := range lk.holders {
		lk.mask |= x.all
	}
	m.wakeLocked(lk)
}

// wakeLocked grants what the head of the queue may have, in order, and forgets a lock that nobody wants.
func (m *Manager) wakeLocked(lk *lock) {
	var ahead uint32 // modes of those that go on waiting
	kept := lk.queue[:0]
	for _, w := range lk.queue {
		if conflicts[w.mode]&ahead != 0 || lk.blocked(w.owner, w.mode) {
			ahead |= w.mode.bit()
			kept = append(kept, w)
			continue
		}
		w.granted, w.owner.wait = true, nil
		m.grantLocked(lk, w.owner, w.mode, w.session)
		close(w.wake)
	}
	clear(lk.queue[len(kept):])
	lk.queue = kept
	if len(lk.holders) == 0 && len(lk.queue) == 0 {
		delete(m.mu.locks, lk.tag)
	}
}

// Mark is a place in the order of the transaction's locks.
type Mark int

// Mark returns the present place.
func (o *Owner) Mark() Mark {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	return Mark(len(o.grants))
}

// ReleaseTo gives back what the transaction took since the mark (K5).
func (o *Owner) ReleaseTo(mk Mark) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	for i := len(o.grants) - 1; i >= int(mk); i-- {
		g := o.grants[i]
		o.grants = o.grants[:i]
		if g.lock.tag.Kind == Row {
			if o.rows[g.lock.tag.Rel]--; o.rows[g.lock.tag.Rel] == 0 {
				delete(o.rows, g.lock.tag.Rel)
			}
		}
		if h := g.lock.holding(o); h != nil {
			h.tx &^= g.mode.bit()
			o.m.settleLocked(g.lock, h)
		}
	}
	if mk == 0 {
		o.grants, o.rows = nil, nil
	}
}

// Release gives back one session lock of that mode. It is false when the session does not hold it.
func (o *Owner) Release(tag Tag, mode Mode) bool {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	lk := o.m.mu.locks[tag]
	if lk == nil {
		return false
	}
	h := lk.holding(o)
	if h == nil || h.session[mode] == 0 {
		return false
	}
	o.held--
	if h.session[mode]--; h.session[mode] == 0 {
		delete(h.session, mode)
		o.m.settleLocked(lk, h)
	}
	return true
}

// ReleaseSession gives back every session lock.
func (o *Owner) ReleaseSession() {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.held == 0 {
		return
	}
	o.held = 0
	for _, lk := range o.m.mu.locks {
		if h := lk.holding(o); h != nil && len(h.session) > 0 {
			h.session = nil
			o.m.settleLocked(lk, h)
		}
	}
}

// ReleaseAll gives back everything: the session ends.
func (o *Owner) ReleaseAll() {
	o.ReleaseTo(0)
	o.ReleaseSession()
}
