package changelog_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// history is a random history of s.t and the model of its states.
type history struct {
	*kit
	rng     *rand.Rand
	keyed   bool
	version int
	rows    []row // live rows, the model
	states  []modelState
	log     []string
}

// modelState is the table after a commit seq.
type modelState struct {
	seq      uint64
	snapshot int64
	rows     multiset
	what     string
}

var (
	names  = []*string{nil, str(""), str("a"), str("b,c"), str("b\x00c"), str("\x1f|"), str("ä")}
	values = []*float64{nil, num(0), num(math.Copysign(0, -1)), num(math.NaN()), num(1.5), num(math.Inf(-1))}
)

func (h *history) random(id int64) row {
	return row{id: id, part: int32(h.rng.IntN(2)), name: names[h.rng.IntN(len(names))], v: values[h.rng.IntN(len(values))]}
}

func (h *history) model() multiset {
	m := multiset{}
	for _, r := range h.rows {
		m.add(r.text(), 1)
	}
	return m
}

// fresh returns n random rows whose keys are neither live nor repeated when the table is keyed.
func (h *history) fresh(n int) []row {
	used := map[string]bool{}
	for _, r := range h.rows {
		used[r.key()] = h.keyed
	}
	var out []row
	for range n {
		r := h.random(h.rng.Int64N(40))
		if h.keyed && used[r.key()] {
			continue
		}
		used[r.key()] = h.keyed
		out = append(out, r)
	}
	return out
}

// some returns random live rows, by index into h.rows, without repetition.
func (h *history) some(n int) []int {
	p := h.rng.Perm(len(h.rows))
	return p[:min(n, len(p))]
}

func (h *history) remove(idx []int) {
	gone := map[int]bool{}
	for _, i := range idx {
		gone[i] = true
	}
	var keep []row
	for i, r := range h.rows {
		if !gone[i] {
			keep = append(keep, r)
		}
	}
	h.rows = keep
}

// positions finds the places of live rows with a text, at most n of them.
func (h *history) positions(tt *warehouse.TxTable, want multiset) (map[string]*roaring.Bitmap, []warehouse.RowRef) {
	set, err := tt.Live(h.ctx)
	require.NoError(h.t, err)
	want = want.clone()
	out := map[string]*roaring.Bitmap{}
	var refs []warehouse.RowRef
	for f := range set.Files() {
		o := liveset.ScanOptions{Meta: liveset.MetaColumns{Pos: true}, Files: []*liveset.LiveFile{f}}
		for b, err := range h.live.Scan(h.ctx, tt.Ref(), set, tt.Schema(), o) {
			require.NoError(h.t, err)
			pos := b.Column(4)
			for r := range int(b.NumRows()) {
				if text := rowText(b, r, 4); want[text] > 0 {
					want.add(text, -1)
					p, _ := strconv.Atoi(pos.ValueStr(r))
					if out[f.File.Path] == nil {
						out[f.File.Path] = roaring.New()
					}
					out[f.File.Path].Add(uint32(p))
					refs = append(refs, warehouse.RowRef{Path: f.File.Path, Pos: uint32(p)})
				}
			}
		}
	}
	require.Empty(h.t, want, "rows to delete were not found")
	return out, refs
}

func (h *history) texts(idx []int) multiset {
	m := multiset{}
	for _, i := range idx {
		m.add(h.rows[i].text(), 1)
	}
	return m
}

