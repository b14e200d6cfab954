package storeio

import (
	"bytes"
	"container/list"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	icebergio "github.com/apache/iceberg-go/io"
)

// recentBytes bounds the content of unsynced files that is kept in memory.
const recentBytes = 32 << 20

// recent holds the content of small files from CreateUnsynced until they are synced: whoever reads what was just written, as every commit reads
// the one before, reads memory. Files are immutable, so that is what the disk has.
type recent struct {
	mu struct {
		sync.Mutex
		files map[string]*list.Element
		order list.List // of recentFile, oldest in front
		bytes int
	}
}

type recentFile struct {
	path string
	data []byte
}

func (r *recent) put(path string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.files == nil {
		r.mu.files = map[string]*list.Element{}
	}
	r.dropLocked(path)
	r.mu.files[path] = r.mu.order.PushBack(recentFile{path, data})
	r.mu.bytes += len(data)
	for r.mu.bytes > recentBytes {
		r.dropLocked(r.mu.order.Front().Value.(recentFile).path)
	}
}

func (r *recent) get(path string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	el, ok := r.mu.files[path]
	if !ok {
		return nil, false
	}
	return el.Value.(recentFile).data, true
}

func (r *recent) drop(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(path)
}

func (r *recent) dropLocked(path string) {
	el, ok := r.mu.files[path]
	if !ok {
		return
	}
	r.mu.bytes -= len(r.mu.order.Remove(el).(recentFile).data)
	delete(r.mu.files, path)
}

// dropUnder drops a directory's files, at any depth.
func (r *recent) dropUnder(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.mu.files {
		if under(p, dir) {
			r.dropLocked(p)
		}
	}
}

func under(path, dir string) bool {
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == filepath.Separator
}

// memoryFile is an open file whose content is in memory.
type memoryFile struct {
	*bytes.Reader
	path string
}

var _ icebergio.File = (*memoryFile)(nil)

func (m *memoryFile) Close() error               { return nil }
func (m *memoryFile) Stat() (fs.FileInfo, error) { return os.Stat(m.path) }
