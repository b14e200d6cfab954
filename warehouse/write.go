package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/internal/keyindex"
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

// RowRef is the place of a row: a data file of the table's Live set and a position in it.
type RowRef struct {
	Path string
	Pos  uint32
}

// KeyHit is the live row that has the key of row Ordinal of the batch given to FindKeys.
type KeyHit struct {
	Ordinal int
	Row     RowRef
}

// Upsert adds rows and resolves those whose keys are live by mode. Columns as for Append. ErrNoKey on a table without
// identifier fields.
func (t *TxTable) Upsert(ctx context.Context, rec arrow.RecordBatch, mode UpsertMode) (UpsertResult, error) {
	res := UpsertResult{InsertedRows: roaring.New(), ReplacedRows: roaring.New(), SkippedRows: roaring.New()}
	if err := t.tx.writable(); err != nil {
		return res, err
	}
	if !t.keyed() {
		return res, ErrNoKey
	}
	rec, err := conform(ctx, rec, t.arrow)
	if err != nil {
		return res, err
	}
	defer rec.Release()
	if err := t.checkNotNull(rec); err != nil {
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

// FindKeys finds the live rows that have the keys of rec (columns as KeySchema). Rows in memory get a file first when
// one of them has such a key. Hits come by ordinal.
func (t *TxTable) FindKeys(ctx context.Context, rec arrow.RecordBatch) ([]KeyHit, error) {
	if err := t.tx.usable(); err != nil {
		return nil, err
	}
	keys, ordinals, err := t.keysOf(ctx, rec)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, live := t.logFindLocked(k); live {
			if err := t.flushLocked(ctx); err != nil {
				return nil, err
			}
			break
		}
	}
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]KeyHit, len(hits))
	for i, h := range hits {
		out[i] = KeyHit{ordinals[h.KeyOrdinal], RowRef{h.File.File.Path, h.Pos}}
	}
	slices.SortStableFunc(out, func(a, b KeyHit) int { return a.Ordinal - b.Ordinal })
	return out, nil
}

// keysOf encodes a batch of key columns. Rows with a NULL match nothing and are left out: ordinals[i] is the batch's row
// of keys[i].
func (t *TxTable) keysOf(ctx context.Context, rec arrow.RecordBatch) (keys [][]byte, ordinals []int, err error) {
	if !t.keyed() {
		return nil, nil, ErrNoKey
	}
	rec, err = conform(ctx, rec, t.keyArrow)
	if err != nil {
		return nil, nil, err
	}
	defer rec.Release()
	enc, err := keyindex.NewArrayEncoder(rec.Columns())
	if err != nil {
		return nil, nil, err
	}
	for row := range int(rec.NumRows()) {
		key, err := enc.Append(nil, row)
		if errors.Is(err, keyindex.ErrNullKey) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		keys, ordinals = append(keys, key), append(ordinals, row)
	}
	return keys, ordinals, nil
}

// DeleteAt suppresses rows of one file of the Live set. Positions that are not live are passed over. It returns the
// number of rows that died.
func (t *TxTable) DeleteAt(ctx context.Context, path string, positions *roaring.Bitmap) (int64, error) {
	if err := t.tx.writable(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return 0, err
	}
	live, err := t.liveAtLocked(path, positions)
	if err != nil || live.IsEmpty() {
		return 0, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	t.touched()
	t.st.suppressAt(path, live)
	return card(live), nil
}

// liveAtLocked are the positions of path that are live.
func (t *TxTable) liveAtLocked(path string, positions *roaring.Bitmap) (*roaring.Bitmap, error) {
	var f *liveset.LiveFile
	if !t.st.truncated {
		f = t.baseSet.File(path)
	}
	if f == nil {
		f = t.ownSetLocked().File(path)
	}
	if f == nil {
		return nil, fmt.Errorf("%w: no file %s", ErrNotLive, path)
	}
	if !positions.IsEmpty() && int64(positions.Maximum()) >= f.File.Records {
		return nil, fmt.Errorf("%w: position %d of %s, which has %d rows", ErrNotLive, positions.Maximum(), path, f.File.Records)
	}
	live := positions.Clone()
	if f.Suppressed != nil {
		live.AndNot(f.Suppressed)
	}
	if b := t.st.suppressed(path); b != nil {
		live.AndNot(b)
	}
	return live, nil
}

// DeleteKeys suppresses the rows that have the keys of keys (columns as KeySchema); absent keys are passed over. It
// returns the number of rows that died.
func (t *TxTable) DeleteKeys(ctx context.Context, rec arrow.RecordBatch) (int64, error) {
	if err := t.tx.writable(); err != nil {
		return 0, err
	}
	keys, _, err := t.keysOf(ctx, rec)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return 0, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return 0, err
	}
	t.touched()
	var n int64
	for _, h := range hits {
		if b := t.st.suppressed(h.File.File.Path); b != nil && b.Contains(h.Pos) {
			continue // the key came twice
		}
		t.st.suppressRow(h.File.File.Path, h.Pos)
		n++
	}
	for _, k := range keys {
		if row, live := t.logFindLocked(k); live {
			t.st.kill(row)
			n++
		}
	}
	return n, nil
}

