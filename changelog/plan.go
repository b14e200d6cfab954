package changelog

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/nordisk/skade-pg/liveset"
)

// DeltaPlan is what a window touches on the level of files.
type DeltaPlan struct {
	Steps int // snapshots in the window, replace snapshots included
	// Skipped counts replace snapshots that were passed over after their row count was checked.
	Skipped int
	// Added and Removed are data files that one end of a step has and the other has not.
	Added, Removed []string
	// Changed are data files that both ends have with different suppressed positions.
	Changed []string
	// EqualityDeletes, PositionDeletes and DVs are the delete files the window's snapshots added.
	EqualityDeletes, PositionDeletes, DVs []string
	// FilesConsidered counts the data files live at the window's ends, FilesOpened those the window reads.
	FilesConsidered, FilesOpened int
	// RowsRead and BytesRead bound what is decoded: rows on both sides, and the files' sizes in proportion to them.
	RowsRead, BytesRead int64
}

// Plan says what Changes would read, without reading data files: EXPLAIN, and readers of the file level.
func (r *Reader) Plan(ctx context.Context, q Request) (*DeltaPlan, error) {
	x, err := r.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	return x.Plan(ctx)
}

// Plan says what Batches will read. It may be asked before or after reading.
func (x *Result) Plan(ctx context.Context) (*DeltaPlan, error) {
	p := &DeltaPlan{Steps: len(x.w.steps)}
	opened := map[string]bool{}
	for i := range x.w.steps {
		if err := x.planStep(ctx, p, &x.w.steps[i], opened); err != nil {
			return nil, err
		}
	}
	p.FilesOpened = len(opened)
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
			p.Changed = append(p.Changed, path)
		case has:
			p.Added = append(p.Added, path)
		case had:
			p.Removed = append(p.Removed, path)
		}
		if rows > 0 {
			opened[path] = true
		}
		p.RowsRead += rows
		if d.File.Records > 0 {
			p.BytesRead += int64(float64(d.File.Size) * float64(rows) / float64(d.File.Records))
		}
	}
	for d := range after.DeleteFiles() {
		if s.new == nil || d.AddedSnapshot != *s.new {
			continue
		}
		switch d.Kind {
		case liveset.PositionDelete:
			p.PositionDeletes = append(p.PositionDeletes, d.Data.FilePath())
		case liveset.DeletionVector:
			p.DVs = append(p.DVs, d.Data.FilePath())
		case liveset.EqualityDelete:
			p.EqualityDeletes = append(p.EqualityDeletes, d.Data.FilePath())
		}
	}
	return nil
}
