package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// dmlPortal makes the portal of INSERT, UPDATE or DELETE. The statement runs whole at the first Execute; RETURNING's rows
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
			return res.rows, nil
		},
		tag: func(int64) string { return res.tag },
	}
}

// dmlResult is what a statement did.
type dmlResult struct {
	tag  string
	rows rowSource // RETURNING
}

// dmlTarget is the table that a data change writes, and the statement's name.
func dmlTarget(q *pgsql.Query) (*pgsql.Relation, string) {
	switch {
	case q.Insert != nil:
		return q.Insert.Target, "INSERT"
	case q.Update != nil:
		return q.Update.Target, "UPDATE"
	}
	return q.Delete.Target, "DELETE"
}

// runDML runs the statement; a failed one leaves no trace in the transaction.
func (s *session) runDML(ctx context.Context, b binding, w pgwire.Writer) (*dmlResult, error) {
	q := b.p.query
	target, command := dmlTarget(q)
	if err := s.tx.writable(command); err != nil {
		return nil, err
	}
	t, err := s.lockForWrite(ctx, b.p, target)
	if err != nil {
		return nil, err
	}
	var res *dmlResult
	err = s.settled(ctx, b.p, func() error {
		if t, err = s.table(ctx, t.Ident()); err != nil {
			return err
		}
		mark := s.tx.wh.Savepoint()
		if res, err = s.writeRows(ctx, b, t, w); err != nil {
			if rerr := s.tx.wh.RollbackTo(mark); rerr != nil {
				s.gw.log.Error().Err(rerr).Msg("roll back a failed statement")
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (s *session) writeRows(ctx context.Context, b binding, t *warehouse.TxTable, w pgwire.Writer) (*dmlResult, error) {
	switch q := b.p.query; {
	case q.Insert != nil:
		return s.insert(ctx, b, t, w)
	case q.Update != nil:
		return s.update(ctx, b, t, w)
	}
	return s.delete(ctx, b, t, w)
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
	stored, want := pgtype.DuckStorageName(oid, mod), pgtype.DuckName(oid, mod)
	if oid == pgtype.Numeric {
		// An expression's own scale, or PostgreSQL's text of a value, becomes the column's DECIMAL.
		return "CAST(" + expr + " AS " + stored + ")"
	}
	if stored == want {
		return expr
	}
	if oid == pgtype.Interval {
		return intervalToISO + "(" + expr + ")"
	}
	return "CAST(" + expr + " AS " + stored + ")"
}

// dmlRows starts a DML query whose rows are read as batches. shape gives the leading and trailing columns around the target's.
func (s *session) dmlRows(ctx context.Context, b binding, lead int, cols []pgsql.RelColumn, rest int) (*duckRows, error) {
	wrap := func(sql string) string { return storedSQL(sql, lead, cols, rest) }
	return s.startWrapped(ctx, b, b.p.query, nil, wrap)
}

// startWrapped is startQuery for a query whose text is wrapped into another.
func (s *session) startWrapped(ctx context.Context, b binding, q *pgsql.Query, rows given, wrap func(string) string) (*duckRows, error) {
	binds, err := s.binds(ctx, q.Binds, b.args)
	if err != nil {
		return nil, err
	}
	r, err := s.render(ctx, q, b.args, rows)
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
func (s *session) update(ctx context.Context, b binding, t *warehouse.TxTable, _ pgwire.Writer) (*dmlResult, error) {
	u := b.p.query.Update
	cols := targetColumns(u.Target, u.Columns)
	ret := newSpool(b.p.query.Columns)
	d, err := s.dmlRows(ctx, b, 2, cols, len(b.p.query.Columns))
	if err != nil {
		return nil, err
	}
	defer d.close()
	var n int64
	as := t.ArrowSchema()
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
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
		if err := t.Update(ctx, olds, news); err != nil {
			return err
		}
		ret.add(rec, 2+len(cols))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.dmlDone(ctx, b, "UPDATE "+itoa(n), ret)
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
func (s *session) delete(ctx context.Context, b binding, t *warehouse.TxTable, _ pgwire.Writer) (*dmlResult, error) {
	del := b.p.query.Delete
	if del.All && b.p.query.Columns == nil {
		if err := s.lockAllRows(ctx, t, lockmgr.WriteKey); err != nil {
			return nil, err
		}
		n, err := t.Truncate(ctx)
		return &dmlResult{tag: "DELETE " + itoa(n)}, err
	}
	ret := newSpool(b.p.query.Columns)
	d, err := s.dmlRows(ctx, b, 2, nil, len(b.p.query.Columns))
	if err != nil {
		return nil, err
	}
	defer d.close()
	hits := map[int64]*roaring.Bitmap{}
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
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
		ret.add(rec, 2)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var n int64
	for f, bm := range hits {
		k, err := t.DeleteAt(ctx, d.files[f], bm)
		if err != nil {
			return nil, err
		}
		n += k
	}
	return s.dmlDone(ctx, b, "DELETE "+itoa(n), ret)
}

// dmlDone opens RETURNING's rows.
func (s *session) dmlDone(ctx context.Context, b binding, tag string, ret *spool) (*dmlResult, error) {
	if b.cols == nil {
		return &dmlResult{tag: tag}, nil
	}
	src, err := s.spoolRows(ctx, b, ret)
	return &dmlResult{tag: tag, rows: src}, err
}

// spool keeps rows until a statement is done.
type spool struct {
	on      bool
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	rows    int64
}

func newSpool(cols []pgsql.OutCol) *spool { return &spool{on: cols != nil} }

// add keeps the columns of rec from the given one on.
func (sp *spool) add(rec arrow.RecordBatch, from int) {
	if !sp.on || rec.NumRows() == 0 {
		return
	}
	fields := make([]arrow.Field, 0, int(rec.NumCols())-from)
	cols := make([]arrow.Array, 0, int(rec.NumCols())-from)
	for i := from; i < int(rec.NumCols()); i++ {
		f := rec.Schema().Field(i)
		f.Name = "c" + strconv.Itoa(i-from)
		fields = append(fields, f)
		cols = append(cols, rec.Column(i))
	}
	if sp.schema == nil {
		sp.schema = arrow.NewSchema(fields, nil)
	}
	sp.keep(array.NewRecordBatch(sp.schema, cols, rec.NumRows()))
}

func (sp *spool) keep(rec arrow.RecordBatch) {
	sp.batches = append(sp.batches, rec)
	sp.rows += rec.NumRows()
}

func (sp *spool) free() {
	for _, b := range sp.batches {
		b.Release()
	}
	sp.batches = nil
}

func (sp *spool) source() *sqlfuncs.Rows {
	return &sqlfuncs.Rows{Schema: sp.schema, N: sp.rows, Batches: func(context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for _, b := range sp.batches {
				if !yield(b, nil) {
					return
				}
			}
		}
	}}
}

// spoolRows streams spooled rows as they are, through DuckDB's encoders.
func (s *session) spoolRows(ctx context.Context, b binding, sp *spool) (rowSource, error) {
	if sp.rows == 0 {
		return noRows{}, nil
	}
	id, release, err := s.gw.duck.RegisterRelation(sp.schema, sp.rows, opener(sp.source()))
	if err != nil {
		return nil, err
	}
	_, cancel := context.WithCancelCause(context.Background())
	d := &duckRows{s: s, cols: b.cols, types: typesOf(b.cols), fmts: formatsOf(b.cols), cancel: cancel, free: []func(){release, sp.free}}
	if d.conn, err = s.conns.take(ctx); err != nil {
		d.close()
		return nil, err
	}
	if d.stmt, err = d.conn.Prepare(ctx, "SELECT * FROM skade_rel('"+id+"')"); err != nil {
		d.close()
		return nil, err
	}
	if d.rows, err = d.stmt.Query(context.WithoutCancel(ctx), nil); err != nil {
		d.close()
		return nil, err
	}
	s.dress(d.rows, b.p.query.Columns)
	return d, nil
}

// noRows is an empty stream.
type noRows struct{}

func (noRows) appendRows(_ context.Context, dst []byte, _ int) ([]byte, int, bool, error) {
	return dst, 0, true, nil
}
func (noRows) close() {}

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
