package changelog

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// changeKind is a _change_type as a small number.
type changeKind uint8

const (
	kindInsert changeKind = iota
	kindDelete
	kindBefore
	kindAfter
)

var kindNames = [...]string{Insert, Delete, UpdateBefore, UpdateAfter}

var (
	// errStop ends a reading whose consumer wants no more.
	errStop = errors.New("consumer stopped")
	// errStepDone ends the reading of a step whose rest lies after the window.
	errStepDone = errors.New("step done")
)

// emitter turns rows of one step into batches with the metadata columns. Constant columns are made once a step and
// sliced.
type emitter struct {
	cols  *Columns
	rows  int // rows of a batch at most
	yield func(arrow.RecordBatch) error

	step    *step
	room    int // rows that constant columns are made for: what the step may have, up to rows
	consts  [4]arrow.Array
	ordered [2]arrow.Array // _change_type of all rows INSERT, DELETE
	updates arrow.Array    // _change_type BEFORE, AFTER, BEFORE, …
}

func newEmitter(cols *Columns, rows int, yield func(arrow.RecordBatch) error) *emitter {
	return &emitter{cols: cols, rows: rows, yield: yield}
}

// begin starts a step of at most n rows: constants of a small one must not be the size of a batch.
func (e *emitter) begin(s *step, n int64) {
	e.step, e.room = s, int(min(n, int64(e.rows)))
	e.consts = [4]arrow.Array{}
}

// emit sends n rows of the asked columns. first is the _change_row of the first one when rows follow each other;
// numbers, when not nil, holds all of them.
func (e *emitter) emit(cols []arrow.Array, kinds arrow.Array, n int, first int64, numbers []int64, rowID arrow.Array) error {
	if n == 0 {
		return nil
	}
	out := make([]arrow.Array, 0, len(e.cols.Schema.Fields()))
	out = append(out, cols...)
	out = append(out, kinds)
	if e.consts[0] == nil || e.consts[0].Len() < n {
		e.makeConsts(max(n, e.room))
	}
	for _, c := range e.consts {
		out = append(out, array.NewSlice(c, 0, int64(n)))
	}
	if numbers == nil {
		numbers = make([]int64, n)
		for k := range numbers {
			numbers[k] = first + int64(k)
		}
	}
	out = append(out, int64Array(arrow.PrimitiveTypes.Int64, numbers))
	if e.cols.FormatVersion >= 3 {
		if rowID == nil {
			rowID = array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, n)
		}
		out = append(out, rowID)
	}
	return e.yield(array.NewRecordBatch(e.cols.Schema, out, int64(n)))
}

func int64Array(t arrow.DataType, v []int64) arrow.Array {
	return array.MakeFromData(array.NewData(t, len(v), []*memory.Buffer{nil, bufferOf(v)}, nil, 0, 0))
}

// makeConsts makes _change_ordinal, _commit_snapshot_id, _commit_seq and _commit_timestamp.
func (e *emitter) makeConsts(n int) {
	ord := make([]int32, n)
	for k := range ord {
		ord[k] = e.step.ordinal
	}
	e.consts[0] = array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int32, n, []*memory.Buffer{nil, bufferOf(ord)}, nil, 0, 0))
	fill := func(t arrow.DataType, v int64, ok bool) arrow.Array {
		if !ok {
			return array.MakeArrayOfNull(memory.DefaultAllocator, t, n)
		}
		s := make([]int64, n)
		for k := range s {
			s[k] = v
		}
		return int64Array(t, s)
	}
	var snap int64
	if e.step.new != nil {
		snap = *e.step.new
	}
	e.consts[1] = fill(arrow.PrimitiveTypes.Int64, snap, e.step.new != nil)
	e.consts[2] = fill(arrow.PrimitiveTypes.Int64, int64(e.step.seq), e.step.seq != 0)
	e.consts[3] = fill(arrow.FixedWidthTypes.Timestamp_us, e.step.time.UnixMicro(), true)
}

// sameKind returns n rows of INSERT or of DELETE.
func (e *emitter) sameKind(k changeKind, n int) arrow.Array {
	if e.ordered[k] == nil || e.ordered[k].Len() < n {
		kinds := make([]changeKind, max(n, e.room))
		for i := range kinds {
			kinds[i] = k
		}
		e.ordered[k] = kindArray(kinds)
	}
	return array.NewSlice(e.ordered[k], 0, int64(n))
}

// mixedKinds returns the _change_type of rows; runs of updates share one array.
func (e *emitter) mixedKinds(kinds []changeKind) arrow.Array {
	alternates, same := true, true
	for i, k := range kinds {
		alternates = alternates && k == kindBefore+changeKind(i&1)
		same = same && k == kinds[0]
	}
	if same && kinds[0] <= kindDelete {
		return e.sameKind(kinds[0], len(kinds))
	}
	if !alternates {
		return kindArray(kinds)
	}
	if e.updates == nil || e.updates.Len() < len(kinds) {
		all := make([]changeKind, max(len(kinds), e.room))
		for i := range all {
			all[i] = kindBefore + changeKind(i&1)
		}
		e.updates = kindArray(all)
	}
	return array.NewSlice(e.updates, 0, int64(len(kinds)))
}

func kindArray(kinds []changeKind) arrow.Array {
	offs := make([]int32, len(kinds)+1)
	for i, k := range kinds {
		offs[i+1] = offs[i] + int32(len(kindNames[k]))
	}
	data := make([]byte, offs[len(kinds)])
	for i, k := range kinds {
		copy(data[offs[i]:], kindNames[k])
	}
	return array.MakeFromData(array.NewData(arrow.BinaryTypes.String, len(kinds),
		[]*memory.Buffer{nil, bufferOf(offs), memory.NewBufferBytes(data)}, nil, 0, 0))
}

// project gives the read columns the asked types.
func (e *emitter) project(ctx context.Context, l *layout, cols []arrow.Array) ([]arrow.Array, error) {
	cols = cols[:l.asked]
	for i, c := range cols {
		want := e.cols.Schema.Field(i).Type
		if !l.cast[i] && arrow.TypeEqual(c.DataType(), want) {
			continue
		}
		out, err := compute.CastArray(ctx, c, compute.SafeCastOptions(want))
		if err != nil {
			return nil, &Error{Err: ErrOutOfRange, Message: fmt.Sprintf("a value of column %q does not fit %s, its type at the asked state",
				e.cols.Schema.Field(i).Name, e.cols.Table.Field(i).Type), Detail: err.Error()}
		}
		cols[i] = out
	}
	return cols, nil
}

// clip returns which of n rows numbered from first lie inside the step's window.
func (s *step) clip(first int64, n int) (lo, hi int) {
	lo = int(min(max(s.skip-first, 0), int64(n)))
	hi = n
	if s.limit != math.MaxInt64 {
		hi = int(min(max(s.limit-first, int64(lo)), int64(n)))
	}
	return lo, hi
}
