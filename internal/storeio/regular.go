package storeio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// KeyIndexSuffix is appended to a data file's path to name its key index.
const KeyIndexSuffix = ".keyidx"

// Cache reports whether a file only saves work: it can be made again from others, so that its loss stops nothing.
func Cache(path string) bool { return strings.HasSuffix(path, KeyIndexSuffix) }

// openRegular opens a regular file for reading, and nothing else.
func openRegular(path string) (*os.File, int64, error) { return openKinds(path, 0) }

// openKinds opens a regular file or one whose type bits are all in kinds: a named pipe would block, a device may have no end.
func openKinds(path string, kinds fs.FileMode) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	st, err := file.Stat()
	if err == nil && st.Mode().Type()&^kinds != 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, st.Size(), nil
}

// ReadFile reads a whole regular file. The bytes may be shared: read them only. Whoever knows how large the file can be calls ReadAtMost.
func (f *FS) ReadFile(name string) ([]byte, error) { return f.ReadAtMost(name, 1<<62) }

// ReadAtMost is ReadFile for a file that has at most limit bytes; else it is ErrTooLarge, and nothing was read. Anything but a regular file is
// ErrNotRegular.
func (f *FS) ReadAtMost(name string, limit int64) ([]byte, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	if data, ok := f.recent.get(p); ok {
		if int64(len(data)) > limit {
			return nil, tooLarge(p, int64(len(data)), limit)
		}
		return data, nil
	}
	if err := f.o.Hooks.read(p); err != nil {
		return nil, err
	}
	data, err := readRegular(p, limit)
	if err != nil {
		return nil, err
	}
	f.counters.Opens.Add(1)
	f.counters.Reads.Add(1)
	f.counters.Bytes.Add(int64(len(data)))
	return data, nil
}

func tooLarge(path string, size, limit int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, limit)}
}

// readRegular reads the file as long as it is when it is opened; files that grow meanwhile are not whole.
func readRegular(path string, limit int64) ([]byte, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > limit {
		return nil, tooLarge(path, size, limit)
	}
	data := make([]byte, size)
	n, err := io.ReadFull(file, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return data[:n], nil
}
