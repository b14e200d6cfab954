package storeio

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MaxGap is the number of unwanted bytes between two ranges up to which ReadRanges reads both in one call.
const MaxGap = 4 << 10

// maxIovecs is the number of buffers one vectored read takes (IOV_MAX is 1,024; gaps take one each).
const maxIovecs = 512

// Range is a part of a file to read: len(Buf) bytes at Off.
type Range struct {
	Off int64
	Buf []byte
}

// RangeFile reads an immutable file by position. Many goroutines may share one; its descriptor comes from the FS's cache
// and is reopened when it was closed meanwhile, so holding a RangeFile holds no descriptor.
type RangeFile interface {
	io.ReaderAt
	// ReadRanges fills every Buf; ranges that touch or lie at most MaxGap apart are read in one call. The slice is sorted
	// by offset in place.
	ReadRanges(ranges []Range) error
	// Size is the file's size in bytes when it was opened.
	Size() int64
	// Path is the file's local path.
	Path() string
	// Counted is the same file; opens that its reads cause are counted in opens too.
	Counted(opens *atomic.Int64) RangeFile
	// Close gives the handle up. Reads after it still work.
	Close() error
}

// OpenRange opens an immutable file for positioned reads. A file that FS removes or replaces is reopened by the next
// OpenRange; one that others replace is not noticed.
func (f *FS) OpenRange(name string) (RangeFile, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	if data, ok := f.recent.get(p); ok {
		return &rangeFile{h: f.handles.get(p), size: int64(len(data)), c: &f.counters, recent: &f.recent}, nil
	}
	h := f.handles.get(p)
	size, err := h.stat()
	if err != nil {
		f.handles.forget(p)
		return nil, err
	}
	return &rangeFile{h: h, size: size, c: &f.counters}, nil
}

type rangeFile struct {
	h      *handle
	size   int64
	c      *Counters
	recent *recent // where the file may be as long as it is not synced; nil: it was not there when it was opened
	opens  *atomic.Int64
}

func (r *rangeFile) Counted(opens *atomic.Int64) RangeFile {
	c := *r
	c.opens = opens
	return &c
}

// with calls read with an open descriptor.
func (r *rangeFile) with(read func(*os.File) error) error {
	if err := r.h.cache.hooks.read(r.h.path); err != nil {
		return err
	}
	opened, err := r.h.with(read)
	if opened && r.opens != nil {
		r.opens.Add(1)
	}
	return err
}

// memory is the content, when it is in memory.
func (r *rangeFile) memory() ([]byte, bool) {
	if r.recent == nil {
		return nil, false
	}
	return r.recent.get(r.h.path)
}

func (r *rangeFile) Size() int64  { return r.size }
func (r *rangeFile) Path() string { return r.h.path }
func (r *rangeFile) Close() error { return nil }

// ReadAt reads len(p) bytes at off: one call. io.EOF at the end of the file, as io.ReaderAt says.
func (r *rangeFile) ReadAt(p []byte, off int64) (int, error) {
	if data, ok := r.memory(); ok {
		return bytes.NewReader(data).ReadAt(p, off)
	}
	n := 0
	err := r.with(func(file *os.File) (err error) {
		n, err = file.ReadAt(p, off)
		r.c.Reads.Add(1)
		r.c.Bytes.Add(int64(n))
		return err
	})
	return n, err
}

func (r *rangeFile) ReadRanges(ranges []Range) error {
	if data, ok := r.memory(); ok {
		return r.copyRanges(data, ranges)
	}
	slices.SortFunc(ranges, func(a, b Range) int {
		switch {
		case a.Off < b.Off:
			return -1
		case a.Off > b.Off:
			return 1
		}
		return 0
	})
	return r.with(func(file *os.File) error {
		for i := 0; i < len(ranges); {
			j, end := i+1, ranges[i].Off+int64(len(ranges[i].Buf))
			for j < len(ranges) && 2*(j-i) < maxIovecs && ranges[j].Off >= end && ranges[j].Off-end <= MaxGap {
				end = ranges[j].Off + int64(len(ranges[j].Buf))
				j++
			}
			if err := r.readRun(file, ranges[i:j]); err != nil {
				return err
			}
			i = j
		}
		return nil
	})
}

func (r *rangeFile) copyRanges(data []byte, ranges []Range) error {
	for _, x := range ranges {
		if x.Off < 0 || x.Off+int64(len(x.Buf)) > int64(len(data)) {
			return fmt.Errorf("read %s at %d, %d bytes of %d: %w", r.h.path, x.Off, len(x.Buf), len(data), ErrShortFile)
		}
		copy(x.Buf, data[x.Off:])
	}
	return nil
}

var gapBytes = sync.Pool{New: func() any { b := make([]byte, MaxGap); return &b }}

// readRun reads ranges that one call covers.
func (r *rangeFile) readRun(file *os.File, run []Range) error {
	start := run[0].Off
	last := run[len(run)-1]
	want := last.Off + int64(len(last.Buf)) - start
	if start < 0 || start+want > r.size {
		return fmt.Errorf("read %s at %d, %d bytes of %d: %w", r.h.path, start, want, r.size, ErrShortFile)
	}
	if len(run) == 1 {
		return r.fill(file, [][]byte{last.Buf}, start, want)
	}
	gap := gapBytes.Get().(*[]byte)
	defer gapBytes.Put(gap)
	bufs := make([][]byte, 0, 2*len(run))
	at := start
	for _, x := range run {
		if x.Off > at {
			bufs = append(bufs, (*gap)[:x.Off-at])
		}
		bufs = append(bufs, x.Buf)
		at = x.Off + int64(len(x.Buf))
	}
	return r.fill(file, bufs, start, want)
}

