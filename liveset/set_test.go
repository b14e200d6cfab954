package liveset

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// TestTree is the persistent treap against a map: order, independence of versions, and differences that skip what is shared.
func TestTree(t *testing.T) {
	rng := newRand(t)
	var tree *node[int]
	model := map[string]int{}
	type version struct {
		tree  *node[int]
		model map[string]int
	}
	var versions []version
	for i := range 3000 {
		k := fmt.Sprintf("%03d", rng.IntN(400))
		if rng.IntN(3) == 0 {
			tree = tree.del(k)
			delete(model, k)
		} else {
			tree = tree.put(k, i+1)
			model[k] = i + 1
		}
		if i%300 == 0 {
			m := map[string]int{}
			for k, v := range model {
				m[k] = v
			}
			versions = append(versions, version{tree, m})
		}
	}
	for _, v := range versions {
		require.Equal(t, len(v.model), v.tree.size())
		last := ""
		for k, x := range v.tree.all() {
			require.Less(t, last, k)
			require.Equal(t, v.model[k], x)
			last = k
		}
		for _, w := range versions {
			got := map[string][2]int{}
			diffTrees(v.tree, w.tree, func(k string, a, b int) { got[k] = [2]int{a, b} })
			for i := range 400 {
				k := fmt.Sprintf("%03d", i)
				if v.model[k] == w.model[k] {
					require.NotContains(t, got, k)
				} else {
					require.Equal(t, [2]int{v.model[k], w.model[k]}, got[k])
				}
			}
		}
	}
}

func rowsOf(ids ...int64) []row {
	var out []row
	for _, id := range ids {
		out = append(out, row{id: id, k: ptr(int32(id % 7)), s: ptr(fmt.Sprint("s", id)), p: "x"})
	}
	return out
}

// TestOChange counts: what deriving a child reads does not grow with the table (V3).
func TestOChange(t *testing.T) {
	cost := func(files int) Stats {
		k := newKit(t, 2)
		c := k.cache()
		var add []iceberg.DataFile
		for i := range files {
			add = append(add, k.dataFile(0, "", rowsOf(int64(i*10), int64(i*10+1)), 0))
			if len(add) == 5 {
				id, _ := k.commit(change{add: add})
				k.at(c, id)
				add = nil
			}
		}
		id, _ := k.commit(change{add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(5), 0)}})
		k.at(c, id)
		before := c.Stats()
		f := k.manifests[0].entries[0].df
		id, _ = k.commit(change{
			add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(7), 0)},
			del: []iceberg.DataFile{
				k.positionDelete(0, "", f.FilePath(), map[string][]uint32{f.FilePath(): {0}}),
				k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(11)),
			},
		})
		s := k.at(c, id)
		require.Len(t, s.Touched(), 3)
		after := c.Stats()
		return Stats{
			ManifestLists: after.ManifestLists - before.ManifestLists, Manifests: after.Manifests - before.Manifests,
			DeleteFiles: after.DeleteFiles - before.DeleteFiles, DataFileScans: after.DataFileScans - before.DataFileScans,
			Footers: after.Footers - before.Footers,
		}
	}
	small, large := cost(10), cost(100)
	require.Equal(t, small, large)
	require.Equal(t, Stats{ManifestLists: 1, Manifests: 2, DeleteFiles: 2, DataFileScans: 1, Footers: 3}, large)
}

// TestSharing: a child shares its parent's files and bitmaps, and its parent does not change.
func TestSharing(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	var add []iceberg.DataFile
	for i := range 50 {
		add = append(add, k.dataFile(0, "", rowsOf(int64(i), int64(i+100)), 0))
	}
	a, _ := k.commit(change{add: add})
	sa := k.at(c, a)
	b, _ := k.commit(change{del: []iceberg.DataFile{k.positionDelete(0, "", add[3].FilePath(), map[string][]uint32{add[3].FilePath(): {1}})}})
	sb := k.at(c, b)
	require.EqualValues(t, 100, sa.Rows())
	require.EqualValues(t, 99, sb.Rows())
	require.Nil(t, sa.File(add[3].FilePath()).Suppressed)
	for _, f := range add {
		if f != add[3] {
			require.Same(t, sa.File(f.FilePath()), sb.File(f.FilePath()))
		}
	}
	require.Equal(t, []string{add[3].FilePath()}, sb.Touched())
	visited := 0
	diffTrees(sa.files, sb.files, func(string, *LiveFile, *LiveFile) { visited++ })
	require.Equal(t, 1, visited)
	require.Len(t, sb.DeleteFilesOf(add[3].FilePath()), 1)
	require.Empty(t, sb.DeleteFilesOf(add[4].FilePath()))
}

