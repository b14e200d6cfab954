package engine

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// doUpdate writes a batch under ON CONFLICT DO UPDATE. Rows with one key are proposed one after the other, as in PostgreSQL: the second meets what
// the first left.
func (op *insertOp) doUpdate(ctx context.Context, rec arrow.RecordBatch) error {
	if _, null := op.t.FirstNull(rec); null != nil {
		return null
	}
	keyCols := keyIndexes(op.t)
	movesKeys := slices.ContainsFunc(keyCols, func(c int) bool { return slices.Contains(op.ins.OnConflict.Set, c) })
	seen := map[string]struct{}{}
	from := int64(0)
	flush := func(to int64) error {
		part := rec.NewSlice(from, to)
		defer part.Release()
		from = to
		clear(seen)
		return op.doUpdateOnce(ctx, part)
	}
	var buf []byte
	for i := range rec.NumRows() {
		var err error
		if buf, err = keyindex.AppendKey(buf[:0], rec, keyCols, int(i)); err != nil {
			return err
		}
		if _, again := seen[string(buf)]; again || movesKeys && i > from {
			if err := flush(i); err != nil {
				return err
			}
		}
		if _, own := op.touched[string(buf)]; own {
			return affectedTwice()
		}
		seen[string(buf)] = struct{}{}
	}
	return flush(rec.NumRows())
}

// doUpdateOnce writes rows of different keys: those without a live key are inserted, the others become updates of the live row as the SET list says.
func (op *insertOp) doUpdateOnce(ctx context.Context, rec arrow.RecordBatch) error {
	key := keyColumns(op.t, rec)
	defer key.Release()
	hits, err := op.t.FindKeys(ctx, key)
	if err != nil {
		return err
	}
	fresh := roaring.New()
	fresh.AddRange(0, uint64(rec.NumRows()))
	for _, h := range hits {
		fresh.Remove(uint32(h.Ordinal))
	}
	var done placedRows
	defer done.release()
	if !fresh.IsEmpty() {
		rows := takeRows(rec, fresh)
		done.add(rows, fresh.ToArray())
		if err := op.t.AppendMissing(ctx, rows); err != nil {
			return err
		}
		if err := op.touch(rows); err != nil {
			return err
		}
	}
	if len(hits) > 0 {
		if err := op.updatePairs(ctx, rec, hits, &done); err != nil {
			return err
		}
	}
	op.n += done.rows
	if !op.ret.on || done.rows == 0 {
		return nil
	}
	return op.ret.keep(done.ordered())
}

// touch notes the keys of rows that the statement wrote.
func (op *insertOp) touch(rows arrow.RecordBatch) error {
	keyCols := keyIndexes(op.t)
	var buf []byte
	for i := range int(rows.NumRows()) {
		var err error
		if buf, err = keyindex.AppendKey(buf[:0], rows, keyCols, i); err != nil {
			return err
		}
		op.touched[string(buf)] = struct{}{}
	}
	return nil
}

// updatePairs computes the new rows from pairs of an existing and a proposed row, and writes them.
func (op *insertOp) updatePairs(ctx context.Context, rec arrow.RecordBatch, hits []warehouse.KeyHit, done *placedRows) error {
	if err := op.sameCommand(hits); err != nil {
		return err
	}
	locked, err := op.s.lockHits(ctx, op.t, rec, hits)
	if err != nil {
		return err
	}
	existing, err := op.readRows(ctx, hits)
	if err != nil {
		return err
	}
	defer existing.Release()
	proposed := roaring.New()
	for _, h := range hits {
		proposed.Add(uint32(h.Ordinal))
	}
	prop := takeRows(rec, proposed)
	defer prop.Release()
	pairs := pairBatch(existing, prop)
	defer pairs.Release()
	oc := op.ins.OnConflict
	cols := targetColumns(op.ins.Target, op.ins.Columns)
	wrap := func(sql string) string { return storedSQL(sql, 0, cols, 1) }
	d, err := op.s.startWrapped(ctx, op.b, oc.Update, given{0: oneBatch(pairs)}, wrap)
	if err != nil {
		return err
	}
	defer d.close()
	at := 0
	return d.eachBatch(ctx, func(out arrow.RecordBatch) error {
		rows, err := conform(out, 0, op.t.ArrowSchema())
		if err != nil {
			return err
		}
		defer rows.Release()
		keep, ok := out.Column(len(cols)).(*array.Boolean)
		if !ok {
			return pgerr.New(pgerr.InternalError, "condition of DO UPDATE is not boolean")
		}
		wanted := roaring.New()
		var olds []warehouse.RowRef
		var keys []string
		var places []uint32
		for i := range int(out.NumRows()) {
			if keep.IsValid(i) && keep.Value(i) {
				wanted.Add(uint32(i))
				olds = append(olds, hits[at+i].Row)
				keys = append(keys, locked[at+i])
				places = append(places, uint32(hits[at+i].Ordinal))
			}
		}
		at += int(out.NumRows())
		if wanted.IsEmpty() {
			return nil
		}
		news := takeRows(rows, wanted)
		return op.s.passRows(ctx, op.t, news, func(ctx context.Context, news arrow.RecordBatch) error {
			if !sameKeys(op.t, news, keys) {
				if err := op.s.lockWrites(ctx, op.t, olds, news); err != nil {
					return err
				}
			}
			news.Retain()
			done.add(news, places)
			if err := updateRows(ctx, op.t, op.ins.Target, oc.Set, olds, news); err != nil {
				return err
			}
			return op.touch(news)
		})
	})
}

// sameCommand refuses to update a row that another part of the statement inserted.
func (op *insertOp) sameCommand(hits []warehouse.KeyHit) error {
	snap, ok := op.s.frozen[snapshotKey(op.t.Ident())]
	if op.b.parts == nil || !ok {
		return nil
	}
	for _, h := range hits {
		if snap.set.File(h.Row.Path) == nil {
			return affectedTwice()
		}
	}
	return nil
}

func affectedTwice() error {
	return pgerr.New(pgerr.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
		WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}
