package parquetio

import (
	"encoding/binary"
	"path"

	"github.com/zeebo/xxh3"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

const (
	// tailGuess is how many bytes at a file's end are read at first: most footers fit.
	tailGuess = 8 << 10
	// sourceTail is how many bytes of a footer, from the file's end, stand for the file.
	sourceTail = 64 << 10
	footerEnd  = 8 // the footer's length and the magic
)

// Source names the file as its key index does: by length, base name and footer.
func (r *Reader) Source() keyindex.Source { return r.bound }

// sourceOf is the Source of a file of size bytes that ends in tail.
func sourceOf(name string, size int64, tail []byte) keyindex.Source {
	n := min(footerLength(tail), int64(len(tail)), sourceTail)
	return keyindex.Source{Size: size, Hash: xxh3.Hash(tail[int64(len(tail))-n:]) ^ xxh3.HashString(path.Base(name))}
}

// footerLength is the bytes of a footer with its end, by the file's last bytes.
func footerLength(tail []byte) int64 {
	if len(tail) < footerEnd {
		return int64(len(tail))
	}
	return int64(binary.LittleEndian.Uint32(tail[len(tail)-footerEnd:])) + footerEnd
}

// readTail reads the footer, in one call when it is not large. What it says is checked by who decodes it.
func (s *source) readTail() (keyindex.Source, error) {
	size := s.f.Size()
	for want := int64(tailGuess); ; {
		want = min(want, size)
		buf := make([]byte, want)
		if _, err := s.ReadAt(buf, size-want); err != nil {
			return keyindex.Source{}, err
		}
		s.windows = []storeio.Range{{Off: size - want, Buf: buf}}
		need := footerLength(buf)
		if need <= want || want == size || need > size {
			return sourceOf(s.f.Path(), size, buf), nil
		}
		want = need
	}
}
