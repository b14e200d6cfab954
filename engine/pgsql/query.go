package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// RelKind says what a Relation is.
type RelKind int

// Kinds of relation.
const (
	// Table is a stored table.
	Table RelKind = iota
	// View is expanded by Analyze: Relation.ViewSQL is analysed in place and its own relations appear in Query.Relations.
	View
	// System is a relation of pg_catalog, information_schema or skade that the caller has as a FROM item.
	System
	// Function is the row type of a function in FROM that the caller executes.
	Function
	// Rows is a batch that the caller holds: the new rows of RETURNING, the conflicting pairs of ON CONFLICT DO UPDATE.
	Rows
	// Spooled is the rows of Query.Parts[Handle.(int)]: the FROM item yields the part's columns as they came from DuckDB.
	Spooled
)

// Relation is what a name in FROM resolves to.
type Relation struct {
	Kind   RelKind
	Schema string
	Name   string
	OID    uint32
	// Columns are in attnum order, dropped ones left out.
	Columns []RelColumn
	// Key holds the indexes into Columns of the identifier fields in key order; nil when there is none.
	Key []int
	// Constraint is the name of the key's constraint, for ON CONFLICT ON CONSTRAINT.
	Constraint string
	// ViewSQL is a view's query, with schema-qualified names.
	ViewSQL string
	// ReadOnly relations (system ones, views) refuse INSERT, UPDATE and DELETE.
	ReadOnly bool
	// Handle is the caller's own; Analyze passes it through.
	Handle any
}

// RelColumn is a column of a Relation.
type RelColumn struct {
	Name string
	// Type is a PostgreSQL type OID, Mod its typmod (-1 none).
	Type   uint32
	Mod    int32
	AttNum int16
	// NotNull, Default (SQL text, "" none), Generated and Identity matter to INSERT and UPDATE.
	NotNull bool
	Default string
	// Generated is the expression of a column that is computed from the others; such a column is NULL in what INSERT and UPDATE yield:
	// whoever writes the rows computes it (AnalyzeRows).
	Generated string
	// Identity is "always" or "by default" for an identity column, whose Default draws from its sequence.
	Identity string
	// Hidden columns are not part of *, but can be named (xmin, ctid, tableoid, _skade_file …).
	Hidden bool
	// Scale is the scale of the DuckDB DECIMAL that carries a numeric column without typmod; 0 means DefaultNumericScale.
	Scale int
}

// DefaultNumericScale is the scale of the DECIMAL(38, s) that carries a numeric column without typmod (TYPES: decimal(38, 9)).
const DefaultNumericScale = 9

// EngineFunc is a function that the caller executes itself: it takes part in PostgreSQL's overload resolution.
type EngineFunc struct {
	Schema string
	Name   string
	// Args are type OIDs; pseudo-types (any, anyelement, anyarray) are allowed. ArgNames, when given, allow name => value.
	Args     []uint32
	ArgNames []string
	// Defaults is how many trailing arguments may be left out.
	Defaults int
	// Ret is the return type; a set-returning function (SetOf) may be used in FROM only, and its columns come from Resolver.TableFunction.
	Ret   uint32
	SetOf bool
	// Strict functions return NULL when an argument is NULL.
	Strict bool
	// PerRow functions may be called with values of rows, through the scalar RowCall; others once an execution, before the query.
	PerRow bool
}

// Resolver is what Analyze asks of its caller. All names come as PostgreSQL folded them.
type Resolver interface {
	// ResolveRelation finds a relation; schema "" means the search path. nil, nil when there is none.
	ResolveRelation(schema, name string) (*Relation, error)
	// Functions lists the caller's functions of that name; schema "" means the search path (schema skade is always on it).
	Functions(schema, name string) []EngineFunc
	// TableFunction gives the row type of one call of a SetOf function. args has one entry per declared argument, nil where left out.
	// An error with code 42P18 and the like gets the call's position.
	TableFunction(fn EngineFunc, args []*Arg) (*Relation, error)
}

// SchemaChecker is what a Resolver may be, too: it knows which schemas there are.
type SchemaChecker interface{ SchemaExists(name string) bool }

// DateOrderer is what a Resolver may be, too: the session's order of day, month and year in input (DateStyle). The default is MDY.
type DateOrderer interface{ DateOrder() pgenc.DateOrder }

