package changelog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

func (k *kit) head() int64 {
	k.t.Helper()
	st, err := k.cat.Cut().Table(ident)
	require.NoError(k.t, err)
	id, ok := st.SnapshotID()
	require.True(k.t, ok)
	return id
}

func (k *kit) meta() table.Metadata {
	k.t.Helper()
	st, err := k.cat.Cut().Table(ident)
	require.NoError(k.t, err)
	m, err := st.Metadata(k.ctx)
	require.NoError(k.t, err)
	return m
}

// alter commits metadata updates to s.t.
func (k *kit) alter(updates ...table.Update) {
	k.t.Helper()
	st, err := k.cat.Cut().Table(ident)
	require.NoError(k.t, err)
	_, err = k.cat.Commit(k.ctx, &catalog.Request{Changes: []catalog.Change{catalog.UpdateTable{Ident: ident, Key: st.Key, Updates: updates}}})
	require.NoError(k.t, err)
}

func (k *kit) setRef(name string, typ table.RefType, id int64) {
	k.t.Helper()
	k.alter(table.NewSetSnapshotRefUpdate(name, id, typ, -1, -1, -1))
}

func (k *kit) changesErr(from, to changelog.Bound) error {
	k.t.Helper()
	x, err := k.r.Changes(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: from, To: to})
	if err != nil {
		return err
	}
	_, err = tryChanges(x.Batches(k.ctx), x.Columns().Table.NumFields())
	return err
}

// detailOf returns what an error tells the client.
func detailOf(t *testing.T, err error) (detail, hint string) {
	t.Helper()
	var e *changelog.Error
	require.True(t, errors.As(err, &e), "%v", err)
	return e.Detail, e.Hint
}

func r1(id int64, name string) row { return row{id: id, name: str(name)} }

func TestWindows(t *testing.T) {
	k := openKit(t, changelog.Options{})
	before := time.Now().Add(-time.Hour)
	k.createTable(2, true)
	require.Empty(t, k.changes(changelog.Null, changelog.Null), "no snapshot yet")

	c1 := k.append(r1(1, "a"), r1(2, "b"))
	s1 := k.head()
	c2 := k.upsert(r1(2, "B"), r1(3, "c"))
	s2 := k.head()
	c3 := k.deleteKeys(r1(1, ""), r1(9, ""))
	s3 := k.head()

	ins := []string{`INSERT 1|0|"a"|N`, `INSERT 2|0|"b"|N`}
	ups := []string{`UPDATE_BEFORE 2|0|"b"|N`, `UPDATE_AFTER 2|0|"B"|N`, `INSERT 3|0|"c"|N`}
	del := []string{`DELETE 1|0|"a"|N`}
	all := slices.Concat(ins, ups, del)
	for _, c := range []struct {
		from, to changelog.Bound
		want     []string
	}{
		{changelog.Null, changelog.Null, all},
		{changelog.Earliest, changelog.Now, all},
		{changelog.Seq(0), changelog.Seq(c3.Seq), all},
		{changelog.Null, changelog.Seq(c1.Seq), ins},
		{changelog.Seq(c1.Seq), changelog.Seq(c2.Seq), ups},
		{changelog.SnapshotID(s1), changelog.SnapshotID(s2), ups},
		{changelog.SnapshotID(s2), changelog.Null, del},
		{changelog.Null, changelog.SnapshotID(s2), slices.Concat(ins, ups)},
		{changelog.Seq(c2.Seq), changelog.SnapshotID(s3), del},
		{changelog.Timestamp(c1.Time), changelog.Timestamp(c2.Time), ups},
		{changelog.Timestamp(c1.Time), changelog.Timestamp(time.Now().Add(time.Hour)), slices.Concat(ups, del)},
		{changelog.Timestamp(before), changelog.Timestamp(c1.Time.Add(-time.Microsecond)), nil},
		{changelog.Timestamp(before), changelog.Timestamp(c1.Time), ins},
		{changelog.SnapshotID(s2), changelog.SnapshotID(s2), nil},
		{changelog.Seq(c2.Seq), changelog.Seq(c2.Seq), nil},
		{changelog.Now, changelog.Now, nil},
		{changelog.Seq(c1.Seq, 0, 0), changelog.Seq(c1.Seq), ins[1:]},
		{changelog.Seq(c1.Seq, 0, 0), changelog.Seq(c2.Seq, 0, 0), slices.Concat(ins[1:], ups[:1])},
		{changelog.Seq(c1.Seq, 0, 1), changelog.SnapshotID(s2), ups},
		{changelog.Seq(c1.Seq, 0, 0), changelog.SnapshotID(s2), slices.Concat(ins[1:], ups)},
	} {
		require.Equal(t, c.want, briefOrNil(k.changes(c.from, c.to)), "(%s, %s]", c.from, c.to)
	}
	for _, c := range k.changes(changelog.SnapshotID(s1), changelog.SnapshotID(s2)) {
		require.Equal(t, s2, c.snapshot)
		require.Equal(t, int64(c2.Seq), c.seq)
		require.Equal(t, c2.Time.UnixMicro(), c.ts)
	}

	// The statement's cut bounds what is seen.
	cut, err := k.cat.CutAt(k.ctx, c2.Seq)
	require.NoError(t, err)
	require.Equal(t, slices.Concat(ins, ups), brief(k.read(changelog.Request{Cut: cut, Ident: ident})))

	for _, c := range []struct {
		from, to changelog.Bound
		want     error
	}{
		{changelog.SnapshotID(12345), changelog.Null, changelog.ErrUnknown},
		{changelog.Null, changelog.SnapshotID(12345), changelog.ErrUnknown},
		{changelog.Null, changelog.Tag("nope"), changelog.ErrUnknown},
		{changelog.Branch("nope"), changelog.Null, changelog.ErrUnknown},
		{changelog.Null, changelog.Seq(c3.Seq + 1), changelog.ErrUnknown},
		{changelog.Seq(c2.Seq), changelog.Seq(c1.Seq), changelog.ErrFromAfterTo},
		{changelog.Seq(c2.Seq), changelog.Seq(c2.Seq, 0, 0), changelog.ErrFromAfterTo},
		{changelog.Now, changelog.Seq(c1.Seq), changelog.ErrFromAfterTo},
		{changelog.SnapshotID(s2), changelog.SnapshotID(s1), changelog.ErrFromAfterTo},
		{changelog.Timestamp(c2.Time), changelog.Timestamp(c1.Time), changelog.ErrFromAfterTo},
		{changelog.Timestamp(before.Add(time.Minute)), changelog.Timestamp(before), changelog.ErrFromAfterTo},
	} {
		require.ErrorIs(t, k.changesErr(c.from, c.to), c.want, "(%s, %s]", c.from, c.to)
	}
	_, err = k.r.Changes(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: table.Identifier{"s", "nope"}})
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	_, err = k.r.Changes(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: ident, Identifier: []string{"nope"}})
	require.ErrorIs(t, err, changelog.ErrUnknownColumn)
}