// TestManifestRewriteIsInvisible: rewriting manifests touches nothing (L5's metadata side).
func TestManifestRewriteIsInvisible(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	var last int64
	for i := range 5 {
		f := k.dataFile(0, "", rowsOf(int64(i), int64(i+10)), 0)
		last, _ = k.commit(change{add: []iceberg.DataFile{f}, del: []iceberg.DataFile{k.positionDelete(0, "", "", map[string][]uint32{f.FilePath(): {0}})}})
	}
	before := k.at(c, last)
	merged, _ := k.commit(change{merge: true})
	after := k.at(c, merged)
	require.Empty(t, after.Touched())
	require.EqualValues(t, 5, after.Rows())
	d, err := Diff(t.Context(), before, after)
	require.NoError(t, err)
	require.Empty(t, d)
}

// TestDroppedAndWidenedKeys: an equality delete by a column that was dropped, and one by a column that was widened, still hit.
func TestDroppedAndWidenedKeys(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	old := k.meta.schemas[0]
	f := k.dataFile(0, "", rowsOf(1, 2, 3, 4, 5, 6, 7, 8), 0)
	k.commit(change{add: []iceberg.DataFile{f}})
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", old, []int{2}, []row{{k: ptr(int32(3))}})}})
	wider := iceberg.NewSchemaWithIdentifiers(1, []int{1}, old.Field(0), iceberg.NestedField{ID: 2, Name: "k", Type: prim.Int64}, old.Field(2), old.Field(3))
	k.meta.schemas = append(k.meta.schemas, wider)
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", wider, []int{2}, []row{{k: ptr(int32(4))}})}})
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", wider, []int{3}, []row{{s: ptr("s8")}})}})
	dropped := iceberg.NewSchemaWithIdentifiers(2, []int{1}, old.Field(0), old.Field(3))
	k.meta.schemas = append(k.meta.schemas, dropped)
	s := k.at(c, *k.head)
	require.Equal(t, []uint32{2, 3, 7}, s.File(f.FilePath()).Suppressed.ToArray())
	require.EqualValues(t, 5, s.Rows())
}

// TestNullKeys: NULL matches NULL in an equality delete, and never an identifier probe.
func TestNullKeys(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	rows := []row{{id: 1}, {id: 2, k: ptr(int32(0))}, {id: 3, s: ptr("")}}
	f := k.dataFile(0, "", rows, 1)
	k.commit(change{add: []iceberg.DataFile{f}})
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", testSchema(), []int{2, 3}, []row{{}})}})
	s := k.at(c, *k.head)
	require.Equal(t, []uint32{0}, s.File(f.FilePath()).Suppressed.ToArray())
	hits, err := c.Probe(t.Context(), k.ref, s, []int{2}, [][]byte{longKey(0)})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.EqualValues(t, 1, hits[0].Pos)
}

// TestOwnFilesProbe: sorted files with sidecar index, bloom filter and 10 % suppressed; a probe opens no data page and builds no index.
func TestOwnFilesProbe(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	rng := newRand(t)
	var add []iceberg.DataFile
	for f := range 3 {
		var ids []int64
		for i := range 10000 {
			ids = append(ids, int64(i*3+f))
		}
		rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		add = append(add, k.dataFile(0, "", rowsOf(ids...), 0))
	}
	k.commit(change{add: add})
	gone := roaring.New()
	for range 1000 {
		gone.Add(rng.Uint32N(10000))
	}
	k.commit(change{del: []iceberg.DataFile{k.positionDelete(0, "", add[1].FilePath(), map[string][]uint32{add[1].FilePath(): gone.ToArray()})}})
	s := k.at(c, *k.head)
	require.EqualValues(t, 30000-int64(gone.GetCardinality()), s.Rows())
	for range 200 {
		id := rng.Int64N(31000)
		hits, err := c.Probe(t.Context(), k.ref, s, []int{1}, [][]byte{longKey(id)})
		require.NoError(t, err)
		if id >= 30000 || id%3 == 1 && gone.Contains(uint32(id/3)) {
			require.Empty(t, hits, "key %d", id)
			continue
		}
		require.Len(t, hits, 1, "key %d", id)
		require.EqualValues(t, id/3, hits[0].Pos)
		require.Equal(t, add[id%3].FilePath(), hits[0].File.File.Path)
	}
	st := c.Stats()
	require.EqualValues(t, 3, st.KeyIndexes)
	require.Zero(t, st.IndexBuilds)
	require.Zero(t, st.DataFileScans)
	// An equality delete of few keys goes through the index, too.
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(0, 3, 29999, 77777))}})
	s = k.at(c, *k.head)
	require.Equal(t, []uint32{0, 1}, s.File(add[0].FilePath()).Suppressed.ToArray())
	require.Zero(t, c.Stats().DataFileScans)
	require.NoError(t, os.WriteFile(add[0].FilePath()+".keyidx", []byte("SKKEYIX not an index"), 0o600))
	fresh := k.cache()
	hits, err := fresh.Probe(t.Context(), k.ref, k.at(fresh, *k.head), []int{1}, [][]byte{longKey(6), longKey(3)})
	require.NoError(t, err)
	require.Len(t, hits, 1, "a damaged index is rebuilt, not believed")
}