// ArgTyper is what a Resolver may be, too: it knows the types of parameters in argument i of a SetOf function, whose declared type is any, by the fields of
// a row there, or alone. args are the other arguments.
type ArgTyper interface {
	ArgTypes(fn EngineFunc, args []*Arg, i int) []uint32
}

// Query is an analysed SELECT, VALUES, INSERT, UPDATE, DELETE or MERGE.
type Query struct {
	// Relations are the sources by number; SQL refers to them through Render.
	Relations []*RelUse
	// Params are the client's parameters, Params[0] is $1.
	Params []Param
	// Binds are DuckDB's parameters: Binds[0] is DuckDB's $1.
	Binds []Bind
	// Columns describe the rows as PostgreSQL shows them. For INSERT, UPDATE and DELETE they are RETURNING's, nil without RETURNING.
	Columns []OutCol
	// Keyed is set when key probes alone can answer the statement.
	Keyed *KeyedSelect
	// Lookup is set when the statement is SELECT columns FROM lookup(…) and nothing else.
	Lookup *DirectCall
	// KeyJoins are the sources whose rows may be found by keys that other sources give; a source may have several.
	KeyJoins []KeyJoin
	// Volatile reports functions whose value may change between two executions on one cut (random, clock_timestamp …).
	Volatile bool
	// LockRows is the strongest locking clause of the statement ("FOR UPDATE"), "" without one.
	LockRows string
	// Locks are the SELECT … FOR UPDATE / SHARE in the statement: their rows are locked before SQL runs, and SQL then sees only them in
	// the sources that Locks name.
	Locks []*LockBlock
	// Insert, Update, Delete are set for those statements; SQL then yields what they describe.
	Insert *Insert
	Update *Update
	Delete *Delete
	Merge  *Merge
	// Parts are the CTEs that run before the query, each by itself, on the statement's snapshot, in this order; a nil one does not run. Parts that
	// change data have Insert, Update or Delete set; their Columns, like a reading part's, are the rows to keep for sources of kind Spooled.
	// Last holds the parts that nothing reads, in the order in which they run after the query.
	// Modifies reports that one of them changes data.
	Parts    []*Query
	Last     []int
	Modifies bool
	// Into is SELECT INTO's target, treated as CREATE TABLE AS.
	Notices []string

	text string
}

// Param is a client's parameter.
type Param struct{ OID uint32 }

// RelUse is one source of a Query.
type RelUse struct {
	Relation *Relation
	// Alias is the name the client gave.
	Alias string
	// Columns are indexes into Relation.Columns: the FROM item must yield exactly these, in this order; their names do not matter.
	// It may be empty (count(*)): the item then yields any column, with the right number of rows.
	// Their DuckDB types are DuckType(column.Type, column.Mod).
	Columns []int
	// Position asks for two more columns after Columns: file (VARCHAR) and position (BIGINT) of each row (target of UPDATE, DELETE).
	Position bool
	// Preds are conjuncts that every row which can matter satisfies: use them to prune files. They are also in the SQL.
	Preds []Predicate
	// Func and Args are set when the source is a call of a SetOf EngineFunc.
	Func *EngineFunc
	Args []*Arg
	// Driver, when not 0, is the number + 1 of the part of Query.Parts that gives the values of driven arguments: the source is the rows of
	// one call for each row of that part. Numbered sources have the row's number (from 1) as their last column.
	Driver   int
	Numbered bool
	// Loc is the position (1-based, characters) of the source in the query string.
	Loc int
}

// Predicate is column op value(s). Op is one of = < <= > >= in any isnull isnotnull. Values have the column's type or another that PostgreSQL
// compares with it (an integer beside another integer, a numeric beside an integer, a timestamp beside a date). any has one value, an array.
//
// Op keys is (columns) IN (rows): Columns and Rows stand in place of Column and Values.
type Predicate struct {
	Column int // index into Relation.Columns
	Op     string
	Values []*Arg

	Columns []int
	Rows    [][]*Arg
}

