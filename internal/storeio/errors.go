package storeio

import "errors"

var (
	// ErrOutsideRoots is returned when a path lies outside Options.Roots. Nothing happened.
	ErrOutsideRoots = errors.New("path is outside the allowed roots")
	// ErrShortFile is returned when a range reaches past the end of a file: the file is not the one that was written.
	ErrShortFile = errors.New("file ends before the range")
	// ErrInjected is returned by an operation that an Injector made fail.
	ErrInjected = errors.New("injected fault")
)
