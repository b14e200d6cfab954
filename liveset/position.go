package liveset

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

var errPositionRange = errors.New("position does not fit 32 bits")

// positions is a position delete file's content: data file path → positions.
type positions struct{ byPath map[string]*roaring.Bitmap }

// deleteNames maps the columns of position delete files that carry no field ids.
var deleteNames = func() iceberg.NameMapping {
	path, pos := deletePathID, deletePosID
	return iceberg.NameMapping{{FieldID: &path, Names: []string{"file_path"}}, {FieldID: &pos, Names: []string{"pos"}}}
}()

// positions reads a position delete file, or takes it from the cache.
func (c *Cache) positions(ctx context.Context, d *DeleteFile) (*positions, error) {
	return cached(ctx, c, lruKey{kind: kindPositions, name: d.key}, func() (*positions, int64, error) {
		c.stats.deleteFiles.Add(1)
		r, err := c.reader(ctx, d.Data.FilePath(), d.Data.FileSizeBytes())
		if err != nil {
			return nil, 0, err
		}
		p := &positions{byPath: map[string]*roaring.Bitmap{}}
		if err := p.read(ctx, r); err != nil {
			return nil, 0, err
		}
		for _, b := range p.byPath {
			b.RunOptimize()
		}
		return p, p.memory(), nil
	})
}

func (p *positions) read(ctx context.Context, r *parquetio.Reader) error {
	var path string
	var bm *roaring.Bitmap
	var run []uint32
	flush := func() {
		if bm != nil {
			bm.AddMany(run)
		}
		run = run[:0]
	}
	for rec, err := range r.Scan(ctx, parquetio.ReadOptions{Schema: iceberg.PositionalDeleteSchema, NameMapping: deleteNames}) {
		if err != nil {
			return err
		}
		paths, pos := rec.Column(0).(*array.String), rec.Column(1).(*array.Int64)
		for i := range int(rec.NumRows()) {
			if v := paths.Value(i); bm == nil || v != path {
				flush()
				path = string(append([]byte(nil), v...))
				if bm = p.byPath[path]; bm == nil {
					bm = roaring.New()
					p.byPath[path] = bm
				}
			}
			n := pos.Value(i)
			if n < 0 || n > math.MaxUint32 {
				rec.Release()
				return &DamagedError{Path: r.Path(), Offset: -1, Err: fmt.Errorf("%w: %d", errPositionRange, n)}
			}
			run = append(run, uint32(n))
		}
		flush()
		rec.Release()
	}
	return nil
}

// vector reads a deletion vector, or takes it from the cache.
func (c *Cache) vector(ctx context.Context, d *DeleteFile) (*roaring.Bitmap, error) {
	return cached(ctx, c, lruKey{kind: kindVector, name: d.key}, func() (_ *roaring.Bitmap, _ int64, err error) {
		path := d.Data.FilePath()
		defer guard(path, &err)
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		c.stats.deleteFiles.Add(1)
		v, err := dv.ReadDV(c.fs, d.Data)
		if err != nil {
			return nil, 0, fileError(path, "deletion vector", err)
		}
		b := roaring.New()
		buf := make([]uint32, 0, 4096)
		for p := range v.Positions() {
			if p > math.MaxUint32 {
				return nil, 0, &DamagedError{Path: path, Offset: -1, Err: fmt.Errorf("%w: %d", errPositionRange, p)}
			}
			if buf = append(buf, uint32(p)); len(buf) == cap(buf) {
				b.AddMany(buf)
				buf = buf[:0]
			}
		}
		b.AddMany(buf)
		b.RunOptimize()
		return b, int64(b.GetSizeInBytes()) + 64, nil
	})
}

// within cuts positions past the file's end, which some writers' deletes name: they suppress nothing.
func within(b *roaring.Bitmap, f *File) *roaring.Bitmap {
	if b == nil || b.IsEmpty() || int64(b.Maximum()) < f.Records {
		return b
	}
	out := b.Clone()
	out.RemoveRange(uint64(f.Records), uint64(b.Maximum())+1)
	return out
}

// positionDeletes are the positions that a file's deletion vector takes, or else its position deletes.
func (c *Cache) positionDeletes(ctx context.Context, s *Set, f *File) (*roaring.Bitmap, error) {
	scoped, _ := s.scoped.get(f.Path)
	var vec *DeleteFile
	for _, d := range scoped.list() {
		if d.Kind != DeletionVector || f.DataSeq > d.DataSeq {
			continue
		}
		if vec != nil {
			return nil, fmt.Errorf("%w: %s: %s and %s", ErrConflictingDVs, f.Path, vec.key, d.key)
		}
		vec = d
	}
	if vec != nil {
		b, err := c.vector(ctx, vec)
		return within(b, f), err
	}
	var out *roaring.Bitmap
	part, _ := s.byPart.get(f.part)
	for _, list := range [2][]*DeleteFile{scoped.list(), part.list()} {
		for _, d := range list {
			b, err := c.positionsIn(ctx, d, f)
			if err != nil {
				return nil, err
			}
			out = union(out, b)
		}
	}
	return out, nil
}

// positionsIn are the positions one position delete takes of f, nil when it does not apply.
func (c *Cache) positionsIn(ctx context.Context, d *DeleteFile, f *File) (*roaring.Bitmap, error) {
	if d.Kind != PositionDelete || f.DataSeq > d.DataSeq || d.ref == "" && d.part != f.part || d.ref != "" && d.ref != f.Path {
		return nil, nil
	}
	p, err := c.positions(ctx, d)
	if err != nil {
		return nil, err
	}
	return within(p.byPath[f.Path], f), nil
}