// TestPrefixProbe finds rows by the leading columns of a key.
func TestPrefixProbe(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	k.commit(change{add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(1, 2, 8, 9, 15), 1), k.dataFile(0, "", rowsOf(22, 23), 0)}})
	s := k.at(c, *k.head)
	hits, err := c.ProbePrefix(t.Context(), k.ref, s, []int{2, 1}, 1, [][]byte{longKey(1), longKey(5), longKey(2)})
	require.NoError(t, err)
	var got []string
	rec, err := c.ReadHits(t.Context(), k.ref, testSchema(), MetaColumns{}, hits)
	require.NoError(t, err)
	for i := range hits {
		got = append(got, fmt.Sprint(hits[i].KeyOrdinal, ":", rec.Column(0).(*array.Int64).Value(i)))
	}
	require.Equal(t, []string{"0:1", "0:8", "0:15", "0:22", "2:2", "2:9", "2:23"}, got)
}

// TestOverlay: a transaction's own files and deletes on top of a set, which stays as it is.
func TestOverlay(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	g := k.dataFile(0, "", rowsOf(4, 5), 0)
	k.commit(change{add: []iceberg.DataFile{f, g}})
	base := k.at(c, *k.head)
	own := NewFile(k.dataFile(0, "", rowsOf(2, 9), 0))
	s := base.With(Overlay{Add: []*File{own}, Remove: []string{g.FilePath()}, Suppress: map[string]*roaring.Bitmap{f.FilePath(): bits(1), own.Path: bits(1)}})
	require.EqualValues(t, 3, s.Rows())
	require.EqualValues(t, 5, base.Rows())
	var last *LiveFile
	for x := range s.Files() {
		last = x
	}
	require.Equal(t, own.Path, last.File.Path, "own files come last")
	hits, err := c.Probe(t.Context(), k.ref, s, []int{1}, [][]byte{longKey(2), longKey(4), longKey(9)})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Equal(t, own, hits[0].File.File)
	d, err := Diff(t.Context(), base, s)
	require.NoError(t, err)
	require.Len(t, d, 3)
}

// TestRowLineage: _row_id and _last_updated_sequence_number are inherited where they are not stored; _file and _pos are always there.
func TestRowLineage(t *testing.T) {
	k := newKit(t, 3)
	c := k.cache()
	f, g := k.dataFile(0, "", rowsOf(1, 2), 0), k.dataFile(0, "", rowsOf(3), 0)
	k.commit(change{add: []iceberg.DataFile{f}})
	k.commit(change{add: []iceberg.DataFile{g}})
	m := MetaColumns{File: true, Pos: true, RowID: true, LastUpdatedSeq: true}
	rows := scanRows(t, c, k.ref, k.at(c, *k.head), m)
	require.Equal(t, []string{
		fmt.Sprintf("%s|%q|%q|%q|%q", rowsOf(1)[0], f.FilePath(), "0", "0", "1"),
		fmt.Sprintf("%s|%q|%q|%q|%q", rowsOf(2)[0], f.FilePath(), "1", "1", "1"),
		fmt.Sprintf("%s|%q|%q|%q|%q", rowsOf(3)[0], g.FilePath(), "0", "2", "2"),
	}, rows)
	rec, err := c.ReadRows(t.Context(), k.ref, k.at(c, *k.head).File(g.FilePath()).File, testSchema(), m, []uint32{0})
	require.NoError(t, err)
	require.Equal(t, rows[2:], rowTexts(rec))
	v2 := newKit(t, 2)
	v2.commit(change{add: []iceberg.DataFile{v2.dataFile(0, "", rowsOf(1), 0)}})
	c2 := v2.cache()
	require.Equal(t, []string{rowsOf(1)[0].String() + "|∅|∅"}, scanRows(t, c2, v2.ref, v2.at(c2, *v2.head), MetaColumns{RowID: true, LastUpdatedSeq: true}))
}

