package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
)

// hold makes the leader wait in a BuildFunc until the returned function is called, so that requests pile up behind it.
func hold(t *testing.T, c *Catalog, st *TableState) (release func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: func(context.Context, BuildInput) (BuildOutput, error) {
			close(in)
			<-out
			return BuildOutput{}, nil
		}}}})
		done <- err
	}()
	<-in
	return func() {
		close(out)
		require.NoError(t, <-done)
	}
}

func waiting(c *Catalog) int {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return len(c.queue.mu.waiting)
}

// C2: 20 waiting requests are one store transaction and take 20 consecutive seqs; a conflicting one fails alone.
func TestGroupCommit(t *testing.T) {
	c := openTest(t)
	var tables []*TableState
	for i := range 20 {
		tables = append(tables, makeTable(t, c, fmt.Sprintf("t%02d", i)))
	}
	release := hold(t, c, tables[0])
	revision, seq, stats := c.store.Revision(), c.CommitSeq(), c.Stats()
	var wg sync.WaitGroup
	recs, errs := make([]*Record, 21), make([]error, 21)
	for i := range 21 {
		ch := UpdateTable{Key: tables[i%20].Key, Build: appendFile(c.FS(), int64(i))}
		if i == 20 {
			ch.Requirements = []table.Requirement{table.AssertCurrentSchemaID(99)}
		}
		wg.Go(func() { recs[i], errs[i] = c.Commit(ctx, &Request{Changes: []Change{ch}}) })
	}
	require.Eventually(t, func() bool { return waiting(c) == 21 }, 10*time.Second, time.Millisecond)
	release()
	wg.Wait()
	require.ErrorIs(t, errs[20], ErrConflict)
	require.Nil(t, recs[20])
	seen := map[uint64]bool{}
	for i := range 20 {
		require.NoError(t, errs[i])
		seen[recs[i].Seq] = true
	}
	for i := range uint64(20) {
		require.True(t, seen[seq+1+i], "seq %d is missing", seq+1+i)
	}
	require.Equal(t, revision+1, c.store.Revision(), "one store transaction")
	require.Equal(t, stats.Groups+1, c.Stats().Groups)
	clean(t, c)
}

// Several requests on one table share one metadata file; each has its snapshot, its seq and its place in the past.
func TestGroupOnOneTable(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "one")
	appendTo(t, c, st, 1)
	release := hold(t, c, st)
	var wg sync.WaitGroup
	recs := make([]*Record, 8)
	for i := range recs {
		wg.Go(func() {
			var err error
			recs[i], err = c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: appendFile(c.FS(), int64(10+i))}}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return waiting(c) == 8 }, 10*time.Second, time.Millisecond)
	before := c.FS().Counters().Snapshot()
	release()
	wg.Wait()
	require.EqualValues(t, 8*3+1, c.FS().Counters().Snapshot().Sub(before).Creates, "three files a request and one metadata file")
	now, err := c.Cut().Table(ident("s", "one"))
	require.NoError(t, err)
	meta, err := now.Metadata(ctx)
	require.NoError(t, err)
	require.Len(t, meta.Snapshots(), 9)
	log := 0
	for range meta.SnapshotLogs() {
		log++
	}
	require.Equal(t, 9, log, "the snapshot log holds the snapshots in between")
	previous := 0
	for range meta.PreviousFiles() {
		previous++
	}
	require.Equal(t, 2, previous, "one metadata log entry a file, not one a request")
	for _, rec := range recs {
		e := rec.Tables[0]
		require.Equal(t, now.MetadataLocation, e.NewMetadata)
		cut, err := c.CutAt(ctx, rec.Seq)
		require.NoError(t, err)
		require.Equal(t, rec.Seq, cut.Seq())
		require.Equal(t, rec.Time, cut.Time())
		past, err := cut.Table(ident("s", "one"))
		require.NoError(t, err)
		id, _ := past.SnapshotID()
		require.Equal(t, *e.SnapshotID, id)
		m, err := past.Metadata(ctx)
		require.NoError(t, err)
		require.Equal(t, id, m.CurrentSnapshot().SnapshotID, "main is set back")
		head, err := c.SnapshotAt(ctx, st.Key, rec.Time)
		require.NoError(t, err)
		require.Equal(t, id, *head.SnapshotID)
	}
	clean(t, c)
}

