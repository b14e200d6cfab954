package duck

import (
	"fmt"
	"strconv"
	"strings"

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
	// Suppressed holds the positions to leave out; nil or empty = none. It is not modified, may be shared, and must not change
	// afterwards: its address is its identity.
	Suppressed *roaring.Bitmap
	// FirstRowID is the file's first row id (v3), nil when it has none.
	FirstRowID *int64
	// Relation is the id of a registered relation that feeds this file's live rows from Go instead of read_parquet, for
	// files that Mappable refuses: columns by name as in Scan.Columns, plus PosColumn when WithPosition and RowIDColumn when
	// WithRowID.
	Relation string
}

// ScanColumn is one column of the table's current schema.
type ScanColumn struct {
	FieldID int
	Name    string
	// DuckType is the type the column is read as; a file's narrower type is promoted to it.
	DuckType string
	// Cast is the type it is cast to after reading ("INTERVAL" for a VARCHAR column), "" for none. No filter on a cast column
	// reaches the reader.
	Cast string
	// Default is the value for files that lack the column (initial-default), as text that casts to DuckType; nil = NULL.
	Default *string
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

// ScanSQL is DB.ScanSQL.
func (c *Conn) ScanSQL(sc Scan) (fromItem string, release func(), err error) { return c.db.ScanSQL(sc) }

// ScanSQL returns a FROM-item without alias ("(SELECT … )") that yields the live rows of sc: its columns in order, then
// FileColumn, PosColumn and RowIDColumn as asked. release frees what stands behind the text: call it when the statements
// made from it are closed (DuckDB plans again at every Query; a running stream keeps what it needs). With no files it is a relation without rows.
//
// Clean files and files with suppressed rows are read by one read_parquet each: only the second pays for the test of
// every row (docs/decisions/0002-suppressed-rows.md).
func (db *DB) ScanSQL(sc Scan) (fromItem string, release func(), err error) {
	var clean, dirty, fed []int
	for i, f := range sc.Files {
		switch {
		case f.Relation != "":
			fed = append(fed, i)
		case f.Suppressed != nil && !f.Suppressed.IsEmpty():
			dirty = append(dirty, i)
		default:
			clean = append(clean, i)
		}
	}
	release = func() {}
	var parts []string
	if len(clean) > 0 {
		parts = append(parts, sc.readSQL(clean, ""))
	}
	if len(dirty) > 0 {
		maps := make([]*roaring.Bitmap, len(dirty))
		for i, k := range dirty {
			maps[i] = sc.Files[k].Suppressed
		}
		id, err := db.maps.register(maps)
		if err != nil {
			return "", nil, err
		}
		release = func() { releaseSet(id) }
		parts = append(parts, sc.readSQL(dirty, fmt.Sprintf(" WHERE skade_live(%d, file_index, file_row_number)", id)))
	}
	for _, k := range fed {
		parts = append(parts, sc.feedSQL(k))
	}
	if len(parts) == 0 {
		parts = append(parts, sc.emptySQL())
	}
	return "(" + strings.Join(parts, " UNION ALL ") + ")", release, nil
}

// readSQL reads the files with read_parquet. Columns are named by field id inside, so that no column of the table can
// hide a virtual column of the reader.
func (sc *Scan) readSQL(files []int, where string) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, c := range sc.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(castSQL("c"+strconv.Itoa(c.FieldID), c.Cast) + " AS " + quoteIdent(c.Name))
	}
	sep := ""
	if len(sc.Columns) > 0 {
		sep = ", "
	}
	if sc.WithPosition {
		b.WriteString(sep + sc.ordinalSQL(files) + " AS " + FileColumn + ", file_row_number AS " + PosColumn)
		sep = ", "
	}
	if sc.WithRowID {
		b.WriteString(sep + sc.rowIDSQL(files) + " AS " + RowIDColumn)
		sep = ", "
	}
	if sep == "" {
		// A table without columns still has rows.
		b.WriteString("1")
	}
	b.WriteString(" FROM read_parquet([")
	rows := int64(0)
	for i, k := range files {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteLiteral(globEscape(sc.Files[k].Path)))
		rows += sc.Files[k].Rows
	}
	b.WriteString("], schema => ")
	b.WriteString(sc.schemaSQL())
	// Bounds leave NaN out: without the last one a filter that only NaN passes would skip the row group.
	b.WriteString(", hive_partitioning => false, union_by_name => false, can_have_nan => true)")
	b.WriteString(where)
	return b.String()
}

