package warehouse

import (
	"context"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// A request the catalog puts back is built again under another snapshot id: live sets of the first one may be cached.
func TestBuildAgain(t *testing.T) {
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	w := New(Options{FS: fs, Live: liveset.NewCache(liveset.Options{FS: fs}), Logger: zerolog.Nop()})
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	meta, err := buildMetadata(2, uuid.New(), sc, nil, nil, t.TempDir(), nil)
	require.NoError(t, err)
	tt := &TxTable{tx: &Tx{w: w}, ident: icetable.Identifier{"s", "t"}, baseMeta: meta, baseSet: liveset.Empty()}
	tt.setMetadata(meta)
	tt.st = newState(false)
	tt.st.truncated = true // a change without rows
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "/f", iceberg.ParquetFile, nil, nil, nil, 10, 100)
	require.NoError(t, err)
	c := &tableCommit{t: tt, batch: fs.NewBatch(), snapshotID: 7, added: []iceberg.DataFile{b.Build()}}
	require.NoError(t, c.writeManifests())
	in := catalog.BuildInput{Base: meta, Time: time.Now(), Batch: fs.NewBatch()}
	_, err = c.build(context.Background(), in)
	require.NoError(t, err)
	out, err := c.build(context.Background(), in)
	require.NoError(t, err)
	require.NotEqual(t, int64(7), c.snapshotID)
	require.NotEmpty(t, c.stale)
	after, err := icetable.UpdateTableMetadata(meta, out.Updates, "")
	require.NoError(t, err)
	require.Equal(t, c.snapshotID, after.CurrentSnapshot().SnapshotID)
	list, err := after.CurrentSnapshot().Manifests(fs)
	require.NoError(t, err)
	require.Len(t, list, 1)
}
