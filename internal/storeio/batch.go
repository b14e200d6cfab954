package storeio

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// InlineLimit is the size in bytes up to which the catalog carries a file's bytes inside its store transaction instead of
// syncing the file (docs/decisions/0001-durability.md). Files above it should be synced before the serial point: SyncLarge.
const InlineLimit = 64 << 10

// Batch collects complete, unsynced files that have to become durable together. Safe for concurrent use.
type Batch struct {
	fs *FS
	mu struct {
		sync.Mutex
		seen  map[string]struct{}
		paths []string
	}
}

// NewBatch returns an empty batch.
func (f *FS) NewBatch() *Batch {
	b := &Batch{fs: f}
	b.mu.seen = map[string]struct{}{}
	return b
}

// Add names a closed file by path or location. A name added twice is synced once.
func (b *Batch) Add(path string) {
	p := filepath.Clean(PathOf(path))
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.mu.seen[p]; ok {
		return
	}
	b.mu.seen[p] = struct{}{}
	b.mu.paths = append(b.mu.paths, p)
}

// Paths returns the files that are not synced yet, in the order they were added.
func (b *Batch) Paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.mu.paths...)
}

// Len returns the number of files that are not synced yet.
func (b *Batch) Len() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.mu.paths) }

func (b *Batch) take(keep func(path string) bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken, kept []string
	for _, p := range b.mu.paths {
		if keep != nil && keep(p) {
			kept = append(kept, p)
			continue
		}
		taken = append(taken, p)
		delete(b.mu.seen, p)
	}
	b.mu.paths = kept
	return taken
}

func (b *Batch) put(paths []string) {
	for _, p := range paths {
		b.Add(p)
	}
}

// Sync makes every added file durable, and the directories that hold them. On success the batch is empty; after an error
// it holds the same files, and which of them are durable is unknown. ctx is honoured between files.
func (b *Batch) Sync(ctx context.Context) error { return b.sync(ctx, nil) }

// SyncLarge does what Sync does for the files above InlineLimit and leaves the others in the batch.
func (b *Batch) SyncLarge(ctx context.Context) error {
	return b.sync(ctx, func(p string) bool {
		st, err := os.Stat(p)
		return err == nil && st.Size() <= InlineLimit
	})
}

func (b *Batch) sync(ctx context.Context, keep func(string) bool) error {
	paths := b.take(keep)
	if err := b.fs.SyncFiles(ctx, paths); err != nil {
		b.put(paths)
		return err
	}
	return nil
}

// SyncFiles makes files and the directories that hold them durable. A missing file is an error, but for one that only saves
// work (Cache): one that cannot be synced is removed instead.
func (f *FS) SyncFiles(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if len(paths) > 1 && !f.o.NoSync {
		for _, p := range paths {
			startWriteback(p) // the device sees all files before the first wait
		}
	}
	dirs := make(map[string]struct{}, 2)
	var order []string
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.syncPath(OpSync, p); err != nil && !f.spared(p) {
			return err
		}
		d := filepath.Dir(p)
		if _, ok := dirs[d]; !ok {
			dirs[d] = struct{}{}
			order = append(order, d)
		}
	}
	for _, d := range order {
		if err := f.syncDirs(d); err != nil {
			return err
		}
	}
	return nil
}

// spared says that a file which could not be synced is one that nobody needs. It is removed: what it holds after a power cut is not known.
func (f *FS) spared(path string) bool {
	if !Cache(path) {
		return false
	}
	f.recent.drop(path)
	_ = os.Remove(path)
	return true
}

// syncfsFrom is the number of files from which SyncMany asks for the whole file system at once.
const syncfsFrom = 16

// SyncMany does what SyncFiles does, for callers that nobody waits for: many files are synced by one syncfs, which also waits for what others
// write to the file system. A file that is gone is no error then.
func (f *FS) SyncMany(ctx context.Context, paths []string) error {
	if len(paths) < syncfsFrom || f.o.NoSync {
		return f.SyncFiles(ctx, paths)
	}
	done := false
	all := func() error {
		if done {
			return nil
		}
		n, err := f.syncFileSystems(paths)
		f.counters.Fsyncs.Add(int64(n))
		done = err == nil
		return err
	}
	dirs := map[string]struct{}{}
	for _, p := range paths {
		if err := f.o.Hooks.Run(OpSync, p, all); errors.Is(err, errors.ErrUnsupported) {
			return f.SyncFiles(ctx, paths)
		} else if err != nil && !f.spared(p) {
			return err
		}
		f.recent.drop(p)
		dirs[filepath.Dir(p)] = struct{}{}
	}
	for d := range dirs {
		if err := f.o.Hooks.Run(OpSyncDir, d, all); err != nil {
			return err
		}
	}
	return nil
}

// Restore makes sure that path holds exactly data, durably when it had to be written: the way back of bytes that were kept
// elsewhere while the file was unsynced. It reports whether it wrote.
func (f *FS) Restore(path string, data []byte) (bool, error) {
	p, err := f.path("open", path)
	if err != nil {
		return false, err
	}
	have, err := readRegular(p, int64(len(data)))
	switch {
	case err == nil && string(have) == string(data):
		return false, nil
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrTooLarge), errors.Is(err, ErrNotRegular):
		return true, f.WriteFile(p, data)
	}
	return false, err
}
