package storeio

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrOutsideRoots is returned when a path lies outside Options.Roots. Nothing happened.
	ErrOutsideRoots = errors.New("path is outside the allowed roots")
	// ErrNotLocal is returned for a location of an object store or another scheme than file.
	ErrNotLocal = fmt.Errorf("only files of the local file system can be read: %w", fs.ErrInvalid)
	// ErrShortFile is returned when a range reaches past the end of a file: the file is not the one that was written.
	ErrShortFile = errors.New("file ends before the range")
	// ErrNotRegular is returned when a file to read is a directory, a named pipe or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is returned by ReadAtMost for a file above its limit.
	ErrTooLarge = errors.New("file is larger than the limit")
	// ErrInjected is returned by an operation that an Injector made fail.
	ErrInjected = errors.New("injected fault")
)
