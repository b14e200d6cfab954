package pgsql

// The results of Utility. Statements inside (EXPLAIN, COPY (query), CREATE TABLE AS, CREATE VIEW, DECLARE, PREPARE) come as
// *Stmt: give them to Analyze.

// Transaction is BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, RELEASE, ROLLBACK TO.
type Transaction struct {
	// Op is one of begin, commit, rollback, savepoint, release, rollback to.
	Op        string
	Savepoint string
	Chain     bool
	Modes     TransactionModes
}

// TransactionModes are the modes of BEGIN and SET TRANSACTION; nil and "" mean not given.
type TransactionModes struct {
	Isolation  string // "read committed" …
	ReadOnly   *bool
	Deferrable *bool
}

// Set is SET, SET LOCAL, RESET, SET TRANSACTION and SET SESSION CHARACTERISTICS.
type Set struct {
	// Name is the GUC in lower case; "all" with Reset for RESET ALL.
	Name  string
	Local bool
	// Reset is RESET name and SET name TO DEFAULT.
	Reset bool
	// Value is the value as SHOW would get it: list elements joined by ", ", quoted where needed.
	Value string
	// Args are the single elements.
	Args []string
	// Transaction is set for SET TRANSACTION (Name "transaction") and SET SESSION CHARACTERISTICS (Name "session characteristics").
	Transaction *TransactionModes
}

// Show is SHOW name ("all" for SHOW ALL).
type Show struct{ Name string }

// Discard is DISCARD ALL, PLANS, SEQUENCES, TEMP (lower case).
type Discard struct{ What string }

// Prepare is PREPARE name (types) AS statement.
type Prepare struct {
	Name  string
	Types []uint32
	Stmt  *Stmt
}

// Execute is EXECUTE name (args).
type Execute struct {
	Name string
	// N is the number of arguments; Arguments analyses them once the parameter types are known.
	N int

	stmt *Stmt
}

// Deallocate is DEALLOCATE name, or ALL (Name "").
type Deallocate struct {
	Name string
	All  bool
}

// Declare is DECLARE name CURSOR FOR query.
type Declare struct {
	Name        string
	Binary      bool
	Scroll      bool
	NoScroll    bool
	Hold        bool
	Insensitive bool
	Query       *Stmt
}

// Fetch is FETCH and MOVE.
type Fetch struct {
	Name string
	Move bool
	// Direction is forward, backward, absolute or relative; Count is FetchAll for ALL.
	Direction string
	Count     int64
}

// FetchAll is Fetch's count for ALL.
const FetchAll = int64(1<<63 - 1)

// CloseCursor is CLOSE name, or ALL.
type CloseCursor struct {
	Name string
	All  bool
}

// Listen, Unlisten and Notify are the statements of that name. Unlisten's Channel "" is *.
type (
	Listen   struct{ Channel string }
	Unlisten struct{ Channel string }
	Notify   struct{ Channel, Payload string }
)

// Explain is EXPLAIN.
type Explain struct {
	Analyze, Verbose, Costs, Buffers, Timing, Summary, Settings, WAL bool
	Format                                                           string // text, json, xml, yaml
	Stmt                                                             *Stmt
}

// Copy is COPY.
type Copy struct {
	// Schema and Table are set for COPY table, Query for COPY (query).
	Schema, Table string
	Columns       []string
	Query         *Stmt
	From          bool
	Format        string // text, csv, binary, parquet
	Delimiter     string
	Null          string
	NullSet       bool
	Header        bool
	HeaderMatch   bool
	Quote, Escape string
	ForceQuote    []string
	ForceQuoteAll bool
	ForceNotNull  []string
	ForceNull     []string
	Encoding      string
	Freeze        bool
	// HasWhere reports COPY FROM … WHERE: see Filter.
	HasWhere bool
	// Loc is the relation's position.
	Loc int

	stmt *Stmt
}

