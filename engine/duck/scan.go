package duck

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// Names of the columns that a scan adds on request.
const (
	// FileColumn is the file's index in Scan.Files, BIGINT (WithPosition).
	FileColumn = "_skade_file"
	// PosColumn is the row's position in its file, BIGINT, 0-based (WithPosition).
	PosColumn = "_skade_pos"
	// RowIDColumn is the v3 row id, BIGINT (WithRowID).
	RowIDColumn = "_row_id"
)

// RowIDFieldID is the reserved field id of a stored _row_id column (Iceberg spec, reserved field ids).
const RowIDFieldID = 2147483540

// ScanFile is one data file.
type ScanFile struct {
	Path string
	Size int64
	Rows int64
	// Suppressed holds the positions to leave out; nil or empty = none. It is not modified and may be shared.
	Suppressed *roaring.Bitmap
	// FirstRowID is the file's first row id (v3), nil when it has none.
	FirstRowID *int64
	// Relation is the id of a registered relation that feeds this file's live rows from Go instead of read_parquet: columns
	// by name as in Scan.Columns, plus PosColumn when WithPosition and RowIDColumn when WithRowID.
	Relation string
}

// ScanColumn is one column of the table's current schema.
type ScanColumn struct {
	FieldID int
	Name    string
	// DuckType is the type the column has in SQL; a file's narrower type is promoted to it.
	DuckType string
	// Default is the SQL literal for files that lack the column (initial-default); "" = NULL.
	Default string
}

// Scan is a table at a snapshot, as SQL reads it.
type Scan struct {
	Files   []ScanFile
	Columns []ScanColumn
	// WithPosition adds FileColumn and PosColumn.
	WithPosition bool
	// WithRowID adds RowIDColumn: the stored one, else FirstRowID + position, NULL when the file has neither.
	WithRowID bool
}

// ScanSQL returns a FROM-item without alias ("(SELECT … )") that yields the live rows of sc. release frees the bitmaps: call it
// when no statement uses the text any more.
func (db *DB) ScanSQL(sc Scan) (fromItem string, release func(), err error) {
	return "", nil, ErrClosed
}

// ScanSQL is DB.ScanSQL.
func (c *Conn) ScanSQL(sc Scan) (fromItem string, release func(), err error) {
	return "", nil, ErrClosed
}
