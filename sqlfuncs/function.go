package sqlfuncs

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

// Value is an argument or a scalar result: PostgreSQL's text form with its type.
type Value struct {
	OID  uint32
	Null bool
	Text string
	// Native is the value as pgenc decodes it; nil where only the text is at hand.
	Native any
	// Row holds the fields of ROW(…), Array the elements of ARRAY[…].
	Row   []*Value
	Array []*Value
}

// Arg is a declared argument.
type Arg struct {
	Name string
	OID  uint32
	// Default is the default as \df shows it; "" means the argument must be given.
	Default string
}

// Column is a column of a set-returning function or a view.
type Column struct {
	Name string
	OID  uint32
	Mod  int32
}

// Env is what a call sees.
type Env struct {
	Cut     *catalog.Cut
	Catalog *catalog.Catalog
	Changes *changelog.Reader
	Lookup  *lookup.Lookup
	Mounts  *mount.Manager // nil: there are none
	// Style is how the session reads text: its zone and its order of day, month and year.
	Style pgenc.Style
	// Resolve finds a table by its SQL name (quoted and qualified as in SQL, or a regclass's OID as digits). Errors: 42P01, 42809.
	Resolve func(name string) (table.Identifier, error)
	// ResolveOwn is Resolve that finds temporary tables, too; Resolve refuses them.
	ResolveOwn func(name string) (table.Identifier, error)
	// Created gives a table that the cut does not know: one that the transaction has created, or a temporary one; nil for others.
	Created func(ctx context.Context, ident table.Identifier) (*CreatedTable, error)
	// Stored gives a table's state at Cut, where it may have had another name; nil for a table that the transaction has made.
	Stored func(ctx context.Context, ident table.Identifier) (*catalog.TableState, error)
	// Own gives a table's state with the transaction's own writes; nil, nil when it has none.
	Own func(ctx context.Context, ident table.Identifier) (*liveset.Set, error)
	// Visible reports whether the session may see a table in the feed (SELECT right).
	Visible func(ident table.Identifier) bool
	// Files reads manifests.
	Files iceio.IO
	// Only, when not nil, keeps a view from reading tables that its query does not ask for.
	Only func(ident table.Identifier) bool
	// Write gives the session's transaction for a change by the named function. Errors: 25006.
	Write func(function string) (*warehouse.Tx, error)
	// Candidates are the identifiers that a SQL name may mean, in the order of the search path.
	Candidates func(name string) ([]table.Identifier, error)
	// NewName is the identifier of a SQL name for a new relation; without a schema it goes to that of like.
	NewName func(name string, like table.Identifier) (table.Identifier, error)
	// RestoreOwned brings back what a dropped table owned, once the table is back under ident.
	RestoreOwned func(ctx context.Context, d *catalog.DroppedTable, ident table.Identifier) error
	// Vacuums tells what maintenance is at.
	Vacuums func() []VacuumProgress
	// DropRetention is how long dropped tables can come back.
	DropRetention time.Duration
	// Progress lists the statements that write at this moment.
	Progress func() []Progress
	// Writable refuses a change that takes effect at once in a read-only transaction (25006); command is named in the error.
	Writable func(command string) error
	// Session names the session among all that ever were.
	Session string
	// Pinned says that later statements of the transaction read at Cut, too.
	Pinned bool
	// SessionAsOf is skade.as_of.
	SessionAsOf string
}

// Shape is a described call.
type Shape struct {
	Columns []Column
	// Table is the table schema the call's first columns follow, handed back to Open so that its columns do not move.
	Table *iceberg.Schema
	Ident table.Identifier
	// TableOID is set when the first columns are that table's.
	TableOID uint32
}

// Rows are the rows of a call or a view.
type Rows struct {
	Schema *arrow.Schema
	// N is the expected number, -1 unknown.
	N int64
	// Batches yields the rows. The consumer does not release batches; each is good until the next is asked for.
	Batches func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error]
	// Warnings, when not nil, tells what a client should know, after Batches ended.
	Warnings func() []string
}

// Function is one function of schema skade.
type Function struct {
	Name string
	Args []Arg
	// Returns is the result type of a scalar function, pgtype.Record of a set-returning one.
	Returns uint32
	SetOf   bool
	Strict  bool
	// Volatile functions change something.
	Volatile bool
	// PerRow functions take values of rows, too, and are then called while the query runs.
	PerRow bool
	// Doc is one sentence, shown by \df+.
	Doc string
	// Describe gives the columns of a call: args has one entry per declared argument, nil where left out or not known before execution.
	Describe func(ctx context.Context, env *Env, args []*Value) (*Shape, error)
	// Open starts a set-returning call.
	Open func(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error)
	// Plan, when not nil, says for EXPLAIN what Open would read.
	Plan func(ctx context.Context, env *Env, shape *Shape, args []*Value) ([]Fact, error)
	// Call runs a scalar call.
	Call func(ctx context.Context, env *Env, args []*Value) (*Value, error)
}

// Fact is one line of a plan.
type Fact struct {
	Name  string
	Value any
}

// View is a relation of schema skade.
type View struct {
	Name    string
	Doc     string
	Columns []Column
	Open    func(ctx context.Context, env *Env) (*Rows, error)
}

// Functions lists the functions by name.
func Functions() []*Function { return functions }

// Views lists the views by name.
func Views() []*View { return views }

var functions = []*Function{
	changefeedAck,
	changefeedCreate,
	changefeedDrop,
	changefeedSeek,
	changefeedWindow,
	checkWarehouse,
	commitChannel,
	commitsSince,
	createBranch,
	createTag,
	currentCommitSeq,
	dropRef,
	fastForward,
	lookupFunc,
	lookupMany,
	rollbackTo,
	setCurrentSnapshot,
	snapshotAt,
	tableAt,
	tableChanges,
	tableChangesNet,
	undrop,
	waitForCommit,
}

