package catalog

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

func makeFeed(t *testing.T, c *Catalog, name string, shards int, tables ...TableKey) *Feed {
	t.Helper()
	f, err := NewFeed(name, tables, c.CommitSeq(), time.Hour, shards)
	require.NoError(t, err)
	changeFeed(t, c, name, func(*Feed, time.Time) (*Feed, error) { return f, nil })
	f, err = c.Feed(name)
	require.NoError(t, err)
	return f
}

func changeFeed(t *testing.T, c *Catalog, name string, change func(*Feed, time.Time) (*Feed, error)) {
	t.Helper()
	rec, err := c.Commit(ctx, &Request{Changes: []Change{ChangeFeed{Name: name, Change: change}}})
	require.NoError(t, err)
	require.Nil(t, rec, "a feed takes no seq")
}

func leaseTo(t *testing.T, c *Catalog, name string, shard int, to uint64, holder string) FeedLease {
	t.Helper()
	var lease *FeedLease
	changeFeed(t, c, name, func(f *Feed, now time.Time) (g *Feed, err error) {
		g, lease, err = f.Lease(shard, to, holder, now, time.Minute)
		return g, err
	})
	return *lease
}

func ack(name string, l FeedLease) Change {
	return ChangeFeed{Name: name, Change: func(f *Feed, _ time.Time) (*Feed, error) { return f.Acknowledge(l.Window, l.Token) }}
}

// A feed's acknowledgement and a table's snapshot are one commit: both or neither, and it survives.
func TestFeedAcknowledgedWithCommit(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)
	st := makeTable(t, c, "orders")
	makeFeed(t, c, "f", 1)
	seq := appendTo(t, c, st, 1).Seq
	l := leaseTo(t, c, "f", 0, seq, "a")
	require.EqualValues(t, 1, l.Window)

	// Lost races keep both from happening: the lease is stale, or the other change fails.
	stale := l
	stale.Token = "another"
	_, err = c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}, ack("f", stale)}})
	require.ErrorIs(t, err, ErrFeedFenced)
	require.Equal(t, seq, c.CommitSeq())
	_, err = c.Commit(ctx, &Request{Changes: []Change{ack("f", l), DropTable{Ident: ident("s", "none")}}})
	require.Error(t, err)
	f, err := c.Feed("f")
	require.NoError(t, err)
	require.Equal(t, seq-1, f.Position())

	rec := commit(t, c, UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}, ack("f", l))
	require.Equal(t, seq+1, rec.Seq)
	_, err = c.Commit(ctx, &Request{Changes: []Change{ack("f", l)}})
	require.ErrorIs(t, err, ErrFeedFenced, "once")
	second := leaseTo(t, c, "f", 0, rec.Seq, "b")
	clean(t, c)
	before, err := c.Feed("f")
	require.NoError(t, err)
	require.NoError(t, c.Close())

	c = openAt(t, Options{Dir: dir})
	f, err = c.Feed("f")
	require.NoError(t, err)
	require.Equal(t, before, f)
	require.Equal(t, seq, f.Position())
	commit(t, c, UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}, ack("f", second))
	changeFeed(t, c, "f", func(*Feed, time.Time) (*Feed, error) { return nil, nil })
	_, err = c.Feed("f")
	require.ErrorIs(t, err, ErrNoSuchFeed)
	clean(t, c)
}

