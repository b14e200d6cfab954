package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// rendered is a Query as DuckDB text whose sources exist: scans and relations are registered until release.
type rendered struct {
	sql string
	// files are the data files behind the file ordinals of the source with Position, if there is one.
	files []string
	// posFiles are those of each source with Position, by source number.
	posFiles map[int][]string
	// plan says that nothing is to run: a call that changes something is not opened.
	plan bool
	// scans count for EXPLAIN.
	scans    []scanPlan
	releases []func()
	warnings []func() []string
	// stable names the states of the stored tables that the text reads; it holds a '?' when a source is not a stored table.
	// sets keeps those states alive, so that their addresses in stable mean them.
	stable string
	sets   []*liveset.Set
	// slots are relations whose rows change while the text does not.
	slots []*rowSlot
}

// scanPlan is what one table scan considers and opens.
type scanPlan struct {
	name              string
	considered, opens int
	bytes, rows       int64
	suppressed        int64
	// index is how many columns of the key are probed, 0 for a scan; counters are what EXPLAIN's probes cost.
	index    int
	use      *pgsql.RelUse
	counters *liveset.ProbeCounters
	// join says why a source that is joined by its key is read as it is.
	join *joinPlan
}

// tableState is a table's files and bitmaps, and the schema that its rows are shown in.
type tableState struct {
	set    *liveset.Set
	ref    liveset.Ref
	schema *iceberg.Schema
}

func (r *rendered) release() {
	for _, f := range r.releases {
		f()
	}
	r.releases = nil
}

// given holds rows that the engine itself supplies to sources of kind Rows, by source number.
type given map[int]*sqlfuncs.Rows

// render takes the locks that the query asks for and opens its sources.
func (s *session) render(ctx context.Context, q *pgsql.Query, args []value, rows given) (*rendered, error) {
	locked, err := s.lockRows(ctx, q, args)
	if err != nil {
		return nil, err
	}
	return s.openSources(ctx, q, args, rows, locked)
}

// openSources opens the sources of a query; those in locked show the rows that were locked.
func (s *session) openSources(ctx context.Context, q *pgsql.Query, args []value, rows given, locked lockedRows) (*rendered, error) {
	r := &rendered{}
	return r, s.openInto(ctx, r, q, args, rows, locked)
}

// source opens source i: its rows are those in only, or those of keys, where these are given.
func (s *session) source(ctx context.Context, r *rendered, i int, use *pgsql.RelUse, args []value, rows given, only fileRows, keys *joinKeys) (string, error) {
	h, _ := use.Relation.Handle.(*handle)
	switch use.Relation.Kind {
	case pgsql.Rows:
		src := rows[i]
		if src == nil {
			return "", pgerr.New(pgerr.InternalError, "source of rows is missing")
		}
		return s.relationItem(r, use, src.Schema, src.N, func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
			return shared(src.Batches(ctx)), nil
		})
	case pgsql.Spooled:
		src := rows[i]
		if src == nil { // EXPLAIN: nothing ran
			return "(SELECT NULL)", nil
		}
		return s.registerRows(r, use, src.Schema, src.N, opener(src), "k", spooledCast)
	case pgsql.Table:
		before := len(r.files)
		item, err := s.tableItem(ctx, r, use, h.table, nil, args, only, keys)
		if use.Position {
			if r.posFiles == nil {
				r.posFiles = map[int][]string{}
			}
			r.posFiles[i] = r.files[before:len(r.files):len(r.files)]
		}
		return item, err
	case pgsql.Function:
		if use.Driver > 0 {
			return s.drivenItem(ctx, r, use, h, args, rows[i], keys)
		}
		vals, err := s.evaluate(ctx, use.Args, args)
		if err != nil {
			return "", err
		}
		return s.functionItem(ctx, r, use, h, vals, args, keys)
	case pgsql.System:
		return s.systemItem(ctx, r, use, h, args)
	}
	return "", pgerr.Newf(pgerr.InternalError, "source of kind %d", use.Relation.Kind)
}

