package warehouse

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/nordisk/skade-pg/liveset"
)

// moves says where a compaction put the rows of the files it replaced. It holds six bytes for each row of them.
type moves struct {
	files []string          // the new files
	from  map[string]*moved // by path of a replaced file
	rows  int64
}

// moved is one replaced file: by position, the new file and the position in it.
type moved struct {
	slot []uint16 // in files; noSlot for a row that was suppressed
	pos  []uint32
}

const noSlot = 1<<16 - 1

func newMoves(victims []*liveset.LiveFile) *moves {
	m := &moves{from: map[string]*moved{}}
	for _, v := range victims {
		m.from[v.File.Path] = newMoved(v.File.Records)
		m.rows += v.File.Records
	}
	return m
}

func newMoved(rows int64) *moved {
	f := &moved{slot: make([]uint16, rows), pos: make([]uint32, rows)}
	for i := range f.slot {
		f.slot[i] = noSlot
	}
	return f
}

// at is the new place of a row, ok false when it was not moved.
func (m *moves) at(path string, pos uint32) (to string, at uint32, ok bool) {
	f := m.from[path]
	if f == nil || int(pos) >= len(f.slot) || f.slot[pos] == noSlot {
		return "", 0, false
	}
	return m.files[f.slot[pos]], f.pos[pos], true
}

// translate adds the new places of positions of a replaced file to out. It returns false when one of the rows was not moved.
func (m *moves) translate(path string, positions *roaring.Bitmap, out map[string]*roaring.Bitmap) bool {
	for it := positions.Iterator(); it.HasNext(); {
		to, pos, ok := m.at(path, it.Next())
		if !ok {
			return false
		}
		if out[to] == nil {
			out[to] = roaring.New()
		}
		out[to].Add(pos)
	}
	return m.from[path] != nil
}

// moveLog keeps the moves of the last compactions, so that a transaction that began before one finds its rows in the new files. It is bounded by rows:
// a transaction older than what it holds conflicts with the compaction.
type moveLog struct {
	mu     sync.Mutex
	recent []*moves // oldest first
	rows   int64
}

// maxMoveRows bounds the log: 96 MiB. The newest moves are kept whatever their size.
const maxMoveRows = 16 << 20

func (l *moveLog) add(m *moves) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.recent, m) { // the commit was tried again
		return
	}
	l.recent = append(l.recent, m)
	l.rows += m.rows
	for len(l.recent) > 1 && l.rows > maxMoveRows {
		l.rows -= l.recent[0].rows
		l.recent = l.recent[1:]
	}
}

// of returns the newest moves of a replaced file.
func (l *moveLog) of(path string) *moves {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range slices.Backward(l.recent) {
		if m.from[path] != nil {
			return m
		}
	}
	return nil
}

// follow finds rows in the files of set, through as many compactions as there were. ErrConflict when a row's file went any other way.
func (l *moveLog) follow(set *liveset.Set, path string, positions *roaring.Bitmap, out map[string]*roaring.Bitmap) error {
	if set.File(path) != nil {
		if out[path] == nil {
			out[path] = positions
		} else {
			out[path] = roaring.Or(out[path], positions)
		}
		return nil
	}
	m := l.of(path)
	if m == nil {
		return fmt.Errorf("%w: the data file of a row was replaced (%s)", ErrConflict, filepath.Base(path))
	}
	next := map[string]*roaring.Bitmap{}
	if !m.translate(path, positions, next) {
		return fmt.Errorf("%w: a row was deleted or updated", ErrConflict)
	}
	for _, p := range slices.Sorted(maps.Keys(next)) {
		if err := l.follow(set, p, next[p], out); err != nil {
			return err
		}
	}
	return nil
}

// placed is what the transaction suppresses, by the files of the newest base: compactions since the cut have moved rows.
type placed struct {
	suppress map[string]*roaring.Bitmap
	moved    bool // some file was replaced
}

// place finds the transaction's suppressed rows in set and checks that they are live there.
func (c *tableCommit) place(set *liveset.Set) (*placed, error) {
	p := &placed{suppress: map[string]*roaring.Bitmap{}}
	for path, b := range c.t.st.suppress {
		if b.IsEmpty() || c.t.baseSet.File(path) == nil {
			continue
		}
		p.moved = p.moved || set.File(path) == nil
		if err := c.t.tx.w.moves.follow(set, path, b, p.suppress); err != nil {
			return nil, err
		}
	}
	for path, b := range p.suppress {
		if f := set.File(path); f.Suppressed != nil && f.Suppressed.Intersects(b) {
			return nil, fmt.Errorf("%w: a row was deleted or updated", ErrConflict)
		}
	}
	return p, nil
}

// replace makes the delete files anew when the rows of those that prepare made are in other files now, and back when they are not any more: the
// catalog may build a commit on a base that does not come to be.
func (c *tableCommit) replace(set *liveset.Set, p *placed) error {
	if !p.moved && !c.moved {
		return nil
	}
	c.moved = p.moved
	c.stale = append(c.stale, c.paths...)
	c.paths, c.sup, c.dead, c.deletes, c.gone = nil, nil, nil, nil, 0
	if p.moved {
		c.collectMoved(set, p)
	} else {
		c.collectSuppressions()
	}
	if err := c.writeDeletes(); err != nil {
		return err
	}
	return c.writeManifests()
}

// collectMoved is collectSuppressions for the files of a newer base. An equality delete covers rows wherever they are.
func (c *tableCommit) collectMoved(set *liveset.Set, p *placed) {
	covered := map[string]*roaring.Bitmap{}
	for _, e := range c.t.st.eq {
		for path, b := range e.covered {
			_ = c.t.tx.w.moves.follow(set, path, b, covered) // what cannot be found gets a position delete too
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.suppress)) {
		b, f := p.suppress[path], set.File(path)
		c.gone += card(b)
		if f.Live() == card(b) && len(c.t.st.eq) == 0 {
			c.dead = append(c.dead, suppression{f.File, b})
			continue
		}
		if cov := covered[path]; cov != nil {
			b = roaring.AndNot(b, cov)
		}
		if !b.IsEmpty() {
			c.sup = append(c.sup, suppression{f.File, b})
		}
	}
}