func briefOrNil(c []change) []string {
	if len(c) == 0 {
		return nil
	}
	return brief(c)
}

// TestRefs: tags and branches are snapshot bounds; a rollback is one step for log bounds and no path for snapshot bounds.
func TestRefs(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	c1 := k.append(r1(1, "a"))
	s1 := k.head()
	k.setRef("v1", table.TagRef, s1)
	k.append(r1(2, "b"))
	s2 := k.head()
	k.setRef("audit", table.BranchRef, s2)
	require.Equal(t, []string{`INSERT 2|0|"b"|N`}, brief(k.changes(changelog.Tag("v1"), changelog.Branch("audit"))))
	require.ErrorIs(t, k.changesErr(changelog.Null, changelog.Tag("audit")), changelog.ErrUnknown)

	k.setRef(table.MainBranch, table.BranchRef, s1)
	k.append(r1(3, "c"))
	s3 := k.head()
	require.Equal(t, []string{`INSERT 2|0|"b"|N`, `DELETE 2|0|"b"|N`, `INSERT 3|0|"c"|N`},
		brief(k.changes(changelog.Seq(c1.Seq), changelog.Now)))
	require.Equal(t, []string{`INSERT 3|0|"c"|N`}, brief(k.changes(changelog.SnapshotID(s1), changelog.SnapshotID(s3))))
	err := k.changesErr(changelog.SnapshotID(s2), changelog.SnapshotID(s3))
	require.ErrorIs(t, err, changelog.ErrNotAncestor)
	detail, hint := detailOf(t, err)
	require.Contains(t, detail, fmt.Sprint(s1))
	require.Contains(t, hint, "table_changes_net")
	require.Equal(t, []string{`DELETE 2|0|"b"|N`, `INSERT 3|0|"c"|N`}, brief(k.net(changelog.SnapshotID(s2), changelog.SnapshotID(s3))))
	require.Equal(t, []string{`DELETE 3|0|"c"|N`, `INSERT 2|0|"b"|N`}, brief(k.net(changelog.SnapshotID(s3), changelog.Branch("audit"))))
}

