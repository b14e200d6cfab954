package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgcopy"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// copyPortal makes the portal of COPY.
func (s *session) copyPortal(b binding, u *pgsql.Copy) pgwire.Portal {
	return s.command(func(ctx context.Context, w pgwire.Writer) (string, error) {
		var n int64
		var err error
		switch {
		case u.From:
			n, err = s.copyFrom(ctx, w, u)
		case u.Format == "parquet":
			n, err = s.copyToParquet(ctx, b, w, u)
		case u.Format == "binary":
			n, err = s.copyToBinary(ctx, b, w, u)
		default:
			n, err = s.copyTo(ctx, b, w, u)
		}
		return "COPY " + itoa(n), err
	})
}

// copyOptions fills in the format's defaults. names are the columns in the order of the data.
func copyOptions(u *pgsql.Copy, names []string) (pgcopy.Options, error) {
	o := pgcopy.Text()
	if u.Format == "csv" {
		o = pgcopy.CSV()
	}
	if u.Delimiter != "" {
		o.Delimiter = u.Delimiter[0]
	}
	if u.NullSet {
		o.Null = u.Null
	}
	o.Header, o.Match = u.Header, u.HeaderMatch
	if u.Quote != "" {
		o.Quote, o.Escape = u.Quote[0], u.Quote[0]
	}
	if u.Escape != "" {
		o.Escape = u.Escape[0]
	}
	flags := func(list []string, all bool) ([]bool, error) {
		if list == nil && !all {
			return nil, nil
		}
		out := make([]bool, len(names))
		for i := range out {
			out[i] = all
		}
		for _, n := range list {
			i := slices.Index(names, n)
			if i < 0 {
				return nil, pgerr.Newf(pgerr.InvalidColumnReference, "column \"%s\" not referenced by COPY", n)
			}
			out[i] = true
		}
		return out, nil
	}
	var err error
	if o.ForceQuote, err = flags(u.ForceQuote, u.ForceQuoteAll); err != nil {
		return o, err
	}
	if o.ForceNotNull, err = flags(u.ForceNotNull, false); err != nil {
		return o, err
	}
	o.ForceNull, err = flags(u.ForceNull, false)
	return o, err
}

