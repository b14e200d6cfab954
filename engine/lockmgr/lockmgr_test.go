package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var bg = context.Background()

// await waits until the owner stands in a queue.
func await(t *testing.T, o *Owner) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.m.mu.Lock()
		defer o.m.mu.Unlock()
		return o.wait != nil
	}, 10*time.Second, 50*time.Microsecond)
}

// request runs Acquire in a goroutine, and returns when it waits.
func request(t *testing.T, o *Owner, tag Tag, mode Mode, opt Options) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := o.Acquire(bg, tag, mode, opt); done <- err }()
	await(t, o)
	return done
}

func take(t *testing.T, o *Owner, tag Tag, mode Mode) {
	t.Helper()
	waited, err := o.Acquire(bg, tag, mode, Options{NoWait: true})
	require.NoError(t, err)
	require.False(t, waited)
}

func free(m *Manager, tag Tag, mode Mode) bool {
	o := m.Owner(99)
	defer o.ReleaseAll()
	_, err := o.Acquire(bg, tag, mode, Options{NoWait: true})
	return err == nil
}

// TestConflicts: PostgreSQL's documentation, tables 13.2 (tables) and 13.3 (rows): X where two modes conflict.
func TestConflicts(t *testing.T) {
	tables := []string{
		".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX", "XXXXXXXX",
	}
	rows := []string{"...X", "..XX", ".XXX", "XXXX"}
	check := func(table []string, first Mode) {
		for i, line := range table {
			for j, x := range line {
				a, b := first+Mode(i), first+Mode(j)
				require.Equal(t, x == 'X', conflicts[a]&b.bit() != 0, "%d %d", a, b)
			}
		}
	}
	check(tables, AccessShare)
	check(rows, ForKeyShare)
	for a := range numModes {
		for b := range numModes {
			require.Equal(t, conflicts[a]&b.bit() != 0, conflicts[b]&a.bit() != 0, "%d %d", a, b)
		}
	}
	require.Zero(t, conflicts[Write]&bits(Write, WriteKey, ForKeyShare))
	require.True(t, covers(bits(ForUpdate), WriteKey))
	require.False(t, covers(bits(ForShare), ForUpdate))
}

// TestFIFO (K2): who comes first is served first; who would pass a conflicting waiter waits behind it.
func TestFIFO(t *testing.T) {
	m := &Manager{}
	tag := RelationTag(7)
	a, b, c := m.Owner(1), m.Owner(2), m.Owner(3)
	take(t, a, tag, Share)
	wb := request(t, b, tag, RowExclusive, Options{Deadlock: time.Hour})
	wc := request(t, c, tag, Share, Options{Deadlock: time.Hour})
	require.Equal(t, []int32{1}, m.Blockers(2))
	require.Equal(t, []int32{2}, m.Blockers(3))
	require.Equal(t, []Info{
		{Tag: tag, PID: 1, Mode: Share, Granted: true},
		{Tag: tag, PID: 2, Mode: RowExclusive, Since: b.wait.since},
		{Tag: tag, PID: 3, Mode: Share, Since: c.wait.since},
	}, m.Locks())
	take(t, a, tag, ShareUpdateExclusive) // it holds the lock: before those that wait for it
	a.ReleaseAll()
	require.NoError(t, <-wb)
	b.ReleaseAll()
	require.NoError(t, <-wc)
	c.ReleaseAll()
	require.Empty(t, m.mu.locks)
}

// TestSavepoint (K5).
func TestSavepoint(t *testing.T) {
	m := &Manager{}
	a := m.Owner(1)
	x, y := AdvisoryTag(1), AdvisoryPairTag(0, 1)
	require.NotEqual(t, x, y)
	take(t, a, x, Exclusive)
	mk := a.Mark()
	take(t, a, x, Exclusive)
	take(t, a, x, Share)
	take(t, a, y, Share)
	a.ReleaseTo(mk)
	require.False(t, free(m, x, Share))
	require.True(t, free(m, y, Exclusive))
	a.ReleaseTo(0)
	require.True(t, free(m, x, Exclusive))
}