// C4: whatever fails, nothing of the request is visible: not its first change either.
func TestFailedRequestLeavesNothing(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "a")
	seq, oid := c.CommitSeq(), c.Cut().s.nextOID
	boom := errors.New("boom")
	bad := map[string]struct {
		ch   Change
		want error
	}{
		"build error":       {UpdateTable{Key: st.Key, Build: func(context.Context, BuildInput) (BuildOutput, error) { return BuildOutput{}, boom }}, boom},
		"build panic":       {UpdateTable{Key: st.Key, Build: func(context.Context, BuildInput) (BuildOutput, error) { panic("boom") }}, ErrInvalidRequest},
		"requirement":       {UpdateTable{Key: st.Key, Requirements: []table.Requirement{table.AssertCreate()}}, ErrConflict},
		"unknown ref":       {UpdateTable{Key: st.Key, Updates: []table.Update{table.NewSetSnapshotRefUpdate("main", 7, table.BranchRef, 0, 0, 0)}}, ErrInvalidRequest},
		"nil update":        {UpdateTable{Key: st.Key, Updates: []table.Update{nil}}, ErrInvalidRequest},
		"nil requirement":   {UpdateTable{Key: st.Key, Requirements: []table.Requirement{nil}}, ErrInvalidRequest},
		"nil change":        {nil, ErrInvalidRequest},
		"no such table":     {UpdateTable{Ident: ident("s", "nope")}, icecat.ErrNoSuchTable},
		"no such key":       {UpdateTable{Key: "00000000-0000-0000-0000-000000000001"}, icecat.ErrNoSuchTable},
		"drop":              {DropTable{Ident: ident("s", "nope")}, icecat.ErrNoSuchTable},
		"rename to itself":  {RenameTable{From: ident("s", "a"), To: ident("s", "a")}, icecat.ErrTableAlreadyExists},
		"rename to nowhere": {RenameTable{From: ident("s", "a"), To: ident("x", "a")}, icecat.ErrNoSuchNamespace},
		"exists":            {CreateTable{Ident: ident("s", "a"), Metadata: newMetadata(t, c, ident("s", "a"))}, icecat.ErrTableAlreadyExists},
		"no metadata":       {CreateTable{Ident: ident("s", "b")}, ErrInvalidRequest},
		"namespace exists":  {CreateNamespace{Ident: ident("s")}, icecat.ErrNamespaceAlreadyExists},
		"no parent":         {CreateNamespace{Ident: ident("q", "r")}, icecat.ErrNoSuchNamespace},
		"empty name":        {CreateNamespace{Ident: ident("")}, icecat.ErrInvalidIdentifier},
		"NUL":               {CreateNamespace{Ident: ident("a\x00b")}, icecat.ErrInvalidIdentifier},
		"not empty":         {DropNamespace{Ident: ident("s")}, icecat.ErrNamespaceNotEmpty},
		"no object":         {DropObject{"view", ident("s"), "v"}, ErrNoSuchObject},
		"view over table":   {PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: "a"}}, icecat.ErrTableAlreadyExists},
		"register nothing":  {RegisterTable{Ident: ident("s", "r"), MetadataLocation: "/nowhere/x.metadata.json"}, ErrNoMetadata},
		"set and removed":   {UpdateNamespace{ident("s"), []string{"k"}, iceberg.Properties{"k": "v"}}, ErrInvalidRequest},
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			rec, err := c.Commit(ctx, &Request{Changes: []Change{CreateNamespace{Ident: ident("first")}, b.ch}})
			require.Error(t, err)
			if b.want != errAny {
				require.ErrorIs(t, err, b.want)
			}
			require.Nil(t, rec)
			require.Equal(t, seq, c.CommitSeq())
			_, err = c.Cut().Namespace(ident("first"))
			require.ErrorIs(t, err, icecat.ErrNoSuchNamespace)
			require.Equal(t, oid, c.Cut().s.nextOID)
		})
	}
	_, err := c.Commit(ctx, &Request{Context: make([]byte, MaxContext+1)})
	require.ErrorIs(t, err, ErrInvalidRequest)
	rec, err := c.Commit(ctx, &Request{})
	require.NoError(t, err)
	require.Nil(t, rec, "a request that changes nothing takes no seq")
	clean(t, c)
}