func castSQL(expr, to string) string {
	if to == "" {
		return expr
	}
	return "CAST(" + expr + " AS " + to + ")"
}

// schemaSQL is read_parquet's map from field id to column.
func (sc *Scan) schemaSQL() string {
	var b strings.Builder
	b.WriteString("MAP {")
	n := 0
	add := func(id int, typ string, def *string) {
		if n++; n > 1 {
			b.WriteString(", ")
		}
		d := "NULL::VARCHAR"
		if def != nil {
			d = quoteLiteral(*def)
		}
		fmt.Fprintf(&b, "%d: {name: 'c%d', type: %s, default_value: %s}", id, id, quoteLiteral(typ), d)
	}
	for _, c := range sc.Columns {
		add(c.FieldID, c.DuckType, c.Default)
	}
	if sc.WithRowID {
		add(RowIDFieldID, "BIGINT", nil)
	}
	if n == 0 {
		add(0, "BIGINT", nil)
	}
	b.WriteString("}")
	return b.String()
}

// ordinalSQL is the index in Scan.Files of the row's file, given the files of one reader.
func (sc *Scan) ordinalSQL(files []int) string {
	if first := files[0]; files[len(files)-1]-first == len(files)-1 {
		if first == 0 {
			return "file_index::BIGINT"
		}
		return fmt.Sprintf("file_index::BIGINT + %d", first)
	}
	return indexedSQL(files, func(k int) string { return strconv.Itoa(k) })
}

func (sc *Scan) rowIDSQL(files []int) string {
	first := indexedSQL(files, func(k int) string {
		if id := sc.Files[k].FirstRowID; id != nil {
			return strconv.FormatInt(*id, 10)
		}
		return "NULL"
	})
	return fmt.Sprintf("coalesce(c%d, %s + file_row_number)", RowIDFieldID, first)
}

func indexedSQL(files []int, val func(k int) string) string {
	var b strings.Builder
	b.WriteString("CAST([")
	for i, k := range files {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(val(k))
	}
	b.WriteString("] AS BIGINT[])[file_index::BIGINT + 1]")
	return b.String()
}

// feedSQL reads one file through its relation.
func (sc *Scan) feedSQL(k int) string {
	var cols []string
	for _, c := range sc.Columns {
		to := c.Cast
		if to == "" {
			to = c.DuckType
		}
		cols = append(cols, castSQL(quoteIdent(c.Name), to)+" AS "+quoteIdent(c.Name))
	}
	if sc.WithPosition {
		cols = append(cols, fmt.Sprintf("%d::BIGINT AS %s", k, FileColumn), PosColumn+"::BIGINT AS "+PosColumn)
	}
	if sc.WithRowID {
		cols = append(cols, RowIDColumn+"::BIGINT AS "+RowIDColumn)
	}
	if len(cols) == 0 {
		cols = append(cols, "1")
	}
	return "SELECT " + strings.Join(cols, ", ") + " FROM skade_rel(" + quoteLiteral(sc.Files[k].Relation) + ")"
}

func (sc *Scan) emptySQL() string {
	var cols []string
	for _, c := range sc.Columns {
		to := c.Cast
		if to == "" {
			to = c.DuckType
		}
		cols = append(cols, "CAST(NULL AS "+to+") AS "+quoteIdent(c.Name))
	}
	if sc.WithPosition {
		cols = append(cols, "NULL::BIGINT AS "+FileColumn, "NULL::BIGINT AS "+PosColumn)
	}
	if sc.WithRowID {
		cols = append(cols, "NULL::BIGINT AS "+RowIDColumn)
	}
	if len(cols) == 0 {
		cols = append(cols, "1")
	}
	return "SELECT " + strings.Join(cols, ", ") + " WHERE false"
}

// globEscape makes a path match itself only: read_parquet takes a name with *, ? or [ for a pattern.
func globEscape(path string) string {
	if !strings.ContainsAny(path, "*?[") {
		return path
	}
	return globEscaper.Replace(path)
}

var globEscaper = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]")
