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

// The settler syncs files whose bytes the store carries, so that the store may forget the bytes. It waits settleDelay for
// more files, or until settleBytes wait.
const (
	settleDelay = 250 * time.Millisecond
	settleBytes = 4 << 20
	// settleMax is what may wait: beyond it commits sync their files themselves.
	settleMax = 32 << 20
)

type settler struct {
	c    *Catalog
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	mu struct {
		sync.Mutex
		pending []string
		bytes   int
		settled []string // synced: the next store transaction forgets their bytes
	}
}

func (s *settler) start() {
	s.wake, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go s.run()
}

// room reports whether size more bytes may be inlined.
func (s *settler) room(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.bytes+size <= settleMax
}

func (s *settler) add(paths []string, size int) {
	if len(paths) == 0 {
		return
	}
	s.mu.Lock()
	s.mu.pending = append(s.mu.pending, paths...)
	s.mu.bytes += size
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget takes files below a directory out: their table is gone.
func (s *settler) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.mu.pending[:0]
	for _, p := range s.mu.pending {
		if strings.HasPrefix(p, dir+"/") {
			s.mu.settled = append(s.mu.settled, p)
			continue
		}
		kept = append(kept, p)
	}
	s.mu.pending = kept
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
		s.mu.Unlock()
		if !full {
			timer.Reset(settleDelay)
			select {
			case <-timer.C:
			case <-s.stop:
				return
			}
		}
		if err := s.settle(); err != nil {
			s.c.log.Error().Err(err).Msg("sync of committed files; their bytes stay in the catalog")
		}
	}
}

// settle syncs what waits. On an error it waits on: the bytes are safe in the store.
func (s *settler) settle() error {
	s.mu.Lock()
	paths, size := s.mu.pending, s.mu.bytes
	s.mu.pending, s.mu.bytes = nil, 0
	s.mu.Unlock()
	if len(paths) == 0 {
		return nil
	}
	err := s.c.fs.SyncFiles(context.Background(), paths)
	if errors.Is(err, fs.ErrNotExist) { // expired meanwhile: one by one
		err = nil
		for _, p := range paths {
			if e := s.c.fs.SyncFiles(context.Background(), []string{p}); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.mu.pending = append(paths, s.mu.pending...)
		s.mu.bytes += size
		return err
	}
	s.mu.settled = append(s.mu.settled, paths...)
	s.c.counts.settled.Add(int64(len(paths)))
	return nil
}

// takeSettled returns up to n files to forget; giveBack undoes it when the transaction did not happen.
func (s *settler) takeSettled(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.mu.settled))
	taken := s.mu.settled[:n:n]
	s.mu.settled = s.mu.settled[n:]
	return taken
}

func (s *settler) giveBack(paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.settled = append(s.mu.settled, paths...)
}

// close stops the goroutine, settles what is left and empties the store of file bytes.
func (s *settler) close() error {
	close(s.stop)
	<-s.done
	if err := s.settle(); err != nil {
		return err // the next Open brings the bytes back
	}
	for {
		paths := s.takeSettled(s.c.store.Limits().Ops / 2)
		if len(paths) == 0 {
			return nil
		}
		var ops []store.Op
		for _, p := range paths {
			ops = append(ops, store.Op{Key: fileKey(p), Delete: true})
		}
		_, err := s.c.store.Apply(context.Background(), store.Tx{Ops: ops})
		if errors.Is(err, store.ErrFailed) {
			return nil // nothing can be written any more, and nothing is lost
		}
		if err != nil {
			return err
		}
	}
}
