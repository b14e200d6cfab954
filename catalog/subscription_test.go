package catalog

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
)

func namespaceN(t *testing.T, c *Catalog, n int) *Record {
	return commit(t, c, CreateNamespace{Ident: ident(fmt.Sprint("n", n))})
}

// No gap and no repetition: subscribers that come in the middle of a stream of commits see every seq behind their cursor.
func TestSubscribeWithoutGap(t *testing.T) {
	c := openTest(t)
	const total = 200
	var wg sync.WaitGroup
	start := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			<-start
			for i := range total / 4 {
				if _, err := c.Commit(ctx, &Request{Changes: []Change{CreateNamespace{Ident: ident(fmt.Sprint("w", w, "-", i))}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 8 {
		wg.Go(func() {
			<-start
			sub := c.SubscribeCommits()
			defer sub.Close()
			for want := sub.Cursor() + 1; want <= total; want++ {
				e, err := sub.Next(ctx)
				if err != nil || e.Lagged || e.Record.Seq != want || sub.Cursor() != want {
					t.Errorf("seq %d: %+v %v", want, e, err)
					return
				}
				if c.CommitSeq() < want {
					t.Errorf("seq %d is not visible yet", want)
				}
			}
		})
	}
	close(start)
	wg.Wait()
}

// A subscriber that does not read loses its ring, not the log; the writer never waits; then it goes on.
func TestLagged(t *testing.T) {
	c := openTest(t)
	slow, fast := c.SubscribeCommits(), c.SubscribeCommits()
	defer slow.Close()
	defer fast.Close()
	for i := range RingSize + 10 {
		namespaceN(t, c, i)
		e, err := fast.Next(ctx)
		require.NoError(t, err)
		require.EqualValues(t, i+1, e.Record.Seq)
	}
	e, err := slow.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, Event{Lagged: true, From: 0, To: RingSize + 10}, e)
	recs, err := c.CommitsSince(ctx, e.From, 0)
	require.NoError(t, err)
	require.Len(t, recs, RingSize+10)
	namespaceN(t, c, 9999)
	e, err = slow.Next(ctx)
	require.NoError(t, err)
	require.EqualValues(t, RingSize+11, e.Record.Seq)
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err = slow.Next(short)
	require.ErrorIs(t, err, context.Canceled)
	slow.Close()
	_, err = slow.Next(ctx)
	require.ErrorIs(t, err, ErrClosed)

	recs, err = c.CommitsSince(ctx, 100, 7)
	require.NoError(t, err)
	require.Len(t, recs, 7)
	require.EqualValues(t, 101, recs[0].Seq)
}

// Without a subscriber a commit allocates nothing for events; with one it does (the guard can fail).
func TestNoListenerAllocatesNothing(t *testing.T) {
	c := openTest(t)
	rec := namespaceN(t, c, 1)
	ops := []store.Op{{Key: recordKey(rec.Seq), Value: rec.encode()}}
	require.Zero(t, testing.AllocsPerRun(100, func() { c.subs.deliver(ops) }))
	sub := c.SubscribeCommits()
	require.NotZero(t, testing.AllocsPerRun(100, func() { c.subs.deliver(ops) }))
	sub.Close()
	require.Zero(t, testing.AllocsPerRun(100, func() { c.subs.deliver(ops) }))
}

// A commit makes the same file operations and store transactions with and without listeners.
func TestListenersCostNoIO(t *testing.T) {
	c := openTest(t)
	st := makeTable(t, c, "t")
	appendTo(t, c, st, 1) // the first has no parent to read
	run := func() (creates, opens, revisions int64) {
		before, revision := c.FS().Counters().Snapshot(), c.store.Revision()
		for range 5 {
			appendTo(t, c, st, 1)
		}
		d := c.FS().Counters().Snapshot().Sub(before)
		return d.Creates, d.Opens, int64(c.store.Revision() - revision)
	}
	creates, opens, revisions := run()
	for range 3 {
		defer c.SubscribeCommits().Close()
	}
	creates2, opens2, revisions2 := run()
	require.Equal(t, []int64{creates, opens, revisions}, []int64{creates2, opens2, revisions2})
	require.EqualValues(t, 5, revisions)
}

// A watch that lost events makes the mirror start over; subscribers are told to read the log.
func TestMirrorReload(t *testing.T) {
	c := openTest(t)
	namespaceN(t, c, 1)
	sub := c.SubscribeCommits()
	defer sub.Close()
	namespaceN(t, c, 2)
	w, err := c.mirror.reload(ctx)
	require.NoError(t, err)
	w.Close()
	e, err := sub.Next(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, e.Record.Seq)
	c.subs.skip(5)
	e, err = sub.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, Event{Lagged: true, From: 2, To: 5}, e)
}