// TestSession: session locks are counted and outlive the transaction.
func TestSession(t *testing.T) {
	m := &Manager{}
	a := m.Owner(1)
	x := AdvisoryTag(-5)
	for range 2 {
		_, err := a.Acquire(bg, x, Exclusive, Options{Session: true})
		require.NoError(t, err)
	}
	take(t, a, x, Exclusive)
	require.False(t, a.Release(x, Share))
	require.True(t, a.Release(x, Exclusive))
	require.True(t, a.Release(x, Exclusive))
	require.False(t, a.Release(x, Exclusive))
	require.False(t, free(m, x, Share), "the transaction has it")
	a.ReleaseTo(0)
	require.True(t, free(m, x, Exclusive))
	_, err := a.Acquire(bg, x, Share, Options{Session: true})
	require.NoError(t, err)
	a.ReleaseTo(0)
	require.False(t, free(m, x, Exclusive))
	a.ReleaseAll()
	require.Empty(t, m.mu.locks)
}

// TestGivesUp (K4): no wait, timeout, cancel; who stood behind goes on.
func TestGivesUp(t *testing.T) {
	m := &Manager{}
	a, b, c := m.Owner(1), m.Owner(2), m.Owner(3)
	tag := RelationTag(1)
	take(t, a, tag, Share)
	_, err := b.Acquire(bg, tag, Exclusive, Options{NoWait: true})
	require.ErrorIs(t, err, ErrNotAvailable)
	var seen []bool
	_, err = b.Acquire(bg, tag, Exclusive, Options{Timeout: time.Millisecond, Deadlock: time.Hour, Waits: func(tag *Tag) { seen = append(seen, tag != nil) }})
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, []bool{true, false}, seen)
	ctx, cancel := context.WithCancelCause(bg)
	why := errors.New("why")
	done := make(chan error, 1)
	go func() { _, err := b.Acquire(ctx, tag, Exclusive, Options{}); done <- err }()
	await(t, b)
	behind := request(t, c, tag, Share, Options{Deadlock: time.Hour})
	cancel(why)
	require.ErrorIs(t, <-done, why)
	require.NoError(t, <-behind)
	require.Empty(t, b.grants)
}

// TestDeadlock (K3): the one that looks gets the error, with the circle from its own point of view; the other goes on.
func TestDeadlock(t *testing.T) {
	m := &Manager{}
	a, b, c := m.Owner(1), m.Owner(2), m.Owner(3)
	x, y, z := RelationTag(1), RelationTag(2), RelationTag(3)
	take(t, a, x, Exclusive)
	take(t, b, y, Exclusive)
	take(t, c, z, Exclusive)
	wa := request(t, a, y, Exclusive, Options{Deadlock: time.Hour})
	wb := request(t, b, z, Share, Options{Deadlock: time.Hour})
	_, err := c.Acquire(bg, x, AccessExclusive, Options{})
	var d *DeadlockError
	require.ErrorAs(t, err, &d)
	require.Equal(t, []Edge{{3, AccessExclusive, x, 1}, {1, Exclusive, y, 2}, {2, Share, z, 3}}, d.Edges)
	c.ReleaseAll()
	require.NoError(t, <-wb)
	b.ReleaseAll()
	require.NoError(t, <-wa)
}

// TestUpgradeDeadlock: two that read-locked one thing both want to write it.
func TestUpgradeDeadlock(t *testing.T) {
	m := &Manager{}
	a, b := m.Owner(1), m.Owner(2)
	x := AdvisoryTag(1)
	take(t, a, x, Share)
	take(t, b, x, Share)
	wa := request(t, a, x, Exclusive, Options{Deadlock: time.Hour})
	_, err := b.Acquire(bg, x, Exclusive, Options{})
	var d *DeadlockError
	require.ErrorAs(t, err, &d)
	b.ReleaseAll()
	require.NoError(t, <-wa)
}

// TestSoftDeadlock: a circle that exists only by the order of a queue is dissolved (PostgreSQL's deadlock-soft.spec).
func TestSoftDeadlock(t *testing.T) {
	m := &Manager{}
	d1, d2, e1, e2 := m.Owner(1), m.Owner(2), m.Owner(3), m.Owner(4)
	a1, a2 := RelationTag(1), RelationTag(2)
	take(t, d1, a1, AccessShare)
	take(t, d2, a2, AccessShare)
	we1 := request(t, e1, a1, AccessExclusive, Options{Deadlock: time.Hour})
	we2 := request(t, e2, a2, AccessExclusive, Options{Deadlock: time.Hour})
	wd1 := request(t, d1, a2, AccessShare, Options{Deadlock: time.Hour})
	wd2 := request(t, d2, a1, AccessShare, Options{}) // it looks at once, and lets d1 pass e2
	require.NoError(t, <-wd1)
	d1.ReleaseAll()
	require.NoError(t, <-we1)
	e1.ReleaseAll()
	require.NoError(t, <-wd2)
	d2.ReleaseAll()
	require.NoError(t, <-we2)
}