func TestStateAt(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	c1 := k.append(r1(1, "a"))
	s1 := k.head()
	k.append(r1(2, "b"))
	s2 := k.head()
	for _, c := range []struct {
		b    changelog.Bound
		want int64
	}{{changelog.Null, s2}, {changelog.Now, s2}, {changelog.Earliest, s1}, {changelog.Seq(c1.Seq), s1}, {changelog.SnapshotID(s1), s1},
		{changelog.Timestamp(c1.Time), s1}, {changelog.Seq(c1.Seq, 0, 0), s1}, {changelog.Seq(1), 0}} {
		st, err := k.r.StateAt(k.ctx, k.cat.Cut(), ident, c.b)
		require.NoError(t, err, c.b)
		if c.want == 0 {
			require.Nil(t, st.Snapshot, c.b)
			continue
		}
		require.Equal(t, c.want, *st.Snapshot, c.b)
	}
	id, err := k.r.SnapshotAt(k.ctx, k.cat.Cut(), ident, c1.Time.Add(-time.Hour))
	require.NoError(t, err)
	require.Nil(t, id)
}

// TestExpired: a window over an expired snapshot names the oldest that is left; net needs only the ends.
func TestExpired(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	c1 := k.append(r1(1, "a"))
	s1 := k.head()
	k.setRef("keep", table.TagRef, s1)
	c2 := k.append(r1(2, "b"))
	k.append(r1(3, "c"))
	s3 := k.head()
	k.append(r1(4, "d"))
	k.alter(table.NewRemoveSnapshotsUpdate([]int64{snapshotOf(c2)}, false))

	for _, b := range []changelog.Bound{changelog.Null, changelog.Seq(c1.Seq), changelog.SnapshotID(s1), changelog.SnapshotID(snapshotOf(c2)), changelog.Seq(c2.Seq)} {
		err := k.changesErr(b, changelog.Now)
		require.ErrorIs(t, err, changelog.ErrExpired, b)
		detail, hint := detailOf(t, err)
		require.Contains(t, detail, fmt.Sprint(s3), b)
		require.Contains(t, hint, "table_changes_net")
	}
	require.Equal(t, []string{`INSERT 4|0|"d"|N`}, brief(k.changes(changelog.Earliest, changelog.Now)))
	require.Equal(t, []string{`INSERT 2|0|"b"|N`, `INSERT 3|0|"c"|N`, `INSERT 4|0|"d"|N`},
		brief(k.net(changelog.SnapshotID(s1), changelog.Now)))
	st, err := k.r.StateAt(k.ctx, k.cat.Cut(), ident, changelog.Earliest)
	require.NoError(t, err)
	require.Equal(t, s3, *st.Snapshot)
}

func snapshotOf(rec *catalog.Record) int64 { return *rec.Tables[0].SnapshotID }

// TestRegistered: snapshots that predate the catalog come first, without seq, with their own time.
func TestRegistered(t *testing.T) {
	old := openKit(t, changelog.Options{})
	old.createTable(2, true)
	old.append(r1(1, "a"))
	first := old.meta().CurrentSnapshot().TimestampMs
	time.Sleep(3 * time.Millisecond)
	old.append(r1(2, "b"))
	st, err := old.cat.Cut().Table(ident)
	require.NoError(t, err)

	k := openKit(t, changelog.Options{})
	_, err = k.cat.Commit(k.ctx, &catalog.Request{Changes: []catalog.Change{catalog.RegisterTable{Ident: ident, MetadataLocation: st.MetadataLocation}}})
	require.NoError(t, err)
	reg := k.cat.CommitSeq()
	got := k.changes(changelog.Null, changelog.Now)
	require.Equal(t, []string{`INSERT 1|0|"a"|N`, `INSERT 2|0|"b"|N`}, brief(got))
	for _, c := range got {
		require.Zero(t, c.seq)
		require.Zero(t, c.num)
	}
	require.Equal(t, first*1000, got[0].ts)
	require.Equal(t, got[1:], k.changes(changelog.SnapshotID(got[0].snapshot), changelog.Now))
	require.Equal(t, got[1:], k.changes(changelog.Timestamp(time.UnixMilli(first)), changelog.Now))
	require.Empty(t, k.changes(changelog.Seq(reg), changelog.Now))
}

