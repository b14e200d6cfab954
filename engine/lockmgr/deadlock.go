package lockmgr

import "slices"

// edge is one wait: w stands behind by. A soft edge is for by's earlier request only, not for what it holds.
type edge struct {
	w    *waiter
	by   *Owner
	soft *waiter // by's request, nil for a hard edge
}

// edges are what w waits for, holders first.
func (w *waiter) edges() []edge {
	var out []edge
	for _, h := range w.lock.holders {
		if h.owner != w.owner && h.all&conflicts[w.mode] != 0 {
			out = append(out, edge{w: w, by: h.owner})
		}
	}
	for _, v := range w.lock.queue {
		if v == w {
			break
		}
		if v.owner != w.owner && conflicts[w.mode]&v.mode.bit() != 0 {
			out = append(out, edge{w: w, by: v.owner, soft: v})
		}
	}
	return out
}

// circle finds a circle of waits through w; nil when there is none.
func (w *waiter) circle() []edge {
	seen := map[*Owner]bool{}
	var path []edge
	var visit func(x *waiter) bool
	visit = func(x *waiter) bool {
		for _, e := range x.edges() {
			if e.by == w.owner {
				path = append(path, e)
				return true
			}
			if seen[e.by] || e.by.wait == nil {
				continue
			}
			seen[e.by] = true
			path = append(path, e)
			if visit(e.by.wait) {
				return true
			}
			path = path[:len(path)-1]
		}
		return false
	}
	if !visit(w) {
		return nil
	}
	return path
}

// checkDeadlock looks for a circle through w. One that has a soft edge is dissolved when the two requests can change places (K3).
func (m *Manager) checkDeadlock(w *waiter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.granted {
		return nil
	}
	c := w.circle()
	if c == nil || m.dissolveLocked(w, c, 0) {
		return nil
	}
	e := &DeadlockError{}
	for _, x := range c {
		e.Edges = append(e.Edges, Edge{Waiter: x.w.owner.pid, Mode: x.w.mode, Tag: x.w.lock.tag, Blocker: x.by.pid})
	}
	return e
}

// maxSwaps bounds how many requests change places to dissolve one circle.
const maxSwaps = 16

// dissolveLocked tries the soft edges of a circle in turn: the request that waits goes before the one it waits for.
func (m *Manager) dissolveLocked(w *waiter, c []edge, depth int) bool {
	if depth == maxSwaps {
		return false
	}
	for _, e := range slices.Backward(c) { // the farthest first, as PostgreSQL does
		if e.soft == nil {
			continue
		}
		lk := e.w.lock
		before := slices.Clone(lk.queue)
		i := slices.Index(lk.queue, e.soft)
		j := slices.Index(lk.queue, e.w)
		lk.queue = slices.Insert(slices.Delete(lk.queue, j, j+1), i, e.w)
		next := w.circle()
		if next == nil {
			next = e.soft.circle() // the one that was overtaken must not be in a circle now
		}
		if next == nil || m.dissolveLocked(w, next, depth+1) {
			m.wakeLocked(lk)
			return true
		}
		lk.queue = before
	}
	return false
}
