package changelog

import "context"

// match pairs and cancels the rows of both sides: by row id, then by identity within a key. key lists the columns that
// pair rows; empty, whole rows are compared and only cancel. The outcome does not depend on workers.
func (a *arena) match(ctx context.Context, key, compare []int) error {
	if err := a.matchIDs(ctx, compare); err != nil {
		return err
	}
	if len(key) == 0 {
		return a.join(ctx, a.pick(compare), nil, nil, cancelOnly)
	}
	return a.join(ctx, a.pick(key), a.pick(without(compare, key)), nil, pairUnique)
}

// matchIDs pairs and cancels rows by row id alone.
func (a *arena) matchIDs(ctx context.Context, compare []int) error {
	a.partner = make([]uint32, a.n)
	if a.rowID == nil || a.hasID == nil {
		return nil
	}
	return a.join(ctx, []vector{a.rowID}, a.pick(compare), a.hasID, onlyUnique)
}

func (a *arena) pick(cols []int) []vector {
	out := make([]vector, len(cols))
	for i, c := range cols {
		out[i] = a.cols[c]
	}
	return out
}

func without(cols, drop []int) []int {
	var out []int
next:
	for _, c := range cols {
		for _, d := range drop {
			if c == d {
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// joinMode says what becomes of rows that share a key.
type joinMode uint8

const (
	cancelOnly joinMode = iota // the key is the whole row: rows cancel one for one, first come first
	pairUnique                 // identical rows cancel; what is then alone on both sides is an update
	onlyUnique                 // as pairUnique, but keys that several rows of a side have are left alone
)

// join matches unmatched rows of equal key. admit, when set, leaves rows out.
func (a *arena) join(ctx context.Context, key, rest []vector, admit func(uint32) bool, mode joinMode) error {
	if mode == pairUnique {
		if done, err := a.joinSorted(ctx, key, rest); done || err != nil {
			return err
		}
	}
	return a.joinHashed(ctx, key, rest, admit, mode)
}

func (a *arena) cancel(x, y uint32) {
	a.partner[a.number(x)], a.partner[a.number(y)] = cancelled, cancelled
}

func (a *arena) update(p pair) {
	a.partner[a.number(p.del)], a.partner[a.number(p.ins)] = p.ins+1, p.del+1
}

// settler turns pairs of one key into nothing (all columns equal) or an update.
type settler struct {
	a    *arena
	rest []vector
	same []bool
}

func (s *settler) compare(pairs []pair) []bool {
	if cap(s.same) < len(pairs) {
		s.same = make([]bool, len(pairs))
	}
	same := s.same[:len(pairs)]
	for k := range same {
		same[k] = true
	}
	for _, v := range s.rest {
		v.keepEqual(pairs, same)
	}
	return same
}

func (s *settler) settle(pairs []pair) {
	for k, same := range s.compare(pairs) {
		if same {
			s.a.cancel(pairs[k].del, pairs[k].ins)
		} else {
			s.a.update(pairs[k])
		}
	}
}