// TestReplaceMismatch: a replace snapshot that lost rows is read as an overwrite, with a warning (L5).
func TestReplaceMismatch(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(1, "a"))
	m := k.meta()
	list := m.CurrentSnapshot().ManifestList
	c2 := k.append(r1(2, "b"))
	m = k.meta()
	head := m.CurrentSnapshot()
	k.alter(table.NewAddSnapshotUpdate(&table.Snapshot{SnapshotID: 4711, ParentSnapshotID: &head.SnapshotID, SequenceNumber: m.LastSequenceNumber() + 1,
		TimestampMs: head.TimestampMs + 1, ManifestList: list, Summary: &table.Summary{Operation: table.OpReplace}, SchemaID: head.SchemaID}),
		table.NewSetSnapshotRefUpdate(table.MainBranch, 4711, table.BranchRef, -1, -1, -1))
	x, err := k.r.Changes(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: changelog.Seq(c2.Seq)})
	require.NoError(t, err)
	require.Equal(t, []string{`DELETE 2|0|"b"|N`}, brief(readChanges(t, x.Batches(k.ctx), 4)))
	require.Len(t, x.Warnings(), 1)
	require.Contains(t, x.Warnings()[0], "4711")
}

// TestSchemaEvolution: columns follow their field ids through rename, drop, add and promotion.
func TestSchemaEvolution(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(1, "a"), r1(2, "b"))
	s1 := k.head()
	next := iceberg.NewSchemaWithIdentifiers(1, []int{1, 2},
		iceberg.NestedField{ID: 5, Name: "extra", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "part", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 3, Name: "label", Type: iceberg.PrimitiveTypes.String},
	)
	k.alter(table.NewAddSchemaUpdate(next), table.NewSetCurrentSchemaUpdate(1))
	k.upsert(row{id: 2, name: nil})

	cols, err := k.r.Columns(k.ctx, k.cat.Cut(), ident)
	require.NoError(t, err)
	var got []string
	for _, f := range cols.Schema.Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	require.Equal(t, []string{"extra utf8", "id int64", "part int64", "label utf8", "_change_type utf8", "_change_ordinal int32",
		"_commit_snapshot_id int64", "_commit_seq int64", "_commit_timestamp timestamp[us, tz=UTC]", "_change_row int64"}, got)
	require.Equal(t, []string{`INSERT N|1|0|"a"`, `INSERT N|2|0|"b"`, `UPDATE_BEFORE N|2|0|"b"`, `UPDATE_AFTER N|2|0|N`},
		brief(k.changes(changelog.Null, changelog.Now)))
	// Up to the old snapshot the old schema is asked for.
	require.Equal(t, []string{`INSERT 1|0|"a"|N`, `INSERT 2|0|"b"|N`}, brief(k.changes(changelog.Null, changelog.SnapshotID(s1))))
	// A schema taken at Describe stays.
	at, err := k.r.ColumnsAt(k.ctx, k.cat.Cut(), ident, changelog.SnapshotID(s1))
	require.NoError(t, err)
	x, err := k.r.Changes(k.ctx, changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: changelog.SnapshotID(s1), Schema: at.Table})
	require.NoError(t, err)
	require.Equal(t, []string{`UPDATE_BEFORE 2|0|"b"|N`, `UPDATE_AFTER 2|0|N|N`}, brief(readChanges(t, x.Batches(k.ctx), 4)))
}

func TestReservedColumn(t *testing.T) {
	k := openKit(t, changelog.Options{})
	_, err := k.wh.CreateTable(k.ctx, warehouse.CreateTable{Ident: ident, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "_change_type", Type: iceberg.PrimitiveTypes.String})})
	require.NoError(t, err)
	_, err = k.r.Columns(k.ctx, k.cat.Cut(), ident)
	require.ErrorIs(t, err, changelog.ErrReservedColumn)
}

// TestIdentifierOverride: pairing by columns the caller names.
func TestIdentifierOverride(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, false)
	k.append(r1(1, "a"), r1(2, "b"), r1(2, "c"))
	c2 := k.do(func(tt *warehouse.TxTable) error {
		if _, err := tt.Overwrite(k.ctx); err != nil {
			return err
		}
		return tt.Append(k.ctx, batch(tt.ArrowSchema(), []row{r1(1, "x"), r1(2, "b"), r1(2, "d"), r1(3, "e"), r1(3, "f")}))
	})
	got := k.read(changelog.Request{Cut: k.cat.Cut(), Ident: ident, From: changelog.Seq(c2.Seq - 1), Identifier: []string{"id"}})
	require.Equal(t, []string{`UPDATE_BEFORE 1|0|"a"|N`, `UPDATE_AFTER 1|0|"x"|N`, `UPDATE_BEFORE 2|0|"c"|N`, `UPDATE_AFTER 2|0|"d"|N`,
		`INSERT 3|0|"e"|N`, `INSERT 3|0|"f"|N`}, brief(got))
	require.Equal(t, []string{`DELETE 1|0|"a"|N`, `DELETE 2|0|"c"|N`, `INSERT 1|0|"x"|N`, `INSERT 2|0|"d"|N`, `INSERT 3|0|"e"|N`, `INSERT 3|0|"f"|N`},
		brief(k.changes(changelog.Seq(c2.Seq-1), changelog.Null)))
}

