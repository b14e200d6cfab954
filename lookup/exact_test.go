package lookup_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
)

// keyShapes are keys by number, of types that an index keeps whole and of types that it keeps as fingerprints.
var keyShapes = map[string]struct {
	cols []string
	key  func(i int) []any
}{
	"text":   {[]string{"a string"}, func(i int) []any { return []any{fmt.Sprintf("name-of-%09d", i*7919)} }},
	"binary": {[]string{"a binary"}, func(i int) []any { return []any{[]byte{0, byte(i), 0, byte(i >> 8), 1}} }},
	"uuid": {[]string{"a uuid"}, func(i int) []any {
		return []any{uuid.NewSHA1(uuid.Nil, []byte(fmt.Sprint(i))).String()}
	}},
	"two longs":     {[]string{"a long", "b long"}, func(i int) []any { return []any{i % 13, i} }},
	"wide longs":    {[]string{"a long", "b long"}, func(i int) []any { return []any{(i%13 - 6) << 59, i << 40} }},
	"time and text": {[]string{"a timestamp", "b string"}, func(i int) []any { return []any{time.UnixMicro(int64(i%5) * 1e15), fmt.Sprint(i)} }},
	"three":         {[]string{"a string", "b int", "c date"}, func(i int) []any { return []any{fmt.Sprint(i % 3), i % 7, time.Unix(int64(i)*86400, 0).UTC()} }},
}

// collide makes all fingerprints one of a few, until the test ends.
func collide(t *testing.T) {
	was := keyindex.Hash
	keyindex.Hash = func(b []byte) uint64 { return was(b) & (7 << 40) << 20 }
	t.Cleanup(func() { keyindex.Hash = was })
}

// TestExactKeys is K1 for every shape of key, with fingerprints as they are and with ones that nearly all collide: in files that are sorted by key and small,
// whole keys and prefixes, one by one and many, with the key among the columns and without.
func TestExactKeys(t *testing.T) {
	for name, shape := range keyShapes {
		for _, colliding := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/", colliding), func(t *testing.T) {
				if colliding {
					collide(t)
				}
				testExactKeys(t, shape.cols, shape.key, colliding, name != "two longs")
			})
		}
	}
}

func testExactKeys(t *testing.T, cols []string, key func(int) []any, colliding, fingerprints bool) {
	k := testkit.Open(t)
	var names []string
	for _, c := range cols {
		names = append(names, c[:1])
	}
	sc := testkit.Columns(names, append(slices.Clone(cols), "v long")...)
	ident := k.Table(t, "s.t", 2, sc)
	model := map[int]int{}
	rows := func(ids []int, salt int) (out [][]any) {
		for _, i := range ids {
			out = append(out, append(key(i), i+salt))
			model[i] = i + salt
		}
		return out
	}
	var ids [3][]int
	for i := range 300 {
		ids[i%3] = append(ids[i%3], i)
	}
	k.Append(t, ident, testkit.Batch(sc, rows(ids[0], 0)...))
	k.Append(t, ident, testkit.Batch(sc, rows(ids[1], 0)...))
	upsert(t, k, ident, rows([]int{3, 4, 5, 100, 200, 1000}, 5000)...)
	deleteKeys(t, k, ident, key(6), key(7))
	delete(model, 6)
	delete(model, 7)

	l := lookup.New(lookup.Options{Live: k.Live})
	for _, columns := range [][]string{nil, {"v"}} {
		p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, Columns: columns})
		var many [][]any
		var want []string
		for i := range 310 {
			many = append(many, key(i))
			rec, err := p.Lookup(ctx, testkit.ArrowBatch(p.Columns().Key, key(i)))
			require.NoError(t, err)
			got := lastColumn(rec)
			if v, ok := model[i]; ok {
				require.Equal(t, []int64{int64(v)}, got, "key %d", i)
				want = append(want, fmt.Sprint(i, "=", v))
			} else {
				require.Empty(t, got, "key %d", i)
			}
		}
		rec, err := p.LookupMany(ctx, testkit.ArrowBatch(p.Columns().Key, many...))
		require.NoError(t, err)
		var got []string
		for r := range int(rec.NumRows()) {
			n := int(rec.NumCols())
			got = append(got, fmt.Sprint(rec.Column(n-1).(*array.Int64).Value(r), "=", rec.Column(n-2).(*array.Int64).Value(r)))
		}
		require.Equal(t, want, got)
		requireFound(t, p, many, want)
		requirePrefixes(t, p, key, model)
	}
	if n := k.Live.ProbeCounts(); fingerprints && colliding {
		require.Greater(t, n.Needless, n.Keys/4, "fingerprints collide")
	} else {
		require.Less(t, n.Needless, n.Keys/100)
	}
}

