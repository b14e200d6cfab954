package sqlfuncs

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// commitColumns is the shape of skade.commits and commits_since: one row per commit and table; a commit that touched no
// visible table has one row whose table columns are NULL.
var commitColumns = []Column{
	{"commit_seq", pgtype.Int8, -1},
	{"commit_timestamp", pgtype.TimestampTZ, -1},
	{"transaction_id", pgtype.Text, -1},
	{"actor", pgtype.Text, -1},
	{"application_name", pgtype.Text, -1},
	{"table_name", pgtype.Text, -1},
	{"table_key", pgtype.Text, -1},
	{"kind", pgtype.Text, -1},
	{"operation", pgtype.Text, -1},
	{"ref", pgtype.Text, -1},
	{"snapshot_id", pgtype.Int8, -1},
	{"parent_snapshot_id", pgtype.Int8, -1},
	{"schema_id", pgtype.Int4, -1},
	{"rows_added", pgtype.Int8, -1},
	{"rows_deleted", pgtype.Int8, -1},
	{"files_added", pgtype.Int8, -1},
	{"files_deleted", pgtype.Int8, -1},
	{"metadata_location", pgtype.Text, -1},
	{"previous_metadata_location", pgtype.Text, -1},
}

var commitSchema = arrowSchema(commitColumns)

// arrowSchema is the Arrow schema of columns of the few types that our own relations have.
func arrowSchema(cols []Column) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: c.Name, Type: pgtype.Arrow(c.OID, c.Mod), Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// commitsSince is commits_since(seq [, tables text[], lim int8]): the commits after seq, oldest first.
//
// lim bounds the number of commits looked at. When the newest commit looked at has no visible row (a filter, a missing right), a last
// row with only commit_seq and commit_timestamp carries it, so that a consumer always gets on. Error: 72000 when seq is no longer in the log.
var commitsSince = &Function{
	Name: "commits_since",
	Args: []Arg{
		{Name: "seq", OID: pgtype.Int8},
		{Name: "tables", OID: pgtype.TextArray, Default: "NULL"},
		{Name: "lim", OID: pgtype.Int8, Default: "NULL"},
	},
	Returns: pgtype.Record, SetOf: true,
	Doc: "The commits after a seq, oldest first, one row per commit and table.",
	Describe: func(context.Context, *Env, []*Value) (*Shape, error) {
		return &Shape{Columns: commitColumns}, nil
	},
	Open: openCommitsSince,
}

func openCommitsSince(ctx context.Context, env *Env, _ *Shape, args []*Value) (*Rows, error) {
	if !given(args, 0) {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "seq of commits_since must not be null").WithHint("commits_since(0) starts at the oldest commit.")
	}
	after, err := strconv.ParseInt(args[0].Text, 10, 64)
	if err != nil || after < 0 {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "malformed seq: \"%s\"", args[0].Text)
	}
	c := commitReader{env: env, after: uint64(after), to: env.Cut.Seq(), limit: -1}
	if given(args, 1) {
		c.filter = map[catalog.TableKey]bool{}
		for _, v := range args[1].Array {
			if v.Null {
				continue
			}
			ident, err := env.Resolve(v.Text)
			if err != nil {
				return nil, err
			}
			key, err := env.key(ctx, ident)
			if err != nil {
				return nil, err
			}
			c.filter[key] = true
		}
	}
	if given(args, 2) {
		if c.limit, err = strconv.ParseInt(args[2].Text, 10, 64); err != nil || c.limit < 0 {
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "lim must not be negative: \"%s\"", args[2].Text)
		}
	}
	if err := env.Catalog.WriteMetadata(); err != nil {
		return nil, err
	}
	return &Rows{Schema: commitSchema, N: -1, Batches: c.batches}, nil
}

// commitsView is skade.commits: every commit that the log keeps.
var commitsView = &View{
	Name: "commits", Columns: commitColumns,
	Doc: "The commit log: one row per commit and table.",
	Open: func(_ context.Context, env *Env) (*Rows, error) {
		if err := env.Catalog.WriteMetadata(); err != nil {
			return nil, err
		}
		c := commitReader{env: env, to: env.Cut.Seq(), limit: -1, all: true}
		return &Rows{Schema: commitSchema, N: int64(env.Cut.Seq()), Batches: c.batches}, nil
	},
}

// commitReader turns log records after a seq, up to the cut, into batches.
type commitReader struct {
	env       *Env
	after, to uint64
	limit     int64 // commits, -1 all
	filter    map[catalog.TableKey]bool
	// all is the view: it starts at the oldest retained commit and has no trailing row.
	all bool
}

// logWindow is how many log records are read at a time.
const logWindow = 1024

