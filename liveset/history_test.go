package liveset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// mfile and mdelete are the naive model: every rule is applied row by row, from nothing, at every snapshot.
type mfile struct {
	df   iceberg.DataFile
	seq  int64
	spec int
	part string
	rows []row
}

type mdelete struct {
	df      iceberg.DataFile
	seq     int64
	spec    int
	part    string
	kind    DeleteKind
	ref     string
	at      map[string][]uint32
	ids     []int
	keys    map[string]bool
	ofspec1 bool // equality delete under the unpartitioned spec
}

type model struct {
	files map[string]*mfile
	dels  map[string]*mdelete
}

func (m *model) suppressed(f *mfile) *roaring.Bitmap {
	out := roaring.New()
	var vec *mdelete
	for _, d := range m.dels {
		if d.kind == DeletionVector && d.ref == f.df.FilePath() && f.seq <= d.seq {
			vec = d
		}
	}
	for _, d := range m.dels {
		switch d.kind {
		case DeletionVector:
			if d == vec {
				out.AddMany(d.at[f.df.FilePath()])
			}
		case PositionDelete:
			if vec == nil && f.seq <= d.seq && (d.ref == f.df.FilePath() || d.ref == "" && d.spec == f.spec && d.part == f.part) {
				out.AddMany(d.at[f.df.FilePath()])
			}
		case EqualityDelete:
			if f.seq < d.seq && (d.ofspec1 || d.spec == f.spec && d.part == f.part) {
				for i, r := range f.rows {
					if d.keys[r.key(d.ids)] {
						out.Add(uint32(i))
					}
				}
			}
		}
	}
	out.RemoveRange(uint64(len(f.rows)), 1<<32)
	return out
}