func TestFeedLeases(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f, err := NewFeed("f", nil, 10, time.Hour, 2)
	require.NoError(t, err)
	f1, a, err := f.Lease(0, 20, "a", now, time.Minute)
	require.NoError(t, err)
	_, _, err = f1.Lease(0, 30, "b", now.Add(30*time.Second), time.Minute)
	var leased *FeedLeasedError
	require.ErrorAs(t, err, &leased)
	require.Equal(t, now.Add(time.Minute), leased.Expires)
	f2, again, err := f1.Lease(0, 30, "a", now.Add(30*time.Second), time.Minute)
	require.NoError(t, err)
	require.Equal(t, a.Token, again.Token)
	require.EqualValues(t, 20, again.To, "the window stays what it was")
	require.Equal(t, now.Add(90*time.Second), again.Expires)
	f3, b, err := f2.Lease(1, 30, "b", now, time.Minute)
	require.NoError(t, err, "shards are leased on their own")
	f4, err := f3.Acknowledge(b.Window, b.Token)
	require.NoError(t, err)
	require.EqualValues(t, 10, f4.Position(), "the slowest shard's")
	require.EqualValues(t, 30, f4.Shards[1].Position)

	// An expired lease is good until somebody takes over.
	late, err := f4.Acknowledge(a.Window, a.Token)
	require.NoError(t, err)
	require.EqualValues(t, 20, late.Position())
	f5, c, err := f4.Lease(0, 40, "c", now.Add(2*time.Minute), time.Minute)
	require.NoError(t, err)
	require.NotEqual(t, a.Token, c.Token)
	_, err = f5.Acknowledge(a.Window, a.Token)
	require.ErrorIs(t, err, ErrFeedFenced)

	// A session that ends lets others in, and may still be acknowledged.
	f6 := f5.Release(now.Add(2*time.Minute), func(h string) bool { return h == "c" })
	_, err = f6.Acknowledge(c.Window, c.Token)
	require.NoError(t, err)
	_, _, err = f6.Lease(0, 40, "d", now.Add(2*time.Minute), time.Minute)
	require.NoError(t, err)
	require.Same(t, f5, f5.Release(now.Add(2*time.Minute), func(string) bool { return false }))

	lost := f6.Lose()
	_, _, err = lost.Lease(0, 40, "d", now, time.Minute)
	require.ErrorIs(t, err, ErrFeedLost)
	_, err = lost.Acknowledge(c.Window, c.Token)
	require.ErrorIs(t, err, ErrFeedFenced)
	_, _, err = lost.Seek(50).Lease(0, 60, "d", now, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 10, f.Position(), "feeds are not changed in place")
}

// A quiet request whose store transaction fails is told so, and did not happen.
func TestFeedChangeFails(t *testing.T) {
	hooks := &storeio.Hooks{}
	c := openAt(t, Options{Dir: t.TempDir(), FS: storeio.NewFS(storeio.Options{Hooks: hooks})})
	makeFeed(t, c, "f", 1)
	failed := errors.New("disk")
	hooks.Before = func(op storeio.Op, _ string) error {
		if op == storeio.OpStore {
			return failed
		}
		return nil
	}
	_, err := c.Commit(ctx, &Request{Changes: []Change{ChangeFeed{Name: "f", Change: func(f *Feed, _ time.Time) (*Feed, error) { return f.Seek(0).Lose(), nil }}}})
	require.ErrorIs(t, err, failed)
	hooks.Before = nil
	f, err := c.Feed("f")
	require.NoError(t, err)
	require.False(t, f.Lost)
}

// What a trimmed log keeps is every cut from its first seq on.
func TestTrimLog(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	orders, old := makeTable(t, c, "orders"), makeTable(t, c, "old")
	quiet := makeTable(t, c, "quiet") // unchanged since before the trim
	quietAt := appendTo(t, c, quiet, 1).Seq
	for range 100 {
		appendTo(t, c, orders, 1)
	}
	commit(t, c, PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: "v", Payload: []byte("1")}})
	commit(t, c, PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: "v", Payload: []byte("2")}})
	commit(t, c, DropTable{Ident: old.Ident})
	for range 50 {
		appendTo(t, c, orders, 1)
	}
	at := c.CommitSeq() - 20
	want, err := c.CutAt(ctx, at)
	require.NoError(t, err)
	then, err := want.Table(orders.Ident)
	require.NoError(t, err)

	n, err := c.TrimLog(ctx, at)
	require.NoError(t, err)
	require.EqualValues(t, at-1, n)
	require.Equal(t, at, c.OldestSeq())
	seq := c.CommitSeq()
	clean(t, c)
	require.NoError(t, c.Close())

	c = openAt(t, Options{Dir: dir, NoSync: true})
	require.Equal(t, seq, c.CommitSeq())
	require.Equal(t, at, c.OldestSeq())
	got, err := c.CutAt(ctx, at)
	require.NoError(t, err)
	now, err := got.Table(orders.Ident)
	require.NoError(t, err)
	require.Equal(t, then.snapshotID, now.snapshotID)
	q, err := got.Table(quiet.Ident)
	require.NoError(t, err)
	require.Equal(t, quietAt, q.ChangedSeq)
	v, err := got.Object("view", ident("s"), "v")
	require.NoError(t, err)
	require.Equal(t, []byte("2"), v.Payload)
	_, err = got.Table(old.Ident)
	require.Error(t, err)

	_, err = c.CutAt(ctx, at-1)
	require.ErrorIs(t, err, ErrExpired)
	_, err = c.CommitsSince(ctx, at-2, 0)
	require.ErrorIs(t, err, ErrExpired)
	recs, err := c.CommitsSince(ctx, at-1, 0)
	require.NoError(t, err)
	require.Equal(t, at, recs[0].Seq)
	require.EqualValues(t, seq-at+1, len(recs))
	clean(t, c)

	// What the store holds follows what is retained: one version of a table besides those of the log.
	keys := map[byte]int{}
	err = store.All(ctx, c.store, store.RangeRequest{KeysOnly: true}, func(p store.Pair) error {
		keys[p.Key[0]]++
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, len(recs), keys[familyRecord])
	require.Less(t, keys[familyHistory], len(recs)+8)
}

