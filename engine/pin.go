package engine

import (
	"math"

	"github.com/nordisk/skade-pg/catalog"
)

// pinCut pins the catalog's current cut for a transaction that begins. What is removed after a commit waits for the cuts from before it, so the cut must be
// current still once the pin can be seen.
func (s *session) pinCut() *catalog.Cut {
	for cut := s.gw.catalog.Cut(); ; {
		p := s.gw.lastPins.Load() // most transactions begin at a cut at which another one began
		if p == nil || p.cuts[0] != cut {
			p = &pins{cuts: []*catalog.Cut{cut}}
			s.gw.lastPins.Store(p)
		}
		s.pinned.Store(p)
		now := s.gw.catalog.Cut()
		if now.Seq() == cut.Seq() {
			return cut
		}
		cut = now
	}
}

// eachPinned calls f for what every open transaction reads.
func (gw *Gateway) eachPinned(f func(*pins)) {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	for _, s := range gw.mu.sessions {
		if p := s.pinned.Load(); p != nil {
			f(p)
		}
	}
}

// oldestPinned is a seq from which on everything is there that an open transaction reads; the largest number when nothing is read.
func (gw *Gateway) oldestPinned() uint64 {
	oldest := uint64(math.MaxUint64)
	gw.eachPinned(func(p *pins) {
		for _, cut := range p.cuts {
			oldest = min(oldest, cut.Seq())
		}
		for _, t := range p.states {
			oldest = min(oldest, t.ChangedSeq)
		}
	})
	return oldest
}

// pinnedSnapshots are the snapshots of a table that open transactions read, those of branches and tags included.
func (gw *Gateway) pinnedSnapshots(key catalog.TableKey) map[int64]bool {
	pinned := map[int64]bool{}
	gw.eachPinned(func(p *pins) {
		for _, t := range p.of(key) {
			if id, ok := t.SnapshotID(); ok {
				pinned[id] = true
			}
			for _, r := range t.Refs() {
				pinned[r.SnapshotID] = true
			}
		}
	})
	return pinned
}
