package storeio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func TestPathOf(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b": "/a/b", "a%20b": "a%20b", "file:///a/b": "/a/b", "file:/a/b": "/a/b", "file://localhost/a": "/a",
		"FILE:///a%20b%25": "/a b%", "file:///a%zz": "/a%zz", "file://": "", "s3://b/k": "s3://b/k", "": "",
	} {
		require.Equal(t, want, PathOf(in), in)
	}
	for _, p := range []string{"/a/b", "/with space/%/ü/?#"} {
		require.Equal(t, p, PathOf(LocationOf(p)))
	}
}

func FuzzPathOf(f *testing.F) {
	f.Add("file:///a%20b")
	f.Add("/a/b")
	f.Fuzz(func(t *testing.T, s string) {
		_ = PathOf(s)
		if strings.HasPrefix(s, "/") && PathOf(LocationOf(s)) != filepath.ToSlash(s) {
			t.Fatalf("%q became %q", s, PathOf(LocationOf(s)))
		}
	})
}

// W1: the order of a durable file's operations is the whole of its durability.
func TestDurableOrder(t *testing.T) {
	inj := &Injector{K: -1}
	f := NewFS(Options{Hooks: inj.Hooks()})
	dir := t.TempDir()
	require.NoError(t, f.WriteFile(filepath.Join(dir, "sub", "x"), []byte("1")))
	require.Equal(t, "mkdir create write sync rename syncdir syncdir", strings.Join(inj.Log(), " "), "the second directory holds the new one")
	require.NoError(t, f.WriteFile(filepath.Join(dir, "sub", "y"), []byte("1")))
	require.Equal(t, "create write sync rename syncdir", strings.Join(inj.Log()[7:], " "))
}

// W1: a failure at operation k leaves the name absent, or with its old content, and no temporary file behind.
func TestCreateFailsAtEveryOperation(t *testing.T) {
	failed := int64(0)
	for k := int64(0); ; k++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		inj := &Injector{K: k}
		f := NewFS(Options{Hooks: inj.Hooks()})
		err := f.WriteFile(path, []byte("new"))
		failed += inj.Failed()
		if inj.Failed() == 0 {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, ErrInjected)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries, "operation %d", k)
	}
	require.EqualValues(t, 5, failed)
}

// W2: Sync syncs every file and directory once; an error is returned and the batch keeps its files.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	inj := &Injector{K: -1}
	f := NewFS(Options{Hooks: inj.Hooks()})
	b := f.NewBatch()
	for i := range 5 {
		w, err := f.CreateUnsynced(filepath.Join(dir, "new", fmt.Sprint("d", i%2), fmt.Sprint(i)))
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 10+i*InlineLimit/3))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		b.Add(w.Name())
		b.Add(LocationOf(w.Name()))
	}
	require.Equal(t, 5, b.Len())
	require.Zero(t, f.Counters().Fsyncs.Load())
	require.NoError(t, b.SyncLarge(ctx))
	require.Equal(t, 3, b.Len(), "the small ones stay")
	require.NoError(t, b.Sync(ctx))
	require.Zero(t, b.Len())
	require.EqualValues(t, 5+5+2, f.Counters().Fsyncs.Load(), "files; d1, new, root, d0, new with the large ones; d0, d1 with the small ones")
	b.Add(filepath.Join(dir, "missing"))
	require.ErrorIs(t, b.Sync(ctx), fs.ErrNotExist)
	require.Equal(t, 1, b.Len())
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, b.Sync(over), context.Canceled)
}

// W3, and what Abort leaves.
func TestUnsyncedNeverReplaces(t *testing.T) {
	f := NewFS(Options{})
	path := filepath.Join(t.TempDir(), "x")
	w, err := f.CreateUnsynced(path)
	require.NoError(t, err)
	_, err = io.Copy(w, strings.NewReader("hello"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
	_, err = f.CreateUnsynced(path)
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, w.Abort())
	_, err = f.Stat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, w.Abort())
}