// requireFound is LookupMany's answer through FindMany, whose keys come encoded.
func requireFound(t *testing.T, p *lookup.Lookuper, many [][]any, want []string) {
	rec := testkit.ArrowBatch(p.Columns().Key, many...)
	cols := make([]int, rec.NumCols())
	for i := range cols {
		cols[i] = i
	}
	enc, err := keyindex.NewEncoder(rec, cols)
	require.NoError(t, err)
	keys := make([][]byte, rec.NumRows())
	for i := range keys {
		keys[i], err = enc.Append(nil, i)
		require.NoError(t, err)
	}
	found, err := p.FindMany(ctx, keys)
	require.NoError(t, err)
	n := 0
	for {
		rec, err := found.Next(ctx)
		require.NoError(t, err)
		if rec == nil {
			break
		}
		for _, v := range lastColumn(rec) {
			require.True(t, strings.HasSuffix(want[n], fmt.Sprint("=", v)), "%s: %d", want[n], v)
			n++
		}
	}
	require.Equal(t, len(want), n)
}

// lastColumn is the last column of rows, which are released.
func lastColumn(rec arrow.RecordBatch) []int64 {
	defer rec.Release()
	return slices.Clone(rec.Column(int(rec.NumCols()) - 1).(*array.Int64).Int64Values())
}

// requirePrefixes looks up what the leading columns of some keys have.
func requirePrefixes(t *testing.T, p *lookup.Lookuper, key func(int) []any, model map[int]int) {
	for n := 1; n < len(key(0)); n++ {
		for _, i := range []int{0, 6, 100, 1000, 305} {
			var want []int64
			for j, v := range model {
				if fmt.Sprint(key(j)[:n]) == fmt.Sprint(key(i)[:n]) {
					want = append(want, int64(v))
				}
			}
			fields := p.Columns().Key.Fields()[:n]
			rec, err := p.Lookup(ctx, testkit.ArrowBatch(arrow.NewSchema(fields, nil), key(i)[:n]))
			require.NoError(t, err)
			require.ElementsMatch(t, want, lastColumn(rec))
		}
	}
}

// TestLongKeys: keys of a megabyte that differ in their last byte.
func TestLongKeys(t *testing.T) {
	k := testkit.Open(t)
	sc := testkit.Columns([]string{"a", "b"}, "a string", "b binary", "v long")
	ident := k.Table(t, "s.t", 2, sc)
	long := strings.Repeat("x\x00", 1<<19)
	k.Append(t, ident, testkit.Batch(sc, []any{long + "1", []byte(long), 1}, []any{long + "2", []byte(long), 2}, []any{long + "2", []byte{}, 3}))
	l := lookup.New(lookup.Options{Live: k.Live})
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	for range 2 {
		for want, key := range [][]any{1: {long + "1", []byte(long)}, 2: {long + "2", []byte(long)}, 3: {long + "2", []byte{}}} {
			if key == nil {
				continue
			}
			rec, err := p.Lookup(ctx, testkit.ArrowBatch(p.Columns().Key, key))
			require.NoError(t, err)
			require.Equal(t, []int64{int64(want)}, lastColumn(rec))
		}
		rec, err := p.Lookup(ctx, testkit.ArrowBatch(p.Columns().Key, []any{long + "3", []byte{}}))
		require.NoError(t, err)
		require.Empty(t, lastColumn(rec))
		rec, err = p.Lookup(ctx, testkit.ArrowBatch(arrow.NewSchema(p.Columns().Key.Fields()[:1], nil), []any{long + "2"}))
		require.NoError(t, err)
		require.ElementsMatch(t, []int64{2, 3}, lastColumn(rec))
	}
}

