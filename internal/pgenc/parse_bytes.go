package pgenc

import (
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// ParseBytea appends the bytes of bytea's text, hex (\x…) or escape, to dst. Source: byteain.
func ParseBytea(dst, in []byte) ([]byte, error) {
	if len(in) >= 2 && in[0] == '\\' && in[1] == 'x' {
		return parseHex(dst, in[2:])
	}
	for i := 0; i < len(in); {
		c := in[i]
		switch {
		case c != '\\':
			dst = append(dst, c)
			i++
		case i+1 < len(in) && in[i+1] == '\\':
			dst = append(dst, '\\')
			i += 2
		case i+3 < len(in) && in[i+1] >= '0' && in[i+1] <= '3' && in[i+2]-'0' <= 7 && in[i+3]-'0' <= 7:
			dst = append(dst, (in[i+1]-'0')<<6|(in[i+2]-'0')<<3|(in[i+3]-'0'))
			i += 4
		default:
			return dst, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return dst, nil
}

func parseHex(dst, in []byte) ([]byte, error) {
	for i := 0; i < len(in); {
		if isSpace(in[i]) {
			i++
			continue
		}
		hi, ok := hexValue(in[i])
		if !ok {
			return dst, badHexDigit(in[i:])
		}
		i++
		if i == len(in) {
			return dst, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		lo, ok := hexValue(in[i])
		if !ok {
			return dst, badHexDigit(in[i:])
		}
		i++
		dst = append(dst, hi<<4|lo)
	}
	return dst, nil
}

func badHexDigit(at []byte) error {
	return pgerr.Newf(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", at[:min(utf8Len(at[0]), len(at))])
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// ParseUUID reads 32 hexadecimal digits, with a hyphen allowed after each group of four and braces around. Source: uuid_in.
func ParseUUID(in []byte) (u UUID, err error) {
	b := in
	braces := len(b) > 0 && b[0] == '{'
	if braces {
		b = b[1:]
	}
	for i := range 16 {
		if len(b) < 2 {
			return u, badText("uuid", in)
		}
		hi, ok1 := hexValue(b[0])
		lo, ok2 := hexValue(b[1])
		if !ok1 || !ok2 {
			return u, badText("uuid", in)
		}
		u[i] = hi<<4 | lo
		b = b[2:]
		if len(b) > 0 && b[0] == '-' && i%2 == 1 && i < 15 {
			b = b[1:]
		}
	}
	if braces {
		if len(b) == 0 || b[0] != '}' {
			return u, badText("uuid", in)
		}
		b = b[1:]
	}
	if len(b) != 0 {
		return u, badText("uuid", in)
	}
	return u, nil
}