func (m *model) paths() []string {
	var out []string
	for p := range m.files {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

func randomRow(rng *rand.Rand, part string) row {
	r := row{id: rng.Int64N(300), p: part}
	if rng.IntN(5) > 0 {
		r.k = ptr(int32(rng.IntN(12)) - 6)
	}
	if rng.IntN(5) > 0 {
		r.s = ptr([]string{"", "a", "a\x00", "\x00a", "|", "a|b", "é", "long enough to be cut at sixteen"}[rng.IntN(8)])
	}
	return r
}

// history makes random commits and keeps the model beside them.
type history struct {
	*kit
	m   *model
	rng *rand.Rand
}

func (h *history) step() (int64, *model) {
	rng := h.rng
	next := &model{files: map[string]*mfile{}, dels: map[string]*mdelete{}}
	for k, v := range h.m.files {
		next.files[k] = v
	}
	for k, v := range h.m.dels {
		next.dels[k] = v
	}
	c := change{seqs: map[string]int64{}, merge: rng.IntN(6) == 0}
	seq := h.seq + 1
	for range rng.IntN(3) {
		h.addFile(&c, next, seq)
	}
	for range rng.IntN(3) {
		h.addDelete(&c, next, seq)
	}
	if rng.IntN(4) == 0 && len(h.m.files) > 0 {
		p := h.m.paths()[rng.IntN(len(h.m.files))]
		delete(next.files, p)
		c.remove = append(c.remove, p)
	}
	if rng.IntN(4) == 0 && len(h.m.dels) > 0 {
		var keys []string
		for k := range h.m.dels {
			if next.dels[k] != nil {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		if len(keys) > 0 {
			k := keys[rng.IntN(len(keys))]
			delete(next.dels, k)
			c.remove = append(c.remove, k)
		}
	}
	id, _ := h.commit(c)
	h.m = next
	return id, next
}

func (h *history) addFile(c *change, m *model, seq int64) {
	spec, part := h.rng.IntN(2), []string{"x", "y"}[h.rng.IntN(2)]
	rows := make([]row, 1+h.rng.IntN(40))
	for i := range rows {
		rows[i] = randomRow(h.rng, part)
	}
	mode := h.rng.IntN(3)
	df := h.dataFile(spec, part, rows, mode)
	if mode == 0 {
		slices.SortStableFunc(rows, func(a, b row) int { return int(a.id - b.id) })
	}
	f := &mfile{df: df, seq: seq, spec: spec, part: part, rows: rows}
	if h.rng.IntN(3) == 0 && seq > 1 { // as a compaction does: an older data sequence number
		f.seq = 1 + h.rng.Int64N(seq)
		c.seqs[df.FilePath()] = f.seq
	}
	if spec == 1 {
		f.part = ""
	}
	m.files[df.FilePath()] = f
	c.add = append(c.add, df)
}

func (h *history) addDelete(c *change, m *model, seq int64) {
	if len(m.files) == 0 {
		return
	}
	paths := m.paths()
	f := m.files[paths[h.rng.IntN(len(paths))]]
	switch k := h.rng.IntN(4); {
	case k == 0 && h.version >= 3:
		h.addVector(c, m, f, seq)
	case k <= 1:
		h.addPositions(c, m, f, seq)
	default:
		h.addEquality(c, m, f, seq)
	}
}

func (h *history) addVector(c *change, m *model, f *mfile, seq int64) {
	path := f.df.FilePath()
	if f.seq > seq {
		return
	}
	all := map[uint32]bool{}
	for k, d := range m.dels {
		if d.kind == DeletionVector && d.ref == path {
			if d.seq == seq {
				return // one vector a file and snapshot
			}
			if h.rng.IntN(2) == 0 { // a writer may also resurrect
				for _, p := range d.at[path] {
					all[p] = true
				}
			}
			delete(m.dels, k)
			c.remove = append(c.remove, k)
		}
	}
	for range 1 + h.rng.IntN(8) {
		all[h.rng.Uint32N(uint32(len(f.rows)))] = true
	}
	var pos []uint32
	var pos64 []int64
	for p := range all {
		pos = append(pos, p)
		pos64 = append(pos64, int64(p))
	}
	df := h.vector(f.df, pos64)
	m.dels[entryKey(df)] = &mdelete{df: df, seq: seq, spec: f.spec, part: f.part, kind: DeletionVector, ref: path, at: map[string][]uint32{path: pos}}
	c.del = append(c.del, df)
}

func (h *history) addPositions(c *change, m *model, f *mfile, seq int64) {
	at := map[string][]uint32{}
	ref := ""
	if h.rng.IntN(2) == 0 {
		ref = f.df.FilePath()
	}
	for _, p := range m.paths() {
		g := m.files[p]
		if g != f && (ref != "" || h.rng.IntN(2) == 0) {
			continue
		}
		b := roaring.New()
		for range 1 + h.rng.IntN(6) {
			b.Add(h.rng.Uint32N(uint32(len(g.rows) + 2))) // past the end too
		}
		at[p] = b.ToArray()
	}
	at["/nowhere/else.parquet"] = nil
	df := h.positionDelete(f.spec, f.part, ref, at)
	m.dels[df.FilePath()] = &mdelete{df: df, seq: seq, spec: f.spec, part: f.part, kind: PositionDelete, ref: ref, at: at}
	c.del = append(c.del, df)
}

func (h *history) addEquality(c *change, m *model, f *mfile, seq int64) {
	ids := [][]int{{1}, {2}, {3}, {3, 1}, {2, 3}}[h.rng.IntN(5)]
	d := &mdelete{seq: seq, spec: f.spec, part: f.part, kind: EqualityDelete, ids: ids, keys: map[string]bool{}, ofspec1: f.spec == 1}
	var keys []row
	for range 1 + h.rng.IntN(5) {
		r := f.rows[h.rng.IntN(len(f.rows))]
		if h.rng.IntN(3) == 0 {
			r = randomRow(h.rng, "x")
		}
		keys = append(keys, r)
		d.keys[r.key(ids)] = true
	}
	d.df = h.equalityDelete(f.spec, f.part, testSchema(), ids, keys)
	m.dels[d.df.FilePath()] = d
	c.del = append(c.del, d.df)
}

func twoSpecs() []iceberg.PartitionSpec {
	return []iceberg.PartitionSpec{
		iceberg.NewPartitionSpecID(0, iceberg.PartitionField{SourceIDs: []int{4}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}}),
		iceberg.NewPartitionSpecID(1),
	}
}

// TestHistories checks random histories, of two specs and every kind of delete, against the naive model: derived sets equal it and sets built from
// nothing (V2), diffs, scans and probes follow from it (V4, V5, L1).
func TestHistories(t *testing.T) {
	for _, version := range []int{2, 3} {
		for run := range 2 {
			t.Run(fmt.Sprintf("v%d/%d", version, run), func(t *testing.T) {
				h := &history{kit: newKit(t, version, twoSpecs()...), m: &model{files: map[string]*mfile{}, dels: map[string]*mdelete{}}, rng: newRand(t)}
				c := h.cache()
				prev, before := Empty(), h.m
				var ids []int64
				for range 18 {
					id, m := h.step()
					ids = append(ids, id)
					s := h.at(c, id)
					h.check(s, m)
					h.checkDiff(prev, s, before, m)
					h.checkProbes(c, s, m)
					prev, before = s, m
				}
				fresh := h.cache()
				last := h.at(fresh, ids[len(ids)-1])
				h.check(last, h.m)
				requireSame(t, prev, last)
				// And backwards: an older set derived from a newer one.
				requireSame(t, h.at(c, ids[7]), h.at(fresh, ids[7]))
				small := NewCache(Options{FS: h.fs, Budget: 4096})
				requireSame(t, prev, h.at(small, ids[len(ids)-1]))
			})
		}
	}
}

func requireSame(t *testing.T, a, b *Set) {
	t.Helper()
	require.Equal(t, a.Rows(), b.Rows())
	require.Equal(t, a.NumDeleteFiles(), b.NumDeleteFiles())
	la, lb := slices.Collect(a.Files()), slices.Collect(b.Files())
	require.Len(t, lb, len(la))
	for i := range la {
		require.True(t, la[i].File.same(lb[i].File), "file %d: %s and %s", i, la[i].File.Path, lb[i].File.Path)
		require.True(t, bitmapsEqual(la[i].Suppressed, lb[i].Suppressed), la[i].File.Path)
	}
}

func (h *history) check(s *Set, m *model) {
	h.t.Helper()
	require.Equal(h.t, len(m.files), s.NumFiles())
	require.Equal(h.t, len(m.dels), s.NumDeleteFiles())
	rows := int64(0)
	for p, f := range m.files {
		l := s.File(p)
		require.NotNil(h.t, l, p)
		require.Equal(h.t, f.seq, l.File.DataSeq)
		want := m.suppressed(f)
		got := l.Suppressed
		if got == nil {
			got = roaring.New()
		}
		require.Equal(h.t, want.ToArray(), got.ToArray(), "suppressed of %s", p)
		rows += int64(len(f.rows)) - int64(want.GetCardinality())
	}
	require.Equal(h.t, rows, s.Rows())
	last := ""
	for f := range s.Files() {
		require.Less(h.t, last, f.File.order)
		last = f.File.order
	}
}

func (h *history) checkDiff(prev, s *Set, before, after *model) {
	h.t.Helper()
	diffs, err := Diff(h.t.Context(), prev, s)
	require.NoError(h.t, err)
	got := map[string]FileDiff{}
	for _, d := range diffs { // a file whose rows got their ids meanwhile is there twice: what died, and what is new
		was := got[d.File.Path]
		got[d.File.Path] = FileDiff{File: d.File, Deleted: union(was.Deleted, d.Deleted), Inserted: union(was.Inserted, d.Inserted)}
	}
	live := func(m *model, p string) *roaring.Bitmap {
		f := m.files[p]
		if f == nil {
			return roaring.New()
		}
		b := roaring.New()
		b.AddRange(0, uint64(len(f.rows)))
		b.AndNot(m.suppressed(f))
		return b
	}
	all := map[string]bool{}
	for p := range before.files {
		all[p] = true
	}
	for p := range after.files {
		all[p] = true
	}
	for p := range all {
		a, b := live(before, p), live(after, p)
		del, ins := orNil(roaring.AndNot(a, b)), orNil(roaring.AndNot(b, a))
		require.True(h.t, bitmapsEqual(del, got[p].Deleted), "deleted of %s", p)
		require.True(h.t, bitmapsEqual(ins, got[p].Inserted), "inserted of %s", p)
		if del == nil && ins == nil {
			require.NotContains(h.t, got, p)
		}
	}
}

func (h *history) checkProbes(c *Cache, s *Set, m *model) {
	h.t.Helper()
	want := map[int64]int{}
	var all []string
	for _, p := range m.paths() {
		f := m.files[p]
		sup := m.suppressed(f)
		for i, r := range f.rows {
			if !sup.Contains(uint32(i)) {
				want[r.id]++
				all = append(all, r.String())
			}
		}
	}
	var keys [][]byte
	var ids []int64
	for range 30 {
		id := h.rng.Int64N(310)
		ids = append(ids, id)
		keys = append(keys, longKey(id))
	}
	hits, err := c.Probe(h.t.Context(), h.ref, s, []int{1}, keys)
	require.NoError(h.t, err)
	got := make([]int, len(ids))
	for _, x := range hits {
		got[x.KeyOrdinal]++
		f := m.files[x.File.File.Path]
		require.Equal(h.t, ids[x.KeyOrdinal], f.rows[x.Pos].id)
		require.True(h.t, x.File.IsLive(x.Pos))
	}
	for i, id := range ids {
		require.Equal(h.t, want[id], got[i], "hits of key %d", id)
	}
	rec, err := c.ReadHits(h.t.Context(), h.ref, testSchema(), MetaColumns{}, hits)
	require.NoError(h.t, err)
	for i, text := range rowTexts(rec) {
		require.Equal(h.t, m.files[hits[i].File.File.Path].rows[hits[i].Pos].String(), text)
	}
	rows := scanRows(h.t, c, h.ref, s, MetaColumns{})
	sort.Strings(rows)
	sort.Strings(all)
	if len(all) == 0 {
		all = []string{}
	}
	require.Equal(h.t, all, rows)
}