// A failed write is remembered: Close does not publish the file.
func TestFailedWriteIsNotPublished(t *testing.T) {
	inj := &Injector{K: 1}
	f := NewFS(Options{Hooks: inj.Hooks()})
	path := filepath.Join(t.TempDir(), "x")
	w, err := f.Create(path)
	require.NoError(t, err)
	_, err = w.Write([]byte("a"))
	require.ErrorIs(t, err, ErrInjected)
	_, err = w.Write([]byte("b"))
	require.NoError(t, err)
	require.ErrorIs(t, w.Close(), ErrInjected)
	_, err = f.Stat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// W4: nothing reaches outside the roots, by any spelling.
func TestRoots(t *testing.T) {
	root := t.TempDir()
	f := NewFS(Options{Roots: []string{root}})
	require.NoError(t, f.WriteFile(filepath.Join(root, "a"), nil))
	for _, name := range []string{"/etc/passwd", "file:///etc/passwd", root + "/../x", root + "x", LocationOf(root) + "/%2e%2e/x"} {
		_, err := f.Open(name)
		require.ErrorIs(t, err, ErrOutsideRoots, name)
		require.ErrorIs(t, f.WriteFile(name, nil), ErrOutsideRoots, name)
		_, err = f.CreateUnsynced(name)
		require.ErrorIs(t, err, ErrOutsideRoots, name)
		require.ErrorIs(t, f.Remove(name), ErrOutsideRoots, name)
		require.ErrorIs(t, f.RemoveAll(name), ErrOutsideRoots, name)
	}
	_, err := f.Open("s3://bucket/x")
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, err, ErrNotLocal)
}

// W4: links below the roots lead nowhere else; a root may itself be reached through one.
func TestRootsFollowLinks(t *testing.T) {
	dir := t.TempDir()
	outside, root, home := filepath.Join(dir, "outside"), filepath.Join(dir, "root"), filepath.Join(dir, "home")
	for _, d := range []string{outside, root, home} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "dir")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "file")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "none"), filepath.Join(root, "dangling")))
	require.NoError(t, os.Symlink(outside, filepath.Join(home, "disk")))
	alias := filepath.Join(dir, "alias")
	require.NoError(t, os.Symlink(root, alias))

	f := NewFS(Options{Roots: []string{alias}, Home: home})
	for _, name := range []string{"dir/secret", "file", "dangling", "dir/none/deep", "dir/../../outside/secret"} {
		for _, base := range []string{root, alias} {
			_, err := f.ReadFile(filepath.Join(base, name))
			require.ErrorIs(t, err, ErrOutsideRoots, name)
			_, err = f.OpenRange(base + "/" + name)
			require.ErrorIs(t, err, ErrOutsideRoots, name)
			require.ErrorIs(t, f.WriteFile(filepath.Join(base, name), nil), ErrOutsideRoots, name)
		}
	}
	require.NoError(t, f.MkdirAll(filepath.Join(alias, "new/er")))
	require.NoError(t, f.WriteFile(filepath.Join(alias, "new/er/x"), []byte("y")))
	p, err := f.Resolve(filepath.Join(alias, "new/er/x"))
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(filepath.Join(root, "new/er/x"))
	require.NoError(t, err)
	require.Equal(t, real, p)
	_, err = f.ReadFile(filepath.Join(home, "disk/secret"))
	require.NoError(t, err, "home's links are the operator's")
}

// Ranges against the bytes: random ones, in any order, in few calls, with one descriptor for everybody.
func TestReadRanges(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	data := make([]byte, 1<<20)
	rng.Read(data)
	f := NewFS(Options{HandleCache: 2})
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, f.WriteFile(path, data))
	r, err := f.OpenRange(LocationOf(path))
	require.NoError(t, err)
	require.EqualValues(t, len(data), r.Size())
	for range 200 {
		ranges := make([]Range, 1+rng.Intn(40))
		at := make([]int64, len(ranges))
		bufs := make([][]byte, len(ranges))
		for i := range ranges {
			n := rng.Intn(3000)
			at[i], bufs[i] = rng.Int63n(int64(len(data)-n)), make([]byte, n)
			ranges[i] = Range{Off: at[i], Buf: bufs[i]}
		}
		require.NoError(t, r.ReadRanges(ranges))
		for i, b := range bufs {
			require.True(t, bytes.Equal(b, data[at[i]:at[i]+int64(len(b))]))
		}
	}
	before := f.Counters().Snapshot()
	require.NoError(t, r.ReadRanges([]Range{{50_000, make([]byte, 100)}, {0, make([]byte, 100)}, {100, make([]byte, 100)}, {3000, make([]byte, 100)}}))
	d := f.Counters().Snapshot().Sub(before)
	require.Equal(t, Counts{Reads: 2, Bytes: 3100 + 100}, d, "three ranges in one call, the far one in another")
	require.ErrorIs(t, r.ReadRanges([]Range{{int64(len(data)) - 5, make([]byte, 6)}}), ErrShortFile)
	require.ErrorIs(t, r.ReadRanges([]Range{{-1, make([]byte, 6)}}), ErrShortFile)
	n, err := r.ReadAt(make([]byte, 10), int64(len(data))-5)
	require.Equal(t, 5, n)
	require.ErrorIs(t, err, io.EOF)
}

