package changelog_test

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
)

// commit is a snapshot of another writer on a branch.
func (h *history) commit(where string, c testkit.RawCommit) int64 {
	h.t.Helper()
	c.Branch = where
	return h.raw.Commit(h.t, c)
}

func (h *history) entries(where string) (data, deletes []testkit.Entry) {
	id := h.headOf(where)
	if id == nil {
		return nil, nil
	}
	return h.ref.Entries(h.t, h.raw.Meta(h.t), *id)
}

// fileOptions are one of the ways to write a file. Files without field ids are for the columns that the name mapping knows.
func (h *history) fileOptions(sc *iceberg.Schema) testkit.FileOptions {
	o := testkit.FileOptions{Metrics: h.rng.IntN(2) == 0}
	if h.rng.IntN(4) == 0 {
		mapped := map[int]string{1: "id", 2: "part", 3: "name", 4: "v"}
		o.NoFieldIDs = true
		for _, f := range sc.Fields() {
			o.NoFieldIDs = o.NoFieldIDs && mapped[f.ID] == f.Name
		}
	}
	return o
}

// dataFiles writes rows, a file for each partition and seldom more.
func (h *history) dataFiles(rows []testkit.Record, o testkit.FileOptions) []testkit.RawFile {
	meta := h.raw.Meta(h.t)
	sc := meta.CurrentSchema()
	places, byPlace, order := map[string]testkit.Place{}, map[string][]testkit.Record{}, []string{}
	for _, r := range rows {
		p := testkit.PlaceOf(sc, meta.PartitionSpec(), r)
		key := fmt.Sprintf("%#v", p.Partition)
		if len(rows) > 4 {
			key = fmt.Sprint(h.rng.IntN(2), key)
		}
		if _, ok := places[key]; !ok {
			order = append(order, key)
		}
		places[key], byPlace[key] = p, append(byPlace[key], r)
	}
	var out []testkit.RawFile
	for _, key := range order {
		out = append(out, h.raw.DataFile(h.t, sc, places[key], byPlace[key], o))
	}
	return out
}

func (h *history) foreignAppend() bool {
	where := h.where()
	live := h.rows(h.headOf(where))
	rows := h.fresh(live, 1+h.rng.IntN(10))
	if h.rng.IntN(6) == 0 { // what nobody else keeps unique
		rows = append(rows, h.random())
	}
	if len(rows) == 0 {
		return false
	}
	o := h.fileOptions(h.schema())
	o.Hive = h.rng.IntN(2) == 0
	h.commit(where, testkit.RawCommit{Op: table.OpAppend, Add: h.dataFiles(rows, o)})
	h.intended(where, live, nil, rows)
	return h.done("%s: foreign append of %d, %+v", where, len(rows), o)
}

// removeFile removes a data file; what deletes its rows stays, dangling.
func (h *history) removeFile() bool {
	where := h.where()
	data, _ := h.entries(where)
	if len(data) == 0 {
		return false
	}
	f := data[h.rng.IntN(len(data))]
	live := h.rows(h.headOf(where))
	var gone []testkit.LiveRow
	for _, r := range live {
		if r.File.FilePath() == f.FilePath() {
			gone = append(gone, r)
		}
	}
	h.commit(where, testkit.RawCommit{Op: table.OpDelete, Remove: []string{f.Key()}})
	h.intended(where, live, gone, nil)
	return h.done("%s: remove a file of %d live rows", where, len(gone))
}

// rewrite is a copy-on-write update: a file is written again, most rows carried over, some changed, left out or added.
func (h *history) rewrite() bool {
	where := h.where()
	data, _ := h.entries(where)
	if len(data) == 0 {
		return false
	}
	f := data[h.rng.IntN(len(data))]
	live := h.rows(h.headOf(where))
	keepIDs := h.rng.IntN(3) > 0 && h.raw.Meta(h.t).Version() >= 3
	var gone []testkit.LiveRow
	var rows []testkit.Record
	for _, r := range live {
		if r.File.FilePath() != f.FilePath() {
			continue
		}
		gone = append(gone, r)
		next := r.As(h.schema())
		switch h.rng.IntN(6) {
		case 0:
			continue
		case 1:
			next = h.next(r)
		}
		if keepIDs && r.RowID >= 0 {
			next[iceberg.RowIDFieldID] = r.RowID
		}
		rows = append(rows, next)
	}
	rows = append(rows, h.fresh(live, h.rng.IntN(2))...)
	o := testkit.FileOptions{RowIDs: keepIDs, Metrics: h.rng.IntN(2) == 0}
	h.commit(where, testkit.RawCommit{Add: h.dataFiles(rows, o), Remove: []string{f.Key()}})
	h.intended(where, live, gone, rows)
	return h.done("%s: rewrite a file of %d rows into %d, row ids %t", where, len(gone), len(rows), keepIDs)
}