// copyQuery is the query behind COPY … TO.
func (s *session) copyQuery(ctx context.Context, b binding, u *pgsql.Copy) (binding, error) {
	if b.p.inner != nil {
		return binding{p: b.p.inner, args: b.args, cols: b.p.inner.cols}, nil
	}
	t, view, err := s.findRelation(ctx, pgsql.QName{Schema: u.Schema, Name: u.Table, Loc: u.Loc})
	if err != nil {
		return binding{}, err
	}
	if view != nil {
		return binding{}, pgerr.Newf(pgerr.WrongObjectType, "cannot copy from view \"%s\"", u.Table).WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	if t == nil {
		return binding{}, undefinedTable(pgsql.QName{Schema: u.Schema, Name: u.Table})
	}
	cols := "*"
	rel := tableRelation(t)
	for _, n := range u.Columns {
		if err := copiable(rel, n); err != nil {
			return binding{}, err
		}
	}
	names := u.Columns
	if all := copiedColumns(rel); len(names) == 0 && len(all) < len(rel.Columns) {
		names = all
	}
	if len(names) > 0 {
		quoted := make([]string, len(names))
		for i, c := range names {
			quoted[i] = quoteIdent(c)
		}
		cols = strings.Join(quoted, ", ")
	}
	id := t.Ident()
	p, err := s.internalQuery(ctx, "SELECT "+cols+" FROM "+quoteIdent(schemaOf(id))+"."+quoteIdent(id[len(id)-1]))
	if err != nil {
		if e := pgerr.As(err); e != nil {
			return binding{}, e.WithPosition(0)
		}
		return binding{}, err
	}
	return binding{p: p, cols: p.cols}, nil
}

// internalQuery analyses SQL that the engine itself wrote.
func (s *session) internalQuery(ctx context.Context, sql string) (*prepared, error) {
	stmts, err := pgsql.Parse(sql)
	if err != nil {
		return nil, err
	}
	p := &prepared{s: s, stmt: stmts[0], text: sql, once: true}
	return p, s.analyze(ctx, p)
}

// copied is the table of COPY … TO, nil for a query.
func copied(q binding, u *pgsql.Copy) *pgsql.Relation {
	if u.Query != nil || len(q.p.query.Relations) == 0 {
		return nil
	}
	return q.p.query.Relations[0].Relation
}

// copyTo streams rows as text or CSV, one CopyData message a row.
func (s *session) copyTo(ctx context.Context, b binding, w pgwire.Writer, u *pgsql.Copy) (int64, error) {
	q, err := s.copyQuery(ctx, b, u)
	if err != nil {
		return 0, err
	}
	names := make([]string, len(q.cols))
	for i, c := range q.cols {
		names[i] = c.Name
	}
	o, err := copyOptions(u, names)
	if err != nil {
		return 0, err
	}
	prog, done := s.track("COPY TO", copied(q, u), nil)
	defer done()
	src, err := s.copySource(ctx, q, w)
	if err != nil {
		return 0, err
	}
	defer src.close()
	out, err := w.CopyOut(0, make([]int16, len(q.cols)))
	if err != nil {
		return 0, err
	}
	format := pgcopy.NewWriter(o, names)
	if line := format.AppendHeader(nil); len(line) > 0 {
		if _, err := out.Write(line); err != nil {
			return 0, err
		}
	}
	var rows int64
	var msgs, line []byte
	for {
		var n int
		var done bool
		msgs, n, done, err = src.appendRows(ctx, msgs[:0], 0)
		if err != nil {
			return 0, err
		}
		for rest := msgs; len(rest) > 0; {
			size := 1 + int(binary.BigEndian.Uint32(rest[1:]))
			line = format.AppendDataRows(line[:0], rest[:size])
			rest = rest[size:]
			if _, err := out.Write(line); err != nil {
				return 0, err
			}
			prog.bytes.Add(int64(len(line)))
		}
		rows += int64(n)
		prog.rows.Add(int64(n))
		if done {
			return rows, out.Close()
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// copySource runs the query of COPY (…) TO, which may be DML with RETURNING.
func (s *session) copySource(ctx context.Context, q binding, w pgwire.Writer) (rowSource, error) {
	if q.p.stmt.Kind == pgsql.Select {
		return (&queryPortal{s: s, b: q}).open(ctx, w)
	}
	if q.cols == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY query must have a RETURNING clause")
	}
	res, err := s.runDML(ctx, q, w)
	if err != nil {
		return nil, err
	}
	return res.open(ctx)
}

// copyTarget is a COPY FROM's table with the columns that the data fills.
func (s *session) copyTarget(ctx context.Context, u *pgsql.Copy) (*copyInto, error) {
	t, view, err := s.findRelation(ctx, pgsql.QName{Schema: u.Schema, Name: u.Table, Loc: u.Loc})
	switch {
	case err != nil:
		return nil, err
	case view != nil:
		return nil, pgerr.Newf(pgerr.WrongObjectType, "cannot copy to view \"%s\"", u.Table)
	case t == nil:
		return nil, undefinedTable(pgsql.QName{Schema: u.Schema, Name: u.Table})
	case u.HasWhere:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY FROM ... WHERE is not supported").WithHint("COPY into a staging table, then INSERT ... SELECT ... WHERE.")
	}
	into := &copyInto{t: t, rel: tableRelation(t)}
	into.names = u.Columns
	if len(into.names) == 0 {
		into.names = copiedColumns(into.rel)
	}
	for i, n := range into.names {
		if err := copiable(into.rel, n); err != nil {
			return nil, err
		}
		if slices.Index(into.names, n) < i {
			return nil, pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", n)
		}
	}
	return into, nil
}

// copiedColumns are the columns that COPY without a list reads and writes: all but generated ones.
func copiedColumns(rel *pgsql.Relation) []string {
	var out []string
	for _, c := range rel.Columns {
		if c.Generated == "" && !c.Hidden {
			out = append(out, c.Name)
		}
	}
	return out
}

// copiable refuses a column that COPY cannot name.
func copiable(rel *pgsql.Relation, name string) error {
	for _, c := range rel.Columns {
		switch {
		case c.Name != name || c.Hidden:
		case c.Generated != "":
			return pgerr.Newf(pgerr.InvalidColumnReference, "column \"%s\" is a generated column", name).WithDetail("Generated columns cannot be used in COPY.")
		default:
			return nil
		}
	}
	return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, rel.Name)
}

// copyFrom runs COPY … FROM STDIN. The rows are part of the transaction: an error leaves the table as it was.
func (s *session) copyFrom(ctx context.Context, w pgwire.Writer, u *pgsql.Copy) (int64, error) {
	into, err := s.copyTarget(ctx, u)
	if err != nil {
		return 0, err
	}
	if err := s.tx.writableTarget("COPY FROM", into.rel); err != nil {
		return 0, err
	}
	waited, err := s.lockTable(ctx, into.t, lockmgr.RowExclusive, s.lockOptions())
	if err == nil && waited {
		if _, err = s.freshen(ctx); err == nil {
			into, err = s.copyTarget(ctx, u)
		}
	}
	if err != nil {
		return 0, err
	}
	_, done := s.track("COPY FROM", into.rel, s.tx.wh)
	defer done()
	mark := s.tx.wh.Savepoint()
	restore, err := s.copyGuard(ctx, into)
	if err != nil {
		return 0, err
	}
	defer restore()
	var n int64
	if u.Format == "parquet" {
		n, err = s.copyParquet(ctx, w, u, into)
	} else {
		n, err = s.copyRows(ctx, w, u, into)
	}
	if err != nil {
		if rerr := s.tx.wh.RollbackTo(mark); rerr != nil {
			s.gw.log.Error().Err(rerr).Msg("roll back a failed COPY")
		}
		return 0, err
	}
	return n, nil
}

// copyBatchRows and copyBatchBytes bound a batch of COPY.
const (
	copyBatchRows  = 64 << 10
	copyBatchBytes = 8 << 20
)

// copyRows reads text or CSV.
func (s *session) copyRows(ctx context.Context, w pgwire.Writer, u *pgsql.Copy, into *copyInto) (int64, error) {
	o, err := copyOptions(u, into.names)
	if err != nil {
		return 0, err
	}
	cols, err := s.copyColumns(ctx, into)
	if err != nil {
		return 0, err
	}
	app, err := pgcopy.NewAppender(u.Table, cols, into.t.ArrowSchema(), s.style())
	if err != nil {
		return 0, err
	}
	defer app.Release()
	if u.Format == "binary" {
		app.HideValues()
	}
	overall := byte(0)
	formats := make([]int16, len(into.names))
	if u.Format == "binary" {
		overall = 1
		for i := range formats {
			formats[i] = 1
		}
	}
	src, err := w.CopyIn(overall, formats)
	if err != nil {
		return 0, err
	}
	prog := s.prog.Load()
	src = countingReader{src, prog}
	sink := into.start(ctx)
	defer sink.stop()
	var rd copyReader = pgcopy.NewReader(src, o, u.Table, into.names)
	if overall == 1 {
		rd = newBinaryReader(src, into, s.style())
	}
	var rows int64
	batch := copyBatch{raw: into.guard != nil && overall == 0}
	flush := func() error {
		batch.rec = app.Take()
		err := sink.send(batch)
		batch = copyBatch{raw: batch.raw}
		return err
	}
	// earlier is the error of a row before the one that err is about: rows are written behind those that are read.
	earlier := func(err error) error {
		if pgerr.As(err) == nil || ctx.Err() != nil {
			return err
		}
		if app.Rows() > 0 {
			if werr := flush(); werr != nil {
				return werr
			}
		}
		if werr := sink.finish(); werr != nil {
			return werr
		}
		return err
	}
	for {
		fields, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if overall == 1 && rd.Line() > 0 {
				err = rd.Locate(err)
			}
			return 0, earlier(err)
		}
		if err := app.Append(fields, rd.Line()); err != nil {
			return 0, earlier(rd.Locate(err))
		}
		rows++
		batch.add(rd)
		prog.rows.Add(1)
		if app.Rows() >= copyBatchRows || app.Bytes() >= copyBatchBytes {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if app.Rows() > 0 {
		if err := flush(); err != nil {
			return 0, err
		}
	}
	return rows, sink.finish()
}

// copyColumns says where each column of the table comes from: a field of the data, or its default.
func (s *session) copyColumns(ctx context.Context, into *copyInto) ([]pgcopy.Column, error) {
	out := make([]pgcopy.Column, len(into.rel.Columns))
	for i, c := range into.rel.Columns {
		out[i] = pgcopy.Column{Name: c.Name, OID: c.Type, Mod: c.Mod, Source: slices.Index(into.names, c.Name), DefaultNull: true, NotNull: c.NotNull}
		if into.guard != nil {
			out[i].NotNull = false // the guard looks at whole rows
		}
		if into.filled(i) {
			continue
		}
		if out[i].Source >= 0 || c.Default == "" {
			continue
		}
		raw, null, err := s.defaultValue(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("default of column %s: %w", c.Name, err)
		}
		out[i].Default, out[i].DefaultNull = slices.Clone(raw), null
	}
	return out, nil
}

// defaultValue evaluates a column's default once.
func (s *session) defaultValue(ctx context.Context, c pgsql.RelColumn) (raw []byte, null bool, err error) {
	p, err := s.internalQuery(ctx, "SELECT ("+c.Default+")")
	if err != nil {
		return nil, false, err
	}
	src, err := s.openQuery(ctx, binding{p: p, cols: p.cols}, p.query, nil, discardWriter{})
	if err != nil {
		return nil, false, err
	}
	defer src.close()
	msg, n, _, err := src.appendRows(ctx, nil, 1)
	if err != nil || n != 1 {
		return nil, true, err
	}
	return dataRowField(msg)
}
