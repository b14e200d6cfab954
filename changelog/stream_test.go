package changelog_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/warehouse"
)

// window is a batch as the tests compare it.
type window struct {
	From, To uint64
	Rows     []string
}

func windowOf(b *changelog.Batch) window {
	w := window{b.From.Seq, b.To.Seq, nil}
	for _, rec := range b.Records {
		w.Rows = append(w.Rows, brief(batchChanges(rec, b.Columns.Table.NumFields()))...)
	}
	return w
}

// TestStreamNoGap: commits that fall between the subscription and the look at the current state, and between that and the first wait, come
// once each.
func TestStreamNoGap(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	first := k.append(r1(1, "a")).Seq
	var between uint64
	k.r.SetStreamHooks(func() { between = k.append(r1(2, "b")).Seq }, nil)
	var got []window
	for b, err := range k.r.Stream(k.ctx, ident, changelog.Seq(first), changelog.StreamOptions{}) {
		require.NoError(t, err)
		got = append(got, windowOf(b))
		if len(got) == 1 { // the stream has seen the state and does not wait yet
			k.append(r1(3, "c"))
			k.append(r1(4, "d"))
		}
		if len(got) == 3 {
			break
		}
	}
	require.Equal(t, []window{
		{first, between, []string{`INSERT 2|0|"b"|N`}},
		{between, between + 1, []string{`INSERT 3|0|"c"|N`}},
		{between + 1, between + 2, []string{`INSERT 4|0|"d"|N`}},
	}, got)

	// Without from, what was there when the stream looked first is the past.
	next := make(chan window, 1)
	ready := make(chan struct{})
	k.r.SetStreamHooks(func() { k.append(r1(5, "e")); close(ready) }, nil)
	go func() {
		for b, err := range k.r.Stream(k.ctx, ident, changelog.Null, changelog.StreamOptions{}) {
			if err == nil {
				next <- windowOf(b)
			}
			return
		}
	}()
	<-ready
	// The stream may look before or after this commit: it comes in the next one's place or before it, never together with "e".
	k.append(r1(6, "f"))
	for seq := int64(7); ; seq++ {
		select {
		case w := <-next:
			require.Len(t, w.Rows, 1)
			require.NotContains(t, w.Rows[0], `"e"`)
			return
		case <-time.After(10 * time.Millisecond):
			k.append(r1(seq, "g"))
		}
	}
}

// TestStreamWakesOnce: a stream that waits is woken once a commit, reads the data files of the commit and no metadata file.
func TestStreamWakesOnce(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(0, "a"))
	var woken atomic.Int64
	ready := make(chan struct{})
	k.r.SetStreamHooks(func() { close(ready) }, func() { woken.Add(1) })
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	batches := make(chan window)
	go func() {
		defer close(batches)
		for b, err := range k.r.Stream(ctx, ident, changelog.Seq(0), changelog.StreamOptions{}) {
			if err != nil {
				return
			}
			batches <- windowOf(b)
		}
	}()
	<-batches
	const commits = 20
	before := k.fs.Counters().Snapshot()
	for i := range int64(commits) {
		seq := k.append(r1(i+1, "x")).Seq
		require.Equal(t, window{seq - 1, seq, []string{fmt.Sprintf(`INSERT %d|0|"x"|N`, i+1)}}, <-batches)
	}
	opened := k.fs.Counters().Snapshot().Sub(before).Opens
	require.EqualValues(t, commits, woken.Load(), "no polling: one wake-up a commit")
	require.LessOrEqual(t, opened, int64(commits), "of each commit its one data file is opened: manifests and metadata are in memory")
	cancel()
	for range batches {
	}
}

