package engine

import (
	"context"
	"strings"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

// queryPortal is a SELECT.
type queryPortal struct {
	s      *session
	b      binding
	stream streamPortal // from the first Execute on
}

func (p *queryPortal) Columns() []pgwire.Column { return p.b.cols }

func (p *queryPortal) Execute(ctx context.Context, w pgwire.Writer, maxRows int64) (string, bool, error) {
	if p.stream.s == nil {
		p.stream = streamPortal{s: p.s, cols: p.b.cols, tag: selectTag, open: p.open}
	}
	return p.stream.Execute(ctx, w, maxRows)
}

func (p *queryPortal) Close() {
	p.stream.Close()
}

func (p *queryPortal) open(ctx context.Context, w pgwire.Writer) (src rowSource, err error) {
	if p.b.p.query.Locks == nil {
		return p.openOnce(ctx, w)
	}
	err = p.s.settled(ctx, p.b.p, func() error {
		src, err = p.openOnce(ctx, w)
		return err
	})
	return src, err
}

func (p *queryPortal) openOnce(ctx context.Context, w pgwire.Writer) (rowSource, error) {
	if p.s.tx != nil {
		p.s.tx.queried = true
	}
	if err := p.s.awaitReadable(ctx, p.b.p); err != nil {
		return nil, err
	}
	for _, n := range p.b.p.query.Notices {
		w.Notice(notice(n))
	}
	if k := p.b.p.query.Keyed; k != nil {
		src, ok, err := p.s.keyedSelect(ctx, p.b, k)
		if ok || err != nil {
			return src, err
		}
	}
	if d := p.b.p.query.Lookup; d != nil {
		src, ok, err := p.s.lookupCall(ctx, p.b, d)
		if ok || err != nil {
			return src, err
		}
	}
	return p.s.openWithParts(ctx, p.b)
}

// openWithParts starts a SELECT after the CTEs that run by themselves. The query reads what they read: the tables as they were before.
func (s *session) openWithParts(ctx context.Context, b binding) (rowSource, error) {
	if err := s.beginParts(ctx, b); err != nil {
		return nil, err
	}
	q := b.query()
	thaw, err := s.freeze(ctx, q)
	if err != nil {
		return nil, err
	}
	defer thaw()
	b, _, free, err := s.withParts(ctx, b)
	if err != nil {
		return nil, err
	}
	d, err := s.startQuery(ctx, b, q, nil, nil)
	if err != nil {
		free()
		return nil, err
	}
	d.after = append(d.after, free)
	return d, nil
}

// cachedPlan is a DuckDB statement kept between executions of one prepared statement. It holds the scans it was compiled
// with; stable names the states they show.
type cachedPlan struct {
	conn  *sessionConn
	stmt  *duck.Stmt
	r     *rendered
	zone  string
	inUse bool
}

func (p *prepared) dropPlan() {
	c := p.plan
	if c == nil || c.inUse {
		return
	}
	p.plan = nil
	c.stmt.Close()
	c.r.release()
	p.s.conns.give(c.conn)
}

// openQuery renders, compiles and starts a query. rows feeds its sources of kind Rows.
func (s *session) openQuery(ctx context.Context, b binding, q *pgsql.Query, rows given, w pgwire.Writer) (rowSource, error) {
	d, err := s.startQuery(ctx, b, q, rows, w)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// startQuery is openQuery for callers that read batches.
func (s *session) startQuery(ctx context.Context, b binding, q *pgsql.Query, rows given, w pgwire.Writer) (*duckRows, error) {
	binds, err := s.binds(ctx, q.Binds, b.args)
	if err != nil {
		return nil, err
	}
	streamCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d := &duckRows{s: s, cols: b.cols, types: typesOf(b.cols), fmts: formatsOf(b.cols), cancel: cancel}
	if err := s.compile(ctx, d, b, q, rows); err != nil {
		d.close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	d.rows, err = d.stmt.Query(streamCtx, binds)
	stop()
	if err != nil {
		d.close()
		return nil, err
	}
	s.dress(d.rows, q.Columns)
	return d, nil
}

// compile gives d a connection and a statement: the cached one when the sources did not change.
func (s *session) compile(ctx context.Context, d *duckRows, b binding, q *pgsql.Query, rows given) error {
	rows = b.spooled(q, rows)
	cacheable := !b.p.once && !b.p.closed && rows == nil && q == b.p.query && b.p.stmt.Kind == pgsql.Select
	r, err := s.render(ctx, q, b.args, rows)
	if err != nil {
		return err
	}
	d.warn = r.warnings
	d.files = r.files
	if c := b.p.plan; cacheable && c != nil && !c.inUse {
		if c.r.stable == r.stable && c.conn.zone == s.gucs.zone {
			c.r.refill(r)
			r.release()
			s.usePlan(d, b.p, c)
			return nil
		}
		b.p.dropPlan()
	}
	d.conn, err = s.conns.take(ctx)
	if err != nil {
		r.release()
		return err
	}
	d.free = append(d.free, r.release)
	d.stmt, err = d.conn.Prepare(ctx, r.sql)
	if err != nil {
		return err
	}
	if cacheable && b.p.plan == nil && !strings.Contains(r.stable, "?") {
		c := &cachedPlan{conn: d.conn, stmt: d.stmt, r: r, zone: d.conn.zone}
		b.p.plan = c
		s.usePlan(d, b.p, c)
	}
	return nil
}

func (s *session) usePlan(d *duckRows, p *prepared, c *cachedPlan) {
	c.inUse = true
	d.conn, d.stmt, d.free = c.conn, c.stmt, nil
	d.keep = func() {
		c.inUse = false
		if p.closed {
			p.dropPlan()
		}
	}
}

// dress settles how the rows show their values.
func (s *session) dress(rows *duck.Rows, cols []pgsql.OutCol) {
	rows.SetStyle(s.style())
	var trim []bool
	var records [][]uint32
	for i, c := range cols {
		if c.Fields != nil {
			if records == nil {
				records = make([][]uint32, len(cols))
			}
			records[i] = c.Fields
		}
		if c.Trim {
			if trim == nil {
				trim = make([]bool, len(cols))
			}
			trim[i] = true
		}
		if elem := pgtype.ElemOf(c.Type); isReg(c.Type) || isReg(elem) {
			rows.NameOIDs(func(typeOID, oid uint32) string { return s.catalogSnapshot().RegOut(&catalogView{s}, typeOID, oid) })
		}
	}
	if trim != nil {
		rows.TrimNumeric(trim)
	}
	if records != nil {
		rows.RecordFields(records)
	}
}

// isReg are the types whose values are OIDs and whose text is a name.
func isReg(oid uint32) bool {
	switch oid {
	case pgtype.RegProc, pgtype.RegClass, pgtype.RegType, pgtype.RegNamespace, pgtype.RegRole, pgtype.RegProcedure, pgtype.RegOper,
		pgtype.RegOperator, pgtype.RegConfig, pgtype.RegDictionary, pgtype.RegCollation:
		return true
	}
	return false
}

func selectTag(n int64) string {
	switch n {
	case 0:
		return "SELECT 0"
	case 1:
		return "SELECT 1"
	}
	return "SELECT " + itoa(n)
}
