package sqlfuncs

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// metaTable is one of Iceberg's metadata tables: a view over all tables, led by the columns table_schema and table_name, and a function of one table
// of the same name. A condition on table_schema or table_name keeps the view from reading other tables' metadata.
type metaTable struct {
	name, doc string
	columns   []Column
	// asOf: the function takes a bound, and the table's state there is shown.
	asOf bool
	// rows writes the rows of one table.
	rows func(ctx context.Context, in *metaInput, out *rowSink) error
}

// metaInput is the table that a metadata table is about.
type metaInput struct {
	env      *Env
	state    *catalog.TableState
	meta     table.Metadata
	snapshot *table.Snapshot // current, or at the bound; nil without one
}

var metaTables = []*metaTable{allFilesTable, deleteFilesTable, entriesTable, filesTable, historyTable, manifestsTable, metadataLogTable, partitionsTable, refsTable, snapshotsTable}

func init() {
	for _, m := range metaTables {
		views = append(views, m.view())
		functions = append(functions, m.function())
	}
	views = append(views, droppedTablesView, statProgressVacuumView)
	slices.SortFunc(views, func(a, b *View) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
}

var tableNameColumns = []Column{{"table_schema", pgtype.Text, -1}, {"table_name", pgtype.Text, -1}}

func (m *metaTable) view() *View {
	v := &View{Name: m.name, Doc: m.doc, Columns: append(slices.Clone(tableNameColumns), m.columns...)}
	v.Open = func(_ context.Context, env *Env) (*Rows, error) {
		return sinkRows(v.Columns, func(ctx context.Context, out *rowSink) error {
			for _, t := range sortedTables(env) {
				if env.Only != nil && !env.Only(t.Ident) {
					continue
				}
				in, err := newMetaInput(ctx, env, t)
				if err != nil {
					return err
				}
				out.lead = []string{sqlName(t.Ident[:len(t.Ident)-1]), t.Ident[len(t.Ident)-1]}
				if err := m.rows(ctx, in, out); err != nil {
					return err
				}
			}
			return nil
		}), nil
	}
	return v
}

func (m *metaTable) function() *Function {
	f := &Function{
		Name: m.name, Args: []Arg{{Name: "tbl", OID: pgtype.Text}}, Returns: pgtype.Record, SetOf: true,
		Doc:      strings.Replace(m.doc, "every table", "a table", 1),
		Describe: func(context.Context, *Env, []*Value) (*Shape, error) { return &Shape{Columns: m.columns}, nil },
	}
	if m.asOf {
		f.Args = append(f.Args, Arg{Name: "as_of", OID: pgtype.Any, Default: "NULL"})
	}
	f.Open = func(ctx context.Context, env *Env, _ *Shape, args []*Value) (*Rows, error) {
		ident, err := tableArg(env, m.name, args)
		if err != nil {
			return nil, err
		}
		st, err := env.stored(ctx, ident)
		if err != nil {
			return nil, err
		}
		if st == nil { // nothing of it is written yet
			return sinkRows(m.columns, func(context.Context, *rowSink) error { return nil }), nil
		}
		in, err := newMetaInput(ctx, env, st)
		if err != nil {
			return nil, err
		}
		if m.asOf && given(args, 1) {
			at, err := TableStateAt(ctx, env, ident, args[1])
			if err != nil {
				return nil, err
			}
			in.snapshot = nil
			if at.Snapshot != nil {
				in.snapshot = at.Metadata.SnapshotByID(*at.Snapshot)
			}
		}
		return sinkRows(m.columns, func(ctx context.Context, out *rowSink) error { return m.rows(ctx, in, out) }), nil
	}
	return f
}

func newMetaInput(ctx context.Context, env *Env, t *catalog.TableState) (*metaInput, error) {
	meta, err := t.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	return &metaInput{env: env, state: t, meta: meta, snapshot: meta.CurrentSnapshot()}, nil
}

// manifests are those of a snapshot, none for nil.
func (in *metaInput) manifests(s *table.Snapshot) ([]iceberg.ManifestFile, error) {
	if s == nil {
		return nil, nil
	}
	return s.Manifests(in.env.Files)
}

// commitTime is when a snapshot was committed: the log knows microseconds.
func (in *metaInput) commitTime(ctx context.Context, s *table.Snapshot) (at time.Time, seq *int64) {
	if rec, err := in.env.Catalog.CommitBySnapshot(ctx, in.state.Key, s.SnapshotID); err == nil && rec != nil {
		n := int64(rec.Seq)
		return rec.Time, &n
	}
	return time.UnixMilli(s.TimestampMs), nil
}

// sinkChunk is how many rows make a batch.
const sinkChunk = 1024

// rowSink collects rows into batches.
type rowSink struct {
	b     *array.RecordBuilder
	n     int
	lead  []string
	yield func(arrow.RecordBatch, error) bool
	ended bool
}

// row begins a row; its leading columns are written.
func (o *rowSink) row() *rowBuilder {
	r := &rowBuilder{b: o.b}
	for _, v := range o.lead {
		r.text(v)
	}
	return r
}

// done ends a row. It returns false when nobody wants more.
func (o *rowSink) done() bool {
	if o.n++; o.n < sinkChunk {
		return true
	}
	return o.flush()
}

func (o *rowSink) flush() bool {
	if o.ended || o.n == 0 {
		return !o.ended
	}
	rec := o.b.NewRecordBatch()
	o.n = 0
	o.ended = !o.yield(rec, nil)
	rec.Release()
	return !o.ended
}

// sinkRows are the rows that fill writes.
func sinkRows(columns []Column, fill func(ctx context.Context, out *rowSink) error) *Rows {
	schema := arrowSchema(columns)
	return &Rows{Schema: schema, N: -1, Batches: func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			defer b.Release()
			out := &rowSink{b: b, yield: yield}
			err := fill(ctx, out)
			if out.ended {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			out.flush()
		}
	}}
}

func (r *rowBuilder) optional4(v *int) {
	if v == nil {
		r.next().AppendNull()
		return
	}
	r.int4(int32(*v))
}

// list8 and list4 append an array, NULL for a nil one.
func (r *rowBuilder) list8(v []int64) {
	l := r.next().(*array.ListBuilder)
	if v == nil {
		l.AppendNull()
		return
	}
	l.Append(true)
	l.ValueBuilder().(*array.Int64Builder).AppendValues(v, nil)
}

func (r *rowBuilder) texts(v []string) {
	b := r.next().(*array.ListBuilder)
	b.Append(true)
	for _, s := range v {
		b.ValueBuilder().(*array.StringBuilder).Append(s)
	}
}

func (r *rowBuilder) list4(v []int) {
	l := r.next().(*array.ListBuilder)
	if v == nil {
		l.AppendNull()
		return
	}
	l.Append(true)
	for _, x := range v {
		l.ValueBuilder().(*array.Int32Builder).Append(int32(x))
	}
}

func (r *rowBuilder) bytes(v []byte) {
	if v == nil {
		r.next().AppendNull()
		return
	}
	r.next().(*array.BinaryBuilder).Append(v)
}
