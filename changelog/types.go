package changelog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// Values of _change_type, byte for byte those of Iceberg's create_changelog_view procedure.
const (
	Insert       = "INSERT"
	Delete       = "DELETE"
	UpdateBefore = "UPDATE_BEFORE"
	UpdateAfter  = "UPDATE_AFTER"
)

// Names of the metadata columns, in the order in which they follow the table's columns. ColRowID is there on v3 tables.
const (
	ColChangeType      = "_change_type"
	ColChangeOrdinal   = "_change_ordinal"
	ColCommitSnapshot  = "_commit_snapshot_id"
	ColCommitSeq       = "_commit_seq"
	ColCommitTimestamp = "_commit_timestamp"
	ColChangeRow       = "_change_row"
	ColRowID           = "_row_id"
)

// TableKind says whether a table has a key. The kind is derived from the schema.
type TableKind struct {
	// Identifier holds the identifier fields' ids in schema order; empty for a log table.
	Identifier []int
}

// Log is the kind of a table without identifier fields.
var Log = TableKind{}

// PrimaryKey is the kind of a table whose identifier fields are ids.
func PrimaryKey(ids ...int) TableKind { return TableKind{Identifier: ids} }

// IsLog reports whether the table has no key.
func (k TableKind) IsLog() bool { return len(k.Identifier) == 0 }

// Columns is the shape of a change relation, known without reading data.
type Columns struct {
	// Schema is the Arrow schema of the batches: the table's columns, then the metadata columns.
	Schema *arrow.Schema
	// Table is the table schema the first columns follow, by field id. Hand it back in Request.Schema so that a schema
	// change between Describe and Execute does not move a column.
	Table *iceberg.Schema
	Kind  TableKind
	// FormatVersion is the table's; _row_id is there from 3.
	FormatVersion int
}

// Shard names one of n disjoint parts of a change relation; the zero value is the whole.
type Shard struct{ Index, Count int }

// ParseShard reads "i/n" with 0 ≤ i < n ≤ 65,536. Errors: ErrMalformedShard.
func ParseShard(text string) (Shard, error) {
	is, ns, ok := strings.Cut(strings.TrimSpace(text), "/")
	i, err1 := strconv.Atoi(is)
	n, err2 := strconv.Atoi(ns)
	if !ok || err1 != nil || err2 != nil || n < 1 || n > 65536 || i < 0 || i >= n {
		return Shard{}, &Error{Err: ErrMalformedShard, Message: fmt.Sprintf("malformed shard %.40q", text),
			Hint: "A shard is i/n with 0 <= i < n <= 65536."}
	}
	return Shard{Index: i, Count: n}, nil
}

// Request asks for the changes of one table in a window.
type Request struct {
	// Cut pins the statement; bounds are resolved against it.
	Cut   *catalog.Cut
	Ident table.Identifier
	// From is excluded (NULL: from the beginning), To included (NULL: current at the cut).
	From, To Bound
	// Identifier overrides the identifier fields for pairing and sharding, by column name in Schema.
	Identifier []string
	Shard      Shard
	// Schema is the table schema asked for; nil is the schema at To.
	Schema *iceberg.Schema
}

// State is a resolved bound: a table at one state.
type State struct {
	Table *catalog.TableState
	// Metadata is the table's metadata at the cut the bound was resolved against; it knows Snapshot.
	Metadata table.Metadata
	// Snapshot is nil for the empty state (no snapshot yet, or before the table existed).
	Snapshot *int64
	// Seq is the commit that made the state; 0 when the state predates the catalog or is empty.
	Seq uint64
	// Time is the commit's timestamp, else the snapshot's own; zero for the empty state.
	Time time.Time
	// Schema is the table schema of the state: the current one for now and NULL, the schema at that commit for seq and
	// timestamps, the snapshot's own for a snapshot id.
	Schema *iceberg.Schema
}