// TestRows: row modes on keys; writers do not meet; many rows become all rows.
func TestRows(t *testing.T) {
	m := &Manager{}
	a, b := m.Owner(1), m.Owner(2)
	row := func(o *Owner, key string, mode Mode) error {
		_, err := o.AcquireRow(bg, 5, key, mode, Options{NoWait: true})
		return err
	}
	require.NoError(t, row(a, "k", Write))
	require.NoError(t, row(b, "k", WriteKey))
	require.ErrorIs(t, row(b, "k", ForShare), ErrNotAvailable)
	require.NoError(t, row(b, "l", ForUpdate))
	require.ErrorIs(t, row(a, "l", Write), ErrNotAvailable)
	b.ReleaseAll()
	for i := range MaxRows + 10 {
		require.NoError(t, row(a, fmt.Sprint(i), ForNoKeyUpdate))
	}
	require.True(t, a.LocksAllRows(5, Write))
	require.ErrorIs(t, row(b, "never seen", Write), ErrNotAvailable)
	require.NoError(t, row(b, "never seen", ForKeyShare))
	require.Less(t, len(m.Locks()), MaxRows+10)
	a.ReleaseAll()
	require.NoError(t, row(b, "never seen", Write))
	b.ReleaseAll()
	require.Empty(t, m.mu.locks)
}

// TestBarred: readers pay for AccessExclusive only while somebody has it.
func TestBarred(t *testing.T) {
	m := &Manager{}
	a := m.Owner(1)
	take(t, a, RelationTag(1), Exclusive)
	require.False(t, m.Barred())
	take(t, a, RelationTag(1), AccessExclusive)
	take(t, a, RelationTag(2), AccessExclusive)
	require.True(t, m.Barred())
	a.ReleaseAll()
	require.False(t, m.Barred())
}

// TestRandom (K1, K3): sessions lock at random; nobody hangs, and no two hold what conflicts.
func TestRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := &Manager{}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			o := m.Owner(int32(i + 1))
			defer o.ReleaseAll()
			for range 300 {
				for range 1 + rnd.IntN(4) {
					mk := o.Mark()
					var err error
					opt := Options{Deadlock: time.Duration(rnd.IntN(200)) * time.Microsecond, NoWait: rnd.IntN(5) == 0}
					if rnd.IntN(2) == 0 {
						_, err = o.Acquire(bg, RelationTag(uint32(rnd.IntN(4))), AccessShare+Mode(rnd.IntN(8)), opt)
					} else {
						_, err = o.AcquireRow(bg, 9, fmt.Sprint(rnd.IntN(3)), ForKeyShare+Mode(rnd.IntN(6)), opt)
					}
					checkK1(t, m)
					if err != nil && rnd.IntN(2) == 0 {
						o.ReleaseTo(mk)
					} else if err != nil {
						break
					}
				}
				o.ReleaseTo(0)
			}
		})
	}
	wg.Wait()
	require.Empty(t, m.mu.locks)
	require.False(t, m.Barred())
}

func checkK1(t *testing.T, m *Manager) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for tag, lk := range m.mu.locks {
		for i, h := range lk.holders {
			for _, g := range lk.holders[i+1:] {
				for mode := range numModes {
					if h.all&mode.bit() != 0 && g.all&conflicts[mode] != 0 {
						t.Errorf("%v: %d and %d both have it", tag, h.owner.pid, g.owner.pid)
					}
				}
			}
		}
	}
}

func BenchmarkRow(b *testing.B) {
	m := &Manager{}
	o := m.Owner(1)
	for b.Loop() {
		if _, err := o.AcquireRow(bg, 1, "key", Write, Options{}); err != nil {
			b.Fatal(err)
		}
		o.ReleaseTo(0)
	}
}
