package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/nordisk/skade-pg/catalog/store"
)

// Options of Open.
type Options struct {
	// NoSync leaves out the fdatasyncs: for tests whose data need not survive.
	NoSync bool
	// ReadOnly opens under a shared lock; Apply fails.
	ReadOnly bool
}

// Limits of one transaction. Far above etcd's: one bbolt transaction may be large, its cost is its dirty pages.
var limits = store.Limits{Ops: 1 << 16, Bytes: 32 << 20, InlineBytes: 4 << 20}

// rangeBytes bounds one answer of Range.
const rangeBytes = 4 << 20

var bucketName = []byte("skade")

// Store is an open bbolt file.
type Store struct {
	db   *bolt.DB
	path string
	ro   bool
	ring ring

	mu struct {
		sync.Mutex
		failed error
		closed bool
	}
}

// Open opens the file, creating it when it is missing. store.ErrLocked at once when it is open elsewhere, store.ErrDamaged
// when it is not a bbolt file, is cut short or has a page that bbolt could not be trusted with, fs.ErrPermission or EROFS when it cannot be written.
func Open(path string, o Options) (_ *Store, err error) {
	defer guard(&err)
	if _, serr := os.Stat(path); errors.Is(serr, fs.ErrNotExist) && !o.ReadOnly {
		if err := create(path, o); err != nil {
			return nil, err
		}
	}
	db, err := open(path, o)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, path: path, ro: o.ReadOnly}
	if err := s.verify(); err != nil {
		_ = db.Close()
		return nil, err
	}
	s.ring.init(s.Revision())
	return s, nil
}

func open(path string, o Options) (_ *bolt.DB, err error) {
	var file *os.File
	defer func() {
		if r := recover(); r != nil { // bbolt panicked on a page: it keeps the lock with the descriptor
			if file != nil {
				unlock(file)
				_ = file.Close()
			}
			err = fmt.Errorf("open %s: %w: %v", path, store.ErrDamaged, r)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bolt.Open(path, 0o600, &bolt.Options{ // the options of mounts in it may be secrets
		OpenFile: func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
			f, err = os.OpenFile(name, flag, perm)
			file = f
			return f, err
		},
		Timeout:      time.Nanosecond, // one attempt
		NoSync:       o.NoSync,
		ReadOnly:     o.ReadOnly,
		FreelistType: bolt.FreelistMapType,
		NoStatistics: true,
	})
	switch {
	case err == nil:
		if !o.ReadOnly {
			_ = os.Chmod(path, 0o600) // older versions let everybody read it; whoever owns the file decides
		}
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w", path, store.ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrInvalidMapping), strings.HasPrefix(err.Error(), "file size too small"):
		return nil, fmt.Errorf("open %s: %w: %w", path, store.ErrDamaged, err)
	}
	return nil, fmt.Errorf("open %s: %w", path, err)
}

// create makes the file complete under another name first: a crash leaves no half-made store behind.
func create(path string, o Options) error {
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	db, err := open(tmp, o)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Link(tmp, path) // never replaces: another process may have been faster
	}
	_ = os.Remove(tmp)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if o.NoSync {
		return nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if cerr := dir.Close(); err == nil {
		err = cerr
	}
	return err
}

// verify looks at what bbolt takes on trust.
func (s *Store) verify() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer guard(&err)
	return s.db.View(func(tx *bolt.Tx) error {
		st, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		if st.Size() < tx.Size() {
			return fmt.Errorf("%s is %d bytes, its meta page says %d: %w", s.path, st.Size(), tx.Size(), store.ErrDamaged)
		}
		var first string
		n := 0
		if err := s.pages(tx, func(d string) {
			if n++; n == 1 {
				first = d
			}
		}); err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%s: %w: %s (the first of %d problems)", s.path, store.ErrDamaged, first, n)
		}
		if tx.Bucket(bucketName) == nil {
			return fmt.Errorf("%s has no catalog in it: %w", s.path, store.ErrDamaged)
		}
		return nil
	})
}

// pages checks the pages that tx sees.
func (s *Store) pages(tx *bolt.Tx, report func(string)) (err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read; bbolt's lock belongs to its own open file
	return checkPages(f, uint64(tx.ID()), report)
}

// guard turns a panic of bbolt, or a fault in the memory map, into an error. It must be deferred by the function that
// touches pages.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", store.ErrDamaged, r)
	}
}

func (s *Store) view(do func(b *bolt.Bucket) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer guard(&err)
	err = s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketName)
		if b == nil {
			return fmt.Errorf("%s: %w", s.path, store.ErrDamaged)
		}
		return do(b)
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	return err
}

// Get returns a copy of the value.
func (s *Store) Get(ctx context.Context, key []byte) (value []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.view(func(b *bolt.Bucket) error {
		v := b.Get(key)
		if v == nil {
			return store.ErrNotFound
		}
		value = append(make([]byte, 0, len(v)), v...)
		return nil
	})
	return value, err
}

