package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// dmlPortal makes the portal of INSERT, UPDATE, DELETE or MERGE. The statement runs whole at the first Execute; RETURNING's rows
// are then streamed.
func (s *session) dmlPortal(b binding) pgwire.Portal {
	run := func(ctx context.Context, w pgwire.Writer) (*dmlResult, error) {
		for _, n := range b.p.query.Notices {
			w.Notice(notice(n))
		}
		return s.runDML(ctx, b, w)
	}
	if b.cols == nil {
		return &commandPortal{s: s, run: func(ctx context.Context, w pgwire.Writer) (string, error) {
			res, err := run(ctx, w)
			if err != nil {
				return "", err
			}
			return s.remember(ctx, b, res.tag, func(ctx context.Context) (string, error) {
				res, err := s.runDML(ctx, b, discardWriter{})
				if err != nil {
					return "", err
				}
				return res.tag, nil
			})
		}}
	}
	var res *dmlResult
	return &streamPortal{s: s, cols: b.cols,
		open: func(ctx context.Context, w pgwire.Writer) (src rowSource, err error) {
			if res, err = run(ctx, w); err != nil {
				return nil, err
			}
			return res.open(ctx)
		},
		tag: func(int64) string { return res.tag },
	}
}

// dmlResult is what a statement did.
type dmlResult struct {
	tag string
	// ret is what RETURNING is made of: its rows, or INSERT's new rows. open makes its stream, and ends ret with it; nil without RETURNING.
	ret  *spool
	open func(ctx context.Context) (rowSource, error)
}

// dmlTarget is the table that a data change writes, and the statement's name.
func dmlTarget(q *pgsql.Query) (*pgsql.Relation, string) {
	switch {
	case q.Insert != nil:
		return q.Insert.Target, "INSERT"
	case q.Update != nil:
		return q.Update.Target, "UPDATE"
	case q.Merge != nil:
		return q.Merge.Target, "MERGE"
	}
	return q.Delete.Target, "DELETE"
}

// runDML runs the statement with its WITH; a failed one leaves no trace in the transaction.
func (s *session) runDML(ctx context.Context, b binding, w pgwire.Writer) (*dmlResult, error) {
	q := b.query()
	target, command := dmlTarget(q)
	if err := s.tx.writableTarget(command, target); err != nil {
		return nil, err
	}
	t, err := s.lockTargets(ctx, b, target)
	if err != nil {
		return nil, err
	}
	_, done := s.track(command, target, s.tx.wh)
	defer done()
	if b.part != nil {
		return s.runOnce(ctx, b, t, w) // repeated with the statement, not by itself
	}
	var res *dmlResult
	err = s.settled(ctx, b.p, func() error {
		var err error
		if t, err = s.table(ctx, t.Ident()); err != nil {
			return err
		}
		res, err = s.runOnce(ctx, b, t, w)
		return err
	})
	if err == nil {
		err = t.Fold(ctx)
	}
	return res, err
}

func (s *session) runWhole(ctx context.Context, b binding, t *warehouse.TxTable, w pgwire.Writer) (*dmlResult, error) {
	thaw, err := s.freeze(ctx, b.query())
	if err != nil {
		return nil, err
	}
	defer thaw()
	mark := s.tx.wh.Savepoint()
	b, finish, free, err := s.withParts(ctx, b)
	if err != nil {
		return nil, err
	}
	defer free()
	var src rowSource
	res, err := s.writeRows(ctx, b, t, w)
	if err == nil && res.ret != nil && b.part == nil {
		if src, err = s.openReturning(ctx, b, res.ret); err == nil {
			res.open = func(context.Context) (rowSource, error) { return src, nil }
		}
	}
	if err == nil {
		err = finish()
	}
	if err != nil { // a part of the WITH, too, that ran after the statement's own rows were there
		if src != nil {
			src.close()
		}
		s.undo(mark)
		return nil, err
	}
	return res, s.tx.wh.Release(mark)
}

