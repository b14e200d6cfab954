package changelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
)

// Collapse folds the batch to its net effect (L3): a row that came and went is nothing, and of a key there is at most one
// INSERT, one DELETE, or one UPDATE_BEFORE with its UPDATE_AFTER: old the value at From, new the value at To. A log table
// keeps the signed multiset difference. Keys are compared as typed values, column by column, by row identity: NULL is
// NULL, NaN is NaN, −0.0 is not 0.0.
//
// Rows keep the metadata columns of the change they come from and the order of the batch; an update stands where its old
// value was taken away. Records are read in parallel, by as many goroutines as the Reader has workers. Errors: ErrUnknownColumn for a batch that
// was projected, ErrTooLarge beyond 2³¹ rows.
func (b *Batch) Collapse() (*Batch, error) { return b.collapse(b.workers) }

func (b *Batch) collapse(workers int) (*Batch, error) {
	if workers <= 0 {
		workers = defaultWorkers()
	}
	if b.projected {
		return nil, &Error{Err: ErrUnknownColumn, Message: "a projected batch lacks columns that tell its rows apart", Hint: "Project after Collapse."}
	}
	out := *b
	out.Records = nil
	ctx := context.Background()
	a, err := newArena(b.Records, mixedSigns, workers)
	if err != nil || a.n == 0 {
		return &out, err
	}
	asked := b.Columns.Table.NumFields()
	if err := a.readSigns(ctx, a.cols[asked].(*bytesVector)); err != nil {
		return nil, err
	}
	compare := make([]int, asked)
	for i := range compare {
		compare[i] = i
	}
	var key []int
	for _, id := range b.Kind.Identifier {
		c := slices.IndexFunc(b.Columns.Table.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if c < 0 {
			return nil, &Error{Err: ErrUnknownColumn, Message: "the batch lacks a column of the key", Hint: "Project after Collapse."}
		}
		key = append(key, c)
	}
	if err := a.match(ctx, key, compare); err != nil {
		return nil, err
	}
	out.Records, err = b.folded(ctx, a, asked)
	return &out, err
}

// readSigns fills removed from _change_type.
func (a *arena) readSigns(ctx context.Context, kinds *bytesVector) error {
	a.removed = make([][]uint64, len(a.rows))
	return inParallel(ctx, a.workers, len(a.rows), func(_, k int) error {
		signs := make([]uint64, (a.rows[k]+63)/64)
		t := &kinds.v[k]
		for i := range a.rows[k] {
			lo, hi := t.offs[i], t.offs[i+1]
			// The four names differ in length, but INSERT and DELETE.
			if n := int(hi - lo); n == len(UpdateBefore) || n == len(Delete) && t.data[lo] == Delete[0] {
				signs[i>>6] |= 1 << (i & 63)
			}
		}
		a.removed[k] = signs
		return nil
	})
}

// folded gathers what is left of a matched arena.
func (b *Batch) folded(ctx context.Context, a *arena, asked int) ([]arrow.RecordBatch, error) {
	type part struct {
		rows  []uint32
		kinds []changeKind
	}
	var parts []part
	a.result(func(r uint32, removed bool, partner uint32, paired bool) bool {
		// A record ends with a chunk when it can, so that a chunk that is left whole need not be copied.
		if n := len(parts) - 1; n < 0 || len(parts[n].rows) >= chunkRows || r&placeMask == 0 && len(parts[n].rows) >= chunkRows/2 {
			parts = append(parts, part{make([]uint32, 0, chunkRows+1), make([]changeKind, 0, chunkRows+1)})
		}
		p := &parts[len(parts)-1]
		switch {
		case paired:
			p.rows, p.kinds = append(p.rows, r, partner), append(p.kinds, kindBefore, kindAfter)
		case removed:
			p.rows, p.kinds = append(p.rows, r), append(p.kinds, kindDelete)
		default:
			p.rows, p.kinds = append(p.rows, r), append(p.kinds, kindInsert)
		}
		return true
	})
	lists := make([][]arrow.RecordBatch, len(parts))
	err := inParallel(ctx, a.workers, len(parts), func(_, i int) (err error) {
		lists[i], err = b.gather(a, asked, parts[i].rows, parts[i].kinds)
		return err
	})
	return slices.Concat(lists...), err
}

// gather makes a record of rows, or more of them when they are too wide for one.
func (b *Batch) gather(a *arena, asked int, rows []uint32, kinds []changeKind) ([]arrow.RecordBatch, error) {
	out := make([]arrow.Array, len(a.cols))
	// Refs of one side, or of updates that stand side by side, ascend where nothing between them went.
	first := rows[0]
	consecutive := first>>chunkBits == rows[len(rows)-1]>>chunkBits
	for k := 1; k < len(rows) && consecutive; k++ {
		consecutive = rows[k] == rows[k-1]+1
	}
	for c, v := range a.cols {
		if c == asked {
			out[c] = kindsOf(kinds)
			continue
		}
		if consecutive {
			out[c] = array.NewSlice(a.pieces[c][first>>chunkBits], int64(first&placeMask), int64(first&placeMask)+int64(len(rows)))
			continue
		}
		var err error
		out[c], err = v.gather(rows)
		if errors.Is(err, errTooWide) {
			half := len(rows) / 2
			if kinds[half] == kindAfter { // a pair is not cut
				half++
			}
			left, err := b.gather(a, asked, rows[:half], kinds[:half])
			if err != nil {
				return nil, err
			}
			right, err := b.gather(a, asked, rows[half:], kinds[half:])
			return append(left, right...), err
		}
		if err != nil {
			return nil, fmt.Errorf("gather rows: %w", err)
		}
	}
	return []arrow.RecordBatch{array.NewRecordBatch(b.Columns.Schema, out, int64(len(rows)))}, nil
}

// kindPatterns are the usual contents of _change_type.
var kindPatterns = sync.OnceValue(func() (p [3]arrow.Array) {
	kinds := make([]changeKind, chunkRows+1)
	for i := range p {
		for k := range kinds {
			kinds[k] = changeKind(i)
			if i == 2 {
				kinds[k] = kindBefore + changeKind(k&1)
			}
		}
		p[i] = kindArray(kinds)
	}
	return p
})

// kindsOf is kindArray for at most chunkRows+1 rows; rows of one kind and runs of updates share an array.
func kindsOf(kinds []changeKind) arrow.Array {
	same, updates := kinds[0] <= kindDelete, true
	for k, x := range kinds {
		same = same && x == kinds[0]
		updates = updates && x == kindBefore+changeKind(k&1)
	}
	switch {
	case same:
		return array.NewSlice(kindPatterns()[kinds[0]], 0, int64(len(kinds)))
	case updates:
		return array.NewSlice(kindPatterns()[2], 0, int64(len(kinds)))
	}
	return kindArray(kinds)
}
