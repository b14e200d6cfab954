package storeio

import (
	"os"

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
