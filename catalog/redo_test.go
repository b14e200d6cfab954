package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// restful is a catalog whose settler does nothing until the returned function is called: what commits do by themselves can be counted.
func restful(t *testing.T, o Options) (*Catalog, func()) {
	o.Dir = t.TempDir()
	c := openAt(t, o)
	c.settler.busy.Lock()
	var once sync.Once
	settle := func() { once.Do(c.settler.busy.Unlock) }
	t.Cleanup(settle) // before Close
	return c, settle
}

// queued runs requests that all wait while a first one is in the serial point, and returns what the group of the others cost.
func queued(t *testing.T, c *Catalog, reqs []*Request) (groups, syncs int64) {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Commit(ctx, &Request{Changes: []Change{CreateTable{Ident: ident("s", "first"), Metadata: newMetadata(t, c, ident("s", "first")),
			Build: func(context.Context, BuildInput) (BuildOutput, error) {
				close(held)
				<-hold
				return BuildOutput{}, nil
			}}}})
		require.NoError(t, err)
	})
	<-held
	for _, r := range reqs {
		wg.Go(func() {
			_, err := c.Commit(ctx, r)
			require.NoError(t, err)
		})
	}
	require.Eventually(t, func() bool {
		c.queue.mu.Lock()
		defer c.queue.mu.Unlock()
		return len(c.queue.mu.waiting) == len(reqs)
	}, time.Minute, time.Millisecond)
	before, files := c.Stats(), c.FS().Counters().Snapshot()
	close(hold)
	wg.Wait()
	groups = c.Stats().Groups - before.Groups - 1
	return groups, c.FS().Counters().Snapshot().Sub(files).Fsyncs + 2*groups
}

// manyTables makes n tables and returns an append to each.
func manyTables(t *testing.T, c *Catalog, n, appends int) (reqs []*Request) {
	for i := range n {
		st := makeTable(t, c, fmt.Sprint("t", i))
		for range appends {
			reqs = append(reqs, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}}})
		}
	}
	return reqs
}

// TestGroupSyncs: 64 commits to one table that wait together are one group and wait for two syncs. The second half plants what it is there to
// notice: commits that sync their files themselves.
func TestGroupSyncs(t *testing.T) {
	c, settle := restful(t, Options{})
	reqs := manyTables(t, c, 1, 64)
	groups, syncs := queued(t, c, reqs)
	require.EqualValues(t, 1, groups)
	require.LessOrEqual(t, syncs, int64(len(reqs)), "at most one sync a commit")
	require.EqualValues(t, 2, syncs)
	settle()

	bad, _ := restful(t, Options{})
	reqs = manyTables(t, bad, 1, 64)
	bad.settler.mu.Lock()
	bad.settler.mu.bytes = settleMax
	bad.settler.mu.Unlock()
	_, syncs = queued(t, bad, reqs)
	require.Greater(t, syncs, int64(len(reqs)))
	bad.settler.mu.Lock()
	bad.settler.mu.bytes -= settleMax
	bad.settler.mu.Unlock()
}

// TestGroupOfManyTables: commits to 64 tables that wait together share a store transaction; commits that do not wait are groups of their own, which
// the count notices.
func TestGroupOfManyTables(t *testing.T) {
	c, _ := restful(t, Options{})
	reqs := manyTables(t, c, 64, 2)
	groups, syncs := queued(t, c, reqs[:64])
	require.GreaterOrEqual(t, 64/groups, int64(20), "commits a store transaction")
	require.LessOrEqual(t, syncs, int64(64))
	before := c.Stats()
	for _, r := range reqs[64:] {
		_, err := c.Commit(ctx, r)
		require.NoError(t, err)
	}
	after := c.Stats()
	require.Less(t, (after.Commits-before.Commits)/(after.Groups-before.Groups), int64(20))
}

