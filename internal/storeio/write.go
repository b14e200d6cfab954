package storeio

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	icebergio "github.com/apache/iceberg-go/io"
)

// Create returns a writer whose Close makes the file durable under its name, replacing an older one: temporary name,
// fsync, rename, fsync of the directory. When Close returns an error nothing has the name (or the older file still has).
func (f *FS) Create(name string) (icebergio.FileWriter, error) { return f.create(name) }

func (f *FS) create(name string) (*durableFile, error) {
	p, err := f.path("create", name)
	if err != nil {
		return nil, err
	}
	if err := f.mkdirAll(filepath.Dir(p)); err != nil {
		return nil, err
	}
	var suffix [6]byte
	if _, err := rand.Read(suffix[:]); err != nil {
		return nil, err
	}
	tmp := filepath.Join(filepath.Dir(p), "."+filepath.Base(p)+"."+hex.EncodeToString(suffix[:])+".tmp")
	w := &durableFile{writer: writer{fs: f, name: p, at: tmp}}
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteFile writes a file durably, as Create does.
func (f *FS) WriteFile(name string, data []byte) error {
	w, err := f.create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// Pending is a new file that is not durable until a Batch that holds its path is synced.
type Pending interface {
	icebergio.FileWriter
	// Name is the path of the file.
	Name() string
	// Abort closes and removes the file. After Close it only removes it.
	Abort() error
}

// CreateUnsynced creates a file under its final name without any sync. It never replaces a file: an existing name is
// fs.ErrExist. There is no temporary name because nothing refers to the file before its Batch is synced.
func (f *FS) CreateUnsynced(name string) (Pending, error) {
	p, err := f.path("create", name)
	if err != nil {
		return nil, err
	}
	w := &unsyncedFile{writer: writer{fs: f, name: p, at: p}}
	err = w.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.mkdirAll(filepath.Dir(p)); err == nil {
			err = w.open()
		}
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

type writer struct {
	fs   *FS
	name string // the final path
	at   string // where the bytes are now
	file *os.File
	err  error // the first failed write: the file must not be published
}

func (w *writer) open() error {
	return w.fs.o.Hooks.Run(OpCreate, w.name, func() error {
		file, err := os.OpenFile(w.at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		w.file = file
		w.fs.counters.Creates.Add(1)
		return nil
	})
}

// Name is the path the file has once it is complete.
func (w *writer) Name() string { return w.name }

func (w *writer) Write(p []byte) (int, error) {
	n := 0
	err := w.fs.o.Hooks.Run(OpWrite, w.name, func() (err error) {
		n, err = w.file.Write(p)
		w.fs.counters.Written.Add(int64(n))
		return err
	})
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// ReadFrom copies through Write, so that hooks and counters see it.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 256<<10))
}

// Abort closes the file and removes it.
func (w *writer) Abort() error {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	if w.at == "" {
		return nil
	}
	err := os.Remove(w.at)
	w.at = ""
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type durableFile struct{ writer }

// Close publishes the file. A second Close is fs.ErrClosed.
func (w *durableFile) Close() error {
	if w.file == nil {
		return fs.ErrClosed
	}
	if err := w.publish(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func (w *durableFile) publish() error {
	if w.err != nil {
		return w.err
	}
	h := w.fs.o.Hooks
	err := h.Run(OpSync, w.name, func() error {
		if w.fs.o.NoSync {
			return nil
		}
		w.fs.counters.Fsyncs.Add(1)
		return w.file.Sync()
	})
	if err != nil {
		return err
	}
	file := w.file
	w.file = nil
	if err := file.Close(); err != nil {
		return err
	}
	w.fs.handles.forget(w.name)
	if err := h.Run(OpRename, w.name, func() error { return os.Rename(w.at, w.name) }); err != nil {
		return err
	}
	w.at = w.name // a name whose directory did not reach the disk must not stay
	if err := w.fs.syncDirs(filepath.Dir(w.name)); err != nil {
		return err
	}
	w.at = ""
	return nil
}

// unsyncedFile keeps what is written until it is more than InlineLimit: a small file is one write, and stays readable in memory.
type unsyncedFile struct {
	writer
	buf   []byte
	large bool
}

func (w *unsyncedFile) Write(p []byte) (int, error) {
	if w.file == nil {
		return 0, fs.ErrClosed
	}
	if !w.large && len(w.buf)+len(p) <= InlineLimit {
		w.buf = append(w.buf, p...)
		return len(p), nil
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.large, w.buf = true, nil
	return w.writer.Write(p)
}

// ReadFrom copies through Write.
func (w *unsyncedFile) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 256<<10))
}

func (w *unsyncedFile) flush() error {
	if len(w.buf) == 0 || w.large {
		return nil
	}
	_, err := w.writer.Write(w.buf)
	return err
}

// Close ends the file; it is complete for this and other processes, and not durable. On an error it is removed.
func (w *unsyncedFile) Close() error {
	if w.file == nil {
		return fs.ErrClosed
	}
	if err := w.flush(); err != nil {
		return errors.Join(err, w.Abort())
	}
	err := w.file.Close()
	w.file = nil
	if w.err != nil {
		err = w.err
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	if !w.large && !w.fs.o.NoSync {
		w.fs.recent.put(w.name, w.buf)
	}
	w.buf = nil
	return nil
}

// Abort closes the file and removes it.
func (w *unsyncedFile) Abort() error {
	w.fs.recent.drop(w.name)
	return w.writer.Abort()
}
