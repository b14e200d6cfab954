package changelog

import (
	"context"
	"sort"
)

// joinSorted matches when the key is one integer column that strictly ascends on both sides, as it does in files sorted
// by identifier: a merge without a table. false: it does not.
func (a *arena) joinSorted(ctx context.Context, key, rest []vector) (bool, error) {
	if len(key) != 1 || a.dels == mixedSigns {
		return false, nil
	}
	switch v := key[0].(type) {
	case *intVector[int64]:
		return mergeSorted(ctx, a, v, rest)
	case *intVector[int32]:
		return mergeSorted(ctx, a, v, rest)
	}
	return false, nil
}

// settleRows is how many pairs are compared at once: their columns are read one after the other.
const settleRows = 4096

func mergeSorted[T int32 | int64](ctx context.Context, a *arena, c *intVector[T], rest []vector) (bool, error) {
	if c.valid != nil || !ascends(c.v[:a.dels]) || !ascends(c.v[a.dels:]) {
		return false, nil
	}
	// Each chunk of removed rows is merged with the inserted rows from its first key to its last.
	settlers := make([]*settler, max(a.workers, 1))
	inss := c.v[a.dels:]
	err := inParallel(ctx, a.workers, a.dels, func(w, k int) error {
		if settlers[w] == nil {
			settlers[w] = &settler{a: a, rest: rest}
		}
		dels := c.v[k]
		first := sort.Search(len(inss), func(i int) bool { return inss[i][len(inss[i])-1] >= dels[0] })
		pairs := make([]pair, 0, settleRows)
		d := 0
		for i := first; i < len(inss) && d < len(dels); i++ {
			j := 0
			if i == first {
				j = sort.Search(len(inss[i]), func(j int) bool { return inss[i][j] >= dels[0] })
			}
			for d < len(dels) && j < len(inss[i]) {
				switch x, y := dels[d], inss[i][j]; {
				case x < y:
					d++
				case x > y:
					j++
				default:
					p := pair{uint32(k<<chunkBits | d), uint32((a.dels+i)<<chunkBits | j)}
					if a.partner[a.number(p.del)] == 0 && a.partner[a.number(p.ins)] == 0 {
						if pairs = append(pairs, p); len(pairs) == settleRows {
							settlers[w].settle(pairs)
							pairs = pairs[:0]
						}
					}
					d++
					j++
				}
			}
		}
		settlers[w].settle(pairs)
		return nil
	})
	return true, err
}

// ascends reports whether the chunks, none of them empty, are one strictly ascending sequence.
func ascends[T int32 | int64](chunks [][]T) bool {
	for k, v := range chunks {
		if k > 0 && chunks[k-1][len(chunks[k-1])-1] >= v[0] {
			return false
		}
		for i := 1; i < len(v); i++ {
			if v[i-1] >= v[i] {
				return false
			}
		}
	}
	return true
}
