// Package keyindex answers: at which positions of one immutable data file does a key stand?
//
// # Words
//
// A key is the tuple of a row's identifier values, encoded as bytes by an [Encoder]. An index
// is an immutable map from keys to row positions (0-based) of one data file. A position
// is a row's ordinal in the file, as Iceberg's position deletes count it.
//
// # Key encoding
//
// The encoding is injective, typed and order-preserving: bytes.Compare of two keys of the same
// column types orders like the tuples of values do, and no key is a prefix of another unless the
// tuple is. int and long share one encoding, so a key survives Iceberg's promotion int → long; so do
// float and double, and decimals of one scale. Strings and binaries are escaped and terminated, so
// embedded zero bytes and separators are safe. A column is encoded as
//
//	boolean                          1 byte, 0 or 1
//	int, long                        8 bytes big endian, sign bit flipped
//	float, double                    8 bytes, IEEE 754 total order; every NaN is one NaN; −0.0 < 0.0
//	date                             8 bytes as long (days)
//	time, timestamp*, timestamp_ns*  8 bytes as long (micro- or nanoseconds)
//	decimal                          16 bytes big endian of the unscaled value, sign bit flipped
//	uuid, fixed                      the bytes
//	string, binary                   the bytes with 0x00 → 0x00 0xff, then 0x00 0x01
//
// With [WithNulls] each column is preceded by a byte: 0x00 for NULL (and nothing follows), 0x01
// otherwise. Without it NULL is refused with ErrNullKey.
//
// # Layouts
//
// Keys whose columns fold into 64 bits (any one integer, date, time, double or boolean; several when their values span little) are kept whole, packed
// and in order. Other keys are kept as fingerprints: 36 and more bits of a hash, by hash. A fingerprint may be another key's: whoever finds a row by one
// compares its key before he returns it. docs/decisions/0010-key-index.md has the comparison.
//
// # Invariants
//
//   - K1 complete: Find returns every position of the key. Of an index that is Exact it returns no other.
//   - K2 immutable: an Index never changes and is safe for any number of goroutines.
//   - K3 checked: Decode verifies the magic, the version, the checksum and every offset, so that no
//     byte sequence makes a later probe panic or read out of range.
//   - K4 bound: an index names the data file that it was built from (Source).
//   - K5 small: at most 12 bytes a key, on disk and in memory.
//
// # Errors
//
// ErrNullKey, ErrUnsupportedType, ErrVersion, *FormatError. Positions are limited to 2^32−1 rows a file.
//
// # What it does not do
//
// It does no IO and knows nothing of snapshots: which positions are live is liveset's affair.
// The byte layout is in docs/format/keyindex.md.
package keyindex
