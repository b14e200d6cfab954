package storeio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a file's pages. It is a hint: its errors show up in the fsync.
func startWriteback(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	_ = unix.SyncFileRange(int(file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	_ = file.Close()
}

// devices are open directories, one of each file system that was synced: syncfs reports every write error since it was opened.
type devices struct {
	mu struct {
		sync.Mutex
		dirs map[uint64]*os.File
	}
}

// syncFileSystems syncs the file systems that hold paths, and returns how many.
func (f *FS) syncFileSystems(paths []string) (int, error) {
	f.devices.mu.Lock()
	defer f.devices.mu.Unlock()
	if f.devices.mu.dirs == nil {
		f.devices.mu.dirs = map[uint64]*os.File{}
	}
	seen, found := map[string]bool{}, map[uint64]*os.File{}
	for _, p := range paths {
		dir := filepath.Dir(p)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); errors.Is(err, unix.ENOENT) {
			continue // the table is gone
		} else if err != nil {
			return 0, err
		}
		if f.devices.mu.dirs[st.Dev] == nil {
			file, err := os.Open(dir)
			if err != nil {
				return 0, err
			}
			f.devices.mu.dirs[st.Dev] = file
		}
		found[st.Dev] = f.devices.mu.dirs[st.Dev]
	}
	for _, file := range found {
		if err := unix.Syncfs(int(file.Fd())); err != nil {
			return 0, fmt.Errorf("sync file system of %s: %w", file.Name(), err)
		}
	}
	return len(found), nil
}

// readv fills bufs from off in one call and may return short.
func readv(file *os.File, bufs [][]byte, off int64) (int, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	var rerr error
	err = raw.Control(func(fd uintptr) {
		for {
			n, rerr = unix.Preadv(int(fd), bufs, off)
			if rerr != unix.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = rerr
	}
	return n, err
}
