package warehouse

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/liveset"
)

// UpsertMode says what Upsert does with a row whose key is live.
type UpsertMode int

const (
	// Replace suppresses the old row and adds the new one, which keeps its _row_id (v3). A key twice in one batch is
	// ErrDuplicateTarget.
	Replace UpsertMode = iota
	// ReplaceLast is Replace, but of rows with one key in a batch the last wins.
	ReplaceLast
	// DoNothing leaves the old row and drops the new one. Of rows with one key in a batch the first wins.
	DoNothing
)

// UpsertResult counts what Upsert did with each row of its batch; the bitmaps hold the batch's row numbers.
type UpsertResult struct {
	Inserted, Replaced, Skipped             int64
	InsertedRows, ReplacedRows, SkippedRows *roaring.Bitmap
}

// Upsert adds rows and resolves those whose keys are live by mode. Columns as for Append. ErrNoKey on a table without
// identifier fields.
func (t *TxTable) Upsert(ctx context.Context, rec arrow.RecordBatch, mode UpsertMode) (UpsertResult, error) {
	res := UpsertResult{InsertedRows: roaring.New(), ReplacedRows: roaring.New(), SkippedRows: roaring.New()}
	if err := t.writable(); err != nil {
		return res, err
	}
	if !t.keyed() {
		return res, ErrNoKey
	}
	rec, err := conform(ctx, rec, t.arrow)
	if err != nil {
		return res, err
	}
	defer func() { rec.Release() }()
	if rec, err = t.guarded(ctx, rec); err != nil {
		return res, err
	}
	keys, err := encodeKeys(rec, t.keyCols)
	if err != nil {
		return res, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return res, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return res, err
	}
	keep, err := chooseRows(keys, mode, res.SkippedRows)
	if err != nil {
		return res, err
	}
	if err := t.upsertLocked(ctx, rec, keys, keep, mode, &res); err != nil {
		return res, err
	}
	res.Inserted, res.Replaced, res.Skipped = card(res.InsertedRows), card(res.ReplacedRows), card(res.SkippedRows)
	return res, t.spillLocked(ctx)
}

// chooseRows are the rows of a batch that count when a key occurs in it more than once.
func chooseRows(keys [][]byte, mode UpsertMode, skipped *roaring.Bitmap) ([]bool, error) {
	var seen keyTable
	keep := make([]bool, len(keys))
	for i, k := range keys {
		prev, ok := seen.find(k)
		switch {
		case !ok:
		case mode == Replace:
			return nil, ErrDuplicateTarget
		case mode == DoNothing:
			skipped.Add(uint32(i))
			continue
		default:
			keep[prev] = false
			skipped.Add(uint32(prev))
		}
		keep[i] = true
		seen.put(k, int32(i))
	}
	return keep, nil
}

func (t *TxTable) upsertLocked(ctx context.Context, rec arrow.RecordBatch, keys [][]byte, keep []bool, mode UpsertMode, res *UpsertResult) error {
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return err
	}
	old := make(map[int]liveset.Hit, len(hits))
	for _, h := range hits {
		old[h.KeyOrdinal] = h
	}
	var rowIDs []int64
	if mode != DoNothing {
		if rowIDs, err = t.rowIDsOf(ctx, hits, len(keys)); err != nil {
			return err
		}
	}
	var rows []int64
	for i, key := range keys {
		if !keep[i] {
			continue
		}
		row, inLog := t.logFindLocked(key)
		h, inFile := old[i]
		switch {
		case !inLog && !inFile:
			res.InsertedRows.Add(uint32(i))
		case mode == DoNothing:
			res.SkippedRows.Add(uint32(i))
			continue
		case inLog:
			if id := t.st.log.rowID(row); id != noRowID {
				rowIDs = withRowID(rowIDs, len(keys), i, id)
			}
			t.st.kill(row)
			res.ReplacedRows.Add(uint32(i))
		default:
			t.st.suppressRow(h.File.File.Path, h.Pos)
			res.ReplacedRows.Add(uint32(i))
		}
		rows = append(rows, int64(i))
	}
	if len(rows) == 0 {
		return nil
	}
	t.st.upserted = true
	return t.pushLocked(ctx, rec, keys, rows, rowIDs)
}

func withRowID(ids []int64, n, i int, id int64) []int64 {
	if ids == nil {
		ids = make([]int64, n)
		for j := range ids {
			ids[j] = noRowID
		}
	}
	ids[i] = id
	return ids
}

// pushLocked appends the given rows of rec to the log and enters their keys, which no live row has.
func (t *TxTable) pushLocked(ctx context.Context, rec arrow.RecordBatch, keys [][]byte, rows []int64, rowIDs []int64) error {
	t.touched()
	if len(rows) < int(rec.NumRows()) {
		part, err := take(ctx, rec, rows)
		if err != nil {
			return err
		}
		defer part.Release()
		rec = part
		if rowIDs != nil {
			ids := make([]int64, len(rows))
			for i, r := range rows {
				ids[i] = rowIDs[r]
			}
			rowIDs = ids
		}
	}
	first, err := t.st.log.append(rec, rowIDs)
	if err != nil {
		return err
	}
	t.st.rows = t.st.log.rows
	if keys != nil {
		t.st.log.keyMu.Lock()
		defer t.st.log.keyMu.Unlock()
		for i, r := range rows {
			t.st.log.keys.put(keys[r], first+int32(i))
		}
	}
	return nil
}

// findFilesLocked finds the live rows of keys in the base and the own files.
func (t *TxTable) findFilesLocked(ctx context.Context, keys [][]byte) ([]liveset.Hit, error) {
	hits, err := t.probeBase(ctx, t.st, keys)
	if err != nil || len(t.st.own) == 0 {
		return hits, err
	}
	more, err := t.probeSet(ctx, t.st, t.ownSetLocked(), keys)
	return append(hits, more...), err
}

// rowIDsOf are the _row_ids of hits by key ordinal, nil on v2 and when there is no id to keep.
func (t *TxTable) rowIDsOf(ctx context.Context, hits []liveset.Hit, n int) ([]int64, error) {
	if !t.v3() || len(hits) == 0 {
		return nil, nil
	}
	rec, err := t.tx.w.opts.Live.ReadHits(ctx, t.Ref(), subSchema(t.schema, nil), liveset.MetaColumns{RowID: true}, hits)
	if err != nil {
		return nil, fmt.Errorf("read row ids: %w", err)
	}
	defer rec.Release()
	ids, ok := rec.Column(int(rec.NumCols()) - 1).(*array.Int64)
	if !ok {
		return nil, fmt.Errorf("read row ids: column is %s", rec.Column(0).DataType())
	}
	var out []int64
	for i, h := range hits {
		if ids.IsValid(i) {
			out = withRowID(out, n, h.KeyOrdinal, ids.Value(i))
		}
	}
	return out, nil
}
