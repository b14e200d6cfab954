package liveset

import (
	"context"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// FileDiff is what changed in one file: rows live before and not after, and the reverse. nil bitmaps are empty.
type FileDiff struct {
	File              *File
	Deleted, Inserted *roaring.Bitmap
}

// Diff returns the changed files in order (V4). Its cost follows the change when the sets share structure, as sets of one Cache do;
// it is right for any two sets. A file that only got another description (sequence numbers, path reused) is a removal and an addition.
func Diff(ctx context.Context, before, after *Set) ([]FileDiff, error) {
	var out []FileDiff
	diffTrees(before.files, after.files, func(_ string, a, b *LiveFile) {
		switch {
		case a == nil:
			out = appendDiff(out, b.File, nil, liveRows(b))
		case b == nil:
			out = appendDiff(out, a.File, liveRows(a), nil)
		case !a.File.same(b.File):
			out = appendDiff(out, a.File, liveRows(a), nil)
			out = appendDiff(out, b.File, nil, liveRows(b))
		case a.Suppressed != b.Suppressed && !equalInt(a.File.FirstRowID, b.File.FirstRowID):
			// Its rows got their ids with this change: those that died in it had none.
			out = appendDiff(out, a.File, minus(b.Suppressed, a.Suppressed), nil)
			out = appendDiff(out, b.File, nil, minus(a.Suppressed, b.Suppressed))
		case a.Suppressed != b.Suppressed:
			out = appendDiff(out, b.File, minus(b.Suppressed, a.Suppressed), minus(a.Suppressed, b.Suppressed))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].File.order < out[j].File.order })
	return out, nil
}

func appendDiff(out []FileDiff, f *File, del, ins *roaring.Bitmap) []FileDiff {
	del, ins = orNil(del), orNil(ins)
	if del == nil && ins == nil {
		return out
	}
	return append(out, FileDiff{File: f, Deleted: del, Inserted: ins})
}

// liveRows is the bitmap of a file's live rows.
func liveRows(f *LiveFile) *roaring.Bitmap {
	b := roaring.New()
	b.AddRange(0, uint64(f.File.Records))
	if f.Suppressed != nil {
		b.AndNot(f.Suppressed)
	}
	return b
}

// minus is a \ b.
func minus(a, b *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case a == nil:
		return nil
	case b == nil:
		return a
	}
	return roaring.AndNot(a, b)
}

// DiffDeletes returns the delete files that after has and before has not, and the reverse, by path and content offset. Its cost follows the
// change, as Diff's.
func DiffDeletes(before, after *Set) (added, removed []*DeleteFile) {
	diffTrees(before.dels, after.dels, func(_ string, a, b *DeleteFile) {
		if b != nil && (a == nil || a.DataSeq != b.DataSeq || a.FileSeq != b.FileSeq) {
			added = append(added, b)
		}
		if a != nil && (b == nil || a.DataSeq != b.DataSeq || a.FileSeq != b.FileSeq) {
			removed = append(removed, a)
		}
	})
	return added, removed
}