// op is one random commit. It returns false when there was nothing to do.
func (h *history) op() bool {
	switch n := h.rng.IntN(14); {
	case n < 3 || len(h.rows) < 3:
		rows := h.fresh(1 + h.rng.IntN(12))
		if len(rows) == 0 {
			return false
		}
		h.append(rows...)
		h.rows = append(h.rows, rows...)
		return h.done("append %d", len(rows))
	case n < 5 && h.keyed:
		return h.opUpsert()
	case n < 7:
		idx := h.some(1 + h.rng.IntN(4))
		m := h.texts(idx)
		h.do(func(tt *warehouse.TxTable) error {
			at, _ := h.positions(tt, m)
			for path, pos := range at {
				if _, err := tt.DeleteAt(h.ctx, path, pos); err != nil {
					return err
				}
			}
			return nil
		})
		h.remove(idx)
		return h.done("delete at %d", len(idx))
	case n < 8:
		return h.opEquality(h.rng.IntN(2) == 0)
	case n < 9:
		return h.opUpdate()
	case n < 10:
		return h.opCompact()
	case n < 11 && len(h.states) > 3:
		return h.opRollback()
	case n == 12:
		return h.opEvolve()
	case n == 13:
		return h.opRepartition()
	case h.rng.IntN(4) == 0:
		rows := h.fresh(0)
		h.do(func(tt *warehouse.TxTable) error {
			_, err := tt.Truncate(h.ctx)
			return err
		})
		h.rows = rows
		return h.done("truncate")
	}
	return h.opMixed()
}

func (h *history) opUpsert() bool {
	idx := h.some(1 + h.rng.IntN(5))
	var rows []row
	for _, i := range idx {
		r := h.rows[i]
		if h.rng.IntN(4) > 0 { // else a no-op update
			n := h.random(r.id)
			n.part = r.part
			r = n
		}
		rows = append(rows, r)
	}
	rows = append(rows, h.fresh(h.rng.IntN(4))...)
	h.upsert(rows...)
	h.remove(idx)
	h.rows = append(h.rows, rows...)
	return h.done("upsert %d", len(rows))
}

// opEquality deletes by equality on id, through the warehouse or as a foreign writer does.
func (h *history) opEquality(foreign bool) bool {
	if h.partitioned() {
		return false // one that is not global reaches the files of its own spec and partition only
	}
	ids := []int64{h.rows[h.rng.IntN(len(h.rows))].id, 1000}
	if foreign {
		h.foreignEqualityDelete(ids)
	} else {
		h.do(func(tt *warehouse.TxTable) error {
			sc := arrow.NewSchema([]arrow.Field{tt.ArrowSchema().Field(0)}, nil)
			return tt.DeleteEquality(h.ctx, []int{1}, batch(sc, []row{{id: ids[0]}, {id: ids[1]}}))
		})
	}
	var idx []int
	for i, r := range h.rows {
		if r.id == ids[0] {
			idx = append(idx, i)
		}
	}
	h.remove(idx)
	return h.done("equality delete of id %d, %d rows, foreign %t", ids[0], len(idx), foreign)
}

func (h *history) partitioned() bool {
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	spec := tbl.Spec()
	return !spec.IsUnpartitioned()
}

// foreignEqualityDelete commits an equality delete file written by iceberg-go.
func (h *history) foreignEqualityDelete(ids []int64) {
	h.t.Helper()
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	sc, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	require.NoError(h.t, err)
	var rows []row
	for _, id := range ids {
		rows = append(rows, row{id: id})
	}
	rec := batch(arrow.NewSchema([]arrow.Field{sc.Field(0)}, nil), rows)
	tx := tbl.NewTransaction()
	files, err := tx.WriteEqualityDeletes(h.ctx, []int{1}, func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) })
	require.NoError(h.t, err)
	require.NoError(h.t, tx.NewRowDelta(nil).AddDeletes(files...).Commit(h.ctx))
	_, err = tx.Commit(h.ctx)
	require.NoError(h.t, err)
}

func (h *history) opUpdate() bool {
	i := h.rng.IntN(len(h.rows))
	old := h.rows[i]
	next := h.random(old.id)
	next.part = old.part
	h.do(func(tt *warehouse.TxTable) error {
		_, refs := h.positions(tt, multiset{old.text(): 1})
		return tt.Update(h.ctx, refs, batch(tt.ArrowSchema(), []row{next}))
	})
	h.rows[i] = next
	return h.done("update %s to %s", old.text(), next.text())
}

