package warehouse

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/liveset"
)

// DeleteEquality deletes the live rows whose fields fieldIDs equal a row of rec (columns: those fields, in order; NULL
// equals NULL). Rows of the base get an equality delete file, which costs no read at Commit but one for every reader
// until compaction; rows of this transaction are suppressed. Float fields are refused, as by the spec.
func (t *TxTable) DeleteEquality(ctx context.Context, fieldIDs []int, rec arrow.RecordBatch) error {
	if err := t.writable(); err != nil {
		return err
	}
	want, cols, err := t.equalityFields(fieldIDs)
	if err != nil {
		return err
	}
	rec, err = conform(ctx, rec, want)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.deleteEqualityLocked(ctx, fieldIDs, rec, cols)
	if err != nil {
		rec.Release()
	}
	return err
}

func (t *TxTable) deleteEqualityLocked(ctx context.Context, fieldIDs []int, rec arrow.RecordBatch, cols []int) error {
	if err := t.flushLocked(ctx); err != nil { // own rows die by position
		return err
	}
	if err := t.writableLocked(ctx); err != nil {
		return err
	}
	set, err := t.liveLocked(ctx)
	if err != nil {
		return err
	}
	hits, err := t.tx.w.equalityHits(ctx, t.Ref(), set, t.schema, fieldIDs, rec)
	if err != nil {
		return err
	}
	t.touched()
	covered := map[string]*roaring.Bitmap{}
	for _, h := range hits {
		p := h.Path
		t.st.suppressRow(p, h.Pos)
		if t.baseSet.File(p) == nil || unpartitionedSpec(t.meta) == nil {
			continue
		}
		if covered[p] == nil {
			covered[p] = roaring.New()
		}
		covered[p].Add(h.Pos)
	}
	if !t.st.truncated && unpartitionedSpec(t.meta) != nil { // else the positions say it all
		t.st.eq = append(t.st.eq, eqDelete{fieldIDs: fieldIDs, rows: rec, cols: cols, covered: covered})
	}
	return nil
}

// equalityFields are the columns an equality delete by fieldIDs takes.
func (t *TxTable) equalityFields(fieldIDs []int) (*arrow.Schema, []int, error) {
	fields, cols, err := fieldsOf(t.schema, fieldIDs)
	if err != nil {
		return nil, nil, err
	}
	if len(fields) == 0 {
		return nil, nil, fmt.Errorf("%w: no equality fields", ErrSchemaMismatch)
	}
	out := make([]arrow.Field, len(cols))
	for i, c := range cols {
		if _, err := keyindex.ColumnOf(fields[i].Type); err != nil || isFloat(fields[i].Type) {
			return nil, nil, fmt.Errorf("%w: column %s of type %s cannot be an equality field", ErrInvalidTable, fields[i].Name, fields[i].Type)
		}
		out[i] = t.arrow.Field(c)
	}
	return arrow.NewSchema(out, nil), cols, nil
}

// equalityHits are the live rows of set whose fields equal a row of rec.
func (w *Warehouse) equalityHits(ctx context.Context, ref liveset.Ref, set *liveset.Set, sc *iceberg.Schema, fieldIDs []int, rec arrow.RecordBatch) ([]RowRef, error) {
	cols := make([]int, len(fieldIDs))
	nulls := false
	for i := range cols {
		cols[i] = i
		nulls = nulls || rec.Column(i).NullN() > 0
	}
	if nulls {
		return w.equalityScan(ctx, ref, set, sc, fieldIDs, rec, cols)
	}
	keys, err := encodeKeys(rec, cols)
	if err != nil {
		return nil, err
	}
	hits, err := w.opts.Live.Probe(ctx, ref, set, fieldIDs, keys)
	if err != nil {
		return nil, err
	}
	out := make([]RowRef, len(hits))
	for i, h := range hits {
		out[i] = RowRef{h.File.File.Path, h.Pos}
	}
	return out, nil
}

// equalityScan is equalityHits when a value is NULL, which no key index holds: every row is looked at.
func (w *Warehouse) equalityScan(ctx context.Context, ref liveset.Ref, set *liveset.Set, sc *iceberg.Schema, fieldIDs []int, rec arrow.RecordBatch, cols []int) ([]RowRef, error) {
	keys, err := encodeKeys(rec, cols, keyindex.WithNulls())
	if err != nil {
		return nil, err
	}
	var want keyTable
	for i, k := range keys {
		want.put(k, int32(i))
	}
	fields, _, err := fieldsOf(sc, fieldIDs)
	if err != nil {
		return nil, err
	}
	var out []RowRef
	opts := liveset.ScanOptions{Meta: liveset.MetaColumns{File: true, Pos: true}}
	for b, err := range w.opts.Live.Scan(ctx, ref, set, subSchema(sc, fields), opts) {
		if err != nil {
			return nil, err
		}
		out, err = matchRows(b, cols, &want, out)
		b.Release()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func matchRows(b arrow.RecordBatch, cols []int, want *keyTable, out []RowRef) ([]RowRef, error) {
	keys, err := encodeKeys(b, cols, keyindex.WithNulls())
	if err != nil {
		return nil, err
	}
	file, ok := b.Column(len(cols)).(*array.String)
	pos, ok2 := b.Column(len(cols) + 1).(*array.Int64)
	if !ok || !ok2 {
		return nil, fmt.Errorf("scan: place columns are %s and %s", b.Column(len(cols)).DataType(), b.Column(len(cols)+1).DataType())
	}
	for i, k := range keys {
		if _, hit := want.find(k); hit {
			out = append(out, RowRef{file.Value(i), uint32(pos.Value(i))})
		}
	}
	return out, nil
}

func isFloat(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return true
	}
	return false
}
