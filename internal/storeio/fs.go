package storeio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	icebergio "github.com/apache/iceberg-go/io"
)

// Options configure an FS. The zero value is a durable file system without bounds.
type Options struct {
	// Roots are the directories that paths must lie in, with every symbolic link on the way followed; empty allows every path, unless Home
	// is set.
	Roots []string
	// Home is a directory that nobody else writes to: every path below it is allowed, and its links are not looked at.
	Home string
	// Hooks see every operation that changes the disk.
	Hooks *Hooks
	// HandleCache is the number of descriptors that range files keep open together; 0 means 256.
	HandleCache int
	// NoSync leaves out every fsync: for tests whose files need not survive.
	NoSync bool
}

// FS is the local file system of a warehouse. It implements iceberg-go's IO, WriteFileIO, ReadFileIO, StatIO, ListableIO,
// MkdirAllIO, RemoveAllIO, RenameIO and BulkRemovableIO; names may be paths or file URIs. Safe for concurrent use.
type FS struct {
	o        Options
	counters Counters
	handles  handleCache
	roots    roots
	recent   recent

	mu struct {
		sync.Mutex
		fresh map[string]struct{} // directories made here whose entry in the parent is not durable yet
	}
	devices devices
}

// NewFS returns an FS. It needs no Close: idle descriptors are bounded by Options.HandleCache; CloseIdle drops them.
func NewFS(o Options) *FS {
	if o.HandleCache <= 0 {
		o.HandleCache = 256
	}
	f := &FS{o: o}
	f.roots.init(o.Home, o.Roots)
	f.mu.fresh = map[string]struct{}{}
	f.handles.init(o.HandleCache, &f.counters)
	f.handles.hooks = o.Hooks
	return f
}

// Counters returns the live counters.
func (f *FS) Counters() *Counters { return &f.counters }

// Hooks returns the hooks the FS was made with, nil without.
func (f *FS) Hooks() *Hooks { return f.o.Hooks }

// NoSync reports whether the FS leaves out fsync.
func (f *FS) NoSync() bool { return f.o.NoSync }

func (f *FS) path(op, name string) (string, error) {
	p := PathOf(name)
	if strings.Contains(p, "://") {
		return "", &fs.PathError{Op: op, Path: name, Err: ErrNotLocal}
	}
	p = filepath.Clean(p)
	if err := f.roots.allow(p); err != nil {
		return "", &fs.PathError{Op: op, Path: p, Err: err}
	}
	return p, nil
}

// Open opens a file for reading, with a descriptor and an offset of its own.
func (f *FS) Open(name string) (icebergio.File, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	if data, ok := f.recent.get(p); ok {
		return &memoryFile{bytes.NewReader(data), p}, nil
	}
	file, _, err := openKinds(p, fs.ModeDir)
	if err != nil {
		return nil, err
	}
	f.counters.Opens.Add(1)
	return &readFile{File: file, c: &f.counters}, nil
}

// Remove removes a file or an empty directory.
func (f *FS) Remove(name string) error {
	p, err := f.path("remove", name)
	if err != nil {
		return err
	}
	f.handles.forget(p)
	f.recent.drop(p)
	return f.o.Hooks.Run(OpRemove, p, func() error { return os.Remove(p) })
}

// RemoveAll removes a tree; a missing one is no error.
func (f *FS) RemoveAll(name string) error {
	p, err := f.path("remove", name)
	if err != nil {
		return err
	}
	f.handles.forgetUnder(p)
	f.recent.drop(p)
	f.recent.dropUnder(p)
	if err := f.o.Hooks.Run(OpRemove, p, func() error { return os.RemoveAll(p) }); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir := range f.mu.fresh { // made, never synced, and gone
		if dir == p || strings.HasPrefix(dir, p+string(filepath.Separator)) {
			delete(f.mu.fresh, dir)
		}
	}
	return nil
}

// DeleteFiles removes files and returns those that are gone; a missing file counts as gone.
func (f *FS) DeleteFiles(ctx context.Context, paths []string) ([]string, error) {
	var gone []string
	var errs []error
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return gone, errors.Join(append(errs, err)...)
		}
		if err := f.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, p)
	}
	return gone, errors.Join(errs...)
}

// Stat describes a file.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	p, err := f.path("stat", name)
	if err != nil {
		return nil, err
	}
	return os.Stat(p)
}

// ReadDir lists a directory by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	return os.ReadDir(p)
}

