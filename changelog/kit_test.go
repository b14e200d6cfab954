package changelog_test

import (
	"context"
	"iter"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kit is the cores opened on a temporary folder.
type kit struct {
	t    *testing.T
	ctx  context.Context
	fs   *storeio.FS
	cat  *catalog.Catalog
	live *liveset.Cache
	wh   *warehouse.Warehouse
	r    *changelog.Reader
}

func openKit(t *testing.T, o changelog.Options) *kit {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	fs := storeio.NewFS(storeio.Options{})
	cat, err := catalog.Open(ctx, catalog.Options{Dir: dir, FS: fs, Logger: zerolog.Nop(), NoSync: true})
	require.NoError(t, err)
	live := liveset.NewCache(liveset.Options{FS: fs, Logger: zerolog.Nop()})
	wh := warehouse.New(warehouse.Options{Catalog: cat, Live: live, FS: fs, TempDir: dir, Logger: zerolog.Nop()})
	t.Cleanup(func() {
		require.NoError(t, wh.Close())
		require.NoError(t, cat.Close())
		left, err := filepath.Glob(filepath.Join(dir, "changes-*"))
		require.NoError(t, err)
		require.Empty(t, left, "spilled files are removed")
	})
	o.Catalog, o.Live, o.TempDir = cat, live, dir
	k := &kit{t: t, ctx: ctx, fs: fs, cat: cat, live: live, wh: wh, r: changelog.New(o)}
	_, err = wh.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		return tx.CreateNamespace(ctx, table.Identifier{"s"}, nil)
	})
	require.NoError(t, err)
	return k
}

// row is a row of the test tables (id long, part int, name string, v double). Empty pointers are NULL.
type row struct {
	id   int64
	part int32
	name *string
	v    *float64
}

var ident = table.Identifier{"s", "t"}

// createTable creates s.t, keyed by (id, part) or a log table.
func (k *kit) createTable(version int, keyed bool) {
	k.t.Helper()
	fields := []iceberg.NestedField{
		{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: keyed},
		{ID: 2, Name: "part", Type: iceberg.PrimitiveTypes.Int32, Required: keyed},
		{ID: 3, Name: "name", Type: iceberg.PrimitiveTypes.String},
		{ID: 4, Name: "v", Type: iceberg.PrimitiveTypes.Float64},
	}
	var ids []int
	if keyed {
		ids = []int{1, 2}
	}
	_, err := k.wh.CreateTable(k.ctx, warehouse.CreateTable{Ident: ident, FormatVersion: version,
		Schema: iceberg.NewSchemaWithIdentifiers(0, ids, fields...)})
	require.NoError(k.t, err)
}

// batch makes a batch of rows for the table's current schema.
func batch(sc *arrow.Schema, rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i, f := range sc.Fields() {
		for _, r := range rows {
			switch f.Name {
			case "id":
				b.Field(i).(*array.Int64Builder).Append(r.id)
			case "part":
				if f.Type.ID() == arrow.INT64 {
					b.Field(i).(*array.Int64Builder).Append(int64(r.part))
				} else {
					b.Field(i).(*array.Int32Builder).Append(r.part)
				}
			case "name":
				if r.name == nil {
					b.Field(i).AppendNull()
				} else {
					b.Field(i).(*array.StringBuilder).Append(*r.name)
				}
			case "v", "renamed":
				if r.v == nil {
					b.Field(i).AppendNull()
				} else {
					b.Field(i).(*array.Float64Builder).Append(*r.v)
				}
			default:
				b.Field(i).AppendNull()
			}
		}
	}
	return b.NewRecordBatch()
}

// do runs one transaction on s.t.
func (k *kit) do(fn func(tt *warehouse.TxTable) error) *catalog.Record {
	k.t.Helper()
	rec, err := k.wh.Do(k.ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		tt, err := tx.Table(k.ctx, ident)
		if err != nil {
			return err
		}
		return fn(tt)
	})
	require.NoError(k.t, err)
	return rec
}

func (k *kit) append(rows ...row) *catalog.Record {
	return k.do(func(tt *warehouse.TxTable) error { return tt.Append(k.ctx, batch(tt.ArrowSchema(), rows)) })
}