func (c commitReader) batches(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		after, left := c.after, c.limit
		if c.all {
			after = c.env.Catalog.OldestSeq()
			if after > 0 {
				after--
			}
		}
		for after < c.to && left != 0 {
			n := logWindow
			if left > 0 && left < logWindow {
				n = int(left)
			}
			records, err := c.env.Catalog.CommitsSince(ctx, after, n)
			if err != nil {
				yield(nil, err)
				return
			}
			for len(records) > 0 && records[len(records)-1].Seq > c.to {
				records = records[:len(records)-1]
			}
			if len(records) == 0 {
				return
			}
			after = records[len(records)-1].Seq
			if left > 0 {
				left -= int64(len(records))
			}
			rec := c.batch(records, after >= c.to || left == 0)
			ok := yield(rec, nil)
			rec.Release()
			if !ok {
				return
			}
		}
	}
}

func (c commitReader) batch(records []*catalog.Record, last bool) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, commitSchema)
	defer b.Release()
	for i, r := range records {
		shown := 0
		for j := range r.Tables {
			if t := &r.Tables[j]; c.shows(t) {
				appendCommit(b, r, t)
				shown++
			}
		}
		if shown == 0 && (c.all && len(r.Tables) == 0 || !c.all && last && i == len(records)-1) {
			appendCommit(b, r, nil)
		}
	}
	return b.NewRecordBatch()
}

func (c commitReader) shows(t *catalog.TableRecord) bool {
	if c.filter != nil {
		return c.filter[t.Key] && c.env.Visible(t.Ident)
	}
	// The gateway's own tables are told only when named, so that a consumer that writes to them does not feed itself.
	if len(t.Ident) > 0 && t.Ident[0] == "skade" && !c.all {
		return false
	}
	return c.env.Visible(t.Ident)
}

func appendCommit(b *array.RecordBuilder, r *catalog.Record, t *catalog.TableRecord) {
	row := rowBuilder{b: b}
	row.int8(int64(r.Seq))
	row.time(r.Time.UnixMicro())
	if t == nil {
		row.nulls(len(commitColumns) - 2)
		return
	}
	row.text(r.TxID)
	row.text(r.Actor)
	row.text(r.ApplicationName)
	row.text(sqlName(t.Ident))
	row.text(string(t.Key))
	row.text(t.Kind)
	row.text(t.Operation)
	row.text(t.Ref)
	row.optional(t.SnapshotID)
	row.optional(t.ParentID)
	row.int4(int32(t.SchemaID))
	row.int8(t.RowsAdded)
	row.int8(t.RowsDeleted)
	row.int8(t.FilesAdded)
	row.int8(t.FilesDeleted)
	row.text(t.NewMetadata)
	row.text(t.OldMetadata)
}

// oneBatch are the rows that fill appends, made when they are asked for.
func oneBatch(schema *arrow.Schema, fill func(ctx context.Context, b *array.RecordBuilder) error) *Rows {
	return &Rows{Schema: schema, N: -1, Batches: func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			defer b.Release()
			if err := fill(ctx, b); err != nil {
				yield(nil, err)
				return
			}
			rec := b.NewRecordBatch()
			defer rec.Release()
			yield(rec, nil)
		}
	}}
}

// rowBuilder appends one row, column by column. Empty text is NULL.
type rowBuilder struct {
	b *array.RecordBuilder
	i int
}

func (r *rowBuilder) next() array.Builder {
	f := r.b.Field(r.i)
	r.i++
	return f
}

func (r *rowBuilder) int8(v int64) { r.next().(*array.Int64Builder).Append(v) }
func (r *rowBuilder) int4(v int32) { r.next().(*array.Int32Builder).Append(v) }
func (r *rowBuilder) bool(v bool)  { r.next().(*array.BooleanBuilder).Append(v) }
func (r *rowBuilder) time(micros int64) {
	r.next().(*array.TimestampBuilder).Append(arrow.Timestamp(micros))
}

func (r *rowBuilder) optional(v *int64) {
	if v == nil {
		r.next().AppendNull()
		return
	}
	r.int8(*v)
}

func (r *rowBuilder) text(v string) {
	if v == "" {
		r.next().AppendNull()
		return
	}
	r.next().(*array.StringBuilder).Append(v)
}

func (r *rowBuilder) nulls(n int) {
	for range n {
		r.next().AppendNull()
	}
}

// sortedTables lists the cut's tables that the session may see, by name.
func sortedTables(env *Env) []*catalog.TableState {
	var out []*catalog.TableState
	for t := range env.Cut.AllTables() {
		if env.Visible(t.Ident) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *catalog.TableState) int { return slices.Compare(a.Ident, b.Ident) })
	return out
}