func (s *session) writeRows(ctx context.Context, b binding, t *warehouse.TxTable, w pgwire.Writer) (*dmlResult, error) {
	switch q := b.query(); {
	case q.Insert != nil:
		return s.insert(ctx, b, t, w)
	case q.Update != nil:
		return s.update(ctx, b, t)
	case q.Merge != nil:
		return s.merge(ctx, b, t)
	}
	return s.delete(ctx, b, t)
}

// storedQuery is a DML query's text with its rows in the types that data files hold: lead columns stay, then the target's columns, then the rest.
func storedSQL(sql string, lead int, cols []pgsql.RelColumn, rest int) string {
	var sel, names strings.Builder
	n := 0
	add := func(expr func(name string) string) {
		if n > 0 {
			sel.WriteString(", ")
			names.WriteString(", ")
		}
		name := "q" + strconv.Itoa(n)
		sel.WriteString(expr("q." + name))
		names.WriteString(name)
		n++
	}
	plain := func(name string) string { return name }
	for range lead {
		add(plain)
	}
	for _, c := range cols {
		add(func(name string) string { return sqlToStored(name, c.Type, c.Mod) })
	}
	for range rest {
		add(plain)
	}
	return "SELECT " + sel.String() + " FROM (" + sql + ") AS q(" + names.String() + ")"
}

// sqlToStored is the inverse of storedToSQL.
func sqlToStored(expr string, oid uint32, mod int32) string {
	if oid == pgtype.Interval {
		return intervalToISO + "(" + expr + ")"
	}
	// Numerics have an expression's own scale, or are text; an expression that DuckDB finds to be NULL loses its type.
	return "CAST(" + expr + " AS " + pgtype.DuckStorageName(oid, mod) + ")"
}

// dmlRows starts a DML query whose rows are read as batches. shape gives the leading and trailing columns around the target's.
func (s *session) dmlRows(ctx context.Context, b binding, lead int, cols []pgsql.RelColumn, rest int) (*duckRows, error) {
	wrap := func(sql string) string { return storedSQL(sql, lead, cols, rest) }
	return s.startWrapped(ctx, b, b.query(), nil, wrap)
}

