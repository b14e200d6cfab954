package catalog

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// A folder that is open is refused at once, whoever holds it; it opens again after Close.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	for range 20 {
		_, err = Open(ctx, Options{Dir: dir})
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, dir)
		require.ErrorIs(t, Check(ctx, dir, func(Problem) {}), ErrLocked)
	}
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "twice is once")
	c = openAt(t, Options{Dir: dir, NoSync: true})
	clean(t, c)
}

// Metadata holds absolute locations: a folder that was moved is refused with both paths; a link to it is no move.
func TestMoved(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	old, moved, link := filepath.Join(root, "old"), filepath.Join(root, "new"), filepath.Join(root, "link")
	c, err := Open(ctx, Options{Dir: old, NoSync: true})
	require.NoError(t, err)
	makeTable(t, c, "t")
	require.NoError(t, c.Close())
	require.NoError(t, os.Symlink(old, link))
	c, err = Open(ctx, Options{Dir: link, NoSync: true})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, os.Rename(old, moved))
	_, err = Open(ctx, Options{Dir: moved})
	require.ErrorIs(t, err, ErrMoved)
	require.ErrorContains(t, err, old)
	require.ErrorContains(t, err, moved)
}

func TestReadOnlyFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // needs a file system that refuses even root
	}
	_, err := Open(ctx, Options{Dir: "/sys/skade-test"})
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorContains(t, err, "/sys/skade-test")
}

func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	value, err := c.store.Get(ctx, keyMeta)
	require.NoError(t, err)
	value[1]++
	_, err = c.store.Apply(ctx, store.Tx{Ops: []store.Op{{Key: keyMeta, Value: value}}})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = Open(ctx, Options{Dir: dir})
	require.ErrorIs(t, err, ErrVersion)
}