func (h *history) opCompact() bool {
	res, err := h.wh.Compact(h.ctx, ident, warehouse.CompactOptions{MinInputFiles: 2, SuppressedRatio: 0.01})
	require.NoError(h.t, err)
	if res.Record == nil {
		return false
	}
	return h.done("compact")
}

// opRollback moves main back to an earlier snapshot.
func (h *history) opRollback() bool {
	s := h.states[1+h.rng.IntN(len(h.states)-2)]
	st, err := h.cat.Cut().Table(ident)
	require.NoError(h.t, err)
	if id, ok := st.SnapshotID(); s.snapshot == 0 || !ok || id == s.snapshot {
		return false
	}
	_, err = h.cat.Commit(h.ctx, &catalog.Request{Changes: []catalog.Change{catalog.UpdateTable{Ident: ident, Key: st.Key,
		Updates: []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, s.snapshot, table.BranchRef, -1, -1, -1)}}}})
	require.NoError(h.t, err)
	h.rows = h.rowsOf(s.rows)
	return h.done("rollback to seq %d", s.seq)
}

// rowsOf finds the rows behind a multiset among all rows that the generator can make.
func (h *history) rowsOf(m multiset) []row {
	var out []row
	for id := range int64(40) {
		for part := range int32(2) {
			for _, n := range names {
				for _, v := range values {
					r := row{id, part, n, v}
					for range m[r.text()] {
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

// opMixed deletes and appends in one commit.
func (h *history) opMixed() bool {
	idx := h.some(2)
	m := h.texts(idx)
	kept := slices.Clone(h.rows)
	h.remove(idx)
	rows := h.fresh(3)
	if h.rng.IntN(2) == 0 {
		for _, i := range idx[:1] { // a removed row comes back as it was
			if !slices.ContainsFunc(rows, func(r row) bool { return h.keyed && r.key() == kept[i].key() }) {
				rows = append(rows, kept[i])
			}
		}
	}
	h.do(func(tt *warehouse.TxTable) error {
		at, _ := h.positions(tt, m)
		for path, pos := range at {
			if _, err := tt.DeleteAt(h.ctx, path, pos); err != nil {
				return err
			}
		}
		if len(rows) == 0 {
			return nil
		}
		return tt.Append(h.ctx, batch(tt.ArrowSchema(), rows))
	})
	h.rows = append(h.rows, rows...)
	return h.done("delete %d and append %d", len(idx), len(rows))
}

// opEvolve renames a column, as another engine does: rows are the same by field id.
func (h *history) opEvolve() bool {
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	from, to := "v", "renamed"
	if _, ok := tbl.Schema().FindFieldByName(to); ok {
		from, to = to, from
	}
	tx := tbl.NewTransaction()
	require.NoError(h.t, tx.UpdateSchema(true, false).RenameColumn([]string{from}, to).Commit())
	_, err = tx.Commit(h.ctx)
	require.NoError(h.t, err)
	return h.done("rename %s to %s", from, to)
}

// opRepartition partitions the table by another expression from now on; files of the specs before stay.
func (h *history) opRepartition() bool {
	tbl, err := h.cat.LoadTable(h.ctx, ident)
	require.NoError(h.t, err)
	tx := tbl.NewTransaction()
	update, what := tx.UpdateSpec(true), "unpartitioned"
	spec := tbl.Spec()
	for _, f := range spec.Fields() {
		update = update.RemoveField(f.Name)
	}
	if spec.IsUnpartitioned() {
		buckets := 2 + h.rng.IntN(3)
		what = fmt.Sprintf("bucket(%d, part)", buckets)
		update = update.AddField("part", iceberg.BucketTransform{NumBuckets: buckets}, "")
	}
	require.NoError(h.t, update.Commit())
	_, err = tx.Commit(h.ctx)
	require.NoError(h.t, err)
	return h.done("partition by %s", what)
}

func (h *history) done(format string, args ...any) bool {
	cut := h.cat.Cut()
	st, err := cut.Table(ident)
	require.NoError(h.t, err)
	id, _ := st.SnapshotID()
	what := fmt.Sprintf(format, args...)
	h.states = append(h.states, modelState{cut.Seq(), id, h.model(), what})
	h.log = append(h.log, fmt.Sprintf("seq %d snapshot %d: %s", cut.Seq(), id, what))
	return true
}

// lawCase is one kind of table that the laws are checked on.
type lawCase struct {
	version, partition int
	keyed              bool
}

var lawCases = []lawCase{{2, 0, true}, {2, 0, false}, {3, 0, true}, {3, 0, false}, {2, 3, true}, {2, 3, false}, {3, 3, true}}

func (c lawCase) String() string {
	return fmt.Sprintf("v%d keyed=%t partition=%d", c.version, c.keyed, c.partition)
}

// TestLaws checks L1, L2, L3, L4, L5 and L6 on random histories against a model in memory. SKADE_SEED repeats a history; with SKADE_SOAK,
// a duration, it goes on with longer histories until that time is over.
func TestLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKADE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	soak, ops := time.Duration(0), 25
	if s := os.Getenv("SKADE_SOAK"); s != "" {
		var err error
		soak, err = time.ParseDuration(s)
		require.NoError(t, err, "SKADE_SOAK")
		ops = 60
	}
	for start, n := time.Now(), 0; n == 0 || time.Since(start) < soak && !t.Failed(); seed++ {
		for _, c := range lawCases {
			t.Run(c.String(), func(t *testing.T) { checkHistory(t, c, seed, ops) })
			n++
		}
		if soak > 0 {
			t.Logf("%d histories, %s", n, time.Since(start).Round(time.Second))
		}
	}
}

// checkHistory makes a random history and checks the laws on random windows of it.
func checkHistory(t *testing.T, c lawCase, seed uint64, ops int) {
	t.Logf("seed %d (SKADE_SEED)", seed)
	h := &history{kit: openKit(t, changelog.Options{BatchRows: 5, PartitionRows: c.partition, Workers: 2}),
		rng: rand.New(rand.NewPCG(seed, 11)), keyed: c.keyed, version: c.version}
	h.createTable(c.version, c.keyed)
	h.done("create")
	t.Cleanup(func() {
		if t.Failed() {
			for _, l := range h.log {
				t.Log(l)
			}
		}
	})
	for range ops {
		h.op()
	}
	for range ops / 2 {
		h.checkLaws()
	}
}

func (h *history) checkLaws() {
	t := h.t
	i := h.rng.IntN(len(h.states))
	j := i + h.rng.IntN(len(h.states)-i)
	m := i + h.rng.IntN(j-i+1)
	a, b, mid := h.states[i], h.states[j], h.states[m]
	msg := fmt.Sprintf("(%d, %d]", a.seq, b.seq)

	all := h.changes(seq(a.seq), seq(b.seq))
	require.Equal(t, b.rows, a.rows.apply(t, all, "L1 "+msg), "L1 "+msg)
	h.checkOrder(all, msg)

	two := append(h.changes(seq(a.seq), seq(mid.seq)), h.changes(seq(mid.seq), seq(b.seq))...)
	require.Equal(t, all, two, "L2 %s at %d", msg, mid.seq)

	net := h.net(seq(a.seq), seq(b.seq))
	require.Equal(t, b.rows, a.rows.apply(t, net, "L3 "+msg), "L3 "+msg)
	got, err := h.r.Read(h.ctx, ident, seq(a.seq), seq(b.seq))
	require.NoError(t, err)
	folded, err := got.Collapse()
	require.NoError(t, err)
	var fold []change
	for _, r := range folded.Records {
		fold = append(fold, batchChanges(r, 4)...)
	}
	require.Equal(t, sorted(brief(net)), sorted(brief(fold)), "L3 folded "+msg)
	for k, c := range net {
		if c.typ == changelog.UpdateBefore {
			require.Equal(t, changelog.UpdateAfter, net[k+1].typ, msg)
		}
	}

	swap := map[string]string{changelog.Insert: changelog.Delete, changelog.Delete: changelog.Insert,
		changelog.UpdateBefore: changelog.UpdateAfter, changelog.UpdateAfter: changelog.UpdateBefore}
	inverse := h.net(seq(b.seq), seq(a.seq))
	for k := range inverse {
		inverse[k].typ = swap[inverse[k].typ]
	}
	require.Equal(t, sorted(brief(net)), sorted(brief(inverse)), "L4 "+msg)

	for k := i + 1; k <= j; k++ {
		if h.states[k].what == "compact" {
			require.Empty(t, h.changes(seq(h.states[k-1].seq), seq(h.states[k].seq)), "L5 seq %d", h.states[k].seq)
		}
	}
	h.checkResume(all, b, msg)
	h.checkShards(a, b, all, msg)
}

// checkOrder: by seq, ordinal, row; rows count from 0; BEFORE directly before AFTER.
func (h *history) checkOrder(all []change, msg string) {
	for k, c := range all {
		require.NotZero(h.t, c.ts, msg)
		if k == 0 || all[k-1].seq != c.seq || all[k-1].ordinal != c.ordinal {
			require.Zero(h.t, c.num, msg)
			switch {
			case k > 0 && all[k-1].seq == c.seq: // a rollback that goes forward passes several snapshots
				require.Less(h.t, all[k-1].ordinal, c.ordinal, msg)
				require.Equal(h.t, all[k-1].ts, c.ts, msg)
			case k > 0:
				require.Less(h.t, all[k-1].seq, c.seq, msg)
				require.Less(h.t, all[k-1].ts, c.ts, msg)
			}
		} else {
			require.Equal(h.t, all[k-1].num+1, c.num, msg)
		}
		if c.typ == changelog.UpdateBefore {
			require.Equal(h.t, changelog.UpdateAfter, all[k+1].typ, msg)
		}
		if c.typ == changelog.UpdateAfter {
			require.Equal(h.t, changelog.UpdateBefore, all[k-1].typ, msg)
		}
	}
}

// checkResume: from (seq, ordinal, row) the suffix follows; up to it the prefix (L6).
func (h *history) checkResume(all []change, b modelState, msg string) {
	if len(all) == 0 {
		return
	}
	k := h.rng.IntN(len(all))
	c := all[k]
	at := changelog.Seq(uint64(c.seq), int64(c.ordinal), c.num)
	rest := h.changes(at, seq(b.seq))
	require.Equal(h.t, append([]change(nil), all[k+1:]...), append([]change(nil), rest...), "L6 suffix %s from %s", msg, at)
	first := changelog.Seq(uint64(all[0].seq) - 1)
	require.Equal(h.t, all[:k+1], h.changes(first, at), "L6 prefix %s to %s", msg, at)
}

// checkShards: the shards' rows are the whole's, a pair that hashes apart being DELETE and INSERT (L6).
func (h *history) checkShards(a, b modelState, all []change, msg string) {
	n := 1 + h.rng.IntN(4)
	var union []change
	for i := range n {
		union = append(union, h.read(changelog.Request{Cut: h.cat.Cut(), Ident: ident, From: seq(a.seq), To: seq(b.seq),
			Shard: changelog.Shard{Index: i, Count: n}})...)
	}
	place := func(cs []change) []string {
		out := make([]string, len(cs))
		for k, c := range cs {
			out[k] = fmt.Sprint(c.seq, c.ordinal, c.num, isDelete(c.typ), c.row)
		}
		return sorted(out)
	}
	require.Equal(h.t, place(all), place(union), "L6 %d shards of %s", n, msg)
}