func (k *kit) upsert(rows ...row) *catalog.Record {
	return k.do(func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(k.ctx, batch(tt.ArrowSchema(), rows), warehouse.Replace)
		return err
	})
}

func (k *kit) deleteKeys(rows ...row) *catalog.Record {
	return k.do(func(tt *warehouse.TxTable) error {
		_, err := tt.DeleteKeys(k.ctx, batch(tt.KeySchema(), rows))
		return err
	})
}

// change is one row of a change relation.
type change struct {
	row      string // the table's columns
	typ      string
	ordinal  int32
	snapshot int64
	seq      int64 // 0 when NULL
	ts       int64
	num      int64
	rowID    int64 // −1 when NULL or absent
}

// table returns the schema's width without the metadata columns.
func readChanges(t *testing.T, batches iter.Seq2[arrow.RecordBatch, error], width int) []change {
	t.Helper()
	out, err := tryChanges(batches, width)
	require.NoError(t, err)
	return out
}

func tryChanges(batches iter.Seq2[arrow.RecordBatch, error], width int) ([]change, error) {
	var out []change
	for b, err := range batches {
		if err != nil {
			return out, err
		}
		out = append(out, batchChanges(b, width)...)
	}
	return out, nil
}

func batchChanges(b arrow.RecordBatch, width int) []change {
	var out []change
	meta := b.Columns()[width:]
	for r := range int(b.NumRows()) {
		c := change{row: rowText(b, r, width), typ: meta[0].(*array.String).Value(r), ordinal: meta[1].(*array.Int32).Value(r),
			ts: int64(meta[4].(*array.Timestamp).Value(r)), num: meta[5].(*array.Int64).Value(r), rowID: -1}
		if meta[2].IsValid(r) {
			c.snapshot = meta[2].(*array.Int64).Value(r)
		}
		if meta[3].IsValid(r) {
			c.seq = meta[3].(*array.Int64).Value(r)
		}
		if len(meta) > 6 && meta[6].IsValid(r) {
			c.rowID = meta[6].(*array.Int64).Value(r)
		}
		out = append(out, c)
	}
	return out
}

// rowText writes the first width columns as row.text does.
func rowText(b arrow.RecordBatch, r, width int) string {
	parts := make([]string, width)
	for c := range width {
		parts[c] = testkit.ValueText(testkit.Value(b.Column(c), r))
	}
	return strings.Join(parts, "|")
}

// changes reads a window of s.t at the current cut.
func (k *kit) changes(from, to changelog.Bound) []change {
	k.t.Helper()
	return k.read(changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: from, To: to})
}

func (k *kit) read(q changelog.Request) []change {
	k.t.Helper()
	x, err := k.r.Changes(k.ctx, q)
	require.NoError(k.t, err)
	return readChanges(k.t, x.Batches(k.ctx), x.Columns().Table.NumFields())
}

func (k *kit) net(from, to changelog.Bound) []change {
	k.t.Helper()
	x, err := k.r.Net(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: from, To: to})
	require.NoError(k.t, err)
	return readChanges(k.t, x.Batches(k.ctx), x.Columns().Table.NumFields())
}

func isDelete(typ string) bool { return typ == changelog.Delete || typ == changelog.UpdateBefore }

// multiset counts rows.
type multiset map[string]int

func (m multiset) add(row string, n int) {
	if m[row] += n; m[row] == 0 {
		delete(m, row)
	}
}

func (m multiset) clone() multiset {
	out := multiset{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// apply patches the multiset; it fails when a deleted row is not there.
func (m multiset) apply(t *testing.T, changes []change, msg string) multiset {
	t.Helper()
	out := m.clone()
	for _, c := range changes {
		if isDelete(c.typ) {
			require.Positive(t, out[c.row], "%s: deleted row %s is not there", msg, c.row)
			out.add(c.row, -1)
		} else {
			out.add(c.row, 1)
		}
	}
	return out
}

func brief(changes []change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.typ + " " + c.row
	}
	return out
}

func sorted(s []string) []string {
	s = append([]string(nil), s...)
	sort.Strings(s)
	return s
}

func str(s string) *string         { return &s }
func seq(n uint64) changelog.Bound { return changelog.Seq(n) }
