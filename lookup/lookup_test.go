package lookup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

var ctx = context.Background()

func upsert(t testing.TB, k *testkit.Kit, ident table.Identifier, rows ...[]any) {
	t.Helper()
	k.Do(t, ident, func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(ctx, testkit.ArrowBatch(tt.ArrowSchema(), rows...), warehouse.Replace)
		return err
	})
}

func deleteKeys(t testing.TB, k *testkit.Kit, ident table.Identifier, keys ...[]any) {
	t.Helper()
	k.Do(t, ident, func(tt *warehouse.TxTable) error {
		_, err := tt.DeleteKeys(ctx, testkit.ArrowBatch(tt.KeySchema(), keys...))
		return err
	})
}

func prepare(t testing.TB, l *lookup.Lookup, target lookup.Target) *lookup.Lookuper {
	t.Helper()
	p, err := l.Prepare(ctx, target)
	require.NoError(t, err)
	return p
}

// texts writes rows as "a|b|c", NULL as N.
func texts(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	for r := range out {
		var parts []string
		for _, c := range rec.Columns() {
			if c.IsNull(r) {
				parts = append(parts, "N")
			} else {
				parts = append(parts, c.ValueStr(r))
			}
		}
		out[r] = strings.Join(parts, "|")
	}
	return out
}

func get(t testing.TB, p *lookup.Lookuper, key *lookup.Key) []string {
	t.Helper()
	rec, err := p.Get(ctx, key)
	require.NoError(t, err)
	defer rec.Release()
	return texts(rec)
}

func TestComposite(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) { testComposite(t, version) })
	}
}

func testComposite(t *testing.T, version int) {
	k := testkit.Open(t)
	sc := testkit.Columns([]string{"a", "b"}, "a long", "b string", "v double")
	ident := k.Table(t, "s.t", version, sc)
	l := lookup.New(lookup.Options{Live: k.Live})
	empty := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	require.Empty(t, get(t, empty, empty.NewKey().Int(1).String("x")), "no snapshot yet")

	k.Append(t, ident, testkit.Batch(sc, []any{1, "x", 1.5}, []any{1, "x\x00", 2.5}, []any{1, "y", nil}, []any{2, "", 4.0}))
	old := k.Catalog.Cut()
	upsert(t, k, ident, []any{1, "x", 9.0}, []any{3, "new", 3.0})
	deleteKeys(t, k, ident, []any{2, ""})

	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	was := prepare(t, l, lookup.Target{Cut: old, Ident: ident})
	for range 2 { // the second time from the cache
		require.Equal(t, []string{"1|x|9"}, get(t, p, p.NewKey().Int(1).String("x")))
		require.Equal(t, []string{"1|x\x00|2.5"}, get(t, p, p.NewKey().Int(1).String("x\x00")))
		require.Equal(t, []string{"1|y|N"}, get(t, p, p.NewKey().Int(1).String("y")))
		require.Equal(t, []string{"3|new|3"}, get(t, p, p.NewKey().Int(3).String("new")))
		require.Empty(t, get(t, p, p.NewKey().Int(2).String("")), "deleted")
		require.Empty(t, get(t, p, p.NewKey().Int(7).String("x")), "absent")
		require.Empty(t, get(t, p, p.NewKey().Int(1).Null()), "K2")
		require.Equal(t, []string{"1|x|1.5"}, get(t, was, was.NewKey().Int(1).String("x")))
		require.Equal(t, []string{"2||4"}, get(t, was, was.NewKey().Int(2).String("")))
		require.Empty(t, get(t, was, was.NewKey().Int(3).String("new")))
		require.ElementsMatch(t, []string{"1|x|9", "1|x\x00|2.5", "1|y|N"}, get(t, p, p.NewKey().Int(1)), "prefix")
		require.Empty(t, get(t, p, p.NewKey().Int(2)), "prefix of a deleted row")
	}
	lit := p.NewKey().Literal(iceberg.NewLiteral(int32(1))).Literal(iceberg.NewLiteral("y"))
	require.Equal(t, []string{"1|y|N"}, get(t, p, lit))

	st, err := old.Table(ident)
	require.NoError(t, err)
	snap, _ := st.SnapshotID()
	m, err := k.State(t, ident).Metadata(ctx)
	require.NoError(t, err)
	pinned := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, AsOf: &lookup.AsOf{Metadata: m, Snapshot: &snap}})
	require.Equal(t, []string{"1|x|1.5"}, get(t, pinned, pinned.NewKey().Int(1).String("x")))

	for _, key := range []*lookup.Key{p.NewKey().String("x"), p.NewKey().Int(1).Int(2), p.NewKey().Int(1).String("x").Int(3),
		p.NewKey().Literal(iceberg.NewLiteral("x"))} {
		_, err := p.Get(ctx, key)
		require.ErrorIs(t, err, lookup.ErrKeyType)
	}
}