// Descriptors are bounded, shared and reopened, while many goroutines read.
func TestHandleCache(t *testing.T) {
	f := NewFS(Options{HandleCache: 3, NoSync: true})
	dir := t.TempDir()
	var files []RangeFile
	for i := range 10 {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, f.WriteFile(path, []byte{byte(i)}))
		r, err := f.OpenRange(path)
		require.NoError(t, err)
		files = append(files, r)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewSource(int64(g)))
			var b [1]byte
			for range 2000 {
				i := rng.Intn(len(files))
				if _, err := files[i].ReadAt(b[:], 0); err != nil || b[0] != byte(i) {
					t.Errorf("file %d: %v %d", i, err, b[0])
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, len(f.handles.mu.open), 3)
	before := f.Counters().Opens.Load()
	for range 100 {
		_, err := files[0].ReadAt(make([]byte, 1), 0)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, f.Counters().Opens.Load(), before+1)
	require.NoError(t, f.Remove(files[1].Path()))
	_, err := f.OpenRange(files[1].Path())
	require.ErrorIs(t, err, fs.ErrNotExist)
	f.CloseIdle()
	require.Empty(t, f.handles.mu.open)
}

// iceberg-go gets this file system for paths and file URIs.
func TestRegistered(t *testing.T) {
	for _, loc := range []string{"/x", "file:///x", "file:/x"} {
		got, err := icebergio.LoadFS(ctx, nil, loc)
		require.NoError(t, err)
		require.IsType(t, &FS{}, got)
	}
	f := NewFS(Options{})
	old := registered.Load()
	SetDefault(f)
	defer SetDefault(old)
	got, err := icebergio.LoadFS(ctx, nil, "file:///x")
	require.NoError(t, err)
	require.Same(t, f, got)
}

func TestTreeOperations(t *testing.T) {
	f := NewFS(Options{NoSync: true})
	dir := t.TempDir()
	a := LocationOf(filepath.Join(dir, "a b", "x"))
	require.NoError(t, f.WriteFile(a, []byte("1")))
	var seen []string
	require.NoError(t, f.WalkDir(LocationOf(dir), func(p string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			seen = append(seen, p)
		}
		return err
	}))
	require.Equal(t, []string{a}, seen)
	require.NoError(t, f.Rename(a, filepath.Join(dir, "y")))
	data, err := f.ReadFile(filepath.Join(dir, "y"))
	require.NoError(t, err)
	require.Equal(t, "1", string(data))
	wrote, err := f.Restore(filepath.Join(dir, "y"), []byte("1"))
	require.NoError(t, err)
	require.False(t, wrote)
	wrote, err = f.Restore(filepath.Join(dir, "y"), []byte("2"))
	require.NoError(t, err)
	require.True(t, wrote)
	gone, err := f.DeleteFiles(ctx, []string{filepath.Join(dir, "y"), filepath.Join(dir, "never")})
	require.NoError(t, err)
	require.Len(t, gone, 2)
	require.NoError(t, f.RemoveAll(filepath.Join(dir, "a b")))
	require.NoError(t, f.MkdirAll(filepath.Join(dir, "p", "q")))
	require.True(t, errors.Is(f.MkdirAll(filepath.Join(dir, "y", "q")), nil))
	r, err := f.Open(filepath.Join(dir, "y", "q"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// The measurement behind docs/decisions/0001-durability.md: four small files, then all ways to make them durable.
func BenchmarkDurable(b *testing.B) {
	f := NewFS(Options{})
	dir := b.TempDir()
	sizes := []int{2500, 4500, 3200, 6000}
	n := 0
	write := func(create func(string) (icebergio.FileWriter, error)) (paths []string) {
		for _, size := range sizes {
			n++
			w, err := create(filepath.Join(dir, fmt.Sprint(n)))
			require.NoError(b, err)
			_, err = w.Write(make([]byte, size))
			require.NoError(b, err)
			require.NoError(b, w.Close())
			paths = append(paths, filepath.Join(dir, fmt.Sprint(n)))
		}
		return paths
	}
	unsynced := func(name string) (icebergio.FileWriter, error) { return f.CreateUnsynced(name) }
	b.Run("create only", func(b *testing.B) {
		for b.Loop() {
			write(unsynced)
		}
	})
	b.Run("each durable", func(b *testing.B) {
		for b.Loop() {
			write(f.Create)
		}
	})
	b.Run("batch", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, f.SyncFiles(ctx, write(unsynced)))
		}
	})
}
