//go:build !linux

package storeio

import (
	"errors"
	"os"
)

func startWriteback(string) {}

type devices struct{}

func (f *FS) syncFileSystems([]string) (int, error) { return 0, errors.ErrUnsupported }

// readv fills bufs from off, one call a buffer.
func readv(file *os.File, bufs [][]byte, off int64) (int, error) {
	total := 0
	for _, b := range bufs {
		n, err := file.ReadAt(b, off+int64(total))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
