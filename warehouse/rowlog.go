package warehouse

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/liveset"
)

// noRowID marks a row that gets its _row_id at commit.
const noRowID = liveset.NoRowID

// rowLog holds rows a transaction wrote and has not put into a data file yet, in order of arrival. It is append-only
// but for truncate, which a savepoint's rollback uses. Batches are retained, never modified.
type rowLog struct {
	number  uint64 // of all logs; it makes the log's path
	shown   int32  // the first rows have been shown by their numbers: whoever moves them says where to
	batches []arrow.RecordBatch
	starts  []int32 // the first row of each batch
	rows    int32
	rowIDs  []int64      // the _row_id each row keeps, nil when none does
	keyMu   sync.RWMutex // the transaction's own goroutine changes keys under it and reads them without; others read under it
	keys    *keyTable    // nil for a table without identifier fields
	data    int64        // bytes of the batches
}

func newRowLog(keyed bool) *rowLog {
	l := &rowLog{number: logNumbers.Add(1)}
	if keyed {
		l.keys = &keyTable{}
	}
	return l
}

// smallBatch is the number of rows below which neighbouring batches are joined: 10,000 inserts of one row are a handful
// of batches, and each row is copied a logarithmic number of times.
const smallBatch = 4096

// append adds rec, whose rows keep rowIDs (nil: none), and returns the number of its first row.
func (l *rowLog) append(rec arrow.RecordBatch, rowIDs []int64) (int32, error) {
	first := l.rows
	n := int(rec.NumRows())
	if rowIDs != nil && l.rowIDs == nil {
		l.rowIDs = make([]int64, l.rows, int(l.rows)+n)
		for i := range l.rowIDs {
			l.rowIDs[i] = noRowID
		}
	}
	if l.rowIDs != nil {
		if rowIDs == nil {
			for range n {
				l.rowIDs = append(l.rowIDs, noRowID)
			}
		} else {
			l.rowIDs = append(l.rowIDs, rowIDs...)
		}
	}
	rec.Retain()
	l.batches = append(l.batches, rec)
	l.starts = append(l.starts, first)
	l.rows += int32(n)
	l.data += recordBytes(rec)
	return first, l.join()
}

// join concatenates the last two batches while both are small and the last is not the smaller by far.
func (l *rowLog) join() error {
	for n := len(l.batches); n >= 2; n = len(l.batches) {
		a, b := l.batches[n-2], l.batches[n-1]
		if a.NumRows()+b.NumRows() > smallBatch || a.NumRows() > 2*b.NumRows() {
			return nil
		}
		both, err := concat(a, b)
		if err != nil {
			return err
		}
		l.data += recordBytes(both) - recordBytes(a) - recordBytes(b)
		a.Release()
		b.Release()
		l.batches = append(l.batches[:n-2], both)
		l.starts = l.starts[:n-1]
	}
	return nil
}

func concat(a, b arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, a.NumCols())
	defer releaseAll(cols)
	for i := range cols {
		c, err := array.Concatenate([]arrow.Array{a.Column(i), b.Column(i)}, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		cols[i] = c
	}
	return array.NewRecordBatch(a.Schema(), cols, a.NumRows()+b.NumRows()), nil
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

// bytes is the memory the log holds.
func (l *rowLog) bytes() int64 {
	n := l.data + int64(cap(l.rowIDs))*8
	if l.keys != nil {
		n += l.keys.bytes()
	}
	return n
}

// prefix is a log of the first rows of l, without keys.
func (l *rowLog) prefix(rows int32) *rowLog {
	p := &rowLog{number: logNumbers.Add(1)}
	for i, b := range l.batches {
		if l.starts[i] >= rows {
			break
		}
		n := min(int64(rows-l.starts[i]), b.NumRows())
		p.batches = append(p.batches, b.NewSlice(0, n))
		p.starts = append(p.starts, l.starts[i])
	}
	p.rows = rows
	if l.rowIDs != nil {
		p.rowIDs = append([]int64(nil), l.rowIDs[:rows]...)
	}
	for _, b := range p.batches {
		p.data += recordBytes(b)
	}
	return p
}

// release lets go of the batches.
func (l *rowLog) release() {
	for _, b := range l.batches {
		b.Release()
	}
	l.batches, l.starts = nil, nil
}

// rowID is the _row_id row keeps, noRowID when none.
func (l *rowLog) rowID(row int32) int64 {
	if l.rowIDs == nil {
		return noRowID
	}
	return l.rowIDs[row]
}

// live yields the rows before rows that are not dead, as batches that keep order, with the _row_ids they keep (nil when
// the log keeps none) and the number of their first row. The batches are released after it.
func (l *rowLog) live(rows int32, dead *roaring.Bitmap, yield func(rec arrow.RecordBatch, ids []int64, first int32) error) error {
	for i, b := range l.batches {
		start := l.starts[i]
		if start >= rows {
			return nil
		}
		end := min(int64(rows), int64(start)+b.NumRows())
		for from := int64(start); from < end; {
			to := nextDead(dead, from, end)
			if to > from {
				var ids []int64
				if l.rowIDs != nil {
					ids = l.rowIDs[from:to]
				}
				piece := b.NewSlice(from-int64(start), to-int64(start))
				err := yield(piece, ids, int32(from))
				piece.Release()
				if err != nil {
					return err
				}
			}
			from = nextAlive(dead, to, end)
		}
	}
	return nil
}

// nextDead is the first dead row in [from, end), else end.
func nextDead(dead *roaring.Bitmap, from, end int64) int64 {
	if dead == nil {
		return end
	}
	it := dead.Iterator()
	it.AdvanceIfNeeded(uint32(from))
	if !it.HasNext() {
		return end
	}
	return min(end, int64(it.Next()))
}

// nextAlive is the first row from on that is not dead, at most end.
func nextAlive(dead *roaring.Bitmap, from, end int64) int64 {
	if dead == nil {
		return from
	}
	for from < end && dead.Contains(uint32(from)) {
		from++
	}
	return from
}

// liveRows is the number of live rows among the first rows.
func liveRows(rows int32, dead *roaring.Bitmap) int64 {
	if dead == nil {
		return int64(rows)
	}
	return int64(rows) - int64(dead.GetCardinality())
}

// recordBytes is the memory a batch refers to. A slice counts like the batch it was cut from.
func recordBytes(rec arrow.RecordBatch) int64 {
	var n int64
	for _, c := range rec.Columns() {
		n += int64(c.Data().SizeInBytes())
	}
	return n
}