// quick commits n times without touching a table, 32 at once.
func (k *kit) quick(n int) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range 32 {
		wg.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				_, err := k.cat.Commit(k.ctx, &catalog.Request{Changes: []catalog.Change{
					catalog.UpdateNamespace{Ident: table.Identifier{"s"}, Updates: iceberg.Properties{"n": fmt.Sprint(i)}}}})
				if err != nil {
					k.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestStreamLagged: a consumer that sleeps for 10,000 commits keeps no writer waiting and no commit in memory, gets what it missed in one
// window, and goes on commit by commit.
func TestStreamLagged(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	start := k.append(r1(0, "a")).Seq
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var got []window
	for b, err := range k.r.Stream(k.ctx, ident, changelog.Seq(start-1), changelog.StreamOptions{}) {
		require.NoError(t, err)
		got = append(got, windowOf(b))
		switch len(got) {
		case 1: // it sleeps here
			k.append(r1(1, "x"))
			k.quick(2000)
			before := heap()
			for i := range int64(8) {
				k.upsert(r1(1, "x"), r1(i+2, "x"))
				k.quick(1000)
			}
			grown := heap() - before
			t.Logf("heap grew by %d KiB", grown>>10)
			require.Less(t, grown, int64(2<<20), "what a sleeping consumer costs")
		case 2:
			require.Len(t, b.Records, 1, "rows of small commits share a batch")
			k.append(r1(20, "y"))
			k.append(r1(21, "y"))
		}
		if len(got) == 4 {
			break
		}
	}
	missed := window{start, start + 10_009, nil}
	for i := range 9 {
		missed.Rows = append(missed.Rows, fmt.Sprintf(`INSERT %d|0|"x"|N`, i+1))
	}
	end := missed.To
	require.Equal(t, []window{{start - 1, start, []string{`INSERT 0|0|"a"|N`}}, missed,
		{end, end + 1, []string{`INSERT 20|0|"y"|N`}}, {end + 1, end + 2, []string{`INSERT 21|0|"y"|N`}}}, got)
}

// TestStreamFollowsTheTable: through a rename, also when another table takes the name; dropped it is at its end, and a new table of its name is not it.
func TestStreamFollowsTheTable(t *testing.T) {
	k := openKit(t, changelog.Options{})
	rename := func(from, to string) {
		_, err := k.cat.RenameTable(k.ctx, table.Identifier{"s", from}, table.Identifier{"s", to})
		require.NoError(t, err)
	}
	drop := func(name string) { require.NoError(t, k.cat.DropTable(k.ctx, table.Identifier{"s", name})) }
	put := func(name string, rows ...row) {
		_, err := k.wh.Do(k.ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
			tt, err := tx.Table(k.ctx, table.Identifier{"s", name})
			if err != nil {
				return err
			}
			return tt.Append(k.ctx, batch(tt.ArrowSchema(), rows))
		})
		require.NoError(t, err)
	}
	k.createTable(2, true)
	put("t", r1(1, "a"))
	var got []string
	var end error
	var cursor changelog.ConsumerCursor
	for b, err := range k.r.Stream(k.ctx, ident, changelog.Seq(0), changelog.StreamOptions{}) {
		if err != nil {
			end = err
			continue
		}
		cursor = cursor.After(b)
		got = append(got, fmt.Sprint(b.Table[1], windowOf(b).Rows))
		switch len(got) {
		case 1:
			rename("t", "u")
			k.createTable(2, true) // another s.t
			put("t", r1(7, "other"))
			put("u", r1(2, "b"))
		case 2:
			put("u", r1(3, "last"))
			drop("u")
			rename("t", "u") // has its name, and is not it
			put("u", r1(8, "other"))
		}
	}
	require.Equal(t, []string{`t[INSERT 1|0|"a"|N]`, `u[INSERT 2|0|"b"|N]`, `u[INSERT 3|0|"last"|N]`}, got)
	require.ErrorIs(t, end, icecat.ErrNoSuchTable)

	// Nor does a cursor go on in it.
	require.Equal(t, table.Identifier{"s", "u"}, cursor.Table)
	for _, err := range k.r.Resume(k.ctx, cursor, changelog.StreamOptions{ReloadExpired: true}) {
		require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	}
	for _, err := range k.r.Stream(k.ctx, table.Identifier{"s", "none"}, changelog.Null, changelog.StreamOptions{}) {
		require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	}
}

// TestStreamEnds: with its context, and with the catalog.
func TestStreamEnds(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	ctx, cancel := context.WithCancel(k.ctx)
	ready, ended := make(chan struct{}), make(chan error, 2)
	run := func(ctx context.Context) {
		for _, err := range k.r.Stream(ctx, ident, changelog.Null, changelog.StreamOptions{}) {
			ended <- err
		}
	}
	k.r.SetStreamHooks(func() { ready <- struct{}{} }, nil)
	go run(ctx)
	<-ready
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	go run(k.ctx)
	<-ready
	require.NoError(t, k.wh.Close())
	require.NoError(t, k.cat.Close())
	require.ErrorIs(t, <-ended, catalog.ErrClosed)
}

// TestStreamExpired: what a consumer stands at has expired: an error, or all rows. A position that the log has lost is found by its snapshot.
func TestStreamExpired(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	old := changelog.ConsumerCursor{Table: ident, CommitSeq: k.append(r1(1, "a"), r1(2, "a")).Seq}
	k.upsert(r1(2, "b"))
	b, err := k.r.Read(k.ctx, ident, changelog.Null, changelog.Now)
	require.NoError(t, err)
	here := changelog.ConsumerCursor{}.After(b)
	k.quick(3)
	at := k.cat.CommitSeq()
	_, err = k.cat.TrimLog(k.ctx, at)
	require.NoError(t, err)

	resume := func(c changelog.ConsumerCursor, o changelog.StreamOptions) (w window, full bool, err error) {
		ctx, cancel := context.WithTimeout(k.ctx, 30*time.Second)
		defer cancel()
		for b, err := range k.r.Resume(ctx, c, o) {
			if err != nil {
				return w, false, err
			}
			return windowOf(b), b.FullReload, nil
		}
		return w, false, nil
	}
	for _, c := range []changelog.ConsumerCursor{old, {Table: ident}} {
		_, _, err = resume(c, changelog.StreamOptions{})
		require.ErrorIs(t, err, changelog.ErrExpired)
		w, full, err := resume(c, changelog.StreamOptions{ReloadExpired: true})
		require.NoError(t, err)
		require.True(t, full)
		require.Equal(t, []string{`INSERT 1|0|"a"|N`, `INSERT 2|0|"b"|N`}, sorted(w.Rows))
	}
	k.append(r1(3, "c"))
	w, full, err := resume(here, changelog.StreamOptions{})
	require.NoError(t, err)
	require.False(t, full)
	require.Equal(t, []string{`INSERT 3|0|"c"|N`}, w.Rows)

	// A stream of a quiet table follows the log, so that its trimming takes nothing away.
	k.r.SetStreamHooks(nil, nil)
	n := 0
	for b, err := range k.r.Stream(k.ctx, ident, changelog.Seq(at), changelog.StreamOptions{}) {
		require.NoError(t, err)
		if n++; n == 2 {
			require.Equal(t, []string{`INSERT 4|0|"d"|N`}, windowOf(b).Rows)
			break
		}
		k.quick(5)
		_, err := k.cat.TrimLog(k.ctx, k.cat.CommitSeq())
		require.NoError(t, err)
		k.append(r1(4, "d"))
	}
}

// TestStreamPolling: one window for all that came between two looks.
func TestStreamPolling(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	var got []string
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.append(r1(1, "a"))
	for b, err := range k.r.StreamPolling(ctx, ident, changelog.Seq(0), time.Millisecond, changelog.StreamOptions{}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			continue
		}
		switch got = append(got, windowOf(b).Rows...); len(got) {
		case 1:
			k.quick(2)
			k.append(r1(2, "b"))
			k.upsert(r1(2, "c"))
		case 4:
			cancel()
		}
	}
	require.Equal(t, []string{`INSERT 1|0|"a"|N`, `INSERT 2|0|"b"|N`, `UPDATE_BEFORE 2|0|"b"|N`, `UPDATE_AFTER 2|0|"c"|N`}, got)
	for _, err := range k.r.StreamPolling(ctx, ident, changelog.Null, 0, changelog.StreamOptions{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}
