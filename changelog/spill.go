package changelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// spilled matches a step that is larger than a partition: both sides are cut by hash into n files a side in a temporary
// folder, then matched one partition after the other. A keyed step is cut by key; a log step by row id when it has one
// (a copy-on-write update keeps it), else by row. A pair by row id whose keys hash apart is DELETE and INSERT here.
func (run *stepRun) spilled(ctx context.Context, units []unit, n int) (err error) {
	dir, err := os.MkdirTemp(run.x.r.opts.TempDir, "changes-")
	if err != nil {
		return fmt.Errorf("spill changed rows: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := make([]*spillFile, 2*n)
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	err = readUnits(ctx, run.x.r.opts.Workers, units, run.read, func(u unit, b arrow.RecordBatch) error {
		defer b.Release()
		side := 0
		if u.inserted {
			side = n
		}
		return run.scatter(b, n, func(p int, part arrow.RecordBatch) error {
			f := files[side+p]
			if f == nil {
				if f, err = createSpill(filepath.Join(dir, fmt.Sprint(side+p)), part.Schema()); err != nil {
					return err
				}
				files[side+p] = f
			}
			return f.w.Write(part)
		})
	})
	if err != nil {
		return err
	}
	next := int64(0)
	for p := range n {
		dels, err := files[p].readBack()
		if err != nil {
			return err
		}
		inss, err := files[n+p].readBack()
		if err != nil {
			return err
		}
		if next, err = run.partition(ctx, dels, inss, next); err != nil {
			return err
		}
		if next >= run.step.limit {
			break
		}
	}
	return nil
}

// scatter cuts a batch into the rows of each partition.
func (run *stepRun) scatter(b arrow.RecordBatch, n int, put func(int, arrow.RecordBatch) error) error {
	cols, rowID := run.split(b)
	vecs := newVectors(cols)
	by := run.lay.key
	if len(by) == 0 {
		by = run.lay.compare
	}
	hashes := make([]uint64, b.NumRows())
	for _, c := range by {
		for k := 0; k<<chunkBits < len(hashes); k++ {
			vecs[c].hash(k, hashes[k<<chunkBits:min((k+1)<<chunkBits, len(hashes))])
		}
	}
	if rowID != nil && len(run.lay.key) == 0 && !run.x.net {
		ids := newVector(rowID)
		for r := range hashes {
			if rowID.IsValid(r) {
				hashes[r] = ids.hashAt(uint32(r), 0)
			}
		}
	}
	rows := make([][]uint32, n)
	for r, h := range hashes {
		p := (h >> 32) % uint64(n)
		rows[p] = append(rows[p], uint32(r))
	}
	all := newVectors(b.Columns())
	for p, list := range rows {
		if len(list) == 0 {
			continue
		}
		out := make([]arrow.Array, len(all))
		var err error
		for c, v := range all {
			if out[c], err = v.gather(list); err != nil {
				return fmt.Errorf("gather changed rows: %w", err)
			}
		}
		part := array.NewRecordBatch(b.Schema(), out, int64(len(list)))
		err = put(p, part)
		part.Release()
		if err != nil {
			return fmt.Errorf("spill changed rows: %w", err)
		}
	}
	return nil
}

// spillFile is one side of one partition on disk, an Arrow IPC file.
type spillFile struct {
	f *os.File
	w *ipc.FileWriter
}

func createSpill(path string, sc *arrow.Schema) (*spillFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(sc))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spillFile{f, w}, nil
}

func (s *spillFile) readBack() (_ []arrow.RecordBatch, err error) {
	if s == nil {
		return nil, nil
	}
	if err := s.w.Close(); err != nil {
		return nil, fmt.Errorf("spill changed rows: %w", err)
	}
	r, err := ipc.NewFileReader(s.f)
	if err != nil {
		return nil, fmt.Errorf("read spilled rows: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out := make([]arrow.RecordBatch, r.NumRecords())
	for i := range out {
		b, err := r.RecordBatchAt(i)
		if err != nil {
			return nil, fmt.Errorf("read spilled rows: %w", err)
		}
		out[i] = b
	}
	return out, nil
}

func (s *spillFile) close() {
	if s != nil {
		s.f.Close()
	}
}