// Arg is an argument or value that does not depend on rows: a constant, a parameter or another expression without columns.
type Arg struct {
	Type uint32
	Mod  int32
	// Param is the client's parameter number, 0 when it is not a bare parameter.
	Param int
	// Const reports a constant: Text is PostgreSQL's text form of it, Null reports NULL.
	Const bool
	Null  bool
	Text  string
	// Expr, when neither Param nor Const: a DuckDB query text `SELECT expr` with its own Binds, of one row and one column.
	Expr  string
	Binds []Bind
	// Draws is the OID of the sequence whose next value this is, 0 for every other value.
	Draws uint32
	// Driven arguments are the value of Column of the part that drives the call, before a cast to Type.
	Driven bool
	Column int
	// Row holds the fields of ROW(…) and Array the elements of ARRAY[…], when every one of them is an Arg.
	Row   []*Arg
	Array []*Arg
	Loc   int

	expr *expr
}

// Bind is the source of a DuckDB parameter: exactly one of its fields is set.
type Bind struct {
	// Param is the client's parameter number (1-based).
	Param int
	// Session names a value of the session.
	Session SessionValue
	// Setting is the name of a GUC: current_setting(name). MissingOK as in current_setting(name, true).
	Setting   string
	MissingOK bool
	// Call is a call of an EngineFunc that is not SetOf; it is made once per execution, before the query.
	Call *Call
	// Type is the PostgreSQL type the value has; it is bound as DuckType(Type, -1).
	Type uint32
}

// Call is a call of one of the caller's scalar functions.
type Call struct {
	Func EngineFunc
	// Args has one entry per declared argument, nil where left out.
	Args []*Arg
}

// SessionValue names a value that the session knows.
type SessionValue string

// Values of the session, with their PostgreSQL types.
const (
	TransactionTimestamp SessionValue = "transaction_timestamp" // timestamptz: now(), current_timestamp …
	StatementTimestamp   SessionValue = "statement_timestamp"   // timestamptz
	CurrentUser          SessionValue = "current_user"          // name
	SessionUser          SessionValue = "session_user"          // name
	CurrentSchema        SessionValue = "current_schema"        // name, may be NULL
	CurrentSchemas       SessionValue = "current_schemas"       // name[]: without implicit schemas
	CurrentSchemasAll    SessionValue = "current_schemas_all"   // name[]: with pg_catalog
	CurrentDatabase      SessionValue = "current_database"      // name
	BackendPID           SessionValue = "backend_pid"           // int4
	ServerVersion        SessionValue = "version"               // text: version()
	ClientAddr           SessionValue = "inet_client_addr"      // text
	ClientPort           SessionValue = "inet_client_port"      // int4
	ServerAddr           SessionValue = "inet_server_addr"      // text
	ServerPort           SessionValue = "inet_server_port"      // int4
	PostmasterStart      SessionValue = "pg_postmaster_start_time"
	ConfLoadTime         SessionValue = "pg_conf_load_time"
	// SequenceSession (int8) is what skade_nextval and its kin take as their first argument: which session draws.
	SequenceSession SessionValue = "sequence_session"
)

// OutCol is an output column as RowDescription shows it.
//
// A numeric column may come from DuckDB as DECIMAL (show its scale) or as VARCHAR (PostgreSQL's text of the value, with its
// own scale). A character(n) column comes padded. reg* types come as VARCHAR names. Every other type comes as DuckType says.
type OutCol struct {
	Name     string
	Type     uint32
	Mod      int32
	TableOID uint32
	AttNum   int16
	// Trim marks a numeric whose trailing zeros come from storage or arithmetic, not from PostgreSQL's scale: they are not shown.
	Trim bool
	// Fields are the types of a record's fields, where they are known.
	Fields []uint32
}

func outCol(t *target) OutCol {
	var fields []uint32
	for _, f := range rowFields(t.e) {
		fields = append(fields, f.e.typ)
	}
	return OutCol{Name: t.name, Fields: fields, Type: t.e.typ, Mod: t.e.mod, TableOID: t.table, AttNum: t.attnum,
		Trim: t.e.typ == pgtype.Numeric && t.e.loose && t.e.show == nil}
}

// DirectCall is a query whose rows are a function's, as they come.
type DirectCall struct {
	// Rel is the source's number.
	Rel int
	// Output has, per output column, the index into Relation.Columns.
	Output []int
}