// TestLostFiles: a missing file and a damaged one are errors with their path, never rows left out.
func TestLostFiles(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(1, "a"))
	c2 := k.append(r1(2, "b"))
	plan, err := k.r.Plan(k.ctx, ident, changelog.Seq(c2.Seq-1), changelog.Null)
	require.NoError(t, err)
	require.Equal(t, 1, plan.Steps)
	require.Equal(t, 1, plan.FilesOpened)
	require.Equal(t, 2, plan.FilesConsidered)
	require.Len(t, plan.Added, 1)
	require.Positive(t, plan.BytesRead)
	path := storeio.PathOf(plan.Added[0].Path)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	fresh := func() *changelog.Reader { // caches of files are exact: a lost file shows in a new process
		return changelog.New(changelog.Options{Catalog: k.cat, Live: liveset.NewCache(liveset.Options{FS: storeio.NewFS(storeio.Options{})})})
	}
	damaged := append([]byte(nil), whole...)
	for i := 4; i < len(damaged)-8; i++ {
		damaged[i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(path, damaged, 0o644))
	k.r = fresh()
	var broken *liveset.DamagedError
	require.ErrorAs(t, k.changesErr(changelog.Null, changelog.Now), &broken)
	require.Contains(t, broken.Path, path)
	require.NoError(t, os.Remove(path))
	k.r = fresh()
	require.ErrorIs(t, k.changesErr(changelog.Null, changelog.Now), liveset.ErrMissingFile)
}

// TestStream: push, no gap, one window a commit, resumption by cursor.
func TestStream(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(1, "a"))
	ctx, cancel := context.WithTimeout(k.ctx, 30*time.Second)
	defer cancel()
	var cursor changelog.ConsumerCursor
	n := 0
	for b, err := range k.r.Stream(ctx, ident, changelog.Earliest, changelog.StreamOptions{}) {
		require.NoError(t, err)
		rec := b.Records[0]
		require.Equal(t, int64(1), rec.NumRows())
		n++
		require.Equal(t, int64(n), rec.Column(0).(*array.Int64).Value(0))
		if cursor = cursor.After(b); n == 3 {
			break
		}
		k.append(r1(int64(n)+1, "x"))
	}
	require.Equal(t, k.head(), *cursor.SnapshotID)
	k.append(r1(4, "late"))
	require.Equal(t, []string{`INSERT 4|0|"late"|N`}, brief(k.changes(cursor.Bound(), changelog.Now)))

	// Without from only commits to come are delivered.
	done := make(chan string, 1)
	go func() {
		for b, err := range k.r.Stream(ctx, ident, changelog.Null, changelog.StreamOptions{}) {
			if err != nil {
				done <- err.Error()
				return
			}
			done <- rowText(b.Records[0], 0, 4)
			return
		}
	}()
	for i := int64(5); ; i++ {
		k.append(r1(i, "next"))
		select {
		case got := <-done:
			require.Contains(t, got, "next")
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestProject: whole rows are collapsed, then columns are left out.
func TestProject(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(3, true)
	k.append(r1(1, "a"))
	k.upsert(r1(1, "b"))
	b, err := k.r.Read(k.ctx, ident, changelog.Null, changelog.Now)
	require.NoError(t, err)
	require.Equal(t, int64(3), b.Rows())
	net, err := b.Collapse()
	require.NoError(t, err)
	p, err := net.Project("name")
	require.NoError(t, err)
	require.Equal(t, int64(1), p.Rows())
	require.Equal(t, []string{"name", "_change_type", "_change_ordinal", "_commit_snapshot_id", "_commit_seq", "_commit_timestamp", "_change_row", "_row_id"},
		fieldNames(p.Columns))
	require.Equal(t, "b", p.Records[0].Column(0).ValueStr(0))
	_, err = net.Project("nope")
	require.ErrorIs(t, err, changelog.ErrUnknownColumn)
}

func fieldNames(c *changelog.Columns) []string {
	var out []string
	for _, f := range c.Schema.Fields() {
		out = append(out, f.Name)
	}
	return out
}