// CreatedTable is a table without a snapshot that the catalog knows.
type CreatedTable struct {
	Ref  liveset.Ref
	Live *liveset.Set
	OID  uint32
}

// created is Created, nil without one.
func (e *Env) created(ctx context.Context, ident table.Identifier) (*CreatedTable, error) {
	if e.Created == nil {
		return nil, nil
	}
	return e.Created(ctx, ident)
}

// stored is Stored; without one, what Cut has under the name.
func (e *Env) stored(ctx context.Context, ident table.Identifier) (*catalog.TableState, error) {
	if e.Stored == nil {
		return e.Cut.Table(ident)
	}
	return e.Stored(ctx, ident)
}

// key is the key of a table, which stays the same when the table is renamed or committed.
func (e *Env) key(ctx context.Context, ident table.Identifier) (catalog.TableKey, error) {
	st, err := e.stored(ctx, ident)
	if err != nil {
		return "", err
	}
	if st != nil {
		return st.Key, nil
	}
	created, err := e.created(ctx, ident)
	if err != nil {
		return "", err
	}
	if created == nil {
		return "", noPast(ident)
	}
	return catalog.TableKey(created.Ref.UUID.String()), nil
}

// noPast says that a table is in no commit.
func noPast(ident table.Identifier) error {
	return pgerr.Newf(pgerr.FeatureNotSupported, "table \"%s\" has no past: it is temporary, or not committed yet", ident[len(ident)-1])
}

// resolveOwn is ResolveOwn, Resolve without one.
func (e *Env) resolveOwn(name string) (table.Identifier, error) {
	if e.ResolveOwn == nil {
		return e.Resolve(name)
	}
	return e.ResolveOwn(name)
}

var views = []*View{changefeedsView, commitsView, mountsView, progressView}

// Defaults is the number of trailing arguments that may be left out.
func (f *Function) Defaults() int {
	n := 0
	for i := len(f.Args) - 1; i >= 0 && f.Args[i].Default != ""; i-- {
		n++
	}
	return n
}

// given reports whether an argument was given and is not NULL.
func given(args []*Value, i int) bool { return i < len(args) && args[i] != nil && !args[i].Null }

// boolArg is a boolean argument, false when it is left out or NULL. A constant says true, a value t.
func boolArg(args []*Value, i int) bool {
	return given(args, i) && strings.HasPrefix(args[i].Text, "t")
}

// tableArg resolves the table named by argument 0, which must be known before execution.
func tableArg(env *Env, fn string, args []*Value) (table.Identifier, error) {
	return tableNamed(env.Resolve, fn, args)
}

func tableNamed(resolve func(string) (table.Identifier, error), fn string, args []*Value) (table.Identifier, error) {
	if len(args) == 0 || args[0] == nil {
		return nil, pgerr.Newf(pgerr.IndeterminateDatatype, "table name of %s must be a constant", fn).
			WithDetail("The columns of the result depend on it, and they must be known before execution.")
	}
	if args[0].Null {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "table name of %s must not be null", fn)
	}
	return resolve(args[0].Text)
}

// intervalArg reads an interval that is not negative; a month has 30 days, as in extract(epoch …).
func intervalArg(args []*Value, i int, name string, otherwise time.Duration) (time.Duration, error) {
	if !given(args, i) {
		return otherwise, nil
	}
	v, err := pgenc.Decode(pgtype.Interval, pgenc.Text, []byte(args[i].Text), pgenc.Style{})
	if err != nil {
		return 0, err
	}
	iv := v.(pgenc.IntervalValue)
	days := int64(iv.Months)*30 + int64(iv.Days)
	if days > 36500 || iv.Micros > 36500*86400*1e6 {
		return 0, pgerr.Newf(pgerr.InvalidParameterValue, "%s is out of range: \"%s\"", name, args[i].Text)
	}
	d := time.Duration(days)*24*time.Hour + time.Duration(iv.Micros)*time.Microsecond
	if d < 0 {
		return 0, pgerr.Newf(pgerr.InvalidParameterValue, "%s must not be negative: \"%s\"", name, args[i].Text)
	}
	return d, nil
}

// tableColumns are the columns of a table schema as SQL shows them.
func tableColumns(sc *iceberg.Schema, props iceberg.Properties) []Column {
	fields := sc.Fields()
	out := make([]Column, len(fields))
	for i, f := range fields {
		oid, mod := pgtype.FromIceberg(f, props)
		out[i] = Column{Name: f.Name, OID: oid, Mod: mod}
	}
	return out
}

// metadataColumns are the columns of an Arrow schema after the first n.
func metadataColumns(as *arrow.Schema, n int) []Column {
	var out []Column
	for _, f := range as.Fields()[n:] {
		c := Column{Name: f.Name, Mod: -1}
		switch f.Type.ID() {
		case arrow.INT16:
			c.OID = pgtype.Int2
		case arrow.INT32:
			c.OID = pgtype.Int4
		case arrow.INT64:
			c.OID = pgtype.Int8
		case arrow.TIMESTAMP:
			c.OID = pgtype.TimestampTZ
		default:
			c.OID = pgtype.Text
		}
		out = append(out, c)
	}
	return out
}

// sqlName writes an identifier as a schema-qualified SQL name without quotes: levels of the namespace joined by dots.
func sqlName(ident table.Identifier) string { return strings.Join(ident, ".") }