// startWrapped is startQuery for a query whose text is wrapped into another.
func (s *session) startWrapped(ctx context.Context, b binding, q *pgsql.Query, rows given, wrap func(string) string) (*duckRows, error) {
	binds, err := s.binds(ctx, q.Binds, b.args)
	if err != nil {
		return nil, err
	}
	r, err := s.render(ctx, q, b.args, b.spooled(q, rows))
	if err != nil {
		return nil, err
	}
	streamCtx, cancel := context.WithCancelCause(ctx)
	d := &duckRows{s: s, cancel: cancel, files: r.files, posFiles: r.posFiles, free: []func(){r.release}}
	if d.conn, err = s.conns.take(ctx); err != nil {
		d.close()
		return nil, err
	}
	if d.stmt, err = d.conn.Prepare(ctx, wrap(r.sql)); err != nil {
		d.close()
		return nil, err
	}
	if d.rows, err = d.stmt.Query(streamCtx, binds); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// eachBatch reads a query to its end.
func (d *duckRows) eachBatch(ctx context.Context, f func(rec arrow.RecordBatch) error) error {
	for {
		rec, err := d.rows.NextBatch(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		d.s.count(rec)
		err = f(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
}

// targetColumns are the columns that a DML query yields for its target.
func targetColumns(rel *pgsql.Relation, idx []int) []pgsql.RelColumn {
	out := make([]pgsql.RelColumn, len(idx))
	for i, c := range idx {
		out[i] = rel.Columns[c]
	}
	return out
}

// update runs UPDATE: the old positions are suppressed, the new rows appended.
func (s *session) update(ctx context.Context, b binding, t *warehouse.TxTable) (*dmlResult, error) {
	q, u := b.query(), b.query().Update
	cols := targetColumns(u.Target, u.Columns)
	ret := s.newSpool(q.Columns)
	d, err := s.dmlRows(ctx, b, 2, cols, len(q.Columns))
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.beginSpool(ret, 2+len(cols)); err != nil {
		return nil, err
	}
	var n int64
	as := t.ArrowSchema()
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		rec, err := b.firstChange(t, rec, d.files)
		if err != nil {
			return err
		}
		defer rec.Release()
		olds, err := rowRefs(rec, d.files)
		if err != nil {
			return err
		}
		news, err := conform(rec, 2, as)
		if err != nil {
			return err
		}
		defer news.Release()
		n += rec.NumRows()
		if err := s.lockWrites(ctx, t, olds, news); err != nil {
			return err
		}
		if err := updateRows(ctx, t, u.Target, u.Set, olds, news); err != nil {
			return err
		}
		return ret.add(rec, 2+len(cols))
	})
	return dmlDone("UPDATE "+itoa(n), ret, err)
}

// updateRows replaces rows; keys are checked only when one of their columns was assigned.
func updateRows(ctx context.Context, t *warehouse.TxTable, target *pgsql.Relation, set []int, olds []warehouse.RowRef, news arrow.RecordBatch) error {
	for _, k := range target.Key {
		if slices.Contains(set, k) || target.Columns[k].Generated != "" {
			return t.Update(ctx, olds, news)
		}
	}
	return t.UpdateSameKeys(ctx, olds, news)
}

// firstChange is rec without the rows that another part of the statement changed before. The caller releases it.
func (b binding) firstChange(t *warehouse.TxTable, rec arrow.RecordBatch, files []string) (arrow.RecordBatch, error) {
	if b.parts == nil {
		rec.Retain()
		return rec, nil
	}
	live, err := stillLive(t, rec, files)
	if err != nil {
		return nil, err
	}
	return takeRows(rec, live), nil
}

// beginSpool gives a spool its columns, so that an empty one has them too.
func (d *duckRows) beginSpool(sp *spool, from int) error {
	if !sp.on {
		return nil
	}
	schema, err := d.rows.Schema()
	if err == nil {
		sp.begin(schema, from)
	}
	return err
}

// rowRefs reads the file and position columns.
func rowRefs(rec arrow.RecordBatch, files []string) ([]warehouse.RowRef, error) {
	f, ok1 := rec.Column(0).(*array.Int64)
	p, ok2 := rec.Column(1).(*array.Int64)
	if !ok1 || !ok2 {
		return nil, pgerr.Newf(pgerr.InternalError, "row positions are %s, %s", rec.Column(0).DataType(), rec.Column(1).DataType())
	}
	out := make([]warehouse.RowRef, rec.NumRows())
	for i := range out {
		out[i] = warehouse.RowRef{Path: files[f.Value(i)], Pos: uint32(p.Value(i))}
	}
	return out, nil
}

// delete runs DELETE.
func (s *session) delete(ctx context.Context, b binding, t *warehouse.TxTable) (*dmlResult, error) {
	q := b.query()
	if q.Delete.All && q.Columns == nil && b.parts == nil {
		if err := s.lockAllRows(ctx, t, lockmgr.WriteKey); err != nil {
			return nil, err
		}
		n, err := t.Truncate(ctx)
		return &dmlResult{tag: "DELETE " + itoa(n)}, err
	}
	ret := s.newSpool(q.Columns)
	d, err := s.dmlRows(ctx, b, 2, nil, len(q.Columns))
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.beginSpool(ret, 2); err != nil {
		return nil, err
	}
	hits := map[int64]*roaring.Bitmap{}
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		rec, err := b.firstChange(t, rec, d.files)
		if err != nil {
			return err
		}
		defer rec.Release()
		olds, err := rowRefs(rec, d.files)
		if err != nil {
			return err
		}
		if err := s.lockWrites(ctx, t, olds, nil); err != nil {
			return err
		}
		f, p := rec.Column(0).(*array.Int64), rec.Column(1).(*array.Int64)
		for i := range int(rec.NumRows()) {
			bm := hits[f.Value(i)]
			if bm == nil {
				bm = roaring.New()
				hits[f.Value(i)] = bm
			}
			bm.Add(uint32(p.Value(i)))
		}
		return ret.add(rec, 2)
	})
	var n int64
	for f, bm := range hits {
		if err != nil {
			break
		}
		var k int64
		k, err = t.DeleteAt(ctx, d.files[f], bm)
		n += k
	}
	return dmlDone("DELETE "+itoa(n), ret, err)
}

