package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// cursor is a portal that DECLARE made.
type cursor struct {
	name   string
	text   string
	portal *streamPortal
	tx     *txn
	hold   bool
	binary bool
	made   time.Time
	pos    int64
	cut    *catalog.Cut // that it reads, when the transaction has moved on
	nth    int          // in the transaction: ROLLBACK TO ends those that came after the savepoint
}

// declare runs DECLARE. Cursors go forward only: DuckDB streams do.
//
// The query starts here, so that it reads what is there now and nothing that the transaction writes later; one that locks rows starts, as in
// PostgreSQL, at the first FETCH. What goes wrong with its rows is FETCH's to tell.
func (s *session) declare(ctx context.Context, w pgwire.Writer, b binding, u *pgsql.Declare) error {
	if !s.tx.explicit && !u.Hold {
		return pgerr.New(pgerr.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if err := lockingCursor(u, b.p.inner.query.LockRows); err != nil {
		return err
	}
	if u.Scroll {
		return pgerr.New(pgerr.FeatureNotSupported, "SCROLL cursors are not supported").WithHint("Declare the cursor without SCROLL and fetch forward.")
	}
	if _, dup := s.cursors[u.Name]; dup {
		return pgerr.Newf(pgerr.DuplicateCursor, "cursor \"%s\" already exists", u.Name)
	}
	formats := []int16{0}
	if u.Binary {
		formats[0] = 1
	}
	in := b.p.inner
	cols, err := withFormats(in.cols, formats)
	if err != nil {
		return err
	}
	q := &queryPortal{s: s, b: binding{p: in, args: b.args, cols: cols}}
	c := &cursor{name: u.Name, text: b.p.stmt.Text, tx: s.tx, hold: u.Hold, binary: u.Binary, made: time.Now()}
	c.portal = &streamPortal{s: s, cols: cols, tag: selectTag, open: q.open}
	s.tx.declared++
	c.nth = s.tx.declared
	s.cursors[u.Name] = c
	if in.query.Locks != nil {
		return nil
	}
	src, err := q.open(ctx, w)
	switch e := pgerr.As(s.sqlError(ctx, err)); {
	case err == nil:
		c.portal.src = src
	case e != nil && strings.HasPrefix(string(e.Code), "22"):
		c.portal.open = func(context.Context, pgwire.Writer) (rowSource, error) { return nil, err }
	default:
		delete(s.cursors, u.Name)
		return err
	}
	return nil
}

// dropCursorsAfter ends the transaction's cursors that were declared after the nth.
func (s *session) dropCursorsAfter(nth int) {
	for name, c := range s.cursors {
		if c.tx == s.tx && c.nth > nth {
			s.dropCursor(name)
		}
	}
}

func (s *session) dropCursor(name string) {
	if c, ok := s.cursors[name]; ok {
		c.portal.Close()
		delete(s.cursors, name)
	}
}

func (s *session) closeCursor(u *pgsql.CloseCursor) (string, error) {
	if u.All {
		for name := range s.cursors {
			s.dropCursor(name)
		}
		return "CLOSE CURSOR ALL", nil
	}
	if _, ok := s.cursors[u.Name]; !ok {
		return "", pgerr.Newf(pgerr.InvalidCursorName, "cursor \"%s\" does not exist", u.Name)
	}
	s.dropCursor(u.Name)
	return "CLOSE CURSOR", nil
}

// fetch runs FETCH and MOVE.
func (s *session) fetch(b binding, u *pgsql.Fetch) (pgwire.Portal, error) {
	c, ok := s.cursors[u.Name]
	if !ok {
		return nil, pgerr.Newf(pgerr.InvalidCursorName, "cursor \"%s\" does not exist", u.Name)
	}
	n, err := c.steps(u)
	if err != nil {
		return nil, err
	}
	word := "FETCH "
	if u.Move {
		word = "MOVE "
	}
	// A binary cursor answers in binary whatever the Bind message asked, as PostgreSQL's does.
	if !c.binary && !c.held() && b.cols != nil {
		c.portal.cols = b.cols
	}
	src := &cursorSource{s: s, c: c, left: n, discard: u.Move}
	if u.Move {
		return s.command(func(ctx context.Context, w pgwire.Writer) (string, error) {
			src.w = w
			for {
				_, _, done, err := src.appendRows(ctx, nil, 0)
				if err != nil {
					return "", err
				}
				if done {
					return word + itoa(src.seen), nil
				}
			}
		}), nil
	}
	return &streamPortal{s: s, cols: c.portal.cols, tag: func(int64) string { return word + itoa(src.seen) },
		open: func(_ context.Context, w pgwire.Writer) (rowSource, error) { src.w = w; return src, nil }}, nil
}

// held reports a cursor whose rows are written already: they keep their format.
func (c *cursor) held() bool {
	_, ok := c.portal.src.(*heldRows)
	return ok
}

// columns describes the rows a FETCH gives, in text unless the cursor is binary or held.
func (c *cursor) columns() []pgwire.Column {
	cols := slices.Clone(c.portal.cols)
	if !c.binary && !c.held() {
		for i := range cols {
			cols[i].Format = 0
		}
	}
	return cols
}

// steps is how many rows a FETCH goes forward; −1 is ALL.
func (c *cursor) steps(u *pgsql.Fetch) (int64, error) {
	backward := pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cursor can only scan forward").WithHint("Declare it with SCROLL option to enable backward scan.")
	switch {
	case u.Direction == "forward" && u.Count == pgsql.FetchAll:
		return -1, nil
	case u.Direction == "forward" && u.Count >= 0, u.Direction == "relative" && u.Count >= 0:
		return u.Count, nil
	case u.Direction == "absolute" && u.Count > c.pos:
		return u.Count - c.pos, nil
	}
	return 0, backward
}

// cursorSource reads on from a cursor.
type cursorSource struct {
	s       *session
	c       *cursor
	w       pgwire.Writer
	left    int64 // −1: all
	seen    int64
	discard bool
}

func (x *cursorSource) appendRows(ctx context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	p := x.c.portal
	if p.done || x.left == 0 {
		return dst, 0, true, nil
	}
	if p.src == nil {
		src, err := p.open(ctx, x.w)
		if err != nil {
			return dst, 0, false, err
		}
		p.src = src
	}
	if d, ok := p.src.(*duckRows); ok {
		d.fmts = formatsOf(p.cols)
	}
	if x.left > 0 && (limit == 0 || int64(limit) > x.left) {
		limit = int(x.left)
	}
	out, n, done, err := p.src.appendRows(ctx, dst, limit)
	if err != nil {
		return dst, 0, false, err
	}
	x.seen += int64(n)
	x.c.pos += int64(n)
	if x.left > 0 {
		x.left -= int64(n)
	}
	if done {
		p.done = true
		p.free()
	}
	if x.discard {
		return dst, 0, done || x.left == 0, nil
	}
	return out, n, done || x.left == 0, nil
}

func (x *cursorSource) close() {}