var errAny = errors.New("any error")

// C1: a request over several tables is one seq, whole or absent in every cut, while others commit.
func TestCutsAreAtomic(t *testing.T) {
	c := openTest(t)
	x, y := makeTable(t, c, "x"), makeTable(t, c, "y")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for last := uint64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				cut := c.Cut()
				a, _ := cut.TableByKey(x.Key)
				b, _ := cut.TableByKey(y.Key)
				if a.ChangedSeq != b.ChangedSeq && a.snapshotID != nil {
					t.Errorf("cut %d shows x at %d and y at %d", cut.Seq(), a.ChangedSeq, b.ChangedSeq)
					return
				}
				if cut.Seq() < last {
					t.Errorf("cut %d after %d", cut.Seq(), last)
					return
				}
				last = cut.Seq()
				time.Sleep(20 * time.Microsecond)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for i := range int64(10) {
				_, err := c.Commit(ctx, &Request{Changes: []Change{
					UpdateTable{Key: x.Key, Build: appendFile(c.FS(), i)}, UpdateTable{Key: y.Key, Build: appendFile(c.FS(), i)},
				}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for c.CommitSeq() < 43 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
	clean(t, c)
}

// C2 and C5: seqs have no gap and timestamps grow strictly while the clock stands still or runs backwards.
func TestSeqsAndTimes(t *testing.T) {
	clock := time.Now()
	steps := []time.Duration{0, 0, -30 * time.Second, time.Microsecond, 0, -time.Nanosecond, time.Second}
	n := 0
	c := openAt(t, Options{Dir: t.TempDir(), NoSync: true, Now: func() time.Time {
		clock = clock.Add(steps[n%len(steps)])
		n++
		return clock
	}})
	last := time.Time{}
	for i := range 50 {
		rec := commit(t, c, CreateNamespace{Ident: ident(fmt.Sprint("n", i))})
		require.EqualValues(t, i+1, rec.Seq)
		require.True(t, rec.Time.After(last))
		require.Equal(t, rec.Time, rec.Time.Truncate(time.Microsecond))
		seq, err := c.SeqAt(ctx, rec.Time)
		require.NoError(t, err)
		require.Equal(t, rec.Seq, seq)
		if i > 0 {
			before, err := c.SeqAt(ctx, rec.Time.Add(-time.Nanosecond))
			require.NoError(t, err)
			require.Equal(t, rec.Seq-1, before)
		}
		last = rec.Time
	}
	st := makeTable(t, c, "t")
	rec := appendTo(t, c, st, 1)
	now, _ := c.Cut().TableByKey(st.Key)
	meta, err := now.Metadata(ctx)
	require.NoError(t, err)
	require.Equal(t, rec.Time.UnixMilli(), meta.CurrentSnapshot().TimestampMs)
	clean(t, c)
}

// CommitTable is what iceberg-go's own transactions use; RunCatalogTests does not cover it.
func TestCommitTable(t *testing.T) {
	c := openTest(t)
	require.NoError(t, c.CreateNamespace(ctx, ident("ns"), nil))
	tbl, err := c.CreateTable(ctx, ident("ns", "t"), schema)
	require.NoError(t, err)
	tx := tbl.NewTransaction()
	require.NoError(t, tx.SetProperties(iceberg.Properties{"k": "v"}))
	got, err := tx.Commit(ctx)
	require.NoError(t, err)
	require.Equal(t, "v", got.Properties()["k"])
	rec, err := c.Record(ctx, c.CommitSeq())
	require.NoError(t, err)
	require.Equal(t, KindMetadata, rec.Tables[0].Kind)
	require.Nil(t, rec.Tables[0].SnapshotID)

	_, _, err = c.CommitTable(ctx, ident("ns", "t"), []table.Requirement{table.AssertDefaultSpecID(5)}, nil)
	require.ErrorIs(t, err, table.ErrCommitFailed)
	require.ErrorIs(t, err, ErrConflict)
	meta, loc, err := c.CommitTable(ctx, ident("ns", "t"), nil, nil)
	require.NoError(t, err)
	require.Equal(t, got.MetadataLocation(), loc)
	require.Equal(t, "v", meta.Properties()["k"])
	_, _, err = c.CommitTable(ctx, ident("ns", "none"), nil, nil)
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	_, _, err = c.CommitTable(ctx, ident("ns", "made"), []table.Requirement{table.AssertCreate()}, []table.Update{
		table.NewSetLocationUpdate(tbl.Location() + "-made"), table.NewSetPropertiesUpdate(iceberg.Properties{"a": "b"}),
	})
	require.NoError(t, err)
	_, _, err = c.CommitTable(ctx, ident("ns", "made"), []table.Requirement{table.AssertCreate()}, nil)
	require.ErrorIs(t, err, ErrConflict)
	clean(t, c)
}

func TestCommitTransaction(t *testing.T) {
	c := openTest(t)
	require.NoError(t, c.CreateNamespace(ctx, ident("ns"), nil))
	mtx, err := icecat.NewMultiTableTransaction(c)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		tbl, err := c.CreateTable(ctx, ident("ns", name), schema)
		require.NoError(t, err)
		tx := tbl.NewTransaction()
		require.NoError(t, tx.SetProperties(iceberg.Properties{"k": name}))
		require.NoError(t, mtx.AddTransaction(tx))
	}
	seq := c.CommitSeq()
	require.NoError(t, mtx.Commit(ctx))
	require.Equal(t, seq+1, c.CommitSeq(), "two tables, one seq")
	rec, err := c.Record(ctx, seq+1)
	require.NoError(t, err)
	require.Len(t, rec.Tables, 2)
	tc := table.TableCommit{Identifier: ident("ns", "a"), Updates: []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"k": "w"})}}
	bad := table.TableCommit{Identifier: ident("ns", "b"), Requirements: []table.Requirement{table.AssertDefaultSpecID(9)}}
	require.ErrorIs(t, c.CommitTransaction(ctx, []table.TableCommit{tc, bad}), table.ErrCommitFailed)
	require.Equal(t, seq+1, c.CommitSeq())
	require.ErrorIs(t, c.CommitTransaction(ctx, nil), icecat.ErrEmptyCommitList)
	require.ErrorIs(t, c.CommitTransaction(ctx, []table.TableCommit{{}}), icecat.ErrMissingIdentifier)
	clean(t, c)
}