// foreignCompact joins files of a partition into one with an older data sequence number: deletes by equality that came since still apply to it.
func (h *history) foreignCompact() bool {
	where := h.where()
	data, deletes := h.entries(where)
	if len(data) == 0 {
		return false
	}
	part := data[h.rng.IntN(len(data))].Part
	var in []testkit.Entry
	since := int64(1)
	for _, f := range data {
		if f.Part == part && len(in) < 3 {
			in = append(in, f)
			since = max(since, f.Seq)
		}
	}
	if last := h.raw.Meta(h.t).LastSequenceNumber(); h.rng.IntN(2) == 0 {
		since += h.rng.Int64N(last - since + 1)
	}
	rows, ids := h.survivors(in, deletes, since)
	live := h.rows(h.headOf(where))
	c := testkit.RawCommit{Op: table.OpReplace}
	for _, f := range in {
		c.Remove = append(c.Remove, f.Key())
	}
	if len(rows) > 0 {
		meta := h.raw.Meta(h.t)
		f := h.raw.DataFile(h.t, h.everyField(), testkit.PlaceOfEntry(meta, in[0]), rows, testkit.FileOptions{RowIDs: ids, Metrics: h.rng.IntN(2) == 0})
		f.Seq = since
		c.Add = append(c.Add, f)
	}
	h.commit(where, c)
	h.intended(where, live, nil, nil)
	return h.done("%s: foreign compaction of %d files at sequence number %d, %d rows", where, len(in), since, len(rows))
}

// survivors are the rows of files that no position delete took, and no equality delete up to a sequence number: with all columns there ever were,
// so that later deletes still find theirs.
func (h *history) survivors(in []testkit.Entry, deletes []testkit.Entry, since int64) (rows []testkit.Record, ids bool) {
	meta := h.raw.Meta(h.t)
	var old []testkit.Entry
	for _, d := range deletes {
		if d.ContentType() == iceberg.EntryContentPosDeletes || d.Seq <= since {
			old = append(old, d)
		}
	}
	ids = meta.Version() >= 3 && h.rng.IntN(3) > 0
	all := h.everyField()
	for _, r := range h.ref.LiveIn(h.t, meta, in, old) {
		row := r.As(all)
		if ids && r.RowID >= 0 {
			row[iceberg.RowIDFieldID] = r.RowID
		}
		rows = append(rows, row)
	}
	return rows, ids
}

// everyField is a schema of all columns the table ever had, in their newest types, under names of their own.
func (h *history) everyField() *iceberg.Schema {
	var out []iceberg.NestedField
	for _, sc := range h.raw.Meta(h.t).Schemas() { // in the order they came
		for _, f := range sc.Fields() {
			f.Required = false
			f.Name = fmt.Sprint("c", f.ID)
			if i := slices.IndexFunc(out, func(g iceberg.NestedField) bool { return g.ID == f.ID }); i >= 0 {
				out[i] = f
			} else {
				out = append(out, f)
			}
		}
	}
	return schemaOf(out)
}

// lyingReplace says that it replaces files and changes no row, and loses some.
func (h *history) lyingReplace() bool {
	if h.rng.IntN(2) == 0 {
		return false
	}
	where := h.where()
	data, _ := h.entries(where)
	live := h.rows(h.headOf(where))
	if len(data) == 0 || len(live) == 0 {
		return false
	}
	victim := live[h.rng.IntN(len(live))]
	var gone []testkit.LiveRow
	var rows []testkit.Record
	for _, r := range live {
		if r.File.FilePath() == victim.File.FilePath() {
			gone = append(gone, r)
			if r.Pos != victim.Pos {
				rows = append(rows, r.As(h.schema()))
			}
		}
	}
	id := h.commit(where, testkit.RawCommit{Op: table.OpReplace, Add: h.dataFiles(rows, testkit.FileOptions{}), Remove: []string{victim.File.Key()}})
	h.intended(where, live, gone, rows)
	if h.lies == nil {
		h.lies = map[int64]bool{}
	}
	h.lies[id] = true
	return h.done("%s: replace that loses a row", where)
}

// mergeManifests rewrites manifests alone.
func (h *history) mergeManifests() bool {
	where := h.where()
	live := h.rows(h.headOf(where))
	h.commit(where, testkit.RawCommit{Op: table.OpReplace, Merge: true})
	h.intended(where, live, nil, nil)
	require.Len(h.t, h.rows(h.headOf(where)), len(live))
	return h.done("%s: rewrite manifests", where)
}

// addAgain lists a file that is there already once more, as careless writers do: it stays one file.
func (h *history) addAgain() bool {
	where := h.where()
	data, deletes := h.entries(where)
	all := append(data, deletes...)
	if len(all) == 0 {
		return false
	}
	live := h.rows(h.headOf(where))
	e := all[h.rng.IntN(len(all))]
	h.commit(where, testkit.RawCommit{Op: table.OpAppend, Add: []testkit.RawFile{{DataFile: e.DataFile, Seq: e.Seq}}})
	h.intended(where, live, nil, nil)
	return h.done("%s: add a file that is there", where)
}