// Update suppresses the rows olds and adds news, row i of which replaces olds[i] and keeps its _row_id (v3). Every old
// row must be live (ErrNotLive) and named once (ErrDuplicateTarget). Keys are checked after the old rows are gone.
func (t *TxTable) Update(ctx context.Context, olds []RowRef, news arrow.RecordBatch) error {
	if err := t.tx.writable(); err != nil {
		return err
	}
	rec, err := conform(ctx, news, t.arrow)
	if err != nil {
		return err
	}
	defer rec.Release()
	if int(rec.NumRows()) != len(olds) {
		return fmt.Errorf("%w: %d old rows, %d new", ErrSchemaMismatch, len(olds), rec.NumRows())
	}
	if err := t.checkNotNull(rec); err != nil {
		return err
	}
	rowIDs, err := t.suppressOlds(ctx, olds)
	if err != nil {
		return err
	}
	if !t.keyed() {
		return t.addRows(ctx, rec, nil, rowIDs)
	}
	keys, err := encodeKeys(rec, t.keyCols)
	if err != nil {
		return err
	}
	return t.addRows(ctx, rec, keys, rowIDs)
}

// suppressOlds suppresses rows that must be live and returns their _row_ids.
func (t *TxTable) suppressOlds(ctx context.Context, olds []RowRef) ([]int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return nil, err
	}
	byPath := map[string]*roaring.Bitmap{}
	hits := make([]liveset.Hit, len(olds))
	for i, o := range olds {
		b := byPath[o.Path]
		if b == nil {
			b = roaring.New()
			byPath[o.Path] = b
		}
		if !b.CheckedAdd(o.Pos) {
			return nil, ErrDuplicateTarget
		}
		f := t.baseSet.File(o.Path)
		if f == nil || t.st.truncated {
			f = t.ownSetLocked().File(o.Path)
		}
		hits[i] = liveset.Hit{KeyOrdinal: i, File: f, Pos: o.Pos}
	}
	for p, b := range byPath {
		live, err := t.liveAtLocked(p, b)
		if err != nil {
			return nil, err
		}
		if !live.Equals(b) {
			return nil, fmt.Errorf("%w: %d of %d rows of %s", ErrNotLive, card(b)-card(live), card(b), p)
		}
	}
	rowIDs, err := t.rowIDsOf(ctx, hits, len(olds))
	if err != nil {
		return nil, err
	}
	t.touched()
	for p, b := range byPath {
		t.st.suppressAt(p, b)
	}
	return rowIDs, nil
}

// Truncate removes every row: those at the cut, those of this transaction and, at Commit, those committed meanwhile, as
// PostgreSQL's TRUNCATE does once it has its lock. It returns the number of live rows that went.
func (t *TxTable) Truncate(ctx context.Context) (int64, error) { return t.truncate(ctx, false) }

// Overwrite is Truncate under snapshot isolation: Commit is ErrConflict when the table changed since the cut. The rows
// appended after it replace the table's content in one overwrite snapshot.
func (t *TxTable) Overwrite(ctx context.Context) (int64, error) { return t.truncate(ctx, true) }

func (t *TxTable) truncate(ctx context.Context, strict bool) (int64, error) {
	if err := t.tx.writable(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	set, err := t.liveLocked(ctx)
	if err != nil {
		return 0, err
	}
	n := set.Rows()
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	st := newState(t.keyed())
	st.truncated, st.strict = true, strict || t.st.strict
	t.st, t.ownSet, t.liveSet = st, nil, nil
	return n, nil
}

func card(b *roaring.Bitmap) int64 { return int64(b.GetCardinality()) }
