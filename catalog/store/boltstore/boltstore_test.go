package boltstore

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/catalog/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func openTest(t *testing.T) *Store {
	s, err := Open(filepath.Join(t.TempDir(), "x.db"), Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// The catalog may hold secrets (a mount's options): nobody else reads it, also when an older version made it.
func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for range 2 {
		s, err := Open(path, Options{NoSync: true})
		require.NoError(t, err)
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
		require.NoError(t, s.Close())
		require.NoError(t, os.Chmod(path, 0o644))
	}
}

func put(k, v string) store.Op { return store.Op{Key: []byte(k), Value: []byte(v)} }

func TestCompareSet(t *testing.T) {
	s := openTest(t)
	absent := store.Compare{Key: []byte("k"), Absent: true}
	is := func(v string) store.Compare { return store.Compare{Key: []byte("k"), Value: []byte(v)} }
	apply := func(c store.Compare, ops ...store.Op) error {
		_, err := s.Apply(ctx, store.Tx{Compares: []store.Compare{c}, Ops: ops})
		return err
	}
	require.ErrorIs(t, apply(is("x"), put("k", "y")), store.ErrCompareFailed)
	require.NoError(t, apply(absent, put("k", "1"), put("l", "2")))
	require.ErrorIs(t, apply(absent, put("m", "3")), store.ErrCompareFailed)
	_, err := s.Get(ctx, []byte("m"))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, apply(is("1"), store.Op{Key: []byte("k"), Delete: true}, store.Op{Key: []byte("never"), Delete: true}))
	_, err = s.Get(ctx, []byte("k"))
	require.ErrorIs(t, err, store.ErrNotFound)
	v, err := s.Get(ctx, []byte("l"))
	require.NoError(t, err)
	require.Equal(t, "2", string(v))
	_, err = s.Apply(ctx, store.Tx{Ops: []store.Op{put("big", string(make([]byte, limits.Bytes+1)))}})
	require.ErrorIs(t, err, store.ErrTooLarge)
}

// Ranges in both directions, with limits and bounds, against a sorted slice.
func TestRangeAgainstModel(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	s := openTest(t)
	var keys []string
	var ops []store.Op
	for i := range 300 {
		k := fmt.Sprintf("%03d", rng.Intn(1000))
		ops = append(ops, put(k, fmt.Sprint(i)))
		keys = append(keys, k)
	}
	_, err := s.Apply(ctx, store.Tx{Ops: ops})
	require.NoError(t, err)
	sort.Strings(keys)
	for range 500 {
		from, to := fmt.Sprintf("%03d", rng.Intn(1000)), fmt.Sprintf("%03d", rng.Intn(1000))
		r := store.RangeRequest{From: []byte(from), To: []byte(to), Limit: rng.Intn(20), Reverse: rng.Intn(2) == 0, KeysOnly: rng.Intn(2) == 0}
		if rng.Intn(10) == 0 {
			r.To = nil
		}
		var want []string
		for i, k := range keys {
			if k >= from && (r.To == nil || k < to) && (i == 0 || keys[i-1] != k) {
				want = append(want, k)
			}
		}
		if r.Reverse {
			sort.Sort(sort.Reverse(sort.StringSlice(want)))
		}
		var got []string
		require.NoError(t, store.All(ctx, s, r, func(p store.Pair) error {
			got = append(got, string(p.Key))
			require.Equal(t, r.KeysOnly, p.Value == nil)
			return nil
		}))
		require.Equal(t, want, got, "%+v", r)
	}
	require.Equal(t, []byte("b"), store.PrefixEnd([]byte("a")))
	require.Equal(t, []byte("b"), store.PrefixEnd([]byte("a\xff\xff")))
	require.Nil(t, store.PrefixEnd([]byte("\xff")))
}

// K3: a watch sees every transaction after its revision once, in order; one that fell behind the ring is told.
func TestWatch(t *testing.T) {
	s := openTest(t)
	start := s.Revision()
	w, err := s.Watch(ctx, start)
	require.NoError(t, err)
	defer w.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			if _, err := s.Apply(ctx, store.Tx{Ops: []store.Op{put("k", fmt.Sprint(i))}}); err != nil {
				t.Error(err)
			}
		}
	})
	last := start
	for i := range 100 {
		e, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(e.Ops[0].Value))
		require.Greater(t, e.Revision, last)
		last = e.Revision
	}
	wg.Wait()
	require.Equal(t, last, s.Revision())
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = w.Next(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for range ringEvents {
		_, err := s.Apply(ctx, store.Tx{Ops: []store.Op{put("k", "")}})
		require.NoError(t, err)
	}
	_, err = w.Next(ctx)
	require.NoError(t, err, "the ring holds exactly these")
	old, err := s.Watch(ctx, start)
	require.NoError(t, err)
	_, err = old.Next(ctx)
	require.ErrorIs(t, err, store.ErrCompacted)
	big := string(make([]byte, ringBytes/2))
	for range 4 {
		_, err := s.Apply(ctx, store.Tx{Ops: []store.Op{put("k", big)}})
		require.NoError(t, err)
	}
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, store.ErrCompacted)
}

func TestRevisionSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	rev, err := s.Apply(ctx, store.Tx{Ops: []store.Op{put("k", "v")}})
	require.NoError(t, err)
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, store.ErrLocked)
	w, err := s.Watch(ctx, rev)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = s.Get(ctx, []byte("k"))
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = s.Apply(ctx, store.Tx{})
	require.ErrorIs(t, err, store.ErrClosed)
	s, err = Open(path, Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Revision(), rev)
	require.NoError(t, s.Check(ctx, func(d string) { t.Error(d) }))
	require.NoError(t, s.Close())
}

func TestLease(t *testing.T) {
	s := openTest(t)
	now := time.Unix(1000, 0)
	a, err := store.AcquireLease(ctx, s, "feed", "a", now, time.Minute)
	require.NoError(t, err)
	_, err = store.AcquireLease(ctx, s, "feed", "b", now.Add(time.Second), time.Minute)
	require.ErrorIs(t, err, store.ErrLeaseHeld)
	a, err = store.RenewLease(ctx, s, a, now.Add(30*time.Second), time.Minute)
	require.NoError(t, err)
	_, err = store.AcquireLease(ctx, s, "feed", "b", now.Add(61*time.Second), time.Minute)
	require.ErrorIs(t, err, store.ErrLeaseHeld)
	b, err := store.AcquireLease(ctx, s, "feed", "b", now.Add(91*time.Second), time.Minute)
	require.NoError(t, err)
	require.Greater(t, b.Token, a.Token, "fenced")
	_, err = store.RenewLease(ctx, s, a, now.Add(92*time.Second), time.Minute)
	require.ErrorIs(t, err, store.ErrLeaseLost)
	require.ErrorIs(t, store.ReleaseLease(ctx, s, a), store.ErrLeaseLost)
	require.NoError(t, store.ReleaseLease(ctx, s, b))
	c, err := store.AcquireLease(ctx, s, "feed", "c", now, time.Minute)
	require.NoError(t, err)
	require.Greater(t, c.Token, b.Token)
}

func FuzzLease(f *testing.F) {
	f.Add((&store.Lease{Holder: "h", Token: 3, Expires: time.Unix(5, 0)}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := store.DecodeLease("n", b); err == nil && string(l.Encode()) != string(b) {
			t.Fatalf("%x became %x", b, l.Encode())
		}
	})
}
