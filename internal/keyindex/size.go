package keyindex

// MaxSize is how many bytes an encoded index over cols columns of a data file of rows rows has at most. Whoever reads one reads no more.
func MaxSize(rows int64, cols int) int64 {
	n := min(max(rows, 0), 1<<32-1)
	fixed := int64(headerSize + columnSize*cols + slack + trailerSize)
	blocks := (n + blockEntries - 1) / blockEntries
	packed := blocks*(8+8+1) + 8 + 8 + n*8 + (n*4 + 1)
	// A fingerprint has 20 bits and what fills its last byte, a position 32 at most; a bucket holds 8 entries and more on average.
	const entry = (fingerprintBits + 32 + 7) / 8
	samples := (n + sparseEntries - 1) / sparseEntries
	prints := 8 + 4*(n/(bucketEntries/2)+3) + n*entry + samples*(4+sparseBytes)
	return fixed + max(packed, prints)
}