// TestErrors: a missing file is never skipped, damage names the path, and no bad file is a panic (S3).
func TestErrors(t *testing.T) {
	k := newKit(t, 3)
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	plain := k.dataFile(0, "", rowsOf(4), 2)
	k.commit(change{add: []iceberg.DataFile{f, plain}})
	eq := k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(2))
	before := *k.head
	k.commit(change{del: []iceberg.DataFile{eq}})
	_, err := k.cache().At(t.Context(), k.ref, 424242)
	require.ErrorIs(t, err, ErrSnapshotNotFound)

	mapping := k.meta.mapping
	k.meta.mapping = nil
	_, err = k.cache().At(t.Context(), k.ref, *k.head)
	require.ErrorIs(t, err, ErrNoFieldIDs)
	k.meta.mapping = mapping
	_, err = k.cache().At(t.Context(), k.ref, *k.head)
	require.NoError(t, err)

	good, err := os.ReadFile(eq.FilePath())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(eq.FilePath(), good[:len(good)-20], 0o600))
	k.fs.CloseIdle()
	var d *DamagedError
	_, err = k.cache().At(t.Context(), k.ref, *k.head)
	require.ErrorAs(t, err, &d)
	require.Equal(t, eq.FilePath(), d.Path)
	require.NoError(t, os.Remove(eq.FilePath()))
	k.fs.CloseIdle()
	_, err = k.cache().At(t.Context(), k.ref, *k.head)
	require.ErrorIs(t, err, ErrMissingFile)

	c := k.cache()
	s := k.at(c, before)
	require.NoError(t, os.Remove(f.FilePath()))
	k.fs.CloseIdle()
	for _, e := range c.Scan(t.Context(), k.ref, s, testSchema(), ScanOptions{}) {
		err = e
	}
	require.ErrorIs(t, err, ErrMissingFile)
	list := k.meta.snaps[before].ManifestList
	data, err := os.ReadFile(list)
	require.NoError(t, err)
	rng := newRand(t)
	for range 60 {
		bad := slices.Clone(data)
		bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		require.NoError(t, os.WriteFile(list, bad[:rng.IntN(len(bad)+1)], 0o600))
		_, _ = k.cache().At(t.Context(), k.ref, before)
	}
	require.NoError(t, os.Remove(list))
	_, err = k.cache().At(t.Context(), k.ref, before)
	require.ErrorIs(t, err, ErrMissingFile)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.cache().At(ctx, k.ref, *k.head)
	require.Error(t, err)
}

// TestTwoVectors: a writer that adds a vector without removing the old one makes a table the spec forbids; it is said, not guessed.
func TestTwoVectors(t *testing.T) {
	k := newKit(t, 3)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	k.commit(change{add: []iceberg.DataFile{f}})
	k.commit(change{del: []iceberg.DataFile{k.vector(f, []int64{0})}})
	one := *k.head
	k.commit(change{del: []iceberg.DataFile{k.vector(f, []int64{0, 1})}})
	_, err := c.At(t.Context(), k.ref, *k.head)
	require.ErrorIs(t, err, ErrConflictingDVs)
	require.EqualValues(t, 2, k.at(c, one).Rows(), "the snapshot before is still read")
}

// TestConcurrentUse shares one small cache among goroutines.
func TestConcurrentUse(t *testing.T) {
	k := newKit(t, 2)
	var ids []int64
	for i := range 12 {
		f := k.dataFile(0, "", rowsOf(int64(i), int64(i+50), int64(i+100)), i%3)
		id, _ := k.commit(change{add: []iceberg.DataFile{f}, del: []iceberg.DataFile{k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(int64(i+49)))}})
		ids = append(ids, id)
	}
	c := NewCache(Options{FS: k.fs, Budget: 64 << 10})
	done := make(chan error)
	for g := range 8 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var err error
			for range 15 {
				n := rng.IntN(len(ids))
				var s *Set
				if s, err = c.At(t.Context(), k.ref, ids[n]); err != nil {
					break
				}
				if want := int64(3*(n+1) - n); s.Rows() != want {
					err = fmt.Errorf("snapshot %d has %d rows, want %d", n, s.Rows(), want)
					break
				}
				var hits []Hit
				hits, err = c.Probe(t.Context(), k.ref, s, []int{1}, [][]byte{longKey(int64(n)), longKey(int64(n + 100))})
				if err == nil && len(hits) != 2 {
					err = fmt.Errorf("%d hits", len(hits))
				}
				if err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range 8 {
		require.NoError(t, <-done)
	}
}

func BenchmarkProbe(b *testing.B) {
	k := newKit(b, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	var add []iceberg.DataFile
	const files, rows = 20, 20000
	for f := range files {
		var ids []int64
		for i := range rows {
			ids = append(ids, int64(i*files+f))
		}
		add = append(add, k.dataFile(0, "", rowsOf(ids...), 0))
	}
	k.commit(change{add: add})
	c := k.cache()
	s := k.at(c, *k.head)
	var hits []Hit
	var key []byte
	keys := make([][]byte, 1)
	b.ReportAllocs()
	for b.Loop() {
		key = keyindex.AppendLong(key[:0], rng.Int64N(files*rows))
		keys[0] = key
		var err error
		if hits, err = c.AppendProbe(b.Context(), hits[:0], k.ref, s, []int{1}, keys); err != nil || len(hits) != 1 {
			b.Fatal(err, len(hits))
		}
	}
}