// dmlDone is the result of UPDATE and DELETE.
func dmlDone(tag string, ret *spool, err error) (*dmlResult, error) {
	if err != nil {
		ret.free()
		return nil, err
	}
	res := &dmlResult{tag: tag}
	if ret.on {
		res.ret = ret
	}
	return res, nil
}

// openReturning streams RETURNING's rows; ret ends with them.
func (s *session) openReturning(ctx context.Context, b binding, ret *spool) (rowSource, error) {
	ins := b.query().Insert
	if ins == nil || ret.rows == 0 {
		return s.spoolRows(ctx, b, ret)
	}
	src, err := s.startQuery(ctx, b, ins.Returning, given{0: ret.source()}, nil)
	if err != nil {
		ret.free()
		return nil, err
	}
	src.after = append(src.after, ret.free)
	return src, nil
}

// conform takes the columns of rec from lead on as rows of the schema. Types that differ in their Arrow form only are rewrapped.
func conform(rec arrow.RecordBatch, lead int, as *arrow.Schema) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, as.NumFields())
	for i := range cols {
		a, err := rewrap(rec.Column(lead+i), as.Field(i).Type)
		if err != nil {
			for _, c := range cols[:i] {
				c.Release()
			}
			return nil, fmt.Errorf("column %q: %w", as.Field(i).Name, err)
		}
		cols[i] = a
	}
	out := array.NewRecordBatch(as, cols, rec.NumRows())
	for _, c := range cols {
		c.Release()
	}
	return out, nil
}

// rewrap gives an array the wanted type when both have the same bytes.
func rewrap(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), want) {
		a.Retain()
		return a, nil
	}
	data := a.Data()
	if ext, ok := want.(arrow.ExtensionType); ok && arrow.TypeEqual(a.DataType(), ext.StorageType()) {
		return newTyped(data, want, data.Children()), nil
	}
	switch w := want.(type) {
	case *arrow.TimestampType, *arrow.BinaryType, *arrow.StringType:
		if a.DataType().ID() == want.ID() || a.DataType().ID() == arrow.BINARY && want.ID() == arrow.STRING || a.DataType().ID() == arrow.STRING && want.ID() == arrow.BINARY {
			return newTyped(data, want, nil), nil
		}
	case *arrow.ListType:
		if l, ok := a.(*array.List); ok {
			elem, err := rewrap(l.ListValues(), w.Elem())
			if err != nil {
				return nil, err
			}
			defer elem.Release()
			return newTyped(data, want, []arrow.ArrayData{elem.Data()}), nil
		}
	}
	if arrow.IsNested(want.ID()) && !arrow.IsNested(a.DataType().ID()) {
		if a.NullN() == a.Len() {
			return array.MakeArrayOfNull(memory.DefaultAllocator, want, a.Len()), nil
		}
		return nil, pgerr.Newf(pgerr.FeatureNotSupported, "values of Iceberg type %s cannot be written", want)
	}
	if a.DataType().ID() == arrow.LIST && want.ID() != arrow.LIST {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "arrays of several dimensions cannot be stored")
	}
	return nil, pgerr.Newf(pgerr.InternalError, "rows of type %s cannot be stored as %s", a.DataType(), want)
}

func newTyped(d arrow.ArrayData, dt arrow.DataType, children []arrow.ArrayData) arrow.Array {
	nd := array.NewData(dt, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	defer nd.Release()
	return array.MakeFromData(nd)
}
