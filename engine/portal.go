package engine

import (
	"context"
	"fmt"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// portal makes the portal of a bound statement.
func (s *session) portal(ctx context.Context, p *prepared, args []value, formats []int16) (pgwire.Portal, error) {
	cols, err := withFormats(p.cols, formats)
	if err != nil {
		return nil, err
	}
	b := binding{p: p, args: args, cols: cols}
	var portal pgwire.Portal
	switch {
	case p.query != nil && p.stmt.Kind == pgsql.Select:
		portal = &queryPortal{s: s, b: b}
	case p.query != nil:
		portal = s.dmlPortal(b)
	default:
		portal, err = s.utilityPortal(ctx, b)
	}
	if err != nil {
		return nil, err
	}
	if s.tx != nil {
		s.tx.addPortal(portal)
	}
	return portal, nil
}

// binding is a prepared statement with its parameter values and result formats.
type binding struct {
	p    *prepared
	args []value
	cols []pgwire.Column
	// part is set while one of the query's parts runs; parts are the rows of those that ran.
	part  *pgsql.Query
	parts []*spool
}

// query is what runs: the statement's query, or one of its parts.
func (b binding) query() *pgsql.Query {
	if b.part != nil {
		return b.part
	}
	return b.p.query
}

// withFormats applies the Bind message's result formats: none = all text, one = all, else one a column.
func withFormats(cols []pgwire.Column, formats []int16) ([]pgwire.Column, error) {
	if cols == nil {
		return nil, nil
	}
	if len(formats) > 1 && len(formats) != len(cols) {
		return nil, protocolError(fmt.Sprintf("bind message has %d result formats but query has %d columns", len(formats), len(cols)))
	}
	out := make([]pgwire.Column, len(cols))
	copy(out, cols)
	for i := range out {
		switch len(formats) {
		case 0:
		case 1:
			out[i].Format = formats[0]
		default:
			out[i].Format = formats[i]
		}
	}
	return out, nil
}

func formatsOf(cols []pgwire.Column) []int16 {
	out := make([]int16, len(cols))
	for i, c := range cols {
		out[i] = c.Format
	}
	return out
}

func typesOf(cols []pgwire.Column) []uint32 {
	out := make([]uint32, len(cols))
	for i, c := range cols {
		out[i] = c.TypeOID
	}
	return out
}

// rowSource is an open stream of DataRow messages.
type rowSource interface {
	// appendRows appends at most limit rows (0 = no limit) to dst.
	appendRows(ctx context.Context, dst []byte, limit int) (out []byte, n int, done bool, err error)
	close()
}

// streamPortal runs a rowSource: what SELECT, EXPLAIN, SHOW, FETCH and RETURNING have in common.
type streamPortal struct {
	s    *session
	cols []pgwire.Column
	// open starts the stream at the first Execute.
	open func(ctx context.Context, w pgwire.Writer) (rowSource, error)
	// tag makes the command tag from the number of rows sent since the portal began.
	tag func(rows int64) string

	src  rowSource
	buf  []byte
	sent int64
	done bool
}

func (p *streamPortal) Columns() []pgwire.Column { return p.cols }

func (p *streamPortal) Execute(ctx context.Context, w pgwire.Writer, maxRows int64) (string, bool, error) {
	ctx, stop := p.s.watch(ctx)
	defer stop()
	tag, suspended, err := p.execute(ctx, w, maxRows)
	if err != nil {
		p.Close()
		return "", false, p.s.sqlError(ctx, err)
	}
	return tag, suspended, nil
}

func (p *streamPortal) execute(ctx context.Context, w pgwire.Writer, maxRows int64) (string, bool, error) {
	if p.src == nil && !p.done {
		src, err := p.open(ctx, w)
		if err != nil {
			return "", false, err
		}
		p.src = src
		if p.buf == nil {
			p.buf, p.s.rowBuf = p.s.rowBuf, nil
		}
	}
	var n int64
	for !p.done && (maxRows <= 0 || n < maxRows) {
		limit := 0
		if maxRows > 0 {
			limit = int(maxRows - n)
		}
		out, k, done, err := p.src.appendRows(ctx, p.buf[:0], limit)
		p.buf = out
		if err != nil {
			return "", false, err
		}
		if k > 0 {
			if err := w.Rows(out, k); err != nil {
				return "", false, err
			}
		}
		n += int64(k)
		p.done = done
		if ctx.Err() != nil {
			return "", false, context.Cause(ctx)
		}
	}
	p.sent += n
	if !p.done {
		return "", true, nil
	}
	if d, ok := p.src.(*duckRows); ok {
		for _, warnings := range d.warn {
			for _, msg := range warnings() {
				w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.Warning, Message: msg})
			}
		}
	}
	p.free()
	// A suspended portal's tag counts the rows of its last Execute, as PostgreSQL's does.
	return p.tag(n), false, nil
}