// Range reads a part of the key space at one revision.
func (s *Store) Range(ctx context.Context, r store.RangeRequest) (res store.RangeResult, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	err = s.view(func(b *bolt.Bucket) error {
		c := b.Cursor()
		size := 0
		for k, v := start(c, r); inside(k, r); k, v = step(c, r) {
			if (r.Limit > 0 && len(res.Pairs) == r.Limit) || size > rangeBytes {
				res.More = true
				return nil
			}
			p := store.Pair{Key: bytes.Clone(k)}
			if !r.KeysOnly {
				p.Value = append(make([]byte, 0, len(v)), v...)
			}
			size += len(p.Key) + len(p.Value)
			res.Pairs = append(res.Pairs, p)
		}
		return nil
	})
	return res, err
}

func start(c *bolt.Cursor, r store.RangeRequest) (k, v []byte) {
	if !r.Reverse {
		return c.Seek(r.From)
	}
	if r.To == nil {
		return c.Last()
	}
	if k, _ = c.Seek(r.To); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func step(c *bolt.Cursor, r store.RangeRequest) (k, v []byte) {
	if r.Reverse {
		return c.Prev()
	}
	return c.Next()
}

func inside(k []byte, r store.RangeRequest) bool {
	if k == nil {
		return false
	}
	if r.Reverse {
		return bytes.Compare(k, r.From) >= 0
	}
	return r.To == nil || bytes.Compare(k, r.To) < 0
}

// Apply runs one bbolt transaction.
func (s *Store) Apply(ctx context.Context, t store.Tx) (rev uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(t.Ops) > limits.Ops || t.Size() > limits.Bytes {
		return 0, fmt.Errorf("%d operations, %d bytes: %w", len(t.Ops), t.Size(), store.ErrTooLarge)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return 0, store.ErrClosed
	}
	if s.mu.failed != nil {
		return 0, fmt.Errorf("%w: %w", store.ErrFailed, s.mu.failed)
	}
	rev, clean, err := s.apply(t)
	if err != nil {
		if !clean {
			s.mu.failed = err
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
		}
		return 0, err
	}
	s.ring.add(store.Event{Revision: rev, Ops: loud(t.Ops)})
	return rev, nil
}

// loud are the operations that watches see.
func loud(ops []store.Op) []store.Op {
	if !slices.ContainsFunc(ops, func(o store.Op) bool { return o.Quiet }) {
		return ops
	}
	out := make([]store.Op, 0, len(ops))
	for _, o := range ops {
		if !o.Quiet {
			out = append(out, o)
		}
	}
	return out
}

// apply reports in clean whether an error left the file as it was. That holds for every error before the commit, and for
// a full disk: bbolt extends the file and writes the pages before it overwrites the meta page in place.
func (s *Store) apply(t store.Tx) (rev uint64, clean bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer guard(&err)
	tx, err := s.db.Begin(true)
	if err != nil {
		return 0, true, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	b := tx.Bucket(bucketName)
	if b == nil {
		return 0, true, fmt.Errorf("%s: %w", s.path, store.ErrDamaged)
	}
	for _, c := range t.Compares {
		have := b.Get(c.Key)
		if (have == nil) != c.Absent || (!c.Absent && !bytes.Equal(have, c.Value)) {
			return 0, true, fmt.Errorf("key %q: %w", c.Key, store.ErrCompareFailed)
		}
	}
	for _, o := range t.Ops {
		if o.Delete {
			err = b.Delete(o.Key)
		} else {
			err = b.Put(o.Key, o.Value)
		}
		if err != nil {
			return 0, true, fmt.Errorf("put %q: %w", o.Key, err)
		}
	}
	rev = uint64(tx.ID())
	if err := tx.Commit(); err != nil {
		full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
		return 0, full, fmt.Errorf("commit %s: %w", s.path, err)
	}
	return rev, true, nil
}

// Revision returns bbolt's newest transaction id.
func (s *Store) Revision() uint64 {
	rev := uint64(0)
	_ = s.db.View(func(tx *bolt.Tx) error {
		rev = uint64(tx.ID())
		return nil
	})
	return rev
}

// Watch delivers transactions after the revision.
func (s *Store) Watch(_ context.Context, after uint64) (store.Watch, error) {
	return &watch{ring: &s.ring, at: after}, nil
}

// Limits returns what one transaction may hold.
func (s *Store) Limits() store.Limits { return limits }

// Path returns the file's path.
func (s *Store) Path() string { return s.path }

// Check reads every page (checkPages), while writers wait.
func (s *Store) Check(_ context.Context, report func(string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return store.ErrClosed
	}
	return s.db.View(func(tx *bolt.Tx) error { return s.pages(tx, report) })
}

// Close ends all watches and releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil
	}
	s.mu.closed = true
	s.ring.close()
	return s.db.Close()
}

var _ store.Store = (*Store)(nil)
