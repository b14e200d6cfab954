package changelog

import (
	"math"
)

// cancelled marks a row whose identical counterpart is on the other side.
const cancelled = math.MaxUint32

// arena holds both sides of one partition of a step: rows [0, dels) were removed, [dels, n) inserted. match fills
// partner: 0 nothing yet, cancelled, else the partner's row + 1.
type arena struct {
	n, dels uint32
	cols    []vector
	rowID   vector                // nil when rows have none
	hasID   func(row uint32) bool // nil: row ids pair nothing
	partner []uint32
}

// match pairs and cancels the rows of both sides: by row id, then by identity within a key. key lists the columns that
// pair rows; empty, whole rows are compared and only cancel.
func (a *arena) match(key, compare []int) {
	a.partner = make([]uint32, a.n)
	if a.rowID != nil && a.hasID != nil {
		a.join([]vector{a.rowID}, a.pick(compare), func(r uint32) bool { return a.hasID(r) }, onlyUnique)
	}
	if len(key) == 0 {
		a.join(a.pick(compare), nil, nil, cancelOnly)
		return
	}
	a.join(a.pick(key), a.pick(without(compare, key)), nil, pairUnique)
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
	cancelOnly joinMode = iota // the key is the whole row: rows cancel one for one
	pairUnique                 // identical rows cancel; what is then alone on both sides is an update
	onlyUnique                 // as pairUnique, but keys that several rows have are left alone
)

// join matches unmatched rows of equal key. admit, when set, leaves rows out.
func (a *arena) join(key, rest []vector, admit func(uint32) bool, mode joinMode) {
	if mode != cancelOnly && admit == nil && a.joinSorted(key, rest) {
		return
	}
	t := a.hashJoin(key, admit)
	var single []pair
	for d := uint32(0); d < a.dels; d++ {
		i := t.firstIns[d]
		if i == 0 {
			continue
		}
		if t.nextDel[d] == 0 && t.nextIns[i-1-a.dels] == 0 {
			single = append(single, pair{d, i - 1})
			continue
		}
		if mode != onlyUnique {
			a.joinGroup(t, d, rest, mode)
		}
	}
	if mode == cancelOnly {
		for _, p := range single {
			a.cancel(p)
		}
		return
	}
	a.settle(single, rest)
}

func (a *arena) cancel(p pair) { a.partner[p.del], a.partner[p.ins] = cancelled, cancelled }
func (a *arena) update(p pair) { a.partner[p.del], a.partner[p.ins] = p.ins+1, p.del+1 }

// settle turns pairs of one key into nothing (all columns equal) or an update.
func (a *arena) settle(pairs []pair, rest []vector) {
	same := make([]bool, len(pairs))
	for k := range same {
		same[k] = true
	}
	for _, v := range rest {
		v.keepEqual(pairs, same)
	}
	for k, p := range pairs {
		if same[k] {
			a.cancel(p)
		} else {
			a.update(p)
		}
	}
}

// joinGroup matches the rows of a key that stands more than once on a side.
func (a *arena) joinGroup(t *joinTable, head uint32, rest []vector, mode joinMode) {
	dels, inss := t.group(head)
	if mode == cancelOnly {
		for k := range min(len(dels), len(inss)) {
			a.cancel(pair{dels[k], inss[k]})
		}
		return
	}
	byHash := make(map[uint64][]uint32, len(dels))
	for _, d := range dels {
		h := rowHash(rest, d)
		byHash[h] = append(byHash[h], d)
	}
	leftIns := inss[:0]
	for _, i := range inss {
		h := rowHash(rest, i)
		list, found := byHash[h], false
		for k, d := range list {
			if equalRows(rest, d, i) {
				a.cancel(pair{d, i})
				list[k] = list[0] // order within a hash does not matter: what is left is compared again
				byHash[h] = list[1:]
				found = true
				break
			}
		}
		if !found {
			leftIns = append(leftIns, i)
		}
	}
	leftDels := dels[:0]
	for _, d := range dels {
		if a.partner[d] == 0 {
			leftDels = append(leftDels, d)
		}
	}
	if len(leftDels) == 1 && len(leftIns) == 1 {
		a.update(pair{leftDels[0], leftIns[0]})
	}
}

func rowHash(cols []vector, r uint32) uint64 {
	h := uint64(0)
	for _, v := range cols {
		h = v.hashAt(r, h)
	}
	return h
}

func equalRows(cols []vector, x, y uint32) bool {
	for _, v := range cols {
		if !v.equal(x, y) {
			return false
		}
	}
	return true
}

// joinSorted matches when the key is one integer column that strictly ascends on both sides, as it does in files sorted
// by identifier: a merge without a table. false: it does not.
func (a *arena) joinSorted(key, rest []vector) bool {
	if len(key) != 1 {
		return false
	}
	var pairs []pair
	var ok bool
	switch v := key[0].(type) {
	case *intVector[int64]:
		pairs, ok = mergeSorted(a, v)
	case *intVector[int32]:
		pairs, ok = mergeSorted(a, v)
	}
	if ok {
		a.settle(pairs, rest)
	}
	return ok
}

func mergeSorted[T int32 | int64](a *arena, c *intVector[T]) ([]pair, bool) {
	if c.valid != nil || !ascends(c.v[:a.dels]) || !ascends(c.v[a.dels:a.n]) {
		return nil, false
	}
	pairs := make([]pair, 0, min(a.dels, a.n-a.dels))
	d, i := uint32(0), a.dels
	for d < a.dels && i < a.n {
		switch x, y := c.v[d], c.v[i]; {
		case x < y:
			d++
		case x > y:
			i++
		default:
			if a.partner[d] == 0 && a.partner[i] == 0 {
				pairs = append(pairs, pair{d, i})
			}
			d++
			i++
		}
	}
	return pairs, true
}

func ascends[T int32 | int64](v []T) bool {
	for k := 1; k < len(v); k++ {
		if v[k-1] >= v[k] {
			return false
		}
	}
	return true
}
