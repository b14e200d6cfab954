package changelog_test

import (
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
)

func schemaOf(fields []iceberg.NestedField) *iceberg.Schema { return iceberg.NewSchema(0, fields...) }

// columns are the names that come, go and come back: one name is many field ids in the course of a history.
var columns = []string{"x", "y", "z"}

// evolve adds, drops, renames, widens or moves a column, as another engine does.
func (h *history) evolve() bool {
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	sc := tbl.Schema()
	tx := tbl.NewTransaction()
	up := tx.UpdateSchema(true, false)
	what := ""
	name := columns[h.rng.IntN(len(columns))]
	f := sc.Field(h.rng.IntN(sc.NumFields()))
	_, taken := sc.FindFieldByName(name)
	switch h.rng.IntN(7) {
	case 0, 5, 6:
		if taken {
			return false
		}
		typ, def := h.newColumn(tbl.Metadata().Version() >= 3)
		up, what = up.AddColumn([]string{name}, typ, "", false, def), fmt.Sprintf("add column %s %s default %v", name, typ, def)
	case 1:
		if f.ID <= 3 { // keys and partitions stand on them
			return false
		}
		up, what = up.DeleteColumn([]string{f.Name}), "drop column "+f.Name
	case 2:
		if taken {
			return false
		}
		up, what = up.RenameColumn([]string{f.Name}, name), fmt.Sprintf("rename %s to %s", f.Name, name)
	case 3:
		wider, ok := widened(f.Type)
		if !ok {
			return false
		}
		up, what = up.UpdateColumn([]string{f.Name}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Valid: true, Val: wider}}),
			fmt.Sprintf("widen %s to %s", f.Name, wider)
	case 4:
		up, what = up.MoveFirst([]string{f.Name}), "move first "+f.Name
	}
	require.NoError(h.t, up.Commit())
	_, err = tx.Commit(h.ctx)
	require.NoError(h.t, err)
	return h.done("%s", what)
}

func (h *history) newColumn(defaults bool) (iceberg.Type, iceberg.Literal) {
	prim := iceberg.PrimitiveTypes
	with := defaults && h.rng.IntN(4) > 0
	pick := func(t iceberg.Type, l iceberg.Literal) (iceberg.Type, iceberg.Literal) {
		if with {
			return t, l
		}
		return t, nil
	}
	switch h.rng.IntN(4) {
	case 0:
		return pick(prim.Int32, iceberg.NewLiteral(int32(1)))
	case 1:
		return pick(prim.String, iceberg.NewLiteral("a"))
	case 2:
		return pick(prim.Float64, iceberg.NewLiteral(1.5))
	}
	return iceberg.DecimalTypeOf(9, 2), nil
}

func widened(t iceberg.Type) (iceberg.Type, bool) {
	switch t := t.(type) {
	case iceberg.Int32Type:
		return iceberg.PrimitiveTypes.Int64, true
	case iceberg.Float32Type:
		return iceberg.PrimitiveTypes.Float64, true
	case iceberg.DecimalType:
		return iceberg.DecimalTypeOf(t.Precision()+4, t.Scale()), t.Precision() < 30
	}
	return nil, false
}

// repartition partitions the table by another expression from now on; files of the specs before stay.
func (h *history) repartition() bool {
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	tx := tbl.NewTransaction()
	update, what := tx.UpdateSpec(true), "unpartitioned"
	spec := tbl.Spec()
	for _, f := range spec.Fields() {
		update = update.RemoveField(f.Name)
	}
	if spec.IsUnpartitioned() {
		part, _ := tbl.Schema().FindFieldByID(2)
		name, _ := tbl.Schema().FindFieldByID(3)
		switch n := h.rng.IntN(4); n {
		case 0:
			update, what = update.AddField(part.Name, iceberg.IdentityTransform{}, fmt.Sprint("p", len(h.states))), "identity(part)"
		case 1:
			update, what = update.AddField(name.Name, iceberg.IdentityTransform{}, fmt.Sprint("p", len(h.states))), "identity(name)"
		default:
			update, what = update.AddField(part.Name, iceberg.BucketTransform{NumBuckets: n}, ""), fmt.Sprintf("bucket(%d, part)", n)
		}
	}
	require.NoError(h.t, update.Commit())
	_, err = tx.Commit(h.ctx)
	require.NoError(h.t, err)
	return h.done("partition by %s", what)
}