func TestRenameListNamespaces(t *testing.T) {
	c := openTest(t)
	for _, ns := range []table.Identifier{ident("a"), ident("a", "b"), ident("a", "b", "c"), ident("ab"), ident("z.z")} {
		require.NoError(t, c.CreateNamespace(ctx, ns, nil))
	}
	for _, id := range []table.Identifier{ident("a", "t1"), ident("a", "t2"), ident("a", "b", "t3"), ident("ab", "t4"), ident("z.z", "Ünï \"x\"/..")} {
		_, err := c.CreateTable(ctx, id, schema)
		require.NoError(t, err)
	}
	list := func(ns ...string) (names []string) {
		for id, err := range c.ListTables(ctx, ns) {
			require.NoError(t, err)
			names = append(names, id[len(id)-1])
		}
		return names
	}
	require.Equal(t, []string{"t1", "t2"}, list("a"))
	require.Equal(t, []string{"t3"}, list("a", "b"))
	require.Empty(t, list("a", "b", "c"))
	for _, err := range c.ListTables(ctx, ident("nope")) {
		require.ErrorIs(t, err, icecat.ErrNoSuchNamespace)
	}
	top, err := c.ListNamespaces(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, []table.Identifier{{"a"}, {"ab"}, {"z.z"}}, top)
	below, err := c.ListNamespaces(ctx, ident("a"))
	require.NoError(t, err)
	require.Equal(t, []table.Identifier{{"a", "b"}}, below)

	before, _ := c.Cut().Table(ident("a", "t1"))
	seq := c.CommitSeq()
	moved, err := c.RenameTable(ctx, ident("a", "t1"), ident("a", "b", "c", "t9"))
	require.NoError(t, err)
	require.Equal(t, ident("a", "b", "c", "t9"), moved.Identifier())
	after, ok := c.Cut().TableByKey(before.Key)
	require.True(t, ok)
	require.Equal(t, before.OID, after.OID)
	same, ok := c.Cut().TableByOID(before.OID)
	require.True(t, ok)
	require.Same(t, after, same)
	_, err = c.LoadTable(ctx, ident("a", "t1"))
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	_, err = c.RenameTable(ctx, ident("a", "t2"), ident("ab", "t4"))
	require.ErrorIs(t, err, icecat.ErrTableAlreadyExists)
	rec, err := c.Record(ctx, seq+1)
	require.NoError(t, err)
	require.Equal(t, KindRename, rec.Tables[0].Kind)
	require.Equal(t, ident("a", "t1"), rec.Tables[0].OldIdent)

	// Two tables swap their names in one request, through a third name.
	commit(t, c, RenameTable{From: ident("a", "t2"), To: ident("a", "tmp")}, RenameTable{From: ident("ab", "t4"), To: ident("a", "t2")}, RenameTable{From: ident("a", "tmp"), To: ident("ab", "t4")})
	x, err := c.Cut().Table(ident("a", "t2"))
	require.NoError(t, err)
	y, err := c.Cut().Table(ident("ab", "t4"))
	require.NoError(t, err)
	require.NotEqual(t, x.Key, y.Key)
	require.Equal(t, 5, c.Cut().NumTables())

	past, err := c.CutAt(ctx, seq)
	require.NoError(t, err)
	_, err = past.Table(ident("a", "t1"))
	require.NoError(t, err)
	require.ErrorIs(t, c.DropNamespace(ctx, ident("a")), icecat.ErrNamespaceNotEmpty)
	clean(t, c)
}