func (p *streamPortal) free() {
	if p.src != nil {
		p.src.close()
		p.src = nil
	}
	if cap(p.buf) <= maxRowBuf && p.buf != nil {
		p.s.rowBuf = p.buf
	}
	p.buf = nil
}

// maxRowBuf is the largest buffer for rows that a session keeps for its next statement.
const maxRowBuf = 1 << 10

func (p *streamPortal) Close() {
	p.done = true
	p.free()
}

// commandPortal is a statement that returns no rows.
type commandPortal struct {
	s   *session
	run func(ctx context.Context, w pgwire.Writer) (string, error)
}

func (p *commandPortal) Columns() []pgwire.Column { return nil }

func (p *commandPortal) Execute(ctx context.Context, w pgwire.Writer, _ int64) (string, bool, error) {
	if p.s == nil {
		tag, err := p.run(ctx, w)
		return tag, false, err
	}
	ctx, stop := p.s.watch(ctx)
	defer stop()
	tag, err := p.run(ctx, w)
	return tag, false, p.s.sqlError(ctx, err)
}

func (p *commandPortal) Close() {}

// duckRows streams a DuckDB statement.
type duckRows struct {
	s     *session
	conn  *sessionConn
	stmt  *duck.Stmt
	rows  *duck.Rows
	free  []func() // releases of scans and relations
	after []func() // what else ends with the stream
	cols  []pgwire.Column
	types []uint32
	fmts  []int16
	// files are the data files behind the file ordinals of the rows; warn is what the sources want to tell at the end.
	files    []string
	posFiles map[int][]string
	warn     []func() []string
	// keep leaves conn and stmt to the plan cache.
	keep   func()
	cancel context.CancelCauseFunc
}

func (d *duckRows) appendRows(ctx context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	// The stream lives longer than one Execute: its own context ends when a running Execute's does.
	stop := context.AfterFunc(ctx, func() { d.cancel(context.Cause(ctx)) })
	defer stop()
	if len(d.cols) == 0 {
		// SELECT without columns: DuckDB has one that nobody asked for.
		_, n, done, err := d.rows.AppendDataRows(nil, nil, nil, nil, limit)
		for range n {
			dst = pgenc.EndDataRow(pgenc.BeginDataRow(dst, 0))
		}
		return dst, n, done, err
	}
	return d.rows.AppendDataRows(dst, d.fmts, d.types, d.s.gucs.loc, limit)
}

func (d *duckRows) close() {
	if d.rows != nil {
		d.rows.Close()
		d.rows = nil
	}
	d.cancel(nil)
	for _, f := range d.after {
		f()
	}
	d.after = nil
	if d.keep != nil {
		d.keep()
		d.keep = nil
		return
	}
	if d.stmt != nil {
		d.stmt.Close()
		d.stmt = nil
	}
	for _, f := range d.free {
		f()
	}
	d.free = nil
	if d.conn != nil {
		d.s.conns.give(d.conn)
		d.conn = nil
	}
}