// upgrade makes a version 2 table version 3: what follows is another kind of table.
func (h *history) upgrade() bool {
	if h.raw.Meta(h.t).Version() >= 3 || h.rng.IntN(2) > 0 {
		return false
	}
	h.raw.Alter(h.t, table.NewUpgradeFormatVersionUpdate(3))
	return h.done("upgrade to version 3")
}

// rollback moves main to a snapshot that it had before.
func (h *history) rollback() bool {
	s := h.states[h.rng.IntN(len(h.states))]
	now := h.headOf(table.MainBranch)
	if s.head == nil || *s.head == *now {
		return false
	}
	h.raw.SetRef(h.t, table.MainBranch, table.BranchRef, *s.head)
	return h.done("rollback to seq %d", s.seq)
}

// fastForward moves main to where the branch is.
func (h *history) fastForward() bool {
	tip, now := h.headOf(branch), h.headOf(table.MainBranch)
	if *tip == *now || h.path(now, *tip) == nil && h.rng.IntN(4) > 0 { // seldom main is replaced by the branch
		return false
	}
	h.raw.SetRef(h.t, table.MainBranch, table.BranchRef, *tip)
	h.done("main to branch %s", branch)
	if h.rng.IntN(2) == 0 {
		h.raw.Alter(h.t, table.NewRemoveSnapshotRefUpdate(branch))
		h.done("drop branch")
	}
	return true
}

// branch is the one that commits of other writers go to at times.
const branch = "audit"

// where is the branch of the next commit.
func (h *history) where() string {
	if h.rng.IntN(5) == 0 {
		return branch
	}
	return table.MainBranch
}

func (h *history) tag() bool {
	snaps := h.raw.Meta(h.t).Snapshots()
	h.raw.SetRef(h.t, "tagged", table.TagRef, snaps[h.rng.IntN(len(snaps))].SnapshotID)
	return h.done("tag")
}

// checkExpiry takes a snapshot out of the middle of the history: windows over it are ErrExpired, all others and net are as before. It ends the history.
func (h *history) checkExpiry() {
	meta := h.raw.Meta(h.t)
	named := map[int64]bool{}
	for _, ref := range meta.Refs() {
		named[ref.SnapshotID] = true
	}
	var heads []int
	for k, s := range h.states {
		if k > 0 && s.head != nil && !named[*s.head] {
			heads = append(heads, k)
		}
	}
	if len(heads) == 0 {
		return
	}
	gone := *h.states[heads[h.rng.IntN(len(heads))]].head
	type answer struct {
		i, j    int
		expired bool
		rows    []change
	}
	var want []answer
	sc := h.schema()
	for range 12 {
		i := h.rng.IntN(len(h.states))
		j := i + h.rng.IntN(len(h.states)-i)
		a := answer{i: i, j: j, rows: h.window(seq(h.states[i].seq), seq(h.states[j].seq), sc)}
		for _, s := range h.steps(i, j) {
			a.expired = a.expired || s.from != nil && *s.from == gone || *s.to == gone
		}
		for _, k := range []int{i, j} { // an end that is gone is no state to read
			a.expired = a.expired || h.states[k].head != nil && *h.states[k].head == gone
		}
		want = append(want, a)
	}
	h.raw.Alter(h.t, table.NewRemoveSnapshotsUpdate([]int64{gone}, false))
	h.log = append(h.log, fmt.Sprint("expire snapshot ", gone))
	for _, a := range want {
		from, to := seq(h.states[a.i].seq), seq(h.states[a.j].seq)
		if a.expired {
			err := h.changesErr(from, to)
			if err == nil && h.states[a.i].head != nil && h.states[a.j].head != nil && *h.states[a.i].head == *h.states[a.j].head {
				continue // nothing to read between two bounds of one state
			}
			require.ErrorIs(h.t, err, changelog.ErrExpired, "(%s, %s]", from, to)
			continue
		}
		require.Equal(h.t, nilIfNone(a.rows), nilIfNone(h.window(from, to, sc)), "(%s, %s] after another snapshot expired", from, to)
	}
}