func TestObjects(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	commit(t, c, CreateNamespace{Ident: ident("s")}, CreateNamespace{Ident: ident("s", "x")})
	put := func(ns table.Identifier, name, body string, fresh bool) *Record {
		return commit(t, c, PutObject{Object: Object{Kind: "view", Namespace: ns, Name: name, Payload: []byte(body)}, MustNotExist: fresh})
	}
	r1 := put(ident("s"), "v", "select 1", true)
	require.Equal(t, KindView, r1.Tables[0].Kind)
	v1, err := c.Cut().Object("view", ident("s"), "v")
	require.NoError(t, err)
	r2 := put(ident("s"), "v", "select 2", false)
	put(ident("s", "x"), "w", "select 3", true)
	v2, err := c.Cut().Object("view", ident("s"), "v")
	require.NoError(t, err)
	require.Equal(t, v1.OID, v2.OID, "replace keeps the OID")
	require.Equal(t, r2.Seq, v2.ChangedSeq)
	_, err = c.Commit(ctx, &Request{Changes: []Change{PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: "v"}, MustNotExist: true}}})
	require.ErrorIs(t, err, ErrObjectAlreadyExists)
	_, err = c.Commit(ctx, &Request{Changes: []Change{CreateTable{Ident: ident("s", "v"), Metadata: newMetadata(t, c, ident("s", "v"))}}})
	require.ErrorIs(t, err, icecat.ErrTableAlreadyExists)
	count := func(ns table.Identifier) (n int) {
		for range c.Cut().Objects("view", ns) {
			n++
		}
		return n
	}
	require.Equal(t, 1, count(ident("s")))
	require.Equal(t, 2, count(nil))
	require.ErrorIs(t, c.DropNamespace(ctx, ident("s", "x")), icecat.ErrNamespaceNotEmpty)
	clean(t, c)
	require.NoError(t, c.Close())

	c = openAt(t, Options{Dir: dir, NoSync: true})
	cut, err := c.CutAt(ctx, r1.Seq)
	require.NoError(t, err)
	old, err := cut.Object("view", ident("s"), "v")
	require.NoError(t, err)
	require.Equal(t, "select 1", string(old.Payload))
	commit(t, c, DropObject{"view", ident("s"), "v"})
	_, err = c.Cut().Object("view", ident("s"), "v")
	require.ErrorIs(t, err, ErrNoSuchObject)
	require.Nil(t, c.Cut().ByOID(v1.OID))
	clean(t, c)
}

