package liveset

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// warnings counts what a cache warns of.
type warnings struct{ n int }

func (w *warnings) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"level":"warn"`)) {
		w.n++
	}
	return len(p), nil
}

// named rows have a string of their own each.
func namedRows(from, n int) []row {
	out := make([]row, n)
	for i := range out {
		out[i] = row{id: int64(from + i*2), s: ptr(fmt.Sprintf("name %06d", from+i*2)), p: "x"}
	}
	return out
}

// probeNamed probes keys of namedRows by the fields ids, {1} or {3}: present ones are found at their place, absent ones are not.
func (k *kit) probeNamed(c *Cache, ids []int, f iceberg.DataFile, from, n int) {
	k.t.Helper()
	s := k.at(c, *k.head)
	var keys [][]byte
	for i := range n + 2 {
		for _, v := range []int{from + i*2, from + i*2 + 1} {
			if ids[0] == 1 {
				keys = append(keys, longKey(int64(v)))
			} else {
				keys = append(keys, keyindex.AppendString(nil, fmt.Sprintf("name %06d", v)))
			}
		}
	}
	hits, err := c.Probe(k.t.Context(), k.ref, s, ids, keys)
	require.NoError(k.t, err)
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.File.File.Path != f.FilePath() })
	require.Len(k.t, hits, n)
	for i, h := range hits {
		require.Equal(k.t, 2*i, h.KeyOrdinal)
		require.EqualValues(k.t, i, h.Pos)
	}
}

// indexOf is the encoded index of a file.
func (k *kit) indexOf(f iceberg.DataFile, ids []int) []byte {
	c := k.cache()
	p, err := c.prober(k.ref, ids)
	require.NoError(k.t, err)
	data, err := c.buildIndex(k.t.Context(), k.ref, k.at(c, *k.head).File(f.FilePath()).File, ids, p.cols)
	require.NoError(k.t, err)
	return data
}

// TestDamagedIndexFile flips every byte of an index and cuts it at every length: it is built again, with one warning, and answers are right.
func TestDamagedIndexFile(t *testing.T) {
	for _, ids := range [][]int{{1}, {3}} {
		k := newKit(t, 2)
		const n = 20
		f := k.dataFile(0, "", namedRows(100, n), 1)
		k.commit(change{add: []iceberg.DataFile{f}})
		whole := k.indexOf(f, ids)
		path := f.FilePath() + ".keyidx"
		try := func(how string, data []byte, warned int) {
			require.NoError(t, os.WriteFile(path, data, 0o600))
			var w warnings
			c := NewCache(Options{FS: k.fs, Logger: zerolog.New(&w)})
			k.probeNamed(c, ids, f, 100, n)
			k.probeNamed(c, ids, f, 100, n)
			require.Equal(t, warned, w.n, how)
			require.EqualValues(t, warned, c.Stats().IndexBuilds, how)
		}
		try("whole", whole, 0)
		for i := range whole {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << (i % 8)
			try(fmt.Sprint("byte ", i), bad, 1)
			try(fmt.Sprint("cut at ", i), whole[:i], 1)
		}
		try("longer", append(bytes.Clone(whole), 0), 1)
		old := bytes.Clone(whole)
		old[7] = 1
		try("version 1", old, 1)
		try("version 9", append([]byte("SKKEYIX\x09"), whole[8:]...), 1)
	}
}

// TestNoIndexFile: what is no index of that file, by its kind or its size, is not read: the index is built again, with one warning, and stored where
// that is possible.
func TestNoIndexFile(t *testing.T) {
	const n = 9000
	stored := true
	for how, put := range map[string]func(path string) (stored bool){
		"directory":      func(p string) bool { require.NoError(t, os.Mkdir(p, 0o755)); return !stored },
		"named pipe":     func(p string) bool { require.NoError(t, syscall.Mkfifo(p, 0o600)); return stored },
		"endless device": func(p string) bool { require.NoError(t, os.Symlink("/dev/zero", p)); return stored },
		"link to itself": func(p string) bool { require.NoError(t, os.Symlink(p, p)); return stored },
		"huge file": func(p string) bool {
			require.NoError(t, os.WriteFile(p, nil, 0o600))
			require.NoError(t, os.Truncate(p, 3<<30))
			return stored
		},
		"empty file": func(p string) bool { require.NoError(t, os.WriteFile(p, nil, 0o600)); return stored },
	} {
		t.Run(how, func(t *testing.T) {
			k := newKit(t, 2)
			f := k.dataFile(0, "", namedRows(100, n), 2)
			k.commit(change{add: []iceberg.DataFile{f}})
			path := f.FilePath() + ".keyidx"
			stored := put(path)
			before := k.fs.Counters().Snapshot().Bytes
			var w warnings
			c := NewCache(Options{FS: k.fs, Home: k.dir, Logger: zerolog.New(&w)})
			k.probeNamed(c, []int{1}, f, 100, n)
			k.probeNamed(c, []int{1}, f, 100, n)
			require.Equal(t, 1, w.n)
			require.EqualValues(t, 1, c.Stats().IndexBuilds)
			require.Less(t, k.fs.Counters().Snapshot().Bytes-before, int64(2<<20))
			next := NewCache(Options{FS: k.fs, Home: k.dir, Logger: zerolog.New(&w)})
			k.probeNamed(next, []int{1}, f, 100, n)
			if stored {
				require.Equal(t, 1, w.n)
				require.Zero(t, next.Stats().IndexBuilds)
			} else {
				require.Equal(t, 2, w.n, "it stands there still")
			}
		})
	}
}

// TestCopiedIndexFile: the index of another file is not believed, however alike the files are.
func TestCopiedIndexFile(t *testing.T) {
	k := newKit(t, 2)
	const n = 50
	// Not even sizes and bounds differ: two rows have changed places.
	rows := namedRows(100, n)
	a := k.dataFile(0, "", rows, 1)
	rows = namedRows(100, n)
	rows[20], rows[21] = rows[21], rows[20]
	b := k.dataFile(0, "", rows, 1)
	k.commit(change{add: []iceberg.DataFile{a, b}})
	data := k.indexOf(b, []int{1})
	require.NoError(t, os.WriteFile(b.FilePath()+".keyidx", data, 0o600))
	require.NoError(t, os.WriteFile(a.FilePath()+".keyidx", data, 0o600))
	var w warnings
	c := NewCache(Options{FS: k.fs, Logger: zerolog.New(&w)})
	k.probeNamed(c, []int{1}, a, 100, n)
	require.Equal(t, 1, w.n)
	require.EqualValues(t, 2, c.Stats().KeyIndexes)
	require.EqualValues(t, 1, c.Stats().IndexBuilds)
}

// TestForeignIndexIsKept: the index of another writer's file is stored beside it, once, where that is allowed, and read by the next cache.
func TestForeignIndexIsKept(t *testing.T) {
	k := newKit(t, 2)
	const n = 9000
	f := k.dataFile(0, "", namedRows(100, n), 2)
	k.commit(change{add: []iceberg.DataFile{f}})
	path := f.FilePath() + ".keyidx"

	k.probeNamed(k.cache(), []int{1}, f, 100, n)
	require.NoFileExists(t, path, "no home")
	elsewhere := NewCache(Options{FS: k.fs, Home: t.TempDir()})
	k.probeNamed(elsewhere, []int{1}, f, 100, n)
	require.NoFileExists(t, path, "not in its home")
	full := storeio.NewFS(storeio.Options{NoSync: true, Hooks: &storeio.Hooks{Before: func(storeio.Op, string) error { return os.ErrPermission }}})
	k.probeNamed(NewCache(Options{FS: full, Home: k.dir}), []int{1}, f, 100, n)
	require.NoFileExists(t, path, "a disk that cannot be written")

	home := func() (*Cache, *warnings) {
		var w warnings
		return NewCache(Options{FS: k.fs, Home: k.dir, Logger: zerolog.New(&w)}), &w
	}
	c, _ := home()
	k.probeNamed(c, []int{3}, f, 100, n)
	require.NoFileExists(t, path, "another key than the identifier")
	k.probeNamed(c, []int{1}, f, 100, n)
	require.FileExists(t, path)
	require.EqualValues(t, 2, c.Stats().IndexBuilds)

	next, w := home()
	k.probeNamed(next, []int{1}, f, 100, n)
	require.EqualValues(t, 1, next.Stats().KeyIndexes)
	require.Zero(t, next.Stats().IndexBuilds)
	require.Zero(t, w.n)

	require.NoError(t, os.WriteFile(path, []byte("SKKEYIX\x01 an old one, long enough to have a header and a trailer, full of nothing"), 0o600))
	healing, w := home()
	k.probeNamed(healing, []int{1}, f, 100, n)
	require.Equal(t, 1, w.n)
	healed, w := home()
	k.probeNamed(healed, []int{1}, f, 100, n)
	require.Zero(t, w.n)
	require.Zero(t, healed.Stats().IndexBuilds)
}

// TestWithoutCache: a cache of no bytes keeps nothing and answers right, and warns of a file once.
func TestWithoutCache(t *testing.T) {
	k := newKit(t, 2)
	const n = 100
	a, b := k.dataFile(0, "", namedRows(100, n), 1), k.dataFile(0, "", namedRows(101, n), 0)
	k.commit(change{add: []iceberg.DataFile{a, b}})
	require.NoError(t, os.WriteFile(a.FilePath()+".keyidx", []byte("damaged"), 0o600))
	var w warnings
	c := NewCache(Options{FS: k.fs, Budget: -1, Logger: zerolog.New(&w)})
	for range 3 {
		hits, err := c.Probe(t.Context(), k.ref, k.at(c, *k.head), []int{3}, [][]byte{keyindex.AppendString(nil, "name 000103"), keyindex.AppendString(nil, "name 000102")})
		require.NoError(t, err)
		require.Len(t, hits, 2)
		rec, err := c.ReadHits(t.Context(), k.ref, testSchema(), MetaColumns{}, hits)
		require.NoError(t, err)
		require.Equal(t, []string{"103", "102"}, []string{strings.Split(rowTexts(rec)[0], "|")[0], strings.Split(rowTexts(rec)[1], "|")[0]})
	}
	require.Equal(t, 1, w.n)
	require.Zero(t, c.lru.mu.used)
}

// TestFailingStore: every third read fails. A probe says which file it could not read, and nothing wrong is kept: the next one succeeds, or fails for a
// read of its own.
func TestFailingStore(t *testing.T) {
	k := newKit(t, 2)
	const n = 9000
	files := []iceberg.DataFile{k.dataFile(0, "", namedRows(100, n), 0), k.dataFile(0, "", namedRows(101, n), 0), k.dataFile(0, "", namedRows(30000, n), 2)}
	k.commit(change{add: files})
	reads, failed := 0, 0
	fs := storeio.NewFS(storeio.Options{NoSync: true, Hooks: &storeio.Hooks{Read: func(path string) error {
		if reads++; reads%3 == 0 {
			failed++
			return fmt.Errorf("read %s: %w", path, errors.New("the store is tired"))
		}
		return nil
	}}})
	for _, budget := range []int64{0, -1} {
		c := NewCache(Options{FS: fs, Budget: budget})
		s := k.at(k.cache(), *k.head)
		right, wrong := 0, 0
		for i := range 300 {
			id := int64(100 + i*57%40000)
			want := 0
			if id < 100+2*n || id >= 30000 && id%2 == 0 && id < 30000+2*n {
				want = 1
			}
			ids, key := []int{1}, longKey(id)
			if i%2 == 0 {
				ids, key = []int{3}, keyindex.AppendString(nil, fmt.Sprintf("name %06d", id))
			}
			hits, err := c.Probe(t.Context(), k.ref, s, ids, [][]byte{key})
			if err == nil && len(hits) > 0 {
				_, err = c.ReadHits(t.Context(), k.ref, testSchema(), MetaColumns{}, hits)
			}
			if err != nil {
				wrong++
				require.ErrorContains(t, err, "the store is tired")
				require.True(t, slices.ContainsFunc(files, func(f iceberg.DataFile) bool { return strings.Contains(err.Error(), f.FilePath()) }), err.Error())
				continue
			}
			right++
			require.Len(t, hits, want, "key %d", id)
		}
		require.Positive(t, wrong, "reads failed")
		if budget == 0 {
			require.Greater(t, right, 200, "what is cached needs no read")
		}
	}
	require.Positive(t, failed)
}

// TestIndexOfWidenedKey: an index that was written when a column was an int is right when it is a long, kept whole and as fingerprints.
func TestIndexOfWidenedKey(t *testing.T) {
	for _, ids := range [][]int{{2}, {2, 3}} {
		k := newKit(t, 2)
		const n = 9000
		rows := namedRows(0, n)
		for i := range rows {
			rows[i].k = ptr(int32(i - n/2))
		}
		old := k.dataFileBy(ids, rows)
		fields := slices.Clone(testSchema().Fields())
		fields[1].Type = prim.Int64
		k.meta.schemas = append(k.meta.schemas, iceberg.NewSchemaWithIdentifiers(1, []int{1}, fields...))
		k.commit(change{add: []iceberg.DataFile{old}})
		c := k.cache()
		s := k.at(c, *k.head)
		for i := 0; i < n; i += 97 {
			key := func(s string) []byte {
				b := longKey(int64(i - n/2))
				if len(ids) > 1 {
					b = keyindex.AppendString(b, s)
				}
				return b
			}
			keys := [][]byte{key(*rows[i].s), longKey(1<<40 + int64(i))}
			if len(ids) > 1 {
				keys[1] = key("another")
			}
			hits, err := c.Probe(t.Context(), k.ref, s, ids, keys)
			require.NoError(t, err)
			require.Len(t, slices.DeleteFunc(hits, func(h Hit) bool { return h.KeyOrdinal == 0 && int(h.Pos) == i }), 0)
		}
		require.EqualValues(t, 1, c.Stats().KeyIndexes)
		require.Zero(t, c.Stats().IndexBuilds)
		require.Zero(t, c.ProbeCounts().Needless)
		require.Positive(t, c.ProbeCounts().IndexHits)
	}
}