// TestMetadataBytes: what a commit writes for its metadata does not grow with the commits before it. With lateSize out of reach it would, which the
// count notices.
func TestMetadataBytes(t *testing.T) {
	measure := func(o Options) (early, late float64) {
		c, _ := restful(t, o)
		st := makeTable(t, c, "t")
		bare := func(_ context.Context, in BuildInput) (BuildOutput, error) { // a snapshot without files of its own
			id := int64(in.Seq)
			s := &table.Snapshot{SnapshotID: id, ParentSnapshotID: headOf(in.Base), SequenceNumber: in.Base.LastSequenceNumber() + 1, TimestampMs: in.Time.UnixMilli(),
				ManifestList: in.Base.Location() + "/metadata/none.avro", Summary: &table.Summary{Operation: table.OpAppend}}
			return BuildOutput{Updates: []table.Update{table.NewAddSnapshotUpdate(s), table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0)}}, nil
		}
		have := 0
		reach := func(n int) {
			var wg sync.WaitGroup
			for ; have < n; have++ {
				wg.Go(func() {
					_, err := c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: bare}}})
					require.NoError(t, err)
				})
			}
			wg.Wait()
		}
		cost := func() float64 {
			const n = 20
			stats, files := c.Stats(), c.FS().Counters().Snapshot()
			for range n {
				_, err := c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: bare}}})
				require.NoError(t, err)
			}
			return float64(c.Stats().Carried-stats.Carried+c.FS().Counters().Snapshot().Sub(files).Written) / n
		}
		reach(200)
		early = cost()
		reach(1000)
		return early, cost()
	}
	early, late := measure(Options{})
	require.Less(t, late, 1.5*early)
	early, late = measure(Options{lateSize: 1 << 30})
	require.Greater(t, late, 3*early)
}

// TestLateMetadata: a metadata file that is late is read from memory, written when somebody asks, and its older versions read like all old cuts.
func TestLateMetadata(t *testing.T) {
	c, settle := restful(t, Options{lateSize: 1})
	st := makeTable(t, c, "t")
	var recs []*Record
	for i := range int64(6) {
		recs = append(recs, appendTo(t, c, st, i))
	}
	now, err := c.Cut().Table(ident("s", "t"))
	require.NoError(t, err)
	path := storeio.PathOf(now.MetadataLocation)
	require.NoFileExists(t, path)
	c.metadata = newMetadataCache(c.fs, c.settler.unwritten, 1<<20) // as when everything was evicted
	meta, err := now.Metadata(ctx)
	require.NoError(t, err)
	require.Len(t, meta.Snapshots(), 6)
	for m := range meta.PreviousFiles() {
		require.FileExists(t, storeio.PathOf(m.MetadataFile))
	}
	settle()
	require.NoError(t, c.WriteMetadata())
	require.FileExists(t, path)
	st2, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, st2.Size(), now.metadataSize)
	c.metadata = newMetadataCache(c.fs, c.settler.unwritten, 1<<20)
	for i, rec := range recs {
		cut, err := c.CutAt(ctx, rec.Seq)
		require.NoError(t, err)
		old, err := cut.Table(ident("s", "t"))
		require.NoError(t, err)
		meta, err := old.Metadata(ctx)
		require.NoError(t, err)
		require.Equal(t, *rec.Tables[0].SnapshotID, meta.CurrentSnapshot().SnapshotID, i)
	}
	f, err := c.ReadForeign(ctx, appendTo(t, c, st, 9).Tables[0].NewMetadata) // as register_table after unregister_table
	require.NoError(t, err)
	require.Len(t, f.Metadata.Snapshots(), 7)
	clean(t, c)
}