func TestMany(t *testing.T) {
	k := testkit.Open(t)
	sc := testkit.Columns([]string{"a", "b"}, "a int", "b string", "v double")
	ident := k.Table(t, "s.t", 2, sc)
	k.Append(t, ident, testkit.Batch(sc, []any{1, "x", 1.0}, []any{1, "y", 2.0}, []any{2, "x", 3.0}))
	upsert(t, k, ident, []any{2, "x", 4.0})
	l := lookup.New(lookup.Options{Live: k.Live})
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})

	keys := testkit.ArrowBatch(p.Columns().Key, []any{2, "x"}, []any{9, "x"}, []any{1, "x"}, []any{2, "x"})
	rec, err := p.LookupMany(ctx, keys)
	require.NoError(t, err)
	require.Equal(t, lookup.ColKeyOrdinal, rec.Schema().Field(3).Name)
	require.Equal(t, []string{"2|x|4|0", "1|x|1|2", "2|x|4|3"}, texts(rec))

	// A bigint key column of an int key, with NULLs; a prefix.
	loose := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	rec, err = p.LookupMany(ctx, testkit.ArrowBatch(loose, []any{1}, []any{nil}, []any{2}))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"1|x|1|0", "1|y|2|0", "2|x|4|2"}, texts(rec))
	one, err := p.Lookup(ctx, testkit.ArrowBatch(p.Columns().Key, []any{1, "y"}))
	require.NoError(t, err)
	require.Equal(t, []string{"1|y|2"}, texts(one))

	bad := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String}}, nil)
	_, err = p.LookupMany(ctx, testkit.ArrowBatch(bad, []any{"no number"}))
	require.ErrorIs(t, err, lookup.ErrKeyType)
	none, err := p.LookupMany(ctx, testkit.ArrowBatch(p.Columns().Key))
	require.NoError(t, err)
	require.Zero(t, none.NumRows())
}

func TestKeyColumns(t *testing.T) {
	k := testkit.Open(t)
	sc := testkit.Columns(nil, "a long", "b string")
	ident := k.Table(t, "s.t", 2, sc)
	k.Append(t, ident, testkit.Batch(sc, []any{1, "x"}, []any{2, "x"}, []any{3, nil}, []any{4, "y"}))
	k.Append(t, ident, testkit.Batch(sc, []any{5, "x"}))
	l := lookup.New(lookup.Options{Live: k.Live})
	_, err := l.Prepare(ctx, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	require.ErrorIs(t, err, lookup.ErrNoKey)
	_, err = l.Prepare(ctx, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, KeyColumns: []string{"nope"}})
	require.ErrorIs(t, err, lookup.ErrUnknownColumn)
	_, err = l.Prepare(ctx, lookup.Target{Cut: k.Catalog.Cut(), Ident: table.Identifier{"s", "nope"}})
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)

	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, KeyColumns: []string{"b"}, Columns: []string{"b", "a"}})
	require.ElementsMatch(t, []string{"x|1", "x|2", "x|5"}, get(t, p, p.NewKey().String("x")), "K3")
	require.Empty(t, get(t, p, p.NewKey().Null()), "K2")
	strict := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, KeyColumns: []string{"b"}, Strict: true})
	_, err = strict.Get(ctx, strict.NewKey().String("x"))
	require.ErrorIs(t, err, lookup.ErrSeveralRows)
	require.Equal(t, []string{"4|y"}, get(t, strict, strict.NewKey().String("y")))
}