// ColumnDef is a column of CREATE TABLE.
type ColumnDef struct {
	Name    string
	Type    uint32
	Mod     int32
	NotNull bool
	// Default is the default expression's SQL text, "" when there is none.
	Default string
	// DefaultLoc is the expression's position.
	DefaultLoc int
	// Serial is set for smallserial, serial, bigserial; Identity for GENERATED … AS IDENTITY ("always", "by default") with its Sequence's
	// options; Generated is the expression of GENERATED ALWAYS AS (…) STORED.
	Serial       bool
	Identity     string
	Sequence     *SequenceOptions
	Generated    string
	GeneratedLoc int
	Loc          int
}

// CheckDef is a CHECK constraint as it was written.
type CheckDef struct {
	// Name is "" when none was given. Column is the column of a column constraint, "" for a table constraint.
	Name, Column string
	// Expr is the condition's SQL text.
	Expr                string
	NoInherit, NotValid bool
	Loc                 int
}

// KeyDef is a UNIQUE constraint as it was written.
type KeyDef struct {
	Name             string
	Columns          []string
	NullsNotDistinct bool
	Loc              int
}

// LikeClause is LIKE table INCLUDING … in CREATE TABLE, before the columns that follow it.
type LikeClause struct {
	Table QName
	// At is the number of columns in front of it.
	At                                                            int
	Defaults, Generated, Identity, Constraints, Indexes, Comments bool
}

// CreateTable is CREATE TABLE.
type CreateTable struct {
	Schema, Name string
	IfNotExists  bool
	Temp         bool
	Columns      []ColumnDef
	// PrimaryKey holds column names in key order; ConstraintName is "" when not given.
	PrimaryKey     []string
	ConstraintName string
	Checks         []CheckDef
	Unique         []KeyDef
	Likes          []LikeClause
	// OnCommit is "delete rows" or "drop" for a temporary table, else "".
	OnCommit string
	// With are the WITH options, names in lower case.
	With map[string]string
	Loc  int
}

// CreateTableAs is CREATE TABLE AS and SELECT INTO.
type CreateTableAs struct {
	Schema, Name string
	IfNotExists  bool
	Temp         bool
	OnCommit     string
	Columns      []string
	With         map[string]string
	NoData       bool
	// Query is a Select, or an Execute when the statement is CREATE TABLE AS EXECUTE.
	Query *Stmt
	Loc   int
}

// CreateView is CREATE [OR REPLACE] VIEW.
type CreateView struct {
	Schema, Name string
	Replace      bool
	Temp         bool
	Columns      []string
	Query        *Stmt
	// Text is the query's text as it was sent; NormalizeView qualifies its names for storing.
	Text string
	Loc  int
}

// CreateSchema is CREATE SCHEMA.
type CreateSchema struct {
	Name        string
	IfNotExists bool
}

// Drop is DROP TABLE, VIEW, SEQUENCE, SCHEMA.
type Drop struct {
	// What is table, view, sequence or schema.
	What     string
	Names    []QName
	IfExists bool
	Cascade  bool
}

// QName is a possibly schema-qualified name.
type QName struct {
	Schema, Name string
	Loc          int
}

// Truncate is TRUNCATE.
type Truncate struct {
	Tables          []QName
	RestartIdentity bool
	Cascade         bool
}

// Comment is COMMENT ON. Text is nil for IS NULL.
type Comment struct {
	What   string // table, view, column, schema, database …
	Name   QName
	Column string
	Text   *string
}

// Lock is LOCK TABLE. Mode is PostgreSQL's number of the lock mode: 1 (ACCESS SHARE) to 8 (ACCESS EXCLUSIVE).
type Lock struct {
	Tables []QName
	Mode   int
	NoWait bool
}

// Vacuum is VACUUM and ANALYZE.
type Vacuum struct {
	Analyze bool // the ANALYZE statement
	Verbose bool
	Full    bool
	Tables  []QName
}
