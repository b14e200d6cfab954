package testkit

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// Options opens a Kit.
type Options struct {
	Dir         string // empty: a new temporary folder
	Hooks       *storeio.Hooks
	Sync        bool  // real fsyncs; without, tests are faster and C3 is not tested
	MemoryLimit int64 // of the warehouse
}

// Kit is an open warehouse. It is closed when the test ends.
type Kit struct {
	Dir       string
	FS        *storeio.FS
	Catalog   *catalog.Catalog
	Live      *liveset.Cache
	Warehouse *warehouse.Warehouse
}

// Open opens a kit with default options.
func Open(t testing.TB) *Kit { return OpenWith(t, Options{}) }

// OpenWith opens a kit.
func OpenWith(t testing.TB, o Options) *Kit {
	t.Helper()
	k, err := TryOpen(t, o)
	if err != nil {
		t.Fatalf("open warehouse: %v", err)
	}
	return k
}

// TryOpen opens a kit and returns the error of an open that fails.
func TryOpen(t testing.TB, o Options) (*Kit, error) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	fs := storeio.NewFS(storeio.Options{Hooks: o.Hooks, NoSync: !o.Sync})
	c, err := catalog.Open(context.Background(), catalog.Options{Dir: o.Dir, FS: fs, NoSync: !o.Sync})
	if err != nil {
		return nil, err
	}
	live := liveset.NewCache(liveset.Options{FS: fs, Home: o.Dir})
	k := &Kit{Dir: o.Dir, FS: fs, Catalog: c, Live: live, Warehouse: warehouse.New(warehouse.Options{
		Catalog: c, Live: live, FS: fs, TempDir: filepath.Join(o.Dir, "tmp"), MemoryLimit: o.MemoryLimit,
	})}
	t.Cleanup(k.Close)
	return k, nil
}

// Close closes the kit. It is safe to call twice.
func (k *Kit) Close() {
	_ = k.Warehouse.Close()
	_ = k.Catalog.Close() // a crash test closes a catalog whose store failed on purpose
}

// Check runs the catalog's check and fails the test on any problem.
func (k *Kit) Check(t testing.TB) {
	t.Helper()
	err := k.Catalog.Check(context.Background(), func(p catalog.Problem) { t.Errorf("check: %+v", p) })
	if err != nil {
		t.Fatalf("check: %v", err)
	}
}

// Namespace creates a namespace unless it exists.
func (k *Kit) Namespace(t testing.TB, ns ...string) {
	t.Helper()
	ctx := context.Background()
	if ok, err := k.Catalog.CheckNamespaceExists(ctx, ns); err != nil {
		t.Fatalf("namespace: %v", err)
	} else if ok {
		return
	}
	if err := k.Catalog.CreateNamespace(ctx, ns, nil); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
}

// Table creates a table of format version v (2 or 3) named "ns.name" and returns its identifier.
func (k *Kit) Table(t testing.TB, name string, v int, sc *iceberg.Schema) icetable.Identifier {
	t.Helper()
	ident := icetable.Identifier(strings.Split(name, "."))
	k.Namespace(t, ident[:len(ident)-1]...)
	if _, err := k.Warehouse.CreateTable(context.Background(), warehouse.CreateTable{Ident: ident, Schema: sc, FormatVersion: v}); err != nil {
		t.Fatalf("create table: %v", err)
	}
	return ident
}

// State is the table in the current cut.
func (k *Kit) State(t testing.TB, ident icetable.Identifier) *catalog.TableState {
	t.Helper()
	s, err := k.Catalog.Cut().Table(ident)
	if err != nil {
		t.Fatalf("table %v: %v", ident, err)
	}
	return s
}

// Metadata is the table's current metadata.
func (k *Kit) Metadata(t testing.TB, ident icetable.Identifier) icetable.Metadata {
	t.Helper()
	m, err := k.State(t, ident).Metadata(context.Background())
	if err != nil {
		t.Fatalf("metadata of %v: %v", ident, err)
	}
	return m
}

// Set is the table's current live set.
func (k *Kit) Set(t testing.TB, ident icetable.Identifier) (liveset.Ref, *liveset.Set) {
	t.Helper()
	m := k.Metadata(t, ident)
	ref := liveset.Ref{UUID: m.TableUUID(), Metadata: m}
	s := m.CurrentSnapshot()
	if s == nil {
		return ref, liveset.Empty()
	}
	set, err := k.Live.At(context.Background(), ref, s.SnapshotID)
	if err != nil {
		t.Fatalf("live set of %v: %v", ident, err)
	}
	return ref, set
}

// Rows are the table's live rows through liveset, as sorted texts.
func (k *Kit) Rows(t testing.TB, ident icetable.Identifier) []string {
	t.Helper()
	ref, set := k.Set(t, ident)
	return k.SetRows(t, ref, set, ref.Metadata.CurrentSchema())
}

// SetRows are a set's live rows, as sorted texts.
func (k *Kit) SetRows(t testing.TB, ref liveset.Ref, set *liveset.Set, sc *iceberg.Schema) []string {
	t.Helper()
	var out []string
	for rec, err := range k.Live.Scan(context.Background(), ref, set, sc, liveset.ScanOptions{}) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		out = append(out, Text(rec)...)
		rec.Release()
	}
	slices.Sort(out)
	if int64(len(out)) != set.Rows() {
		t.Fatalf("scan gave %d rows, the set counts %d", len(out), set.Rows())
	}
	return out
}

// IcebergRows are the table's rows through iceberg-go's scan, as sorted texts.
func (k *Kit) IcebergRows(t testing.TB, ident icetable.Identifier) []string {
	t.Helper()
	tbl, err := k.State(t, ident).IcebergTable(context.Background())
	if err != nil {
		t.Fatalf("iceberg table %v: %v", ident, err)
	}
	_, recs, err := tbl.Scan().ToArrowRecords(context.Background())
	if err != nil {
		t.Fatalf("iceberg scan of %v: %v", ident, err)
	}
	var out []string
	for rec, err := range recs {
		if err != nil {
			t.Fatalf("iceberg scan of %v: %v", ident, err)
		}
		out = append(out, Text(rec)...)
		rec.Release()
	}
	slices.Sort(out)
	return out
}

// Append commits one batch.
func (k *Kit) Append(t testing.TB, ident icetable.Identifier, rec arrow.RecordBatch) *catalog.Record {
	t.Helper()
	return k.Do(t, ident, func(tt *warehouse.TxTable) error { return tt.Append(context.Background(), rec) })
}

// Do runs fn on the table in a transaction and commits it.
func (k *Kit) Do(t testing.TB, ident icetable.Identifier, fn func(*warehouse.TxTable) error) *catalog.Record {
	t.Helper()
	rec, err := k.TryDo(ident, fn)
	if err != nil {
		t.Fatalf("transaction on %v: %v", ident, err)
	}
	return rec
}

// TryDo is Do that returns the error.
func (k *Kit) TryDo(ident icetable.Identifier, fn func(*warehouse.TxTable) error) (*catalog.Record, error) {
	ctx := context.Background()
	return k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		tt, err := tx.Table(ctx, ident)
		if err != nil {
			return err
		}
		return fn(tt)
	})
}
