package pgenc

const hexDigits = "0123456789abcdef"

// AppendBytea appends bytea_output = hex: \x and two digits a byte.
func AppendBytea(dst, v []byte) []byte {
	dst = append(dst, '\\', 'x')
	return appendHex(dst, v)
}

// AppendByteaEscape appends bytea_output = escape: printable ASCII as it is, a backslash doubled, other bytes in octal.
func AppendByteaEscape(dst, v []byte) []byte {
	for _, c := range v {
		switch {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendHex(dst, v []byte) []byte {
	for _, c := range v {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// AppendUUID appends 8-4-4-4-12 lower-case digits.
func AppendUUID(dst []byte, v [16]byte) []byte {
	dst = append(appendHex(dst, v[:4]), '-')
	dst = append(appendHex(dst, v[4:6]), '-')
	dst = append(appendHex(dst, v[6:8]), '-')
	dst = append(appendHex(dst, v[8:10]), '-')
	return appendHex(dst, v[10:])
}

// AppendJSONBBinary appends jsonb's binary form: a version byte 1 and the text.
func AppendJSONBBinary(dst []byte, text string) []byte {
	return append(append(dst, 1), text...)
}
