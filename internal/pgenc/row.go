package pgenc

import "encoding/binary"

// BeginDataRow starts a DataRow message of n fields; EndDataRow(dst, start) with the returned start sets its length.
func BeginDataRow(dst []byte, n int) (out []byte, start int) {
	start = len(dst)
	return append(dst, 'D', 0, 0, 0, 0, byte(n>>8), byte(n)), start
}

// EndDataRow sets the length of the message begun at start.
func EndDataRow(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// AppendNull appends a field's length word for NULL.
func AppendNull(dst []byte) []byte { return append(dst, 0xff, 0xff, 0xff, 0xff) }

// BeginField reserves a field's length word; EndField sets it.
func BeginField(dst []byte) (out []byte, start int) { return append(dst, 0, 0, 0, 0), len(dst) }

// EndField sets the length word reserved at start.
func EndField(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// AppendField appends a whole field: length word and bytes.
func AppendField(dst, v []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}

// AppendStringField is AppendField for a string.
func AppendStringField(dst []byte, v string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}
