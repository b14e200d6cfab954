package storeio

import (
	"io"
	"os"
)

// TempFile is a file that spills: hooks see its writes, nothing syncs it. The caller closes and removes it.
type TempFile struct {
	*os.File
	hooks *Hooks
}

// CreateTemp makes a temporary file in dir ("": the system's), named as os.CreateTemp does.
func (f *FS) CreateTemp(dir, pattern string) (*TempFile, error) {
	t := &TempFile{hooks: f.o.Hooks}
	err := f.o.Hooks.Run(OpCreate, dir+string(os.PathSeparator)+pattern, func() (err error) {
		t.File, err = os.CreateTemp(dir, pattern)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Write implements io.Writer.
func (t *TempFile) Write(p []byte) (n int, err error) {
	err = t.hooks.Run(OpWrite, t.Name(), func() error {
		n, err = t.File.Write(p)
		return err
	})
	return n, err
}

// ReadFrom copies through Write.
func (t *TempFile) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{t}, r, make([]byte, 256<<10))
}
