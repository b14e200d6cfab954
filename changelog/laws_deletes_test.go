package changelog_test

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/testkit"
)

// equality is an equality delete to be written: where it reaches and which keys it names.
type equality struct {
	place  testkit.Place
	global bool
	part   string
	ids    []int
	keys   []testkit.Record
}

// hits are the rows of files written before that it deletes.
func (e *equality) hits(sc *iceberg.Schema, live []testkit.LiveRow) []testkit.LiveRow {
	key := func(r testkit.Record) string {
		out := ""
		for _, id := range e.ids {
			out += testkit.ValueText(r[id]) + "|"
		}
		return out
	}
	named := map[string]bool{}
	for _, k := range e.keys {
		named[key(k)] = true
	}
	var out []testkit.LiveRow
	for _, r := range live {
		if (e.global || e.part == r.File.Part) && named[key(r.As(sc))] {
			out = append(out, r)
		}
	}
	return out
}

// randomEquality deletes by some columns: rows that live, rows that do not, NULLs. It is global when the table ever had an unpartitioned spec, by turns.
func (h *history) randomEquality(live []testkit.LiveRow) *equality {
	meta := h.raw.Meta(h.t)
	sc := meta.CurrentSchema()
	var can []int
	for _, f := range sc.Fields() {
		switch f.Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type: // the spec forbids these
		default:
			can = append(can, f.ID)
		}
	}
	e := &equality{}
	for _, i := range h.rng.Perm(len(can))[:1+h.rng.IntN(2)] {
		e.ids = append(e.ids, can[i])
	}
	if last := slices.Max(can); last > 4 && h.rng.IntN(2) == 0 {
		e.ids = []int{last} // a column that came later: older files have it by its default or not at all
	}
	victim := live[h.rng.IntN(len(live))]
	e.place, e.part = testkit.PlaceOfEntry(meta, victim.File), victim.File.Part
	for _, spec := range meta.PartitionSpecs() {
		if spec.IsUnpartitioned() && h.rng.IntN(2) == 0 {
			e.place = testkit.Place{Spec: spec}
		}
	}
	e.global = e.place.Spec.IsUnpartitioned()
	for range 1 + h.rng.IntN(3) {
		k := live[h.rng.IntN(len(live))].As(sc)
		if h.rng.IntN(4) == 0 {
			k = h.random()
		}
		e.keys = append(e.keys, k)
	}
	e.keys = append(e.keys, victim.As(sc))
	if h.rng.IntN(3) == 0 {
		h.onlyNulls(e, sc, live)
	}
	return e
}

// onlyNulls makes it a delete by one column of which only NULL is in the table: the bounds of what is not NULL tell nothing of it.
func (h *history) onlyNulls(e *equality, sc *iceberg.Schema, live []testkit.LiveRow) {
	far := map[string]any{"string": "\uffff", "int": int64(1 << 30), "long": int64(1 << 30)}
	for _, f := range sc.Fields() {
		outlier, ok := far[f.Type.String()]
		if _, isDecimal := f.Type.(iceberg.DecimalType); isDecimal {
			outlier, ok = testkit.Decimal("9999.99"), true
		}
		for _, r := range live {
			if ok && r.As(sc)[f.ID] == nil && (e.global || r.File.Part == e.part) {
				e.ids, e.keys = []int{f.ID}, []testkit.Record{{f.ID: nil}, {f.ID: outlier}}
				return
			}
		}
	}
}

func (h *history) write(e *equality) testkit.RawFile {
	sc := h.schema()
	var sub []iceberg.NestedField
	for _, id := range e.ids {
		f, _ := sc.FindFieldByID(id)
		sub = append(sub, f)
	}
	return h.raw.EqualityDelete(h.t, sc, e.place, e.ids, e.keys, h.fileOptions(schemaOf(sub)))
}

func (e *equality) String() string {
	return fmt.Sprintf("equality delete by %v of %d keys, global %t", e.ids, len(e.keys), e.global)
}

func (h *history) equalityDelete() bool {
	where := h.where()
	live := h.rows(h.headOf(where))
	if len(live) == 0 {
		return false
	}
	e := h.randomEquality(live)
	gone := e.hits(h.schema(), live)
	h.commit(where, testkit.RawCommit{Op: table.OpDelete, Add: []testkit.RawFile{h.write(e)}})
	h.intended(where, live, gone, nil)
	return h.done("%s: foreign %s, %d rows", where, e, len(gone))
}

// foreignUpsert deletes by equality and adds rows in one commit: the delete does not reach them.
func (h *history) foreignUpsert() bool {
	where := h.where()
	live := h.rows(h.headOf(where))
	if len(live) == 0 {
		return false
	}
	e := h.randomEquality(live)
	gone := e.hits(h.schema(), live)
	var rows []testkit.Record
	for _, r := range gone {
		rows = append(rows, h.next(r))
	}
	rows = append(rows, h.fresh(live, h.rng.IntN(3))...)
	h.commit(where, testkit.RawCommit{Add: append(h.dataFiles(rows, h.fileOptions(h.schema())), h.write(e))})
	h.intended(where, live, gone, rows)
	return h.done("%s: foreign upsert by %s, %d rows to %d", where, e, len(gone), len(rows))
}

