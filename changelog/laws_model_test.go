package changelog_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/testkit"
)

// history is a random history of s.t and the model of its states.
type history struct {
	*kit
	lawCase
	rng    *rand.Rand
	raw    *testkit.Raw
	ref    *testkit.Reference
	live   map[int64][]testkit.LiveRow // by snapshot
	states []modelState
	lies   map[int64]bool // replace snapshots that changed rows
	log    []string
}

// modelState is the table after a commit seq.
type modelState struct {
	seq    uint64
	time   time.Time
	head   *int64 // main's
	schema int
	what   string
}

var (
	texts   = []any{nil, "", "a", "b,c", "b\x00c", "\x1f|", "ä", "long enough to be cut at sixteen", "long enough to be cut at sixteen, twice"}
	numbers = []any{nil, 0.0, math.Copysign(0, -1), math.NaN(), 1.5, math.Inf(-1)}
	longs   = []any{nil, int64(0), int64(1), int64(-7), int64(math.MaxInt32)}
	moneys  = []any{nil, testkit.Decimal("0.00"), testkit.Decimal("-1.50"), testkit.Decimal("99.99")}
)

// value is a random value of a column.
func (h *history) value(f iceberg.NestedField) any {
	null := !f.Required && h.rng.IntN(8) == 0
	switch {
	case f.ID == 1 && !null:
		return h.rng.Int64N(30)
	case f.ID == 2 && !null:
		return h.rng.Int64N(2)
	case f.ID <= 2:
		return nil
	}
	of := texts
	switch f.Type.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		of = numbers
	case iceberg.Int32Type, iceberg.Int64Type:
		of = longs
	case iceberg.DecimalType:
		of = moneys
	}
	return of[h.rng.IntN(len(of))]
}

func (h *history) random() testkit.Record {
	r := testkit.Record{}
	for _, f := range h.schema().Fields() {
		r[f.ID] = h.value(f)
	}
	return r
}

func keyOf(r testkit.Record) string { return fmt.Sprint(r[1], "|", r[2]) }

// fresh returns at most n random rows, whose keys are neither among the live nor repeated when the table is keyed.
func (h *history) fresh(live []testkit.LiveRow, n int) []testkit.Record {
	used := map[string]bool{}
	for _, r := range live {
		used[keyOf(r.Record)] = true
	}
	var out []testkit.Record
	for range n {
		r := h.random()
		if h.keyed && used[keyOf(r)] {
			continue
		}
		used[keyOf(r)] = true
		out = append(out, r)
	}
	return out
}

func (h *history) schema() *iceberg.Schema { return h.raw.Meta(h.t).CurrentSchema() }

func (h *history) schemaByID(id int) *iceberg.Schema {
	for _, sc := range h.raw.Meta(h.t).Schemas() {
		if sc.ID == id {
			return sc
		}
	}
	require.FailNow(h.t, "no schema", id)
	return nil
}

// rows are the live rows of a snapshot, nil: none.
func (h *history) rows(id *int64) []testkit.LiveRow {
	if id == nil {
		return nil
	}
	known, ok := h.live[*id]
	if !ok {
		known = h.ref.Rows(h.t, h.raw.Meta(h.t), *id)
		h.live[*id] = known
	}
	return known
}

func textsOf(rows []testkit.LiveRow, sc *iceberg.Schema) multiset {
	m := multiset{}
	for _, r := range rows {
		m.add(r.Text(sc), 1)
	}
	return m
}

// state is R of a snapshot under a schema.
func (h *history) state(id *int64, sc *iceberg.Schema) multiset { return textsOf(h.rows(id), sc) }

// headOf is the head of a branch, main's when it is not there yet.
func (h *history) headOf(branch string) *int64 {
	meta := h.raw.Meta(h.t)
	for name, ref := range meta.Refs() {
		if name == branch {
			return &ref.SnapshotID
		}
	}
	if s := meta.CurrentSnapshot(); s != nil {
		return &s.SnapshotID
	}
	return nil
}

// done notes the state after a commit.
func (h *history) done(format string, args ...any) bool {
	cut := h.cat.Cut()
	st, err := cut.Table(ident)
	require.NoError(h.t, err)
	s := modelState{seq: cut.Seq(), time: cut.Time(), what: fmt.Sprintf(format, args...), schema: h.schema().ID}
	id, ok := st.SnapshotID()
	if ok {
		s.head = &id
	}
	h.states = append(h.states, s)
	h.log = append(h.log, fmt.Sprintf("seq %d snapshot %d: %s", s.seq, id, s.what))
	return true
}

// intended checks that a commit on a branch did to the rows what it was to do: the oracle of the oracle.
func (h *history) intended(branch string, before []testkit.LiveRow, minus []testkit.LiveRow, plus []testkit.Record) {
	h.t.Helper()
	sc := h.schema()
	want := textsOf(before, sc)
	for _, r := range minus {
		want.add(r.Text(sc), -1)
	}
	for _, r := range plus {
		want.add(r.Text(sc), 1)
	}
	require.Equal(h.t, want, h.state(h.headOf(branch), sc), "what the commit did")
}

// path lists the snapshots after base (nil: before the first) up to tip, nil when base is not an ancestor.
func (h *history) path(base *int64, tip int64) []int64 {
	meta := h.raw.Meta(h.t)
	out := []int64{}
	for s := meta.SnapshotByID(tip); s != nil; s = meta.SnapshotByID(*s.ParentSnapshotID) {
		if base != nil && s.SnapshotID == *base {
			slices.Reverse(out)
			return out
		}
		out = append(out, s.SnapshotID)
		if s.ParentSnapshotID == nil {
			break
		}
	}
	if base != nil {
		return nil
	}
	slices.Reverse(out)
	return out
}

