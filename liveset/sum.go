package liveset

import (
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// Sum is a sum of differences, file by file and position by position: what one added and another took away is nothing.
// Not safe for concurrent use; the bitmaps it is given do not change.
type Sum struct{ files map[string]*FileDiff }

// NewSum returns the sum of the differences of one Diff.
func NewSum(diffs []FileDiff) *Sum {
	s := &Sum{files: make(map[string]*FileDiff, len(diffs))}
	s.Add(diffs)
	return s
}

// Add adds differences. It returns false when a row would be added or taken away twice, which no bitmap can say; the sum
// is of no use then.
func (s *Sum) Add(diffs []FileDiff) bool {
	for _, d := range diffs {
		if !s.add(d.File, d.Deleted, d.Inserted) {
			return false
		}
	}
	return true
}

// Subtract takes differences away, as adding the differences in the other direction does.
func (s *Sum) Subtract(diffs []FileDiff) bool {
	for _, d := range diffs {
		if !s.add(d.File, d.Inserted, d.Deleted) {
			return false
		}
	}
	return true
}

func (s *Sum) add(f *File, del, ins *roaring.Bitmap) bool {
	have := s.files[f.order]
	if have == nil {
		have = &FileDiff{File: f}
		s.files[f.order] = have
	}
	newDel, newIns := minus(del, have.Inserted), minus(ins, have.Deleted)
	have.Inserted, have.Deleted = minus(have.Inserted, del), minus(have.Deleted, ins)
	if meet(newDel, have.Deleted) || meet(newIns, have.Inserted) {
		return false
	}
	have.Deleted, have.Inserted = union(have.Deleted, newDel), union(have.Inserted, newIns)
	return true
}

func meet(a, b *roaring.Bitmap) bool { return a != nil && b != nil && a.Intersects(b) }

// Diffs returns the sum in order (V4), without files whose rows all cancel.
func (s *Sum) Diffs() []FileDiff {
	var out []FileDiff
	for _, d := range s.files {
		out = appendDiff(out, d.File, d.Deleted, d.Inserted)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].File.order < out[j].File.order })
	return out
}