// Refs: a rollback and a replaced head are one entry with both heads; branches and tags are entries of their own.
func TestRefMoves(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "t")
	first := *appendTo(t, c, st, 1).Tables[0].SnapshotID
	second := *appendTo(t, c, st, 2).Tables[0].SnapshotID
	ref := func(name string, id int64, kind table.RefType) Change {
		return UpdateTable{Key: st.Key, Updates: []table.Update{table.NewSetSnapshotRefUpdate(name, id, kind, 0, 0, 0)}}
	}
	e := commit(t, c, ref("main", first, table.BranchRef)).Tables[0]
	require.Equal(t, KindRef, e.Kind)
	require.Equal(t, first, *e.SnapshotID)
	require.Equal(t, second, *e.ParentID)
	e = commit(t, c, ref("v1", second, table.TagRef)).Tables[0]
	require.Equal(t, KindRef, e.Kind)
	require.Equal(t, "v1", e.Ref)
	require.Nil(t, e.ParentID)
	now, _ := c.Cut().TableByKey(st.Key)
	head, _ := now.SnapshotID()
	require.Equal(t, first, head)
	e = commit(t, c, UpdateTable{Key: st.Key, Updates: []table.Update{table.NewRemoveSnapshotRefUpdate("v1")}}).Tables[0]
	require.Equal(t, KindRef, e.Kind)
	require.Nil(t, e.SnapshotID)
	clean(t, c)
}

// Two snapshots of one table in one request: two entries, in ancestry order, both findable.
func TestTwoSnapshotsInOneRequest(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "t")
	rec := commit(t, c, UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}, UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 2)})
	require.Len(t, rec.Tables, 2)
	require.Equal(t, *rec.Tables[0].SnapshotID, *rec.Tables[1].ParentID)
	for i, e := range rec.Tables {
		got, entry, err := c.CommitEntryBySnapshot(ctx, st.Key, *e.SnapshotID)
		require.NoError(t, err)
		require.Equal(t, rec.Seq, got.Seq)
		require.Equal(t, i, entry)
	}
	_, err := c.CommitBySnapshot(ctx, st.Key, 42)
	require.ErrorIs(t, err, ErrNoSuchCommit)
	clean(t, c)
}

func TestCreateWithRowsRegisterPurge(t *testing.T) {
	c := openTest(t)
	makeTable(t, c, "other")
	id := ident("s", "ctas")
	rec := commit(t, c, CreateTable{Ident: id, Metadata: newMetadata(t, c, id), Build: appendFile(c.FS(), 5)})
	require.Equal(t, KindCreate, rec.Tables[0].Kind)
	require.NotNil(t, rec.Tables[0].SnapshotID)
	require.EqualValues(t, 5, rec.Tables[0].RowsAdded)
	st, err := c.Cut().Table(id)
	require.NoError(t, err)

	// Another catalog adopts the table and goes on with it.
	d := openTest(t)
	commit(t, d, CreateNamespace{Ident: ident("s")})
	_, err = d.RegisterTable(ctx, ident("s", "adopted"), st.MetadataLocation)
	require.NoError(t, err)
	adopted, err := d.Cut().Table(ident("s", "adopted"))
	require.NoError(t, err)
	appendTo(t, d, adopted, 6)
	_, err = d.RegisterTable(ctx, ident("s", "again"), st.MetadataLocation)
	require.ErrorIs(t, err, icecat.ErrTableAlreadyExists)
	clean(t, d)

	meta, err := st.Metadata(ctx)
	require.NoError(t, err)
	require.NoError(t, c.PurgeTable(ctx, id))
	_, err = c.FS().Stat(meta.Location())
	require.Error(t, err)
	clean(t, c)
}