// modelStep is a move of main's head and what is expected of it.
type modelStep struct {
	seq      uint64
	ordinal  int32
	from, to *int64
	move     bool // not from parent to child
}

// steps are the moves of main's head after state i up to state j.
func (h *history) steps(i, j int) []modelStep {
	var out []modelStep
	for k := i + 1; k <= j; k++ {
		from, to := h.states[k-1].head, h.states[k].head
		if to == nil || from != nil && *from == *to {
			continue
		}
		chain := h.path(from, *to)
		if chain == nil {
			out = append(out, modelStep{seq: h.states[k].seq, from: from, to: to, move: true})
			continue
		}
		for n, id := range chain {
			out = append(out, modelStep{seq: h.states[k].seq, ordinal: int32(n), from: from, to: &id})
			from = &id
		}
	}
	return out
}

// invisible says that a step is a replace snapshot with as many rows as its parent (L5).
func (h *history) invisible(s modelStep) bool {
	if s.move || s.to == nil {
		return false
	}
	snap := h.raw.Meta(h.t).SnapshotByID(*s.to)
	return snap.Summary != nil && snap.Summary.Operation == table.OpReplace && len(h.rows(s.from)) == len(h.rows(s.to))
}

// expected are the changes of a step under the asked schema: "DELETE x", "INSERT y", "UPDATE x → y".
func (h *history) expected(s modelStep, asked *iceberg.Schema) []string {
	if h.invisible(s) {
		return nil
	}
	schemas := []*iceberg.Schema{asked}
	for _, id := range []*int64{s.from, s.to} {
		if id != nil {
			schemas = append(schemas, h.schemaByID(*h.raw.Meta(h.t).SnapshotByID(*id).SchemaID))
		}
	}
	return h.difference(h.rows(s.from), h.rows(s.to), asked, schemas, h.raw.Meta(h.t).Version() >= 3)
}

// difference is the change between two states by the rules of the package comment, on whole states.
func (h *history) difference(before, after []testkit.LiveRow, asked *iceberg.Schema, schemas []*iceberg.Schema, byID bool) []string {
	var fields []iceberg.NestedField // what makes row identity
	for _, sc := range schemas {
		for _, f := range sc.Fields() {
			if !slices.ContainsFunc(fields, func(g iceberg.NestedField) bool { return g.ID == f.ID }) {
				f.Name = fmt.Sprint(f.Name, f.ID)
				fields = append(fields, f)
			}
		}
	}
	whole := iceberg.NewSchema(0, fields...)
	var out []string
	update := func(d, i testkit.LiveRow) {
		if d.Text(whole) != i.Text(whole) {
			out = append(out, "UPDATE "+d.Text(asked)+" → "+i.Text(asked))
		}
	}
	if byID {
		before, after = match(before, after, func(r testkit.LiveRow) string {
			if r.RowID < 0 {
				return ""
			}
			return fmt.Sprint(r.RowID)
		}, true, update)
	}
	before, after = match(before, after, func(r testkit.LiveRow) string { return r.Text(whole) }, false, func(_, _ testkit.LiveRow) {})
	if h.keyed {
		before, after = match(before, after, func(r testkit.LiveRow) string { return keyOf(r.Record) }, true, update)
	}
	for _, r := range before {
		out = append(out, "DELETE "+r.Text(asked))
	}
	for _, r := range after {
		out = append(out, "INSERT "+r.Text(asked))
	}
	return out
}

// match takes out pairs of one key: all of them, or where unique only those that stand alone on both sides. It returns what is left.
func match(before, after []testkit.LiveRow, key func(testkit.LiveRow) string, unique bool, pair func(d, i testkit.LiveRow)) (b, a []testkit.LiveRow) {
	dels, inss := map[string][]testkit.LiveRow{}, map[string][]testkit.LiveRow{}
	for _, r := range before {
		dels[key(r)] = append(dels[key(r)], r)
	}
	for _, r := range after {
		inss[key(r)] = append(inss[key(r)], r)
	}
	for k, d := range dels {
		i := inss[k]
		if k == "" || unique && (len(d) != 1 || len(i) != 1) {
			continue
		}
		n := min(len(d), len(i))
		for x := range n {
			pair(d[x], i[x])
		}
		dels[k], inss[k] = d[n:], i[n:]
	}
	for _, d := range dels {
		b = append(b, d...)
	}
	for _, i := range inss {
		a = append(a, i...)
	}
	return b, a
}

// paired writes changes as expected does.
func (h *history) paired(cs []change, msg string) []string {
	var out []string
	for k := 0; k < len(cs); k++ {
		if cs[k].typ != changelog.UpdateBefore {
			out = append(out, cs[k].typ+" "+cs[k].row)
			continue
		}
		require.Less(h.t, k+1, len(cs), msg)
		require.Equal(h.t, changelog.UpdateAfter, cs[k+1].typ, msg)
		out = append(out, "UPDATE "+cs[k].row+" → "+cs[k+1].row)
		k++
	}
	return out
}

// signed is the multiset difference that changes amount to.
func signed(cs []string) multiset {
	m := multiset{}
	for _, c := range cs {
		op, rest, _ := strings.Cut(c, " ")
		switch op {
		case "DELETE":
			m.add(rest, -1)
		case "INSERT":
			m.add(rest, 1)
		default:
			d, i, _ := strings.Cut(rest, " → ")
			m.add(d, -1)
			m.add(i, 1)
		}
	}
	return m
}
