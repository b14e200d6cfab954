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

// moveOn puts the transaction on the catalog's current cut. What is still read of the old one stays pinned. moved is false when it
// reads that cut already.
func (t *txn) moveOn(ctx context.Context) (moved bool, err error) {
	old, s := t.cut, t.s
	cut := s.gw.catalog.Cut()
	if cut.Seq() == old.Seq() {
		return false, nil
	}
	p := &pins{}
	for _, c := range s.cursors {
		if c.tx == t && c.portal.src != nil && c.cut == nil {
			c.cut = old
		}
		if c.cut != nil {
			p.cuts = append(p.cuts, c.cut)
		}
	}
	kept := p.cuts
	for { // as pinCut
		both := &pins{cuts: append(kept[:len(kept):len(kept)], old, cut)}
		if t.wh != nil {
			both.states = t.wh.Bases()
		}
		s.pinned.Store(both) // while it moves
		now := s.gw.catalog.Cut()
		if now.Seq() == cut.Seq() {
			break
		}
		cut = now
	}
	if t.wh != nil {
		if err := t.wh.SetCut(ctx, cut); err != nil {
			return false, err
		}
		p.states = t.wh.Bases()
	}
	t.cut, p.cuts = cut, append(kept, cut)
	s.pinned.Store(p)
	return true, nil
}
