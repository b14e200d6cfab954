package parquetio

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// chunkRows is how many rows are handed on at a time.
const chunkRows = 16 << 10

// sortEntry is a row with the first eight bytes of its key, which decide most comparisons.
type sortEntry struct {
	head uint64
	row  uint32
}

// sortKeys holds the keys of a run's rows.
type sortKeys struct {
	arena   []byte
	ends    []uint64
	entries []sortEntry
	sorted  bool
	short   bool // every key is at most eight bytes: heads alone decide
}

func (k *sortKeys) key(row uint32) []byte {
	start := uint64(0)
	if row > 0 {
		start = k.ends[row-1]
	}
	return k.arena[start:k.ends[row]]
}

// add encodes the keys of a batch.
func (k *sortKeys) add(rec arrow.RecordBatch, enc orderEncoder) (err error) {
	for row := range int(rec.NumRows()) {
		start := len(k.arena)
		if k.arena, err = enc.Append(k.arena, row); err != nil {
			return err
		}
		key := k.arena[start:]
		k.short = k.short && len(key) == 8
		n := uint32(len(k.entries))
		k.ends = append(k.ends, uint64(len(k.arena)))
		if k.sorted && n > 0 && bytes.Compare(k.key(n-1), key) > 0 {
			k.sorted = false
		}
		k.entries = append(k.entries, sortEntry{head8(key), n})
	}
	return nil
}

func head8(k []byte) uint64 {
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}

func (k *sortKeys) sort() {
	slices.SortFunc(k.entries, func(a, b sortEntry) int {
		switch {
		case a.head < b.head:
			return -1
		case a.head > b.head:
			return 1
		}
		if !k.short {
			if c := bytes.Compare(k.key(a.row), k.key(b.row)); c != 0 {
				return c
			}
		}
		return int(a.row) - int(b.row)
	})
}

// sortRunLocked hands the buffered rows to emit in key order (rows of one key in order of Write) and empties the buffer.
func (w *Writer) sortRunLocked(ctx context.Context, emit func(arrow.RecordBatch) error) error {
	defer func() {
		for _, r := range w.buf {
			r.Release()
		}
		w.buf, w.bytes = nil, 0
	}()
	keys := &sortKeys{sorted: true, short: true}
	for _, r := range w.buf {
		enc, err := w.encoder(r)
		if err != nil {
			return err
		}
		if err := keys.add(r, enc); err != nil {
			return err
		}
	}
	if keys.sorted {
		for _, r := range w.buf {
			if err := emitChunks(r, emit); err != nil {
				return err
			}
		}
		return nil
	}
	keys.sort()
	all, err := concat(w.schema, w.buf)
	if err != nil {
		return err
	}
	defer all.Release()
	idx := make([]uint32, 0, chunkRows)
	for at := 0; at < len(keys.entries); at += chunkRows {
		idx = idx[:0]
		for _, e := range keys.entries[at:min(at+chunkRows, len(keys.entries))] {
			idx = append(idx, e.row)
		}
		part, err := take(ctx, all, idx)
		if err != nil {
			return err
		}
		err = emit(part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func emitChunks(r arrow.RecordBatch, emit func(arrow.RecordBatch) error) error {
	for at := int64(0); at < r.NumRows(); at += chunkRows {
		part := r.NewSlice(at, min(at+chunkRows, r.NumRows()))
		err := emit(part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// concat joins batches of one schema.
func concat(sc *arrow.Schema, recs []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(recs) == 1 {
		recs[0].Retain()
		return recs[0], nil
	}
	cols := make([]arrow.Array, sc.NumFields())
	defer releaseAll(cols)
	rows := int64(0)
	for _, r := range recs {
		rows += r.NumRows()
	}
	for i := range cols {
		parts := make([]arrow.Array, len(recs))
		for j, r := range recs {
			parts[j] = r.Column(i)
		}
		var err error
		if cols[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("join rows: %w", err)
		}
	}
	return array.NewRecordBatch(sc, cols, rows), nil
}

// take gathers rows by index.
func take(ctx context.Context, rec arrow.RecordBatch, idx []uint32) (arrow.RecordBatch, error) {
	buf := memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(idx))
	data := array.NewData(arrow.PrimitiveTypes.Uint32, len(idx), []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	at := array.NewUint32Data(data)
	defer at.Release()
	cols := make([]arrow.Array, rec.NumCols())
	defer releaseAll(cols)
	for i := range cols {
		c, err := takeArray(ctx, rec.Column(i), at)
		if err != nil {
			return nil, fmt.Errorf("order rows: %w", err)
		}
		cols[i] = c
	}
	return array.NewRecordBatch(rec.Schema(), cols, int64(len(idx))), nil
}

// takeArray gathers by index; extension arrays are gathered as their storage, which compute does not do by itself.
func takeArray(ctx context.Context, a arrow.Array, at arrow.Array) (arrow.Array, error) {
	st, err := relabel(a.Data(), storage(a.DataType()))
	if err != nil {
		return nil, err
	}
	defer st.Release()
	plain := array.MakeFromData(st)
	defer plain.Release()
	out, err := compute.TakeArrayOpts(ctx, plain, at, compute.TakeOptions{BoundsCheck: false})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	d, err := relabel(out.Data(), a.DataType())
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Gather picks rows, numbered through all batches in order, into one batch of schema sc.
func Gather(ctx context.Context, sc *arrow.Schema, recs []arrow.RecordBatch, rows []uint32) (arrow.RecordBatch, error) {
	if len(recs) == 0 {
		return array.NewRecordBuilder(memory.DefaultAllocator, sc).NewRecordBatch(), nil
	}
	all, err := concat(sc, recs)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	return take(ctx, all, rows)
}