// Readers of a log that is trimmed under them get the right answer or ErrExpired, never damage and never a wrong answer.
func TestTrimUnderReaders(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "orders")
	const commits = 300
	heads := map[uint64]int64{}
	times := map[uint64]time.Time{}
	for range commits {
		rec := appendTo(t, c, st, 1)
		heads[rec.Seq], times[rec.Seq] = *rec.Tables[0].SnapshotID, rec.Time
	}
	newest := c.CommitSeq()
	done := make(chan struct{})
	var wg sync.WaitGroup
	read := map[string]func(seq uint64) error{
		"cut": func(seq uint64) error {
			cut, err := c.CutAt(ctx, seq)
			if err != nil {
				return err
			}
			now, err := cut.Table(st.Ident)
			if err != nil {
				return fmt.Errorf("wrong cut: %s", err)
			}
			if id, _ := now.SnapshotID(); id != heads[seq] {
				return fmt.Errorf("head %d at %d", id, seq)
			}
			return nil
		},
		"table": func(seq uint64) error {
			head, err := c.SnapshotAtSeq(ctx, st.Key, seq)
			if err == nil && (head.SnapshotID == nil || *head.SnapshotID != heads[seq]) {
				return fmt.Errorf("wrong head at %d", seq)
			}
			return err
		},
		"since": func(seq uint64) error {
			recs, err := c.CommitsSince(ctx, seq-1, 50)
			if err == nil && recs[0].Seq != seq {
				return fmt.Errorf("seq %d where %d is due", recs[0].Seq, seq)
			}
			return err
		},
		"of": func(seq uint64) error {
			recs, err := c.CommitsOf(ctx, st.Key, seq-1, newest, 50)
			if err == nil && (recs[0].Seq != seq || len(recs) != min(50, int(newest-seq+1))) {
				return fmt.Errorf("%d commits of the table from seq %d", len(recs), seq)
			}
			return err
		},
		"time": func(seq uint64) error {
			got, err := c.SeqAt(ctx, times[seq])
			if err == nil && got != seq {
				return fmt.Errorf("seq %d at the time of %d", got, seq)
			}
			return err
		},
		"snapshot": func(seq uint64) error {
			rec, err := c.CommitBySnapshot(ctx, st.Key, heads[seq])
			if err == nil && rec.Seq != seq {
				return fmt.Errorf("seq %d of the snapshot of %d", rec.Seq, seq)
			}
			return err
		},
	}
	for name, f := range read {
		wg.Go(func() {
			for seq := newest; ; seq-- {
				if _, ok := heads[seq]; !ok {
					seq = newest
				}
				if err := f(seq); err != nil && !errors.Is(err, ErrExpired) {
					t.Errorf("%s: %s", name, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for at := uint64(10); at < newest; at += 7 {
		_, err := c.TrimLog(ctx, at)
		require.NoError(t, err)
	}
	close(done)
	wg.Wait()
	clean(t, c)
}