// KeyedSelect is SELECT columns, constants and parameters FROM one table WHERE its whole key is given [ORDER BY columns] [LIMIT] [OFFSET]. The source's
// Preds are the whole condition: each key column, and no other, is in one of them, whose Op is =, in, any or keys.
type KeyedSelect struct {
	// Rel is the source's number.
	Rel int
	// Output has an entry per output column.
	Output []KeyedOutput
	// AsOf is the bound of table_at(…), nil for the statement's cut.
	AsOf *Arg
	// Order are the columns of ORDER BY, all ascending or (Desc) all descending. Unordered says that it orders by something else.
	Order     []int
	Desc      bool
	Unordered bool
	// Limit and Offset are bigints, nil without.
	Limit, Offset *Arg
}

// KeyedOutput is an output column: a column of the table, or a value.
type KeyedOutput struct {
	Column int // index into Relation.Columns
	Value  *Arg
}

// Insert describes INSERT. The Query's SQL yields full rows: one column per non-hidden column of the target, in Relation.Columns'
// order (see Columns), defaults filled in, assignment casts done, generated columns NULL.
type Insert struct {
	Target *Relation
	// Columns are the indexes into Target.Columns that the SQL yields.
	Columns []int
	// Given are the columns the statement named (or implied), for privilege checks and error details.
	Given []int
	// Values is the number of rows when the source is VALUES, else -1.
	Values int
	// Rows holds the values when every one is a constant or a parameter (the fast path of single-row inserts), one slice per row in Columns' order; else nil.
	// A value whose Type or Mod differs from the column's still needs the assignment cast: lengths, precision, padding.
	Rows [][]*Arg
	// OnConflict is nil without ON CONFLICT.
	OnConflict *OnConflict
	// Returning is nil without RETURNING. Its Relations[0] is the new rows (Kind Rows), with Target's columns.
	Returning *Query

	locs     []int32
	override pg_query.OverridingKind
	names    []*pg_query.Node // the named columns; nil for all
}

// OnConflict describes ON CONFLICT. The arbiter is always the target's key.
type OnConflict struct {
	// DoUpdate is false for DO NOTHING.
	DoUpdate bool
	// Update yields the rows to write. Its Relations[0] is the conflicting pairs (Kind Rows): Target's columns of the
	// existing row, then Target's columns of the proposed row. It yields one row per pair, in the pairs' order: Insert.Columns of the new
	// row, then a boolean: false where DO UPDATE's WHERE says to skip the row.
	Update *Query
	// Set are the indexes into Target.Columns that are assigned.
	Set []int
}

// Update describes UPDATE. The Query's SQL yields, per row: file (VARCHAR), position (BIGINT), the new row (Columns), then
// RETURNING's columns. Each row of the target occurs once.
type Update struct {
	Target *Relation
	// Rel is the target's number in Relations; it has Position set.
	Rel     int
	Columns []int
	// Set are the indexes into Target.Columns that are assigned.
	Set []int
}

// Delete describes DELETE. The Query's SQL yields, per row: file (VARCHAR), position (BIGINT), then RETURNING's columns.
// Each row of the target occurs once.
type Delete struct {
	Target *Relation
	Rel    int
	// All reports DELETE without WHERE and USING.
	All bool
}

// Merge describes MERGE. The Query's SQL yields, per row that an action changes: file (VARCHAR) and position (BIGINT) of the target's
// row, NULL for INSERT; the index into Actions (INTEGER); then the new row (Columns), which is NULLs for DELETE. A row of the target may occur
// more than once: that is PostgreSQL's 21000.
type Merge struct {
	Target  *Relation
	Rel     int
	Columns []int
	Actions []MergeAction
}

// MergeAction is a WHEN clause.
type MergeAction struct {
	Kind MergeKind
	// Set are the indexes into Target.Columns that UPDATE assigns.
	Set []int
}

// MergeKind is what a WHEN clause does.
type MergeKind int

// Kinds of MergeAction.
const (
	MergeNothing MergeKind = iota
	MergeInsert
	MergeUpdate
	MergeDelete
)

// RaisePrefix begins the text of an error raised by this package's macros and Go functions inside DuckDB. After it come the SQLSTATE,
// a space and PostgreSQL's message: "skade:22012 division by zero". A hint or a detail may follow after a newline: "\nHINT: …", "\nDETAIL: …".
const RaisePrefix = "skade:"

// FuncSchema is the DuckDB schema of this package's macros and Go functions; CatalogSchema that of the system catalogs' macros, which engine/pgcatalog defines.
const (
	FuncSchema    = "skade_fn"
	CatalogSchema = "skade_pg"
)
