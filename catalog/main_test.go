package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/internal/storeio"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SKADE_CATALOG_CHILD"); dir != "" {
		childMain(dir) // the process that the kill tests kill
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

var schema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
)

// openAt opens a catalog that the test closes, after a check that must be clean.
func openAt(t *testing.T, o Options) *Catalog {
	t.Helper()
	c, err := Open(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func openTest(t *testing.T) *Catalog { return openAt(t, Options{Dir: t.TempDir(), NoSync: true}) }

func clean(t *testing.T, c *Catalog) {
	t.Helper()
	require.NoError(t, c.Check(ctx, func(p Problem) { t.Errorf("check: %s", p) }))
}

func ident(parts ...string) table.Identifier { return parts }

func commit(t *testing.T, c *Catalog, changes ...Change) *Record {
	t.Helper()
	rec, err := c.Commit(ctx, &Request{TxID: "tx", Actor: "me", Changes: changes})
	require.NoError(t, err)
	return rec
}

func newMetadata(t *testing.T, c *Catalog, id table.Identifier) table.Metadata {
	t.Helper()
	u := uuid.New()
	loc, err := c.NewTableLocation(c.Cut(), id, u)
	require.NoError(t, err)
	meta, err := table.NewMetadataWithUUID(schema, nil, table.UnsortedSortOrder, loc, iceberg.Properties{"format-version": "2"}, u)
	require.NoError(t, err)
	return meta
}

// makeTable creates namespace s when it is missing and table s.name.
func makeTable(t *testing.T, c *Catalog, name string) *TableState {
	t.Helper()
	if _, err := c.Cut().Namespace(ident("s")); err != nil {
		commit(t, c, CreateNamespace{Ident: ident("s")})
	}
	id := ident("s", name)
	commit(t, c, CreateTable{Ident: id, Metadata: newMetadata(t, c, id)})
	st, err := c.Cut().Table(id)
	require.NoError(t, err)
	return st
}

// appendFile is a BuildFunc that adds a snapshot with one data file of n recorded rows: a manifest and a manifest list are
// written, the data file is a few bytes of text (nothing here reads it).
func appendFile(fs *storeio.FS, n int64) BuildFunc {
	return func(_ context.Context, in BuildInput) (BuildOutput, error) {
		return buildAppend(fs, in, n)
	}
}

func buildAppend(fs *storeio.FS, in BuildInput, n int64) (BuildOutput, error) {
	var out BuildOutput
	name := uuid.NewString()
	dataPath := in.Base.Location() + "/data/" + name + ".parquet"
	body := fmt.Appendf(nil, "not a parquet file, %d rows, seq %d", n, in.Seq)
	if err := writeUnsynced(fs, in.Batch, dataPath, body); err != nil {
		return out, err
	}
	spec := in.Base.PartitionSpec()
	file, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, dataPath, iceberg.ParquetFile, nil, nil, nil, n, int64(len(body)))
	if err != nil {
		return out, err
	}
	id := int64(uuid.New().ID())<<20 | int64(in.Seq&0xfffff)
	seq := in.Base.LastSequenceNumber() + 1
	manifestPath := in.Base.Location() + "/metadata/" + name + "-m0.avro"
	w, err := fs.CreateUnsynced(manifestPath)
	if err != nil {
		return out, err
	}
	entry := iceberg.NewManifestEntryBuilder(iceberg.EntryStatusADDED, &id, file.Build()).Build()
	mf, err := iceberg.WriteManifest(manifestPath, w, 2, spec, in.Base.CurrentSchema(), id, []iceberg.ManifestEntry{entry})
	if err != nil {
		return out, err
	}
	if err := w.Close(); err != nil {
		return out, err
	}
	in.Batch.Add(manifestPath)
	var parent *int64
	manifests := []iceberg.ManifestFile{mf}
	if s := in.Base.CurrentSnapshot(); s != nil {
		parent = &s.SnapshotID
		older, err := s.Manifests(fs)
		if err != nil {
			return out, err
		}
		manifests = append(manifests, older...)
	}
	listPath := in.Base.Location() + "/metadata/snap-" + name + ".avro"
	lw, err := fs.CreateUnsynced(listPath)
	if err != nil {
		return out, err
	}
	if err := iceberg.WriteManifestList(2, lw, id, parent, &seq, 0, manifests); err != nil {
		return out, err
	}
	if err := lw.Close(); err != nil {
		return out, err
	}
	in.Batch.Add(listPath)
	schemaID := in.Base.CurrentSchema().ID
	snap := table.Snapshot{
		SnapshotID: id, ParentSnapshotID: parent, SequenceNumber: seq, TimestampMs: in.Time.UnixMilli(), ManifestList: listPath,
		Summary:  &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"added-records": fmt.Sprint(n), "added-data-files": "1"}},
		SchemaID: &schemaID,
	}
	out.Updates = []table.Update{
		table.NewAddSnapshotUpdate(&snap),
		table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0),
	}
	return out, nil
}

func writeUnsynced(fs *storeio.FS, b *storeio.Batch, path string, body []byte) error {
	w, err := fs.CreateUnsynced(path)
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	b.Add(path)
	return nil
}

func appendTo(t *testing.T, c *Catalog, st *TableState, n int64) *Record {
	t.Helper()
	return commit(t, c, UpdateTable{Key: st.Key, Build: appendFile(c.FS(), n)})
}

// The suite that every iceberg-go catalog runs.
func TestConformance(t *testing.T) {
	catalogtest.RunCatalogTests(t, catalogtest.Config{
		NewCatalog:                  func(t *testing.T) icecat.Catalog { return openTest(t) },
		SupportsNamespaceProperties: true,
	})
}

func TestCreateAppendReopen(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)
	st := makeTable(t, c, "orders")
	require.EqualValues(t, firstOID+1, st.OID)
	r1 := appendTo(t, c, st, 3)
	r2 := appendTo(t, c, st, 4)
	require.EqualValues(t, 4, r2.Seq)
	require.Equal(t, KindCommit, r2.Tables[0].Kind)
	require.EqualValues(t, 4, r2.Tables[0].RowsAdded)
	require.Equal(t, *r1.Tables[0].SnapshotID, *r2.Tables[0].ParentID)
	clean(t, c)
	require.NoError(t, c.Close())

	c = openAt(t, Options{Dir: dir})
	require.EqualValues(t, 4, c.CommitSeq())
	now, err := c.Cut().Table(ident("s", "orders"))
	require.NoError(t, err)
	id, ok := now.SnapshotID()
	require.True(t, ok)
	require.Equal(t, *r2.Tables[0].SnapshotID, id)
	meta, err := now.Metadata(ctx)
	require.NoError(t, err)
	require.Len(t, meta.Snapshots(), 2)
	require.Regexp(t, `/00002-[0-9a-f-]{36}\.metadata\.json$`, now.MetadataLocation)
	rec, err := c.CommitBySnapshot(ctx, now.Key, id)
	require.NoError(t, err)
	require.Equal(t, r2, rec)
	clean(t, c)
	entries, err := os.ReadDir(filepath.Join(dir))
	require.NoError(t, err)
	require.Len(t, entries, 2, "catalog.db and warehouse only")
}