// WalkDir walks a tree; fn sees names in the form of root (file URIs below a file URI).
func (f *FS) WalkDir(root string, fn fs.WalkDirFunc) error {
	p, err := f.path("open", root)
	if err != nil {
		return err
	}
	uri := p != filepath.Clean(root)
	return filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
		if uri {
			path = LocationOf(path)
		}
		return fn(path, d, err)
	})
}

// Rename moves a file, replacing the target, and makes both directories durable.
func (f *FS) Rename(oldpath, newpath string) error {
	src, err := f.path("rename", oldpath)
	if err != nil {
		return err
	}
	dst, err := f.path("rename", newpath)
	if err != nil {
		return err
	}
	f.recent.drop(src)
	f.recent.drop(dst)
	f.handles.forget(src)
	f.handles.forget(dst)
	if err := f.o.Hooks.Run(OpRename, dst, func() error { return os.Rename(src, dst) }); err != nil {
		return err
	}
	if err := f.syncDirs(filepath.Dir(dst)); err != nil {
		return err
	}
	if filepath.Dir(src) == filepath.Dir(dst) {
		return nil
	}
	return f.syncDirs(filepath.Dir(src))
}

// MkdirAll makes a directory and its parents. They become durable with the first file synced below them.
func (f *FS) MkdirAll(name string) error {
	p, err := f.path("mkdir", name)
	if err != nil {
		return err
	}
	return f.mkdirAll(p)
}

func (f *FS) mkdirAll(dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if st.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("not a directory")}
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := f.mkdirAll(parent); err != nil {
			return err
		}
	}
	err := f.o.Hooks.Run(OpMkdir, dir, func() error { return os.Mkdir(dir, 0o755) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f.mu.Lock()
	f.mu.fresh[dir] = struct{}{}
	f.mu.Unlock()
	return nil
}

// syncDirs makes the entries of dir durable, and dir itself when this FS made it.
func (f *FS) syncDirs(dir string) error {
	if err := f.syncPath(OpSyncDir, dir); err != nil {
		return err
	}
	for {
		f.mu.Lock()
		_, fresh := f.mu.fresh[dir]
		f.mu.Unlock()
		parent := filepath.Dir(dir)
		if !fresh || parent == dir {
			return nil
		}
		if err := f.syncPath(OpSyncDir, parent); err != nil {
			return err
		}
		f.mu.Lock()
		delete(f.mu.fresh, dir)
		f.mu.Unlock()
		dir = parent
	}
}

// syncPath fsyncs a file or a directory by name. Any descriptor will do: the kernel syncs the inode.
func (f *FS) syncPath(op Op, path string) error {
	return f.o.Hooks.Run(op, path, func() error {
		if f.o.NoSync {
			return nil
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			f.recent.drop(path)
		}
		if err != nil {
			return err
		}
		f.counters.Fsyncs.Add(1)
		err = file.Sync()
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		f.recent.drop(path)
		return nil
	})
}

// CloseIdle closes the descriptors of range files; they are reopened by the next read.
func (f *FS) CloseIdle() { f.handles.closeAll() }

type readFile struct {
	*os.File
	c *Counters
}

func (r *readFile) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	r.c.Reads.Add(1)
	r.c.Bytes.Add(int64(n))
	return n, err
}

func (r *readFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.File.ReadAt(p, off)
	r.c.Reads.Add(1)
	r.c.Bytes.Add(int64(n))
	return n, err
}

// WriteTo keeps io.Copy on the counted Read.
func (r *readFile) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

var registered atomic.Pointer[FS]

// SetDefault makes f the FS that iceberg-go's io.LoadFS returns for file URIs and bare paths. Without a call it returns a
// durable FS without bounds.
func SetDefault(f *FS) { registered.Store(f) }

func init() {
	registered.Store(NewFS(Options{}))
	factory := func(context.Context, *url.URL, map[string]string) (icebergio.IO, error) {
		return registered.Load(), nil
	}
	for _, scheme := range []string{"file", ""} {
		icebergio.Unregister(scheme) // iceberg-go's own never syncs
		icebergio.Register(scheme, factory)
	}
}

var (
	_ icebergio.WriteFileIO     = (*FS)(nil)
	_ icebergio.ReadFileIO      = (*FS)(nil)
	_ icebergio.StatIO          = (*FS)(nil)
	_ icebergio.ListableIO      = (*FS)(nil)
	_ icebergio.MkdirAllIO      = (*FS)(nil)
	_ icebergio.RemoveAllIO     = (*FS)(nil)
	_ icebergio.RenameIO        = (*FS)(nil)
	_ icebergio.BulkRemovableIO = (*FS)(nil)
)