func (s *session) systemItem(ctx context.Context, r *rendered, use *pgsql.RelUse, h *handle, args []value) (string, error) {
	if h.sequence != nil {
		rows, err := s.sequenceRow(ctx, h.sequence)
		if err != nil {
			return "", err
		}
		return s.relationItem(r, use, rows.Schema, rows.N, opener(rows))
	}
	if h.view != nil {
		env := s.env(ctx)
		env.Only = s.onlyTables(use, args)
		rows, err := h.view.Open(ctx, env)
		if err != nil {
			return "", err
		}
		return s.relationItem(r, use, rows.Schema, rows.N, opener(rows))
	}
	as, batches, n, err := s.catalogSnapshot().Relation(&catalogView{s}, h.system.Schema, h.system.Name)
	if err != nil {
		return "", err
	}
	open := func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return shared(func(yield func(arrow.RecordBatch, error) bool) {
			for _, b := range batches {
				if !yield(b, nil) {
					return
				}
			}
		}), nil
	}
	return s.relationItem(r, use, as, n, open)
}

func opener(rows *sqlfuncs.Rows) duck.RelationFunc {
	return func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return shared(rows.Batches(ctx)), nil
	}
}

// shared lends batches to DuckDB, whose reader releases what it gets, while their owner keeps them.
func shared(batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range batches {
			if b != nil {
				b.Retain()
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// relationItem registers rows of Go, stored as in data files, and selects the columns that the query uses, in its order.
func (s *session) relationItem(r *rendered, use *pgsql.RelUse, schema *arrow.Schema, n int64, open duck.RelationFunc) (string, error) {
	return s.registerRows(r, use, schema, n, open, "c", func(expr string, c pgsql.RelColumn) string { return storedToSQL(expr, c.Type, c.Mod) })
}

// registerRows is relationItem with names that begin with prefix and values that cast turns into the type that expressions have.
func (s *session) registerRows(r *rendered, use *pgsql.RelUse, schema *arrow.Schema, n int64, open duck.RelationFunc, prefix string,
	cast func(expr string, c pgsql.RelColumn) string) (string, error) {
	id, release, err := s.gw.duck.RegisterRelation(schema, n, open)
	if err != nil {
		return "", err
	}
	r.releases = append(r.releases, release)
	r.stable += "?"
	var b strings.Builder
	b.WriteString("(SELECT ")
	for k, c := range use.Columns {
		if k > 0 {
			b.WriteString(", ")
		}
		f, col := schema.Field(c), use.Relation.Columns[c]
		expr := quoteIdent(f.Name)
		if col.Type == pgtype.JSONB && arrow.IsNested(f.Type.ID()) {
			expr = nestedToSQL(expr)
		}
		fmt.Fprintf(&b, "%s AS %s%d", cast(expr, col), prefix, k)
	}
	if len(use.Columns) == 0 {
		b.WriteString("1 AS " + prefix + "0")
	}
	b.WriteString(" FROM skade_rel('" + id + "'))")
	return b.String(), nil
}

// storedToSQL turns a column as data files hold it into the type that expressions have.
func storedToSQL(expr string, oid uint32, mod int32) string {
	stored, want := pgtype.DuckStorageName(oid, mod), pgtype.DuckName(oid, mod)
	if stored == want {
		return expr
	}
	if oid == pgtype.Interval {
		return intervalFromISO + "(" + expr + ")"
	}
	if oid == pgtype.IntervalArray {
		return "list_transform(" + expr + ", lambda v: " + intervalFromISO + "(v))"
	}
	return "CAST(" + expr + " AS " + want + ")"
}

// nestedToSQL is the jsonb that a struct, map or list of another writer is shown as.
func nestedToSQL(expr string) string {
	return "skade_jsonb_in(CAST(CAST(" + expr + " AS JSON) AS VARCHAR))"
}

// isNested tells structs, maps and lists from values.
func isNested(t iceberg.Type) bool {
	_, ok := t.(iceberg.NestedType)
	return ok
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// pinnedState is a table at a bound.
type pinnedState struct {
	metadata table.Metadata
	snapshot *int64
	schema   *iceberg.Schema
}

// tableItem makes the scan of a stored table: at nil, the transaction's state with its own writes.
func (s *session) tableItem(ctx context.Context, r *rendered, use *pgsql.RelUse, ident table.Identifier, at *pinnedState, args []value, only fileRows, keys *joinKeys) (string, error) {
	set, ref, sc, err := s.liveSet(ctx, ident, at)
	if err != nil {
		return "", err
	}
	for _, c := range use.Columns {
		if c >= sc.NumFields() {
			return "", pgerr.Newf(pgerr.FeatureNotSupported, "system column \"%s\" of a table is not supported", use.Relation.Columns[c].Name)
		}
	}
	st := &tableState{set, ref, sc}
	item, ok := "", false
	switch {
	case only != nil:
		item, ok, err = s.lockedItem(r, use, st, only)
	default:
		if item, ok, err = s.probedItem(ctx, r, use, st, args); !ok && err == nil && keys != nil {
			item, ok, err = s.joinedItem(ctx, r, use, st, keys)
		}
	}
	if ok || err != nil {
		return item, err
	}
	scan := duck.Scan{WithPosition: use.Position}
	props := ref.Metadata.Properties()
	fields := sc.Fields()
	nested := map[int]bool{} // columns of other writers that are shown as jsonb
	for _, c := range use.Columns {
		f := fields[c]
		oid, mod := pgtype.FromIceberg(f, props)
		def, err := defaultText(f)
		if err != nil {
			return "", err
		}
		col := duck.ScanColumn{FieldID: f.ID, Name: f.Name, DuckType: pgtype.DuckStorageName(oid, mod), Default: def}
		if oid == pgtype.JSONB && isNested(f.Type) {
			col.DuckType = "JSON"
			nested[c] = true
		}
		scan.Columns = append(scan.Columns, col)
	}
	if err := s.scanFiles(ctx, r, use, &scan, ref, set, sc, args, only); err != nil {
		return "", err
	}
	from, release, err := s.gw.duck.ScanSQL(scan)
	if err != nil {
		return "", err
	}
	r.releases = append(r.releases, release)
	return wrapScan(from, use, nested), nil
}

// scanFiles adds the files of a set that a query has to read: those in which a row may be that its simple predicates let through.
func (s *session) scanFiles(ctx context.Context, r *rendered, use *pgsql.RelUse, scan *duck.Scan, ref liveset.Ref, set *liveset.Set, sc *iceberg.Schema, args []value, only fileRows) error {
	plan := scanPlan{name: tableOf(use)}
	keep := pruner(sc, use, s, args)
	kept := fnv.New64a()
	for lf := range set.Files() {
		plan.considered++
		if lf.Live() == 0 || !keep(lf.File.Data) {
			continue
		}
		suppressed := lf.Suppressed
		if only != nil {
			wanted := only[lf.File.Path]
			if wanted == nil {
				continue
			}
			suppressed = roaring.Flip(wanted, 0, uint64(lf.File.Records))
		}
		plan.opens++
		kept.Write(binary.LittleEndian.AppendUint32(nil, uint32(plan.considered)))
		plan.bytes += lf.File.Size
		plan.rows += lf.Live()
		plan.suppressed += lf.File.Records - lf.Live()
		f := duck.ScanFile{Size: lf.File.Size, Rows: lf.File.Records, Suppressed: suppressed, FirstRowID: lf.File.FirstRowID}
		if !lf.File.InMemory() {
			var err error
			if f.Path, err = s.gw.fs.Resolve(lf.File.Path); err != nil {
				return err
			}
		}
		foreign, err := s.gw.foreign(ctx, lf.File)
		if err != nil {
			return err
		}
		if foreign {
			shown := *lf
			shown.Suppressed = suppressed
			if f.Relation, err = s.feedFromGo(r, ref, &shown, sc, use.Position); err != nil {
				return err
			}
		}
		scan.Files = append(scan.Files, f)
		if use.Position {
			r.files = append(r.files, lf.File.Path)
		}
	}
	r.scans = append(r.scans, plan)
	r.sets = append(r.sets, set)
	r.stable += fmt.Sprintf("%p/%x;", set, kept.Sum64())
	if only != nil {
		r.stable += "?"
	}
	return nil
}

// wrapScan casts what is stored in another type than expressions have.
func wrapScan(from string, use *pgsql.RelUse, nested map[int]bool) string {
	plain := len(nested) == 0
	for _, c := range use.Columns {
		col := use.Relation.Columns[c]
		if pgtype.DuckStorageName(col.Type, col.Mod) != pgtype.DuckName(col.Type, col.Mod) {
			plain = false
		}
	}
	if plain {
		return from
	}
	var b strings.Builder
	b.WriteString("(SELECT ")
	for k, c := range use.Columns {
		if k > 0 {
			b.WriteString(", ")
		}
		col := use.Relation.Columns[c]
		expr := "s.k" + strconv.Itoa(k)
		if nested[c] {
			expr = nestedToSQL(expr)
		}
		b.WriteString(storedToSQL(expr, col.Type, col.Mod) + " AS c" + strconv.Itoa(k))
	}
	if use.Position {
		b.WriteString(", s.kf, s.kp")
	}
	b.WriteString(" FROM " + from + " AS s(")
	for k := range use.Columns {
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString("k" + strconv.Itoa(k))
	}
	if use.Position {
		b.WriteString(", kf, kp")
	}
	b.WriteString("))")
	return b.String()
}

// liveSet is a table's files and bitmaps: at a bound, at skade.as_of, or as the transaction sees it.
func (s *session) liveSet(ctx context.Context, ident table.Identifier, at *pinnedState) (*liveset.Set, liveset.Ref, *iceberg.Schema, error) {
	if asOf := s.gucs.now.asOf; at == nil && asOf != "" && !s.isTemp(ident) {
		env := s.env(ctx)
		st, err := sqlfuncs.TableStateAt(ctx, env, ident, &sqlfuncs.Value{OID: pgtype.Text, Text: asOf})
		if err != nil {
			return nil, liveset.Ref{}, nil, err
		}
		cur, err := s.table(ctx, ident)
		if err != nil {
			return nil, liveset.Ref{}, nil, err
		}
		at = &pinnedState{metadata: st.Metadata, snapshot: st.Snapshot, schema: cur.Schema()}
	}
	if snap, ok := s.frozen[snapshotKey(ident)]; ok && at == nil {
		return snap.set, snap.ref, snap.schema, nil
	}
	if at == nil {
		t, err := s.table(ctx, ident)
		if err != nil {
			return nil, liveset.Ref{}, nil, err
		}
		s.noteRead(t)
		set, err := t.Live(ctx)
		return set, t.Ref(), t.Schema(), err
	}
	if at.snapshot == nil {
		md := at.metadata
		if md == nil {
			t, err := s.table(ctx, ident)
			if err != nil {
				return nil, liveset.Ref{}, nil, err
			}
			md = t.Metadata()
		}
		return liveset.Empty(), liveset.Ref{UUID: md.TableUUID(), Metadata: md}, at.schema, nil
	}
	ref := liveset.Ref{UUID: at.metadata.TableUUID(), Metadata: at.metadata}
	set, err := s.gw.live.At(ctx, ref, *at.snapshot)
	return set, ref, at.schema, err
}

// ownWrites is a table's live set with the transaction's writes, nil when it wrote nothing there.
func (s *session) ownWrites(ctx context.Context, ident table.Identifier) (*liveset.Set, error) {
	if s.gucs.now.branch == "" && (s.tx == nil || !s.tx.wrote) {
		return nil, nil
	}
	t, err := s.table(ctx, ident)
	if err != nil || t.AtCut() {
		return nil, err
	}
	return t.Live(ctx)
}

// feedFromGo registers a file that DuckDB's reader cannot map by field id.
func (s *session) feedFromGo(r *rendered, ref liveset.Ref, lf *liveset.LiveFile, sc *iceberg.Schema, position bool) (string, error) {
	opts := liveset.ScanOptions{Files: []*liveset.LiveFile{lf}, Meta: liveset.MetaColumns{Pos: position}}
	as, err := scanArrowSchema(sc, position)
	if err != nil {
		return "", err
	}
	id, release, err := s.gw.duck.RegisterRelation(as, lf.Live(), func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return s.gw.live.Scan(ctx, ref, nil, sc, opts), nil
	})
	if err == nil {
		r.releases = append(r.releases, release)
	}
	return id, err
}

func scanArrowSchema(sc *iceberg.Schema, position bool) (*arrow.Schema, error) {
	as, err := table.SchemaToArrowSchema(sc, nil, true, false)
	if err != nil {
		return nil, err
	}
	fields := as.Fields()
	if position {
		fields = append(fields, arrow.Field{Name: duck.PosColumn, Type: arrow.PrimitiveTypes.Int64})
	}
	return arrow.NewSchema(fields, nil), nil
}
