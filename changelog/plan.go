package changelog

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/liveset"
)

// DeltaPlan is what a window touches on the level of files, step by step, oldest first: a file that came and went inside it is in both
// lists. Read it only. The rows of a file list are not the rows of the window: for those there is Changes.
type DeltaPlan struct {
	// From and To are the states that the window was resolved to.
	From, To *State
	Kind     TableKind
	Steps    int // snapshots in the window, replace snapshots included
	// Skipped counts replace snapshots that were passed over after their row count was checked.
	Skipped int
	// Added and Removed are data files that one end of a step has and the other has not.
	Added, Removed []*liveset.File
	// Changed are data files that both ends of a step have with different suppressed positions.
	Changed []*liveset.File
	// EqualityDeletes, PositionDeletes and DVs (one each, many in a Puffin file) are the delete files that the later end of a step has and
	// the earlier has not; RemovedDeletes are those of the reverse, whose rows may live again.
	EqualityDeletes, PositionDeletes, DVs []*liveset.DeleteFile
	RemovedDeletes                        []*liveset.DeleteFile
	// FilesConsidered counts the data files of the window's largest state, or those it reads where there are more; FilesOpened those it reads.
	FilesConsidered, FilesOpened int
	// RowsRead and BytesRead bound what is decoded: rows on both sides, and the files' sizes in proportion to them.
	RowsRead, BytesRead int64
}

// Plan says which files a table's changes in (from, to] are made of, as of now, without reading data files. Request has more to ask for:
// Changes(ctx, q), then Result.Plan. Errors: as Changes.
func (r *Reader) Plan(ctx context.Context, ident table.Identifier, from, to Bound) (*DeltaPlan, error) {
	x, err := r.Changes(ctx, r.window(ident, from, to))
	if err != nil {
		return nil, err
	}
	return x.Plan(ctx)
}

// Plan says what Batches will read. It may be asked before or after reading.
func (x *Result) Plan(ctx context.Context) (*DeltaPlan, error) {
	p := &DeltaPlan{Steps: len(x.w.steps), Kind: x.cols.Kind}
	var err error
	if p.From, p.To, err = x.Ends(ctx); err != nil {
		return nil, err
	}
	opened := map[string]bool{}
	for i := range x.w.steps {
		if err := x.planStep(ctx, p, &x.w.steps[i], opened); err != nil {
			return nil, err
		}
	}
	p.FilesOpened = len(opened)
	p.FilesConsidered = max(p.FilesConsidered, p.FilesOpened) // files may come and go between the ends
	return p, nil
}

func (x *Result) planStep(ctx context.Context, p *DeltaPlan, s *step, opened map[string]bool) error {
	diffs, err := x.diffStep(ctx, s)
	if err != nil {
		return err
	}
	before, err := x.set(ctx, s.old)
	if err != nil {
		return err
	}
	after, err := x.set(ctx, s.new)
	if err != nil {
		return err
	}
	p.FilesConsidered = max(p.FilesConsidered, before.NumFiles(), after.NumFiles())
	if s.replace && len(diffs) == 0 {
		p.Skipped++
		return nil
	}
	for _, d := range diffs {
		path, rows := d.File.Path, int64(0)
		for _, b := range []*roaring.Bitmap{d.Deleted, d.Inserted} {
			if b != nil {
				rows += int64(b.GetCardinality())
			}
		}
		switch had, has := before.File(path) != nil, after.File(path) != nil; {
		case had && has:
			p.Changed = append(p.Changed, d.File)
		case has:
			p.Added = append(p.Added, d.File)
		case had:
			p.Removed = append(p.Removed, d.File)
		}
		if rows > 0 {
			opened[path] = true
		}
		p.RowsRead += rows
		if d.File.Records > 0 {
			p.BytesRead += int64(float64(d.File.Size) * float64(rows) / float64(d.File.Records))
		}
	}
	added, removed := liveset.DiffDeletes(before, after)
	p.RemovedDeletes = append(p.RemovedDeletes, removed...)
	for _, d := range added {
		switch d.Kind {
		case liveset.PositionDelete:
			p.PositionDeletes = append(p.PositionDeletes, d)
		case liveset.DeletionVector:
			p.DVs = append(p.DVs, d)
		case liveset.EqualityDelete:
			p.EqualityDeletes = append(p.EqualityDeletes, d)
		}
	}
	return nil
}
