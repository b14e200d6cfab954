package lockmgr

// Kind says what a Tag names.
type Kind uint8

// Kinds of tag.
const (
	// Relation is a table as a whole.
	Relation Kind = iota + 1
	// Rows is all rows of a table.
	Rows
	// Row is one row of a table.
	Row
	// Advisory is a number that applications agree on.
	Advisory
)

// Tag names what is locked. It is comparable; fields that a kind does not use are zero.
type Tag struct {
	Kind Kind
	// Rel is the table's OID.
	Rel uint32
	// Key is the row's key, in an encoding of the caller's.
	Key string
	// Class, Object and Sub are an advisory lock's: pg_locks shows them as classid, objid and objsubid (1 for a bigint, 2 for
	// two integers).
	Class, Object uint32
	Sub           uint16
}

// RelationTag names a table.
func RelationTag(rel uint32) Tag { return Tag{Kind: Relation, Rel: rel} }

// AdvisoryTag names the advisory lock of a bigint.
func AdvisoryTag(key int64) Tag {
	return Tag{Kind: Advisory, Class: uint32(uint64(key) >> 32), Object: uint32(uint64(key)), Sub: 1}
}

// AdvisoryPairTag names the advisory lock of two integers.
func AdvisoryPairTag(a, b int32) Tag {
	return Tag{Kind: Advisory, Class: uint32(a), Object: uint32(b), Sub: 2}
}
