package engine

import (
	"context"

	"github.com/nordisk/skade-pg/catalog"
)

// pins are the states of tables that a transaction reads: its cut, the cuts of cursors that it opened under earlier ones, and
// what its own writes stand on. Immutable: maintenance of other sessions reads it.
type pins struct {
	cuts   []*catalog.Cut
	states []*catalog.TableState
}

// of are the states of one table; nil pins have none.
func (p *pins) of(key catalog.TableKey) []*catalog.TableState {
	if p == nil {
		return nil
	}
	var out []*catalog.TableState
	for _, c := range p.cuts {
		if t, ok := c.TableByKey(key); ok {
			out = append(out, t)
		}
	}
	for _, t := range p.states {
		if t.Key == key {
			out = append(out, t)
		}
	}
	return out
}

// moveTo puts the transaction on a newer cut. What is still read of the old one stays pinned.
func (t *txn) moveTo(ctx context.Context, cut *catalog.Cut) error {
	old, s := t.wh.Cut(), t.s
	p := &pins{cuts: []*catalog.Cut{cut}}
	for _, c := range s.cursors {
		if c.tx == t && c.portal.src != nil && c.cut == nil {
			c.cut = old
		}
		if c.cut != nil {
			p.cuts = append(p.cuts, c.cut)
		}
	}
	both := *p
	both.cuts = append(both.cuts[:len(both.cuts):len(both.cuts)], old)
	both.states = t.wh.Bases()
	s.pinned.Store(&both) // while it moves
	if err := t.wh.SetCut(ctx, cut); err != nil {
		return err
	}
	p.states = t.wh.Bases()
	s.pinned.Store(p)
	return nil
}
