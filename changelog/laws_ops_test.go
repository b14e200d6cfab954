package changelog_test

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

func (h *history) key() catalog.TableKey {
	st, err := h.cat.Cut().Table(ident)
	require.NoError(h.t, err)
	return st.Key
}

// op is one random commit. It returns false when there was nothing to do.
func (h *history) op() bool {
	live := h.rows(h.headOf(table.MainBranch))
	if len(live) < 3 {
		if h.rng.IntN(2) == 0 {
			return h.foreignAppend()
		}
		return h.append1(live)
	}
	ops := []func() bool{
		func() bool { return h.append1(live) },
		func() bool { return h.upsert1(live) },
		func() bool { return h.deleteAt(live) },
		func() bool { return h.deleteEquality(live) },
		func() bool { return h.update1(live) },
		func() bool { return h.mixed(live) },
		h.compact, h.foreignAppend, h.foreignAppend, h.rollback,
		h.equalityDelete, h.equalityDelete, h.positionDelete, h.positionDelete, h.foreignUpsert, h.insertAndDelete,
		h.removeDelete, h.removeFile, h.rewrite, h.foreignCompact, h.foreignCompact, h.lyingReplace, h.mergeManifests, h.addAgain,
		h.evolve, h.evolve, h.repartition, h.upgrade, h.tag, h.fastForward,
		func() bool { return h.rng.IntN(4) == 0 && h.truncate() },
	}
	return ops[h.rng.IntN(len(ops))]()
}

// some returns at most n of the rows.
func (h *history) some(live []testkit.LiveRow, n int) []testkit.LiveRow {
	var out []testkit.LiveRow
	for _, i := range h.rng.Perm(len(live))[:min(n, len(live))] {
		out = append(out, live[i])
	}
	return out
}

// unique are the rows whose key no other row has: what a keyed table may hold twice after other writers' commits, ours reads but does not write.
func unique(live []testkit.LiveRow) []testkit.LiveRow {
	n := map[string]int{}
	for _, r := range live {
		n[keyOf(r.Record)]++
	}
	var out []testkit.LiveRow
	for _, r := range live {
		if n[keyOf(r.Record)] == 1 {
			out = append(out, r)
		}
	}
	return out
}

func (h *history) batch(rows ...testkit.Record) arrow.RecordBatch {
	return testkit.Records(h.schema(), rows...)
}

func (h *history) append1(live []testkit.LiveRow) bool {
	rows := h.fresh(live, 1+h.rng.IntN(12))
	if len(rows) == 0 {
		return false
	}
	h.do(func(tt *warehouse.TxTable) error { return tt.Append(h.ctx, h.batch(rows...)) })
	h.intended(table.MainBranch, live, nil, rows)
	return h.done("append %d", len(rows))
}

// next is a row of the same key: another one, or the same but for a column, or the same.
func (h *history) next(r testkit.LiveRow) testkit.Record {
	n := r.As(h.schema())
	one := h.rng.IntN(4)
	if one == 0 {
		return n
	}
	only := h.schema().Field(h.rng.IntN(h.schema().NumFields())).ID
	for _, f := range h.schema().Fields() {
		v, isFloat := n[f.ID].(float64)
		switch {
		case f.ID <= 2 || one == 1 && f.ID != only:
		case one == 1 && isFloat && v == 0:
			n[f.ID] = -v // the zeros differ
		default:
			n[f.ID] = h.value(f)
		}
	}
	return n
}

func (h *history) upsert1(live []testkit.LiveRow) bool {
	if !h.keyed {
		return false
	}
	old := h.some(unique(live), 1+h.rng.IntN(5))
	var rows []testkit.Record
	for _, r := range old {
		rows = append(rows, h.next(r))
	}
	rows = append(rows, h.fresh(live, h.rng.IntN(4))...)
	if len(rows) == 0 {
		return false
	}
	h.do(func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(h.ctx, h.batch(rows...), warehouse.Replace)
		return err
	})
	h.intended(table.MainBranch, live, old, rows)
	return h.done("upsert %d", len(rows))
}