func TestClosed(t *testing.T) {
	c, err := Open(ctx, Options{Dir: t.TempDir(), NoSync: true})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	sub := c.SubscribeCommits()
	release := hold(t, c, st)
	errc := make(chan error, 1)
	go func() {
		_, err := c.Commit(ctx, &Request{Changes: []Change{CreateNamespace{Ident: ident("n")}}})
		errc <- err
	}()
	require.Eventually(t, func() bool { return waiting(c) == 1 }, 10*time.Second, time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	require.Eventually(t, func() bool { c.queue.mu.Lock(); defer c.queue.mu.Unlock(); return c.queue.mu.closed }, 10*time.Second, time.Millisecond)
	release()
	require.ErrorIs(t, <-errc, ErrClosed)
	require.NoError(t, <-closed)
	_, err = c.Commit(ctx, &Request{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.Record(ctx, 1)
	require.ErrorIs(t, err, ErrClosed)
	_, err = sub.Next(ctx)
	require.ErrorIs(t, err, ErrClosed)
	late := c.SubscribeCommits()
	_, err = late.Next(ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.Cut().Table(ident("s", "t"))
	require.NoError(t, err, "cuts stay readable")
}

// sampleFolder is a small, closed folder.
func sampleFolder(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	appendTo(t, c, st, 1)
	appendTo(t, c, st, 2)
	commit(t, c, PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: "v", Payload: []byte("select 1")}})
	clean(t, c)
	require.NoError(t, c.Close())
	return dir
}

// problems checks a folder and returns what was found, an error of Open or Check included.
func problems(dir string) (found []string) {
	err := Check(ctx, dir, func(p Problem) { found = append(found, p.String()) })
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

// Each damage is found by Check and named, and none ends the process (S3).
func TestDamage(t *testing.T) {
	find := func(t *testing.T, dir, pattern string) string {
		var path string
		require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if ok, _ := filepath.Match(pattern, d.Name()); ok && path == "" {
				path = p
			}
			return err
		}))
		require.NotEmpty(t, path, pattern)
		return path
	}
	files := map[string]string{
		"data file": "*.parquet", "manifest": "*-m0.avro", "manifest list": "snap-*.avro",
		"metadata": "00002-*.metadata.json", "earlier metadata": "00000-*.metadata.json",
	}
	for name, pattern := range files {
		t.Run("missing "+name, func(t *testing.T) {
			dir := sampleFolder(t)
			path := find(t, dir, pattern)
			require.NoError(t, os.Remove(path))
			require.Contains(t, problems(dir)[0], path)
		})
		if name == "earlier metadata" {
			continue
		}
		t.Run("short "+name, func(t *testing.T) {
			dir := sampleFolder(t)
			path := find(t, dir, pattern)
			st, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, st.Size()-1))
			require.Contains(t, problems(dir)[0], path)
		})
	}
	stores := map[string]func(t *testing.T, path string){
		"empty":       func(t *testing.T, p string) { require.NoError(t, os.Truncate(p, 0)) },
		"three bytes": func(t *testing.T, p string) { require.NoError(t, os.Truncate(p, 3)) },
		"one page":    func(t *testing.T, p string) { require.NoError(t, os.Truncate(p, 4096)) },
		"four pages":  func(t *testing.T, p string) { require.NoError(t, os.Truncate(p, 4*4096)) },
		"text": func(t *testing.T, p string) {
			require.NoError(t, os.WriteFile(p, bytes.Repeat([]byte("hello "), 9999), 0o644))
		},
		"zeros":          func(t *testing.T, p string) { require.NoError(t, os.WriteFile(p, make([]byte, 1<<16), 0o644)) },
		"both meta gone": func(t *testing.T, p string) { overwrite(t, p, 0, make([]byte, 2*4096)) },
		"pages shuffled": func(t *testing.T, p string) {
			data, err := os.ReadFile(p)
			require.NoError(t, err)
			for at := 2 * 4096; at+2*4096 <= len(data); at += 2 * 4096 {
				page := append([]byte(nil), data[at:at+4096]...)
				copy(data[at:], data[at+4096:at+8192])
				copy(data[at+4096:], page)
			}
			require.NoError(t, os.WriteFile(p, data, 0o644))
		},
	}
	for name, damage := range stores {
		t.Run("store "+name, func(t *testing.T) {
			dir := sampleFolder(t)
			damage(t, filepath.Join(dir, dbName))
			require.NotEmpty(t, problems(dir))
			if c, err := Open(ctx, Options{Dir: dir}); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, dbName)
			} else {
				require.NoError(t, c.Close())
			}
		})
	}
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(data, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Random bytes over the store: Open, Check and the reads may fail, they must not end the process (S3).
func TestRandomDamage(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	dir := sampleFolder(t)
	db := filepath.Join(dir, dbName)
	good, err := os.ReadFile(db)
	require.NoError(t, err)
	found := 0
	for range 100 {
		bad := bytes.Clone(good)
		for range 1 + rng.Intn(20) {
			bad[rng.Intn(len(bad))] ^= byte(1 + rng.Intn(255))
		}
		require.NoError(t, os.WriteFile(db, bad, 0o644))
		if len(problems(dir)) > 0 {
			found++
		}
	}
	t.Logf("%d of 100 damages hit something that is in use", found)
	require.NoError(t, os.WriteFile(db, good, 0o644))
	require.Empty(t, problems(dir))
}

// A value whose checksum does not hold is found by every reader of it, with the key.
func TestDamagedValues(t *testing.T) {
	for _, family := range []byte{familyNamespace, familyTable, familyObject, familyRecord, familyCommit, familyHistory, keyHead[0]} {
		t.Run(string(family), func(t *testing.T) {
			dir := sampleFolder(t)
			s, err := openStore(dir, true)
			require.NoError(t, err)
			res, err := s.Range(ctx, store.RangeRequest{From: []byte{family}, To: []byte{family + 1}, Limit: 1, Reverse: true})
			require.NoError(t, err)
			p := res.Pairs[0]
			p.Value[len(p.Value)/2] ^= 1
			_, err = s.Apply(ctx, store.Tx{Ops: []store.Op{{Key: p.Key, Value: p.Value}}})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.NotEmpty(t, problems(dir))
			c, err := Open(ctx, Options{Dir: dir})
			if err == nil { // what only the past needs is not read by Open
				require.Contains(t, string([]byte{familyCommit, familyHistory}), string(family))
				require.NoError(t, c.Close())
				return
			}
			var damaged *DamagedError
			require.True(t, errors.As(err, &damaged))
			require.NotEmpty(t, damaged.Key)
		})
	}
}

// The bytes of small files travel in the store until the files are synced; then the store forgets them.
func TestSettle(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	before := c.FS().Counters().Snapshot()
	appendTo(t, c, st, 1)
	require.Zero(t, c.FS().Counters().Snapshot().Sub(before).Fsyncs-settledSyncs(c), "no file of the commit was synced in the commit")
	require.NoError(t, c.Close())
	s, err := openStore(mustResolve(t, dir), false)
	require.NoError(t, err)
	res, err := s.Range(ctx, store.RangeRequest{From: []byte{familyFile}, To: []byte{familyFile + 1}})
	require.NoError(t, err)
	require.Empty(t, res.Pairs)
	require.NoError(t, s.Close())
	require.Empty(t, problems(dir))
}

// settledSyncs counts the settler's syncs when it has run already; here its delay is far longer than a commit.
func settledSyncs(c *Catalog) int64 {
	if c.Stats().Settled == 0 {
		return 0
	}
	return c.FS().Counters().Fsyncs.Load()
}

func mustResolve(t *testing.T, dir string) string {
	dir, err := resolveDir(dir)
	require.NoError(t, err)
	return dir
}

// A failed store transaction that may have happened stops commits, not reads.
func TestUnknownOutcome(t *testing.T) {
	inj := &storeio.Injector{K: -1}
	hooks := inj.Hooks()
	fail := false
	hooks.Before = func(op storeio.Op, path string) error {
		if fail && op == storeio.OpStored {
			return storeio.ErrInjected
		}
		return nil
	}
	c := openAt(t, Options{Dir: t.TempDir(), NoSync: true, FS: storeio.NewFS(storeio.Options{Hooks: hooks, NoSync: true})})
	st := makeTable(t, c, "t")
	fail = true
	_, err := c.Commit(ctx, &Request{Changes: []Change{UpdateTable{Key: st.Key, Build: appendFile(c.FS(), 1)}}})
	require.ErrorIs(t, err, ErrUnknownOutcome)
	fail = false
	require.Eventually(t, func() bool { return c.CommitSeq() == 3 }, 10*time.Second, time.Millisecond, "the watch brings what did happen")
	clean(t, c)
}

// Old metadata files may go: an older cut is served by the current file, set back.
func TestMetadataOfExpiredFile(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir, NoSync: true})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	r1 := appendTo(t, c, st, 1)
	appendTo(t, c, st, 2)
	require.NoError(t, c.Close())
	require.NoError(t, os.Remove(storeio.PathOf(r1.Tables[0].NewMetadata)))
	c = openAt(t, Options{Dir: dir, NoSync: true})
	cut, err := c.CutAt(ctx, r1.Seq)
	require.NoError(t, err)
	old, err := cut.Table(ident("s", "t"))
	require.NoError(t, err)
	meta, err := old.Metadata(ctx)
	require.NoError(t, err)
	require.Equal(t, *r1.Tables[0].SnapshotID, meta.CurrentSnapshot().SnapshotID)
	empty, err := c.CutAt(ctx, r1.Seq-1)
	require.NoError(t, err)
	old, err = empty.Table(ident("s", "t"))
	require.NoError(t, err)
	meta, err = old.Metadata(ctx)
	require.NoError(t, err)
	require.Nil(t, meta.CurrentSnapshot())
	_, err = c.CutAt(ctx, 99)
	require.ErrorIs(t, err, ErrSeqNotFound)
	_, err = c.CommitsSince(context.Background(), 99, 1)
	require.NoError(t, err)
}
