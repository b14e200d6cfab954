package catalog

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/nordisk/skade-pg/catalog/store"
)

// The settler writes and syncs files that the store's transactions say how to make again (docs/decisions/0009-commits.md), so that the store may
// forget that. It waits settleDelay for
// more files, or until settleBytes wait; longer when a large metadata file has to be written, a second for each settleRate bytes.
const (
	settleDelay = 250 * time.Millisecond
	settleBytes = 8 << 20
	settleRate  = 2 << 20
	settleLong  = 5 * time.Second
	// settleMax is what may wait: beyond it commits sync their files themselves.
	settleMax = 32 << 20
)

type settler struct {
	c    *Catalog
	wake chan struct{}
	stop chan struct{}
	done chan struct{}
	busy sync.Mutex // held by whoever settles, before mu

	mu struct {
		sync.Mutex
		pending []settleGroup
		bytes   int
		settled [][]byte             // keys that the next store transaction removes
		late    map[string]*document // metadata files that are not written yet, by path
		largest int                  // of them, in bytes
	}
}

// settleGroup is what one store transaction carries.
type settleGroup struct {
	key   []byte
	size  int
	files []redoFile
}

func (s *settler) start() {
	s.wake, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	s.mu.late = map[string]*document{}
	go s.run()
}

// room reports whether size more bytes may be inlined.
func (s *settler) room(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.bytes+size <= settleMax
}

// add takes over the files of a store transaction that has happened.
func (s *settler) add(g settleGroup) {
	if len(g.files) == 0 {
		return
	}
	s.mu.Lock()
	s.mu.pending = append(s.mu.pending, g)
	s.mu.bytes += g.size
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// later notes a metadata file that settle will write. It is readable by unwritten from now on.
func (s *settler) later(path string, d *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.late[path] = d
	s.mu.largest = max(s.mu.largest, d.size())
}

// never takes back a later whose transaction did not happen.
func (s *settler) never(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.late, path)
}

// unwritten is a metadata file that is not written yet.
func (s *settler) unwritten(path string) (*document, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.mu.late[path]
	return d, ok
}

// forget takes files below a directory out: their table is gone.
func (s *settler) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.pending {
		g := &s.mu.pending[i]
		var kept []redoFile
		for _, f := range g.files {
			if !strings.HasPrefix(f.path, dir+"/") {
				kept = append(kept, f)
			}
		}
		g.files = kept
	}
	for p := range s.mu.late {
		if strings.HasPrefix(p, dir+"/") {
			delete(s.mu.late, p)
		}
	}
}

func (s *settler) run() {
	defer close(s.done)
	timer := time.NewTimer(settleDelay)
	defer timer.Stop()
	for {
		select {
		case <-s.wake:
		case <-s.stop:
			return
		}
		s.mu.Lock()
		full := s.mu.bytes >= settleBytes
		delay := min(settleLong, max(settleDelay, time.Duration(s.mu.largest)*time.Second/settleRate))
		s.mu.Unlock()
		if !full {
			timer.Reset(delay)
			select {
			case <-timer.C:
			case <-s.stop:
				return
			}
		}
		if err := s.settle(); err != nil {
			s.c.log.Error().Err(err).Msg("sync of committed files; the catalog still knows how to make them again")
		}
	}
}

// settle writes and syncs what waits. On an error it waits on: nothing is lost that the store carries.
func (s *settler) settle() error {
	s.busy.Lock()
	defer s.busy.Unlock()
	s.mu.Lock()
	groups, size := s.mu.pending, s.mu.bytes
	s.mu.pending, s.mu.bytes, s.mu.largest = nil, 0, 0
	s.mu.Unlock()
	if len(groups) == 0 {
		return nil
	}
	paths, late, err := s.write(groups)
	if err == nil {
		err = s.sync(paths)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.mu.pending = append(groups, s.mu.pending...)
		s.mu.bytes += size
		return err
	}
	for _, p := range late { // those that a newer one continued are never written: old cuts read the newest
		delete(s.mu.late, p)
	}
	for _, g := range groups {
		s.mu.settled = append(s.mu.settled, g.key)
	}
	s.c.counts.settled.Add(int64(len(paths)))
	return nil
}

// write writes the metadata files that are late, but for those that later ones of the groups continue. It returns all files to sync and the
// late ones.
func (s *settler) write(groups []settleGroup) (paths, late []string, err error) {
	continued := map[string]bool{}
	for _, g := range groups {
		for _, f := range g.files {
			if f.patch != nil && f.late {
				continued[f.patch.base] = true
			}
		}
	}
	for _, g := range groups {
		for _, f := range g.files {
			if !f.late {
				paths = append(paths, f.path)
				continue
			}
			late = append(late, f.path)
			d, ok := s.unwritten(f.path)
			if !ok || continued[f.path] {
				continue
			}
			if err := s.c.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // a former try
				return nil, nil, err
			}
			if err := writeUnsyncedFile(s.c.fs, f.path, d.bytes()); err != nil {
				return nil, nil, err
			}
			paths = append(paths, f.path)
		}
	}
	return paths, late, nil
}

func (s *settler) sync(paths []string) error {
	err := s.c.fs.SyncMany(context.Background(), paths)
	if errors.Is(err, fs.ErrNotExist) { // expired meanwhile: one by one
		err = nil
		for _, p := range paths {
			if e := s.c.fs.SyncFiles(context.Background(), []string{p}); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// takeSettled returns up to n keys to remove; giveBack undoes it when the transaction did not happen.
func (s *settler) takeSettled(n int) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.mu.settled))
	taken := s.mu.settled[:n:n]
	s.mu.settled = s.mu.settled[n:]
	return taken
}

func (s *settler) giveBack(keys [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.settled = append(keys, s.mu.settled...)
}

// drain settles what waits and empties the store of it.
func (s *settler) drain() error {
	if err := s.settle(); err != nil {
		return err // the next Open makes the files again
	}
	for {
		keys := s.takeSettled(s.c.store.Limits().Ops / 2)
		if len(keys) == 0 {
			return nil
		}
		var ops []store.Op
		for _, k := range keys {
			ops = append(ops, store.Op{Key: k, Delete: true, Quiet: true})
		}
		if _, err := s.c.store.Apply(context.Background(), store.Tx{Ops: ops}); err != nil {
			s.giveBack(keys)
			return err
		}
	}
}

// close stops the goroutine and drains.
func (s *settler) close() error {
	close(s.stop)
	<-s.done
	if err := s.drain(); !errors.Is(err, store.ErrFailed) { // then nothing can be written any more, and nothing is lost
		return err
	}
	return nil
}

// WriteMetadata writes the metadata files that are late: whoever tells others where metadata files are calls it first. A file that holds many
// commits is written every few seconds only while commits go on; files that no cut points to any more may never be written.
func (c *Catalog) WriteMetadata() error {
	c.settler.mu.Lock()
	n := len(c.settler.mu.late)
	c.settler.mu.Unlock()
	if n == 0 {
		return nil
	}
	return c.settler.settle()
}