// TestZeros: 0 and −0 are one key, as they are equal in SQL, and NaN is another.
func TestZeros(t *testing.T) {
	for _, cols := range [][]string{{"d double"}, {"d double", "s string"}, {"s string", "d double", "e double"}} {
		k := testkit.Open(t)
		sc := testkit.Columns(nil, append(slices.Clone(cols), "v long")...)
		ident := k.Table(t, "s.t", 2, sc)
		values := []float64{0, math.Copysign(0, -1), math.NaN(), -math.NaN(), 1, math.Inf(-1)}
		row := func(d float64, v int) (out []any) {
			for _, c := range cols {
				if strings.HasSuffix(c, "double") {
					out = append(out, d)
				} else {
					out = append(out, "same")
				}
			}
			if v > 0 {
				out = append(out, v)
			}
			return out
		}
		var rows, keys [][]any
		for i, d := range values {
			rows, keys = append(rows, row(d, i+1)), append(keys, row(d, 0))
		}
		k.Append(t, ident, testkit.Batch(sc, rows[3:]...))
		k.Append(t, ident, testkit.Batch(sc, rows[:3]...))
		var names []string
		for _, c := range cols {
			names = append(names, c[:1])
		}
		l := lookup.New(lookup.Options{Live: k.Live})
		p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, KeyColumns: names})
		want := [][]int64{{1, 2}, {1, 2}, {4, 3}, {4, 3}, {5}, {6}}
		var all []int64
		for i, w := range want {
			rec, err := p.Lookup(ctx, testkit.ArrowBatch(p.Columns().Key, keys[i]))
			require.NoError(t, err)
			require.Equal(t, w, lastColumn(rec), "%v", keys[i])
			all = append(all, w...)
		}
		rec, err := p.LookupMany(ctx, testkit.ArrowBatch(p.Columns().Key, keys...))
		require.NoError(t, err)
		require.Equal(t, all, rec.Column(int(rec.NumCols())-2).(*array.Int64).Int64Values())
	}
}

// TestIndexGoesWithItsFile: the index that a lookup stored for another writer's file is no orphan while the file is there, and goes with it.
func TestIndexGoesWithItsFile(t *testing.T) {
	k := testkit.Open(t)
	sc := testkit.Columns([]string{"a"}, "a string", "v long")
	ident := k.Table(t, "s.t", 2, sc)
	raw := &testkit.Raw{Catalog: k.Catalog, FS: k.FS, Ident: ident}
	rows := make([]testkit.Record, 9000)
	for i := range rows {
		rows[i] = testkit.Record{1: fmt.Sprint("key ", i), 2: int64(i)}
	}
	f := raw.DataFile(t, sc, testkit.Place{Spec: raw.Meta(t).PartitionSpec()}, rows, testkit.FileOptions{})
	raw.Commit(t, testkit.RawCommit{Add: []testkit.RawFile{f}})
	index := f.FilePath() + ".keyidx"
	l := lookup.New(lookup.Options{Live: k.Live})
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	for i := range 50 {
		require.Equal(t, []string{fmt.Sprintf("key %d|%d", i*171, i*171)}, get(t, p, p.NewKey().String(fmt.Sprint("key ", i*171))))
	}
	require.FileExists(t, index)
	require.EqualValues(t, 1, k.Live.ProbeCounts().Built)
	_, err := k.Warehouse.RemoveOrphans(ctx, ident, 0)
	require.NoError(t, err)
	require.FileExists(t, index)

	fresh := liveset.NewCache(liveset.Options{FS: k.FS})
	p = prepare(t, lookup.New(lookup.Options{Live: fresh}), lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	require.Len(t, get(t, p, p.NewKey().String("key 8999")), 1)
	require.Zero(t, fresh.ProbeCounts().Built)

	require.NoError(t, k.Warehouse.RemoveFiles(ctx, []string{f.FilePath()}))
	require.NoFileExists(t, index)
	orphan := filepath.Join(filepath.Dir(index), "gone.parquet.keyidx")
	require.NoError(t, os.WriteFile(orphan, []byte("left behind"), 0o600))
	_, err = k.Warehouse.RemoveOrphans(ctx, ident, 0)
	require.NoError(t, err)
	require.NoFileExists(t, orphan)
}