// suppress deletes rows by their places in a transaction.
func (h *history) suppress(tt *warehouse.TxTable, rows []testkit.LiveRow) error {
	at := map[string]*roaring.Bitmap{}
	for _, r := range rows {
		if at[r.File.FilePath()] == nil {
			at[r.File.FilePath()] = roaring.New()
		}
		at[r.File.FilePath()].Add(uint32(r.Pos))
	}
	for path, pos := range at {
		if _, err := tt.DeleteAt(h.ctx, path, pos); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) deleteAt(live []testkit.LiveRow) bool {
	rows := h.some(live, 1+h.rng.IntN(4))
	h.do(func(tt *warehouse.TxTable) error { return h.suppress(tt, rows) })
	h.intended(table.MainBranch, live, rows, nil)
	return h.done("delete at %d", len(rows))
}

// deleteEquality writes an equality delete on id through the warehouse, which does so for unpartitioned tables of one spec.
func (h *history) deleteEquality(live []testkit.LiveRow) bool {
	spec := h.raw.Meta(h.t).PartitionSpec()
	id := live[h.rng.IntN(len(live))].As(h.schema())[1]
	if !spec.IsUnpartitioned() || id == nil {
		return false
	}
	h.do(func(tt *warehouse.TxTable) error {
		sc := h.schema().Fields()
		var key = sc[:0:0]
		for _, f := range sc {
			if f.ID == 1 {
				key = append(key, f)
			}
		}
		return tt.DeleteEquality(h.ctx, []int{1}, testkit.Records(schemaOf(key), testkit.Record{1: id}, testkit.Record{1: int64(1000)}))
	})
	var gone []testkit.LiveRow
	for _, r := range live {
		if r.As(h.schema())[1] == id {
			gone = append(gone, r)
		}
	}
	h.intended(table.MainBranch, live, gone, nil)
	return h.done("equality delete of id %d, %d rows", id, len(gone))
}

func (h *history) update1(live []testkit.LiveRow) bool {
	old := live[h.rng.IntN(len(live))]
	next := h.next(old)
	if h.keyed && len(unique(live)) < len(live) {
		return false
	}
	h.do(func(tt *warehouse.TxTable) error {
		return tt.Update(h.ctx, []warehouse.RowRef{{Path: old.File.FilePath(), Pos: uint32(old.Pos)}}, h.batch(next))
	})
	h.intended(table.MainBranch, live, []testkit.LiveRow{old}, []testkit.Record{next})
	return h.done("update")
}

// mixed deletes and appends in one commit; a removed row may come back as it was.
func (h *history) mixed(live []testkit.LiveRow) bool {
	gone := h.some(unique(live), 2)
	if len(gone) == 0 {
		return false
	}
	rows := h.fresh(live, 3)
	if h.rng.IntN(2) == 0 {
		rows = append(rows, gone[0].As(h.schema()))
	}
	h.do(func(tt *warehouse.TxTable) error {
		if err := h.suppress(tt, gone); err != nil || len(rows) == 0 {
			return err
		}
		return tt.Append(h.ctx, h.batch(rows...))
	})
	h.intended(table.MainBranch, live, gone, rows)
	return h.done("delete %d and append %d", len(gone), len(rows))
}

func (h *history) compact() bool {
	live := h.rows(h.headOf(table.MainBranch))
	res, err := h.wh.Compact(h.ctx, ident, warehouse.CompactOptions{MinInputFiles: 2, SuppressedRatio: 0.01, MaxDeleteFiles: 1 + h.rng.IntN(3)})
	require.NoError(h.t, err)
	if res.Record == nil {
		return false
	}
	h.intended(table.MainBranch, live, nil, nil)
	return h.done("compact")
}

func (h *history) truncate() bool {
	h.do(func(tt *warehouse.TxTable) error {
		_, err := tt.Truncate(h.ctx)
		return err
	})
	h.intended(table.MainBranch, nil, nil, nil)
	return h.done("truncate")
}
