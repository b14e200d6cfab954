//go:build unix

package boltstore

import (
	"os"
	"syscall"
)

// unlock gives bbolt's lock up: closing is not enough while a memory map refers to the open file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
