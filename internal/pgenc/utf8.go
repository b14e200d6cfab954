package pgenc

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// view is b's bytes as a string without a copy; it must not outlive b's contents.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// CheckUTF8 returns 22021 naming the first bad bytes, as PostgreSQL does. A zero byte is bad.
func CheckUTF8(b []byte) error {
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			if c == 0 {
				return badUTF8(b[i : i+1])
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return badUTF8(b[i:min(i+utf8Len(b[i]), len(b))])
		}
		i += n
	}
	return nil
}

// utf8Len is the length that the first byte announces. Source: pg_utf_mblen.
func utf8Len(c byte) int {
	switch {
	case c&0xe0 == 0xc0:
		return 2
	case c&0xf0 == 0xe0:
		return 3
	case c&0xf8 == 0xf0:
		return 4
	}
	return 1
}

func badUTF8(seq []byte) error {
	var hex strings.Builder
	for i, c := range seq {
		if i > 0 {
			hex.WriteByte(' ')
		}
		hex.WriteString("0x")
		hex.WriteByte(hexDigits[c>>4])
		hex.WriteByte(hexDigits[c&15])
	}
	return pgerr.New(pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": `+hex.String())
}