// positionDelete deletes by position: with position delete files on version 2, with deletion vectors on version 3.
func (h *history) positionDelete() bool {
	where := h.where()
	data, _ := h.entries(where)
	if len(data) == 0 {
		return false
	}
	first := data[h.rng.IntN(len(data))]
	files := map[string]testkit.Entry{first.FilePath(): first}
	for _, f := range data {
		if f.Part == first.Part && len(files) < 3 && h.rng.IntN(2) == 0 {
			files[f.FilePath()] = f
		}
	}
	if h.raw.Meta(h.t).Version() >= 3 {
		return h.vectors(where, files)
	}
	live := h.rows(h.headOf(where))
	at := map[string][]int64{}
	for _, f := range data { // in the order of the manifests: a seed is a history
		if _, ok := files[f.FilePath()]; !ok {
			continue
		}
		for range 1 + h.rng.IntN(3) {
			at[f.FilePath()] = append(at[f.FilePath()], h.rng.Int64N(f.Count()+2)) // past its end, too
		}
	}
	var gone []testkit.LiveRow
	for _, r := range live {
		for _, pos := range at[r.File.FilePath()] {
			if pos == r.Pos {
				gone = append(gone, r)
				break
			}
		}
	}
	o := testkit.FileOptions{NoFieldIDs: h.rng.IntN(4) == 0, Unsorted: h.rng.IntN(3) == 0, Metrics: h.rng.IntN(2) == 0}
	d := h.raw.PositionDelete(h.t, testkit.PlaceOfEntry(h.raw.Meta(h.t), first), at, o)
	h.commit(where, testkit.RawCommit{Op: table.OpDelete, Add: []testkit.RawFile{d}})
	h.intended(where, live, gone, nil)
	return h.done("%s: foreign position delete in %d files, %d rows, %+v", where, len(files), len(gone), o)
}

// vectors gives files new deletion vectors. One stands for all position deletes of its file: mostly it holds what they held and more, at times
// a writer forgets some, and rows come back.
func (h *history) vectors(where string, files map[string]testkit.Entry) bool {
	meta := h.raw.Meta(h.t)
	data, deletes := h.entries(where)
	live := h.rows(h.headOf(where))
	alive := map[string]map[int64]testkit.LiveRow{}
	for _, r := range live {
		if alive[r.File.FilePath()] == nil {
			alive[r.File.FilePath()] = map[int64]testkit.LiveRow{}
		}
		alive[r.File.FilePath()][r.Pos] = r
	}
	forget := h.rng.IntN(4) == 0
	c := testkit.RawCommit{Op: table.OpDelete}
	at := map[string][]int64{}
	var gone []testkit.LiveRow
	for _, f := range data {
		if _, ok := files[f.FilePath()]; !ok {
			continue
		}
		for pos := range f.Count() {
			r, lives := alive[f.FilePath()][pos]
			switch {
			case !lives && forget && h.rng.IntN(2) == 0:
			case !lives:
				at[f.FilePath()] = append(at[f.FilePath()], pos)
			case h.rng.IntN(4) == 0:
				at[f.FilePath()] = append(at[f.FilePath()], pos)
				gone = append(gone, r)
			}
		}
	}
	for _, d := range deletes {
		if d.FileFormat() == iceberg.PuffinFile && len(at[*d.ReferencedDataFile()]) > 0 {
			c.Remove = append(c.Remove, d.Key())
		}
	}
	if len(at) == 0 {
		return false
	}
	c.Add = h.raw.Vectors(h.t, meta, at, files)
	h.commit(where, c)
	if !forget {
		h.intended(where, live, gone, nil)
	}
	return h.done("%s: %d vectors in place of %d, %d rows, forgetful %t", where, len(c.Add), len(c.Remove), len(gone), forget)
}

// insertAndDelete adds rows and hides some of them in the same commit: these were never visible.
func (h *history) insertAndDelete() bool {
	where := h.where()
	live := h.rows(h.headOf(where))
	rows := h.fresh(live, 2+h.rng.IntN(5))
	if len(rows) == 0 {
		return false
	}
	files := h.dataFiles(rows, h.fileOptions(h.schema()))
	f := files[h.rng.IntN(len(files))]
	meta := h.raw.Meta(h.t)
	e := testkit.Entry{DataFile: f.DataFile}
	at := map[string][]int64{f.FilePath(): {0}}
	adds := files
	if meta.Version() >= 3 {
		adds = append(adds, h.raw.Vectors(h.t, meta, at, map[string]testkit.Entry{f.FilePath(): e})...)
	} else {
		adds = append(adds, h.raw.PositionDelete(h.t, testkit.PlaceOfEntry(meta, e), at, testkit.FileOptions{Metrics: h.rng.IntN(2) == 0}))
	}
	h.commit(where, testkit.RawCommit{Add: adds})
	var hidden []testkit.LiveRow
	for _, r := range h.ref.LiveIn(h.t, meta, []testkit.Entry{e}, nil) {
		if r.Pos == 0 {
			hidden = append(hidden, r)
		}
	}
	h.intended(where, live, hidden, rows)
	return h.done("%s: add %d rows and hide one of them", where, len(rows))
}

// removeDelete removes a delete file: the rows that nothing else deletes come back.
func (h *history) removeDelete() bool {
	where := h.where()
	_, deletes := h.entries(where)
	if len(deletes) == 0 {
		return false
	}
	d := deletes[h.rng.IntN(len(deletes))]
	before := len(h.rows(h.headOf(where)))
	h.commit(where, testkit.RawCommit{Remove: []string{d.Key()}})
	return h.done("%s: remove a delete file, %d rows come back", where, len(h.rows(h.headOf(where)))-before)
}