// A waiting request whose context ends leaves the queue and nothing happens; one that was picked up is waited for.
func TestCommitContext(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "t")
	release := hold(t, c, st)
	short, cancel := context.WithCancel(ctx)
	errc := make(chan error, 1)
	go func() {
		_, err := c.Commit(short, &Request{Changes: []Change{CreateNamespace{Ident: ident("late")}}})
		errc <- err
	}()
	require.Eventually(t, func() bool { return waiting(c) == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-errc, context.Canceled)
	require.Zero(t, waiting(c))
	release()
	_, err := c.Cut().Namespace(ident("late"))
	require.ErrorIs(t, err, icecat.ErrNoSuchNamespace)
	_, err = c.Commit(short, &Request{})
	require.ErrorIs(t, err, context.Canceled)
}

// Random requests against a model: names, keys and OIDs agree at every seq, now and read back from the history.
func TestRandomAgainstModel(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	commit(t, c, CreateNamespace{Ident: ident("s")})
	model := map[string]TableKey{}
	history := []map[string]TableKey{{}, {}}
	name := func() string { return fmt.Sprint("t", rng.Intn(8)) }
	for range 150 {
		x, y := name(), name()
		var ch Change
		next := map[string]TableKey{}
		for k, v := range model {
			next[k] = v
		}
		_, hasX := model[x]
		_, hasY := model[y]
		switch rng.Intn(4) {
		case 0:
			meta := newMetadata(t, c, ident("s", x))
			ch = CreateTable{Ident: ident("s", x), Metadata: meta}
			next[x] = keyOf(meta.TableUUID())
			hasX = !hasX
		case 1:
			ch = DropTable{Ident: ident("s", x)}
			delete(next, x)
		case 2:
			ch = RenameTable{From: ident("s", x), To: ident("s", y)}
			next[y] = next[x]
			delete(next, x)
			hasX = hasX && !hasY
		case 3:
			ch = UpdateTable{Ident: ident("s", x), Updates: []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"n": fmt.Sprint(rng.Int())})}}
		}
		_, err := c.Commit(ctx, &Request{Changes: []Change{ch}})
		require.Equal(t, hasX, err == nil, "%T %s %s: %v", ch, x, y, err)
		if err == nil {
			model = next
			history = append(history, next)
		}
	}
	clean(t, c)
	require.NoError(t, c.Close())
	c = openAt(t, Options{Dir: dir, NoSync: true})
	for seq, want := range history {
		cut, err := c.CutAt(ctx, uint64(seq))
		require.NoError(t, err)
		got := map[string]TableKey{}
		for st := range cut.AllTables() {
			got[st.Ident[1]] = st.Key
			_, err := st.Metadata(ctx)
			require.NoError(t, err)
		}
		require.Equal(t, want, got, "seq %d", seq)
	}
	clean(t, c)
}

// The bounds of a store with small transactions split a queue into several groups and refuse what can never fit.
func TestStoreLimits(t *testing.T) {
	dir, err := resolveDir(t.TempDir())
	require.NoError(t, err)
	s, err := openStore(dir, true)
	require.NoError(t, err)
	c, err := open(ctx, tinyStore{s}, dir, Options{NoSync: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	commit(t, c, CreateNamespace{Ident: ident("s")})
	big := make([]Change, 0, 80)
	for i := range 80 {
		big = append(big, CreateNamespace{Ident: ident("s", fmt.Sprint(i))})
	}
	_, err = c.Commit(ctx, &Request{Changes: big})
	require.ErrorIs(t, err, ErrInvalidRequest)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if _, err := c.Commit(ctx, &Request{Changes: []Change{CreateNamespace{Ident: ident("s", fmt.Sprint("n", i))}}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 61, c.CommitSeq())
	clean(t, c)
}

type tinyStore struct{ store.Store }

func (tinyStore) Limits() store.Limits { return store.Limits{Ops: 128, Bytes: 3 << 19} }
