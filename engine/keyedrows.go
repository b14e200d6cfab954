package engine

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/pgwire"
)

// keyedOutputs say how found rows become DataRows.
type keyedOutputs struct {
	cols []pgwire.Column
	// places has, per output column, its place in the rows; nil when they are in order.
	places []int
	// fixed has, per output column, the encoder of a value that is the same in every row; nil for a column of the rows. nulls are NULL instead.
	fixed []fieldEncoder
	nulls []bool
	style pgenc.Style
}

func (s *session) keyedOutputs(ctx context.Context, b binding, k *pgsql.KeyedSelect, places []int) (*keyedOutputs, error) {
	out := &keyedOutputs{cols: b.cols, style: s.style()}
	for i, o := range k.Output {
		if places[i] != i {
			out.places = places
		}
		if o.Value == nil {
			continue
		}
		if out.fixed == nil {
			out.fixed, out.nulls = make([]fieldEncoder, len(k.Output)), make([]bool, len(k.Output))
		}
		vals, err := s.evaluateNative(ctx, []*pgsql.Arg{o.Value}, b.args)
		if err != nil {
			return nil, err
		}
		if vals[0].null {
			out.nulls[i] = true
		}
		var data []byte
		if !vals[0].null {
			format := pgenc.Text
			if b.cols[i].Format == 1 {
				format = pgenc.Binary
			}
			if data, err = pgenc.Append(nil, b.cols[i].TypeOID, format, vals[0].v, out.style); err != nil {
				return nil, err
			}
		}
		out.fixed[i] = func(dst []byte, _ int) ([]byte, error) { return append(dst, data...), nil }
	}
	return out, nil
}

// rows takes over a batch of the columns that are shown.
func (o *keyedOutputs) rows(rec arrow.RecordBatch) (*batchRows, error) {
	if o.places == nil && o.fixed == nil {
		return newBatchRows(rec, o.cols, o.style)
	}
	b := &batchRows{rec: rec, arrs: make([]arrow.Array, len(o.cols)), encs: make([]fieldEncoder, len(o.cols)), nulls: o.nulls}
	for i, c := range o.cols {
		if o.fixed != nil && o.fixed[i] != nil {
			b.encs[i] = o.fixed[i]
			continue
		}
		at := i
		if o.places != nil {
			at = o.places[i]
		}
		e, err := columnEncoder(rec.Column(at), c, o.style)
		if err != nil {
			rec.Release()
			return nil, err
		}
		b.arrs[i], b.encs[i] = rec.Column(at), e
	}
	return b, nil
}

// foundRows stream the batches of a lookup, from the skip-th row on, left of them (-1: all).
type foundRows struct {
	next       func(ctx context.Context) (arrow.RecordBatch, error)
	out        *keyedOutputs
	cur        *batchRows
	skip, left int64
}

// foundAtOnce is how many rows go to the client in one piece.
const foundAtOnce = 256

func (f *foundRows) appendRows(ctx context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	for f.left != 0 {
		if f.cur == nil {
			rec, err := f.next(ctx)
			if err != nil || rec == nil {
				return dst, 0, err == nil, err
			}
			if f.cur, err = f.cut(rec); err != nil {
				return dst, 0, false, err
			}
		}
		room := int64(foundAtOnce)
		if limit > 0 {
			room = min(room, int64(limit))
		}
		if f.left > 0 {
			room = min(room, f.left)
		}
		out, n, done, err := f.cur.appendRows(ctx, dst, int(room))
		if err != nil {
			return out, n, false, err
		}
		if done {
			f.close()
		}
		if f.left > 0 {
			f.left -= int64(n)
		}
		if n > 0 {
			return out, n, f.left == 0, nil
		}
	}
	return dst, 0, true, nil
}

// cut is a batch without the rows that OFFSET passes over.
func (f *foundRows) cut(rec arrow.RecordBatch) (*batchRows, error) {
	if f.skip > 0 {
		k := min(f.skip, rec.NumRows())
		f.skip -= k
		rest := rec.NewSlice(k, rec.NumRows())
		rec.Release()
		rec = rest
	}
	return f.out.rows(rec)
}

func (f *foundRows) close() {
	if f.cur != nil {
		f.cur.close()
		f.cur = nil
	}
}