// Old metadata files may be removed while newer ones that were made from them are still to be made again: Open finds what it needs.
func TestOldMetadataAndRedo(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, lateSize: 1})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	commit(t, c, UpdateTable{Key: st.Key, Updates: []table.Update{table.NewSetPropertiesUpdate(map[string]string{table.MetadataPreviousVersionsMaxKey: "1"})}})
	for i := range int64(5) {
		appendTo(t, c, st, i)
		require.NoError(t, c.settler.settle()) // the keys stay until the next transaction
		_, err := c.RemoveOldMetadata(ctx, ident("s", "t"))
		require.NoError(t, err)
	}
	path := storeio.PathOf(mustTable(t, c, "t").MetadataLocation)
	keys := values(t, c.store, familyRedo)
	require.NotEmpty(t, keys)
	require.NoError(t, c.Close())
	s, err := openStore(mustResolve(t, dir), false) // the folder as a power cut leaves it: with the keys
	require.NoError(t, err)
	var ops []store.Op
	for _, p := range keys {
		ops = append(ops, store.Op{Key: p.Key, Value: p.Value})
	}
	_, err = s.Apply(ctx, store.Tx{Ops: ops})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	c = openAt(t, Options{Dir: dir})
	require.FileExists(t, path)
	clean(t, c)
	require.Empty(t, values(t, c.store, familyRedo))
}

func mustTable(t *testing.T, c *Catalog, name string) *TableState {
	st, err := c.Cut().Table(ident("s", name))
	require.NoError(t, err)
	return st
}

func values(t *testing.T, s store.Store, family byte) (out []store.Pair) {
	from := []byte{family}
	require.NoError(t, store.All(ctx, s, store.RangeRequest{From: from, To: store.PrefixEnd(from)}, func(p store.Pair) error {
		out = append(out, p)
		return nil
	}))
	return out
}

// A folder of the release before opens: its unsynced files are made again, and older programs refuse it from then on.
func TestOpenVersion1(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	appendTo(t, c, st, 1)
	location := mustTable(t, c, "t").MetadataLocation
	require.NoError(t, c.Close())
	path := filepath.Clean(storeio.PathOf(location))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := openStore(mustResolve(t, dir), false)
	require.NoError(t, err)
	value, err := s.Get(ctx, keyMeta)
	require.NoError(t, err)
	meta, err := decodeMeta(value)
	require.NoError(t, err)
	require.EqualValues(t, 2, value[1])
	meta.version = 1
	_, err = s.Apply(ctx, store.Tx{Ops: []store.Op{{Key: keyMeta, Value: meta.encode()}, {Key: fileKey(path), Value: encodeFile(content)}}})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.Truncate(path, 3)) // as a power cut
	c = openAt(t, Options{Dir: dir})
	clean(t, c)
	value, err = c.store.Get(ctx, keyMeta)
	require.NoError(t, err)
	require.EqualValues(t, 2, value[1])
	require.Empty(t, values(t, c.store, familyFile))
}

// A patch makes the file that the library would write, whatever was dropped from the metadata log; damage is noticed.
func TestPatch(t *testing.T) {
	m := chainOf(metadataOf(t, 2, 5), nil)
	base, err := encodeDocument(m)
	require.NoError(t, err)
	for i := range 150 {
		s := nextSnapshot(m, int64(100+i))
		next, ok := appendSnapshot(m, []table.Update{table.NewAddSnapshotUpdate(s), table.NewSetSnapshotRefUpdate(table.MainBranch, s.SnapshotID, table.BranchRef, 0, 0, 0)},
			fmt.Sprintf("s3://b/%d-old.json", i))
		require.True(t, ok)
		d, err := encodeDocument(next)
		require.NoError(t, err)
		p := d.patch("base", base)
		require.NotNil(t, p)
		got, err := p.apply(base.bytes())
		require.NoError(t, err)
		require.Equal(t, string(d.bytes()), string(got))
		size := 0
		for _, part := range p.parts {
			size += len(part.bytes)
		}
		require.Less(t, size, 4096)
		_, err = p.apply(base.bytes()[1:])
		require.Error(t, err)
		m, base = next, d
	}
	other, err := encodeDocument(chainOf(metadataOf(t, 2, 5), nil))
	require.NoError(t, err)
	require.Nil(t, other.patch("base", base))
}
