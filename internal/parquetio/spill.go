package parquetio

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// spillLocked writes the buffered rows as one sorted run to a temporary file.
func (w *Writer) spillLocked() (err error) {
	f, err := w.o.FS.CreateTemp(w.o.TempDir, "skade-run-*.arrow")
	if err != nil {
		return fmt.Errorf("spill sorted run: %w", err)
	}
	w.runs = append(w.runs, f)
	iw := ipc.NewWriter(f, ipc.WithSchema(w.schema))
	err = w.sortRunLocked(context.Background(), iw.Write)
	if cerr := iw.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("spill sorted run: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("spill sorted run: %w", err)
	}
	return nil
}

// sortedLocked writes all rows in key order: straight from memory when nothing was spilled, else by merging the runs.
func (w *Writer) sortedLocked(ctx context.Context) error {
	left := w.rows
	emit := func(rec arrow.RecordBatch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := w.emitLocked(rec, left)
		left -= rec.NumRows()
		return err
	}
	if len(w.runs) == 0 {
		return w.sortRunLocked(ctx, emit)
	}
	if len(w.buf) > 0 {
		if err := w.spillLocked(); err != nil {
			return err
		}
	}
	return w.mergeLocked(ctx, emit)
}

// run is a sorted run being read.
type run struct {
	n    int // place among the runs: earlier rows of one key come first
	rd   *ipc.Reader
	rec  arrow.RecordBatch
	enc  orderEncoder
	row  int
	key  []byte
	slot int // of rec in the merge's open batches, -1 = none yet
}

// next moves to the run's next row; io.EOF at the end.
func (r *run) next(w *Writer) error {
	r.row++
	for r.rec == nil || r.row >= int(r.rec.NumRows()) {
		rec, err := r.rd.Read()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("read sorted run: %w", err)
			}
			return err
		}
		if r.rec != nil {
			r.rec.Release()
		}
		rec.Retain()
		r.rec, r.row, r.slot = rec, 0, -1
		if r.enc, err = w.encoder(rec); err != nil {
			return err
		}
	}
	var err error
	r.key, err = r.enc.Append(r.key[:0], r.row)
	return err
}

type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	if c := bytes.Compare(h[i].key, h[j].key); c != 0 {
		return c < 0
	}
	return h[i].n < h[j].n
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// merge collects merged rows as references into the runs' open batches and gathers them chunk by chunk.
type merge struct {
	w     *Writer
	emit  func(arrow.RecordBatch) error
	open  []arrow.RecordBatch // batches that rows of the chunk stand in
	base  []uint32            // first row of each in their concatenation
	total uint32
	rows  []uint32
}

func (m *merge) add(r *run) {
	if r.slot < 0 {
		r.rec.Retain()
		r.slot = len(m.open)
		m.open = append(m.open, r.rec)
		m.base = append(m.base, m.total)
		m.total += uint32(r.rec.NumRows())
	}
	m.rows = append(m.rows, m.base[r.slot]+uint32(r.row))
}

func (m *merge) flush(ctx context.Context, runs []*run) error {
	if len(m.rows) == 0 {
		return nil
	}
	all, err := concat(m.w.schema, m.open)
	if err != nil {
		return err
	}
	defer all.Release()
	part, err := take(ctx, all, m.rows)
	if err != nil {
		return err
	}
	defer part.Release()
	for _, b := range m.open {
		b.Release()
	}
	m.open, m.base, m.total, m.rows = m.open[:0], m.base[:0], 0, m.rows[:0]
	for _, r := range runs {
		r.slot = -1
	}
	return m.emit(part)
}

func (w *Writer) mergeLocked(ctx context.Context, emit func(arrow.RecordBatch) error) error {
	var all []*run
	var h runHeap
	m := &merge{w: w, emit: emit}
	defer func() {
		for _, b := range m.open {
			b.Release()
		}
		for _, r := range all {
			if r.rec != nil {
				r.rec.Release()
			}
			r.rd.Release()
		}
	}()
	for i, f := range w.runs {
		rd, err := ipc.NewReader(f)
		if err != nil {
			return fmt.Errorf("read sorted run: %w", err)
		}
		r := &run{n: i, rd: rd, row: -1, slot: -1}
		all = append(all, r)
		switch err := r.next(w); {
		case errors.Is(err, io.EOF):
		case err != nil:
			return err
		default:
			h = append(h, r)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		r := h[0]
		m.add(r)
		switch err := r.next(w); {
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		case err != nil:
			return err
		default:
			heap.Fix(&h, 0)
		}
		if len(m.rows) >= chunkRows {
			if err := m.flush(ctx, all); err != nil {
				return err
			}
		}
	}
	return m.flush(ctx, all)
}
