package warehouse

import (
	"maps"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// ownFile is a data file this transaction wrote and no snapshot lists yet.
type ownFile struct {
	file    *liveset.File
	written parquetio.WrittenFile
}

// eqDelete is an equality delete the transaction writes for its base's rows.
type eqDelete struct {
	fieldIDs []int
	cols     []int                      // of the table
	rows     arrow.RecordBatch          // columns: the fields, in order
	covered  map[string]*roaring.Bitmap // base rows it deletes: they need no position delete
}

// state is what a transaction did to a table. A savepoint keeps the pointer; the first write after it works on a clone,
// so that rolling back is taking the old pointer again.
type state struct {
	log  *rowLog         // shared by the states between two flushes; this one sees its first rows rows
	rows int32           //
	dead *roaring.Bitmap // of the log's rows; nil: none

	own      []*ownFile
	suppress map[string]*roaring.Bitmap // path of a base or own file → positions suppressed by this transaction
	mine     map[string]struct{}        // paths whose bitmap this state may modify; the others are shared

	truncated bool // the base's files are gone
	strict    bool // … and the base must still be the head (Overwrite)
	exclusive bool // the base must still be the head: every row of it was looked at (Exclusive)
	upserted  bool // a key may stem from an upsert
	eq        []eqDelete
	err       error // sticky: a flush failed and rows are lost

	frozen bool // a savepoint holds this state
}

func newState(keyed bool) *state {
	return &state{log: newRowLog(keyed), suppress: map[string]*roaring.Bitmap{}, mine: map[string]struct{}{}}
}

func (s *state) clone() *state {
	c := *s
	c.frozen = false
	if s.dead != nil {
		c.dead = s.dead.Clone()
	}
	c.own = s.own[:len(s.own):len(s.own)]
	c.eq = s.eq[:len(s.eq):len(s.eq)]
	c.suppress = maps.Clone(s.suppress)
	c.mine = map[string]struct{}{}
	return &c
}

// kill marks a row of the log dead.
func (s *state) kill(row int32) {
	if s.dead == nil {
		s.dead = roaring.New()
	}
	s.dead.Add(uint32(row))
}

func (s *state) isDead(row int32) bool { return s.dead != nil && s.dead.Contains(uint32(row)) }

// suppressed is the bitmap of path, nil when empty; the caller does not modify it.
func (s *state) suppressed(path string) *roaring.Bitmap { return s.suppress[path] }

// suppressAt adds positions of path.
func (s *state) suppressAt(path string, positions *roaring.Bitmap) {
	b := s.suppress[path]
	_, mine := s.mine[path]
	switch {
	case b == nil:
		b = positions.Clone()
	case mine:
		b.Or(positions)
	default:
		b = roaring.Or(b, positions)
	}
	s.suppress[path] = b
	s.mine[path] = struct{}{}
}

// suppressRow adds one position of path.
func (s *state) suppressRow(path string, pos uint32) {
	b := s.suppress[path]
	if _, mine := s.mine[path]; !mine || b == nil {
		if b == nil {
			b = roaring.New()
		} else {
			b = b.Clone()
		}
		s.suppress[path] = b
		s.mine[path] = struct{}{}
	}
	b.Add(pos)
}

// shareBitmaps gives the suppressed positions to a set: the next change of one copies it.
func (s *state) shareBitmaps() map[string]*roaring.Bitmap {
	clear(s.mine)
	return maps.Clone(s.suppress)
}

// changed says whether the state would change the table.
func (s *state) changed() bool {
	return s.truncated || len(s.own) > 0 || len(s.eq) > 0 || len(s.suppress) > 0 || liveRows(s.rows, s.dead) > 0
}
