package changelog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// counted is what reading a window took, once the live sets of its ends were known.
type counted struct {
	rows    int64 // of the answer
	opens   int64 // files opened
	bytes   int64 // read from files
	decoded int64 // values, of all columns
}

// count reads a window with nothing of the data files cached. net asks for the net effect.
func count(t *testing.T, k *testkit.Kit, ident table.Identifier, net bool, from, to changelog.Bound) counted {
	t.Helper()
	ctx := context.Background()
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: liveset.NewCache(liveset.Options{FS: fs}), TempDir: t.TempDir()})
	q := changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: from, To: to}
	open := r.Changes
	if net {
		open = r.Net
	}
	x, err := open(ctx, q)
	require.NoError(t, err)
	_, err = x.Plan(ctx)
	require.NoError(t, err)
	before := fs.Counters().Snapshot()
	var pages parquetio.Counters
	c := counted{}
	for b, err := range x.Batches(parquetio.WithCounters(ctx, &pages)) {
		require.NoError(t, err)
		c.rows += b.NumRows()
	}
	d := fs.Counters().Snapshot().Sub(before)
	c.opens, c.bytes, c.decoded = d.Opens, d.Bytes, pages.Rows.Load()
	return c
}

// numbered are rows (id, n, name) of the ids first, first+step, …
func numbered(sc *iceberg.Schema, first, step, n int, salt int64) arrow.RecordBatch {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		panic(err)
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer rb.Release()
	for i := range n {
		id := int64(first + i*step)
		rb.Field(0).(*array.Int64Builder).Append(id)
		rb.Field(1).(*array.Int64Builder).Append(id*7 + salt)
		rb.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name-of-%09d", id))
	}
	return rb.NewRecordBatch()
}

var numberedColumns = testkit.Columns([]string{"id"}, "id long", "n long", "name string")

// TestReadingFollowsTheChange: what a window reads is a function of what changed, not of the table: files opened, bytes
// read and values decoded for 1,000 changed rows are the same in a table of more files.
func TestReadingFollowsTheChange(t *testing.T) {
	const perFile = 70_000
	ctx := context.Background()
	type measured struct{ clustered, scattered, deleted, net, whole counted }
	measure := func(files int) (m measured) {
		k := testkit.Open(t)
		ident := k.Table(t, "s.t", 2, numberedColumns)
		for f := range files {
			k.Append(t, ident, numbered(numberedColumns, f*perFile, 1, perFile, 0))
		}
		base := k.Catalog.Cut().Seq()
		upsert := func(step int) uint64 {
			return k.Do(t, ident, func(tt *warehouse.TxTable) error {
				_, err := tt.Upsert(ctx, numbered(numberedColumns, perFile/3, step, 1000, 1), warehouse.Replace)
				return err
			}).Seq
		}
		clustered, scattered := upsert(1), upsert(15)
		deleted := k.Do(t, ident, func(tt *warehouse.TxTable) error {
			_, err := tt.DeleteKeys(ctx, testkit.ArrowBatch(tt.KeySchema(), []any{7}, []any{perFile - 1}))
			return err
		}).Seq
		m.clustered = count(t, k, ident, false, seq(base), seq(clustered))
		m.scattered = count(t, k, ident, false, seq(clustered), seq(scattered))
		m.deleted = count(t, k, ident, false, seq(scattered), seq(deleted))
		m.net = count(t, k, ident, true, seq(base), seq(deleted))
		m.whole = count(t, k, ident, true, changelog.Null, seq(deleted))
		return m
	}
	small, large := measure(2), measure(5)
	require.EqualValues(t, 2000, small.clustered.rows)
	require.EqualValues(t, 2, small.deleted.rows)
	require.NotZero(t, small.clustered.bytes)
	require.Equal(t, small.clustered, large.clustered, "1,000 neighbours updated")
	require.Equal(t, small.scattered, large.scattered, "1,000 scattered rows updated")
	require.Equal(t, small.deleted, large.deleted, "two rows deleted")
	require.Equal(t, small.net, large.net, "the net effect of them all")
	// Neighbours cost less than a quarter of the file they stand in.
	require.Less(t, small.clustered.decoded, int64(3*perFile/4))
	// The counts can tell: a window that holds the whole table reads more in the larger one.
	require.Greater(t, large.whole.bytes, 2*small.whole.bytes)
	require.Greater(t, large.whole.decoded, 2*small.whole.decoded)
	require.Greater(t, large.whole.opens, small.whole.opens)
}

// TestNetPassesOverCompaction: a compaction inside the window costs nothing: the commits are folded, and neither the
// files it made nor those it took away are read. When its ancestry has expired the ends are compared, with the same answer.
func TestNetPassesOverCompaction(t *testing.T) {
	const rows = 60_000
	ctx := context.Background()
	k := testkit.Open(t)
	ident := k.Table(t, "s.t", 2, numberedColumns)
	for f := range 3 {
		k.Append(t, ident, numbered(numberedColumns, f*rows/3, 1, rows/3, 0))
	}
	base := k.Catalog.Cut().Seq()
	baseSnapshot, _ := k.State(t, ident).SnapshotID()
	k.Append(t, ident, numbered(numberedColumns, rows, 1, 500, 0))
	k.Do(t, ident, func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(ctx, numbered(numberedColumns, 100, 1, 50, 1), warehouse.Replace)
		return err
	})
	res, err := k.Warehouse.Compact(ctx, ident, warehouse.CompactOptions{MinInputFiles: 2})
	require.NoError(t, err)
	require.NotNil(t, res.Record)
	last := k.Append(t, ident, numbered(numberedColumns, rows+500, 1, 300, 0)).Seq

	want := func(inverse bool) []string {
		from, to := seq(base), seq(last)
		if inverse {
			from, to = to, from
		}
		r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: k.Live, TempDir: t.TempDir()})
		x, err := r.Net(ctx, changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: from, To: to})
		require.NoError(t, err)
		return sorted(brief(readChanges(t, x.Batches(ctx), 3)))
	}
	forth, back := want(false), want(true)
	require.Len(t, forth, 500+300+2*50)
	folded := count(t, k, ident, true, seq(base), seq(last))
	require.EqualValues(t, 3*900, folded.decoded, "values decoded: the changed rows alone")
	inverse := count(t, k, ident, true, seq(last), seq(base))
	require.Equal(t, folded.decoded, inverse.decoded, "the inverse reads the same rows")

	// With the middle gone the two ends are compared: the count can tell, the answer is the same.
	gone, err := k.Warehouse.ExpireSnapshots(ctx, ident, warehouse.Retain{Min: 1, MaxAge: time.Nanosecond,
		Pinned: func(id int64) bool { return id == baseSnapshot }})
	require.NoError(t, err)
	require.NotZero(t, gone.Snapshots)
	ends := count(t, k, ident, true, seq(base), seq(last))
	require.Greater(t, ends.decoded, int64(3*rows))
	require.Equal(t, forth, want(false))
	require.Equal(t, back, want(true))
}