func (r *rangeFile) fill(file *os.File, bufs [][]byte, off, want int64) error {
	for want > 0 {
		n, err := readv(file, bufs, off)
		r.c.Reads.Add(1)
		r.c.Bytes.Add(int64(max(n, 0)))
		if n <= 0 {
			if err == nil || err == io.EOF {
				err = ErrShortFile
			}
			return fmt.Errorf("read %s at %d: %w", r.h.path, off, err)
		}
		off, want = off+int64(n), want-int64(n)
		for n > 0 || (len(bufs) > 0 && len(bufs[0]) == 0) {
			if n < len(bufs[0]) {
				bufs[0] = bufs[0][n:]
				break
			}
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
	}
	return nil
}

// handle is one path's descriptor: nil while closed.
type handle struct {
	path  string
	cache *handleCache
	used  atomic.Int64
	mu    struct {
		sync.RWMutex
		file *os.File
	}
}

// with calls read with an open descriptor; opened says that it had to be opened.
func (h *handle) with(read func(*os.File) error) (opened bool, err error) {
	h.used.Store(h.cache.clock.Add(1))
	h.mu.RLock()
	if h.mu.file != nil {
		defer h.mu.RUnlock()
		return false, read(h.mu.file)
	}
	h.mu.RUnlock()
	if err := h.open(); err != nil {
		return false, err
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.mu.file == nil { // evicted in between: read with a descriptor of our own
		file, _, err := openRegular(h.path)
		if err != nil {
			return true, err
		}
		h.cache.counters.Opens.Add(1)
		defer file.Close()
		return true, read(file)
	}
	return true, read(h.mu.file)
}

func (h *handle) open() error {
	h.mu.Lock()
	if h.mu.file != nil {
		h.mu.Unlock()
		return nil
	}
	file, _, err := openRegular(h.path)
	if err != nil {
		h.mu.Unlock()
		return err
	}
	h.cache.counters.Opens.Add(1)
	h.mu.file = file
	h.mu.Unlock()
	h.cache.opened(h)
	return nil
}

func (h *handle) stat() (int64, error) {
	var size int64
	_, err := h.with(func(file *os.File) error {
		st, err := file.Stat()
		if err != nil {
			return err
		}
		size = st.Size()
		return nil
	})
	return size, err
}

func (h *handle) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.file != nil {
		_ = h.mu.file.Close()
		h.mu.file = nil
	}
}

// handleCache bounds the open descriptors. The victim is the least recently used of a sample.
type handleCache struct {
	limit    int
	counters *Counters
	hooks    *Hooks
	clock    atomic.Int64
	mu       struct {
		sync.Mutex
		byPath map[string]*handle
		open   map[*handle]struct{}
	}
}

func (c *handleCache) init(limit int, counters *Counters) {
	c.limit, c.counters = limit, counters
	c.mu.byPath, c.mu.open = map[string]*handle{}, map[*handle]struct{}{}
}

func (c *handleCache) get(path string) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.mu.byPath[path]
	if !ok {
		h = &handle{path: path, cache: c}
		c.mu.byPath[path] = h
	}
	return h
}

func (c *handleCache) opened(h *handle) {
	var victims []*handle
	c.mu.Lock()
	c.mu.open[h] = struct{}{}
	if _, ok := c.mu.byPath[h.path]; !ok { // evicted once, and read again by who kept it
		c.mu.byPath[h.path] = h
	}
	for len(c.mu.open) > c.limit {
		var victim *handle
		sample := 0
		for x := range c.mu.open {
			if x != h && (victim == nil || x.used.Load() < victim.used.Load()) {
				victim = x
			}
			if sample++; sample == 8 {
				break
			}
		}
		if victim == nil {
			break
		}
		c.dropLocked(victim)
		victims = append(victims, victim)
	}
	c.mu.Unlock()
	for _, v := range victims {
		v.close()
	}
}

func (c *handleCache) dropLocked(h *handle) {
	delete(c.mu.open, h)
	if c.mu.byPath[h.path] == h {
		delete(c.mu.byPath, h.path)
	}
}

func (c *handleCache) forget(path string) {
	c.mu.Lock()
	h, ok := c.mu.byPath[path]
	if ok {
		c.dropLocked(h)
	}
	c.mu.Unlock()
	if ok {
		h.close()
	}
}

func (c *handleCache) forgetUnder(dir string) {
	c.closeIf(func(h *handle) bool { return h.path == dir || strings.HasPrefix(h.path, dir+string(os.PathSeparator)) })
}

func (c *handleCache) closeAll() { c.closeIf(func(*handle) bool { return true }) }

func (c *handleCache) closeIf(match func(*handle) bool) {
	var victims []*handle
	c.mu.Lock()
	for _, h := range c.mu.byPath {
		if match(h) {
			victims = append(victims, h)
			c.dropLocked(h)
		}
	}
	for h := range c.mu.open {
		if match(h) {
			victims = append(victims, h)
			c.dropLocked(h)
		}
	}
	c.mu.Unlock()
	for _, v := range victims {
		v.close()
	}
}