// TestOwnWrites: a transaction's lookups see its own rows, and nothing of them is kept.
func TestOwnWrites(t *testing.T) {
	k := testkit.Open(t)
	sc := testkit.Columns([]string{"a"}, "a long", "b string")
	ident := k.Table(t, "s.t", 2, sc)
	k.Append(t, ident, testkit.Batch(sc, []any{1, "x"}))
	l := lookup.New(lookup.Options{Live: k.Live})
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	tt, err := tx.Table(ctx, ident)
	require.NoError(t, err)
	_, err = tt.Upsert(ctx, testkit.Batch(sc, []any{1, "mine"}, []any{2, "new"}), warehouse.Replace)
	require.NoError(t, err)
	set, err := tt.Live(ctx)
	require.NoError(t, err)
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident, Live: set})
	require.Equal(t, []string{"1|mine"}, get(t, p, p.NewKey().Int(1)))
	require.Equal(t, []string{"2|new"}, get(t, p, p.NewKey().Int(2)))
	require.NoError(t, tx.Rollback())
	q := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	require.Equal(t, []string{"1|x"}, get(t, q, q.NewKey().Int(1)))
	require.Empty(t, get(t, q, q.NewKey().Int(2)))
}

// TestAgainstModel probes every key after every commit of a random history, now and as of random earlier cuts.
func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKADE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Logf("seed %d (SKADE_SEED)", seed)
			rng := rand.New(rand.NewPCG(seed, 3))
			k := testkit.Open(t)
			sc := testkit.Columns([]string{"a"}, "a long", "b string")
			ident := k.Table(t, "s.t", version, sc)
			l := lookup.New(lookup.Options{Live: k.Live, CacheBytes: 64 << 10})
			model := map[int64]string{}
			type state struct {
				p    *lookup.Lookuper
				want map[int64]string
			}
			var states []state
			for step := range 20 {
				n := map[int64][]any{}
				for range 1 + rng.IntN(8) {
					id := rng.Int64N(30)
					n[id] = []any{int(id), fmt.Sprint("v", step)}
				}
				if rng.IntN(3) == 0 {
					var keys [][]any
					for id := range n {
						keys = append(keys, []any{int(id)})
						delete(model, id)
					}
					deleteKeys(t, k, ident, keys...)
				} else {
					var rows [][]any
					for id, r := range n {
						rows = append(rows, r)
						model[id] = fmt.Sprintf("%d|v%d", id, step)
					}
					upsert(t, k, ident, rows...)
				}
				if rng.IntN(5) == 0 {
					_, err := k.Warehouse.Compact(ctx, ident, warehouse.CompactOptions{MinInputFiles: 2})
					require.NoError(t, err)
				}
				copied := map[int64]string{}
				for id, v := range model {
					copied[id] = v
				}
				states = append(states, state{prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident}), copied})
				for _, s := range []state{states[len(states)-1], states[rng.IntN(len(states))]} {
					key := s.p.NewKey()
					for id := range int64(30) {
						var want []string
						if v, ok := s.want[id]; ok {
							want = []string{v}
						}
						require.ElementsMatch(t, want, get(t, s.p, key.Reset().Int(id)), "seed %d step %d id %d", seed, step, id)
					}
				}
			}
		})
	}
}

// wide fills a table with n rows in commits of up to per rows, then replaces every tenth.
func wide(t testing.TB, k *testkit.Kit, n, per int) table.Identifier {
	sc := testkit.Columns([]string{"id"}, "id long", "n long", "name string")
	ident := k.Table(t, "s.wide", 2, sc)
	fill := func(ids []int64, salt int64) arrow.RecordBatch {
		as, err := parquetio.ArrowSchema(sc, false)
		require.NoError(t, err)
		b := array.NewRecordBuilder(memory.DefaultAllocator, as)
		defer b.Release()
		for _, id := range ids {
			b.Field(0).(*array.Int64Builder).Append(id)
			b.Field(1).(*array.Int64Builder).Append(id + salt)
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name-of-%012d", id))
		}
		return b.NewRecordBatch()
	}
	for lo := 0; lo < n; lo += per {
		ids := make([]int64, 0, per)
		for id := lo; id < min(lo+per, n); id++ {
			ids = append(ids, int64(id))
		}
		k.Append(t, ident, fill(ids, 0))
	}
	var tenth []int64
	for id := 0; id < n; id += 10 {
		tenth = append(tenth, int64(id))
	}
	k.Do(t, ident, func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(ctx, fill(tenth, 1), warehouse.Replace)
		return err
	})
	return ident
}

