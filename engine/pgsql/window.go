package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// windowDef is a window: its parts are written out at every OVER.
type windowDef struct {
	name      string
	partition []*expr
	order     []*sortKey
	frame     []any // strings and *expr
}

func (w *windowDef) write(t *textBuilder) {
	sep := ""
	if len(w.partition) > 0 {
		t.str("PARTITION BY ")
		t.list(w.partition)
		sep = " "
	}
	if len(w.order) > 0 {
		t.str(sep + "ORDER BY ")
		t.keys(w.order)
		sep = " "
	}
	if len(w.frame) > 0 {
		t.str(sep)
	}
	for _, p := range w.frame {
		switch x := p.(type) {
		case string:
			t.str(x)
		case *expr:
			t.expr(x)
		}
	}
}

// window resolves OVER.
func (s *scope) window(d *pg_query.WindowDef) *windowDef {
	if d.Name != "" {
		w := s.findWindow(d.Name)
		if w == nil {
			s.az.fail(pgerr.UndefinedObject, d.Location, "window %q does not exist", d.Name)
		}
		return w
	}
	w := &windowDef{}
	if d.Refname != "" {
		ref := s.findWindow(d.Refname)
		if ref == nil {
			s.az.fail(pgerr.UndefinedObject, d.Location, "window %q does not exist", d.Refname)
		}
		switch {
		case len(d.PartitionClause) > 0:
			s.az.fail(pgerr.WindowingError, d.Location, "cannot override PARTITION BY clause of window %q", d.Refname)
		case len(d.OrderClause) > 0 && len(ref.order) > 0:
			s.az.fail(pgerr.WindowingError, d.Location, "cannot override ORDER BY clause of window %q", d.Refname)
		case len(ref.frame) > 0:
			s.az.fail(pgerr.WindowingError, d.Location, "cannot copy window %q because it has a frame clause", d.Refname)
		}
		w.partition, w.order = ref.partition, ref.order
	}
	clause := s.clause
	s.clause = ""
	for _, p := range d.PartitionClause {
		w.partition = append(w.partition, s.exprNoUnknown(p))
	}
	if len(d.OrderClause) > 0 {
		w.order = s.aggOrder(d.OrderClause)
	}
	w.frame = s.frame(d, w)
	s.clause = clause
	return w
}

func (s *scope) findWindow(name string) *windowDef {
	for _, w := range s.windowDefs {
		if w.name == name {
			return w
		}
	}
	return nil
}

func (s *scope) namedWindow(d *pg_query.WindowDef) {
	if s.findWindow(d.Name) != nil {
		s.az.fail(pgerr.WindowingError, d.Location, "window %q is already defined", d.Name)
	}
	c := &pg_query.WindowDef{Refname: d.Refname, PartitionClause: d.PartitionClause, OrderClause: d.OrderClause,
		FrameOptions: d.FrameOptions, StartOffset: d.StartOffset, EndOffset: d.EndOffset, Location: d.Location}
	w := s.window(c)
	w.name = d.Name
	s.windowDefs = append(s.windowDefs, w)
}

// Bits of WindowDef.frameOptions. Source: nodes/parsenodes.h.
const (
	frameNonDefault = 0x1
	frameRange      = 0x2
	frameRows       = 0x4
	frameGroups     = 0x8
)

// frame writes a frame clause.
func (s *scope) frame(d *pg_query.WindowDef, w *windowDef) []any {
	o := d.FrameOptions
	if o&frameNonDefault == 0 {
		return nil
	}
	mode := "RANGE"
	switch {
	case o&frameRows != 0:
		mode = "ROWS"
	case o&frameGroups != 0:
		mode = "GROUPS"
		if len(w.order) == 0 {
			s.az.fail(pgerr.WindowingError, d.Location, "GROUPS mode requires an ORDER BY clause")
		}
	}
	offset := func(n *pg_query.Node) *expr {
		e := s.expr(n)
		if mode != "RANGE" {
			return s.coerceTo(e, pgtype.Int8, -1, assignmentCoercion, mode)
		}
		if len(w.order) != 1 {
			s.az.fail(pgerr.WindowingError, d.Location, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
		}
		switch w.order[0].e.typ {
		case pgtype.Date, pgtype.Timestamp, pgtype.TimestampTZ, pgtype.Time, pgtype.Interval:
			return s.coerceTo(e, pgtype.Interval, -1, implicitCoercion, mode)
		}
		return s.coerceTo(e, w.order[0].e.typ, -1, assignmentCoercion, mode)
	}
	bound := func(shift int32, n *pg_query.Node) []any {
		switch {
		case o&(0x20<<shift) != 0:
			return []any{"UNBOUNDED PRECEDING"}
		case o&(0x80<<shift) != 0:
			return []any{"UNBOUNDED FOLLOWING"}
		case o&(0x200<<shift) != 0:
			return []any{"CURRENT ROW"}
		case o&(0x800<<shift) != 0:
			return []any{offset(n), " PRECEDING"}
		}
		return []any{offset(n), " FOLLOWING"}
	}
	out := append([]any{mode + " BETWEEN "}, bound(0, d.StartOffset)...)
	out = append(out, " AND ")
	out = append(out, bound(1, d.EndOffset)...)
	switch {
	case o&0x8000 != 0:
		out = append(out, " EXCLUDE CURRENT ROW")
	case o&0x10000 != 0:
		out = append(out, " EXCLUDE GROUP")
	case o&0x20000 != 0:
		out = append(out, " EXCLUDE TIES")
	}
	return out
}