// TestProbeCounts: a warm probe of a row that is not cached opens nothing and reads at most one page a column, none of
// more than 16 KiB and a header; a cached one reads nothing and allocates nothing (K6).
func TestProbeCounts(t *testing.T) {
	k := testkit.Open(t)
	ident := wide(t, k, 100_000, 50_000)
	l := lookup.New(lookup.Options{Live: k.Live})
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	key := p.NewKey()
	for id := int64(1); id < 100_000; id += 25_000 { // warm the footers and key indexes
		require.Len(t, get(t, p, key.Reset().Int(id)), 1)
	}
	require.Len(t, get(t, p, key.Reset().Int(10)), 1)
	const probes = 200
	const columns = 3
	rng := rand.New(rand.NewPCG(5, 5))
	var c parquetio.Counters
	counted := parquetio.WithCounters(ctx, &c)
	opens := k.FS.Counters().Opens.Load()
	for range probes {
		id := rng.Int64N(99_000) + 1000
		rec, err := p.Get(counted, key.Reset().Int(id))
		require.NoError(t, err)
		require.Equal(t, int64(1), rec.NumRows())
		rec.Release()
	}
	require.Zero(t, k.FS.Counters().Opens.Load()-opens, "opens")
	require.Positive(t, c.Pages.Load(), "the guard counts something")
	require.LessOrEqual(t, c.Pages.Load(), int64(probes*columns), "pages")
	require.LessOrEqual(t, c.Reads.Load(), int64(probes*columns), "reads")
	require.LessOrEqual(t, c.Bytes.Load(), int64(probes*columns*(17<<10)), "bytes")
	t.Logf("a probe: %.2f pages, %.2f reads, %.0f bytes, %.0f values decoded", float64(c.Pages.Load())/probes,
		float64(c.Reads.Load())/probes, float64(c.Bytes.Load())/probes, float64(c.Rows.Load())/probes)

	// A row whose pages are at hand is decoded without a read.
	l2 := lookup.New(lookup.Options{Live: k.Live, CacheBytes: -1})
	p2 := prepare(t, l2, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	key2 := p2.NewKey()
	require.Len(t, get(t, p2, key2.Reset().Int(2001)), 1)
	reads := c.Reads.Load()
	rec, err := p2.Get(counted, key2.Reset().Int(2001))
	require.NoError(t, err)
	require.Equal(t, int64(1), rec.NumRows())
	rec.Release()
	require.Equal(t, reads, c.Reads.Load(), "reads of pages at hand")

	before := c.Reads.Load()
	key.Reset().Int(10)
	allocs := testing.AllocsPerRun(100, func() {
		rec, err := p.Get(counted, key.Reset().Int(10))
		if err != nil || rec.NumRows() != 1 {
			t.Fatal(rec, err)
		}
		rec.Release()
	})
	require.Zero(t, allocs, "allocations of a cached probe")
	require.Equal(t, before, c.Reads.Load(), "reads of a cached probe")
}

// TestOutOfRange: a key outside every file's bounds reads nothing.
func TestOutOfRange(t *testing.T) {
	k := testkit.Open(t)
	ident := wide(t, k, 20_000, 20_000)
	fresh := liveset.NewCache(liveset.Options{FS: k.FS})
	l := lookup.New(lookup.Options{Live: fresh})
	p := prepare(t, l, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
	var c parquetio.Counters
	rec, err := p.Get(parquetio.WithCounters(ctx, &c), p.NewKey().Int(1_000_000))
	require.NoError(t, err)
	require.Zero(t, rec.NumRows())
	require.Zero(t, c.Pages.Load())
	require.Zero(t, c.Rows.Load())
}
