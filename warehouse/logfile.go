package warehouse

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// A statement reads the rows that its transaction has in memory where they are: its Live set shows the log as a file that is in memory, so that
// 10,000 updates of one row each are one data file at COMMIT and none before. Positions in it are the log's rows. They stay good until the end of
// the transaction: when the log goes to data files its moves say where each row that was shown has gone.

// logNumbers tells the logs of a process apart.
var logNumbers atomic.Uint64

// path names the log as a file. No file has such a name: locations are absolute.
func (l *rowLog) path() string { return "memory:" + strconv.FormatUint(l.number, 10) }

// memFileLocked is the log as a file of the Live set, nil when it has no live rows.
func (t *TxTable) memFileLocked() (*liveset.File, error) {
	st := t.st
	if liveRows(st.rows, st.dead) == 0 {
		return nil, nil
	}
	log := st.log
	log.shown = max(log.shown, st.rows)
	if t.memFile != nil && t.memFile.Path == log.path() && t.memFile.Records == int64(st.rows) {
		return t.memFile, nil
	}
	m := &liveset.MemRows{Schema: t.schema, Rows: st.rows}
	for i, b := range log.batches {
		if log.starts[i] >= st.rows {
			break
		}
		// A slice of its own: the log lets go of its batches when it joins them. Its memory is the garbage collector's.
		m.Batches = append(m.Batches, b.NewSlice(0, min(b.NumRows(), int64(st.rows-log.starts[i]))))
		m.Starts = append(m.Starts, log.starts[i])
	}
	if log.rowIDs != nil {
		m.RowIDs = log.rowIDs[:st.rows:st.rows]
	}
	if log.keys != nil {
		m.Find = func(key []byte) (uint32, bool, bool) { return log.findBelow(key, m.Rows) }
	}
	f, err := liveset.NewMemFile(log.path(), m)
	if err != nil {
		return nil, err
	}
	t.memFile = f
	return f, nil
}

// findBelow finds the newest of the first rows that has the key. It does not know when a later row has it too.
func (l *rowLog) findBelow(key []byte, rows int32) (pos uint32, ok, known bool) {
	l.keyMu.RLock()
	defer l.keyMu.RUnlock()
	if l.keys == nil {
		return 0, false, false
	}
	r, ok := l.keys.find(key)
	return uint32(r), ok, !ok || r < rows
}

// inLog says whether path is the log that the state writes to.
func (t *TxTable) inLog(path string) bool { return path == t.st.log.path() }

// resolveLocked tells which rows positions of a path mean by now: rows of the log, and positions in data files of the base or the own ones.
func (t *TxTable) resolveLocked(path string, positions *roaring.Bitmap) (log *roaring.Bitmap, files map[string]*roaring.Bitmap, err error) {
	if t.inLog(path) {
		return positions, nil, nil
	}
	m := t.shown[path]
	if m == nil {
		return nil, map[string]*roaring.Bitmap{path: positions}, nil
	}
	files = map[string]*roaring.Bitmap{}
	if !m.translate(path, positions, files) {
		return nil, nil, fmt.Errorf("%w: a row that was in memory is in no file", ErrNotLive)
	}
	return nil, files, nil
}

// suppressLocked suppresses rows by path, in memory too.
func (t *TxTable) suppressLocked(path string, positions *roaring.Bitmap) error {
	log, files, err := t.resolveLocked(path, positions)
	if err != nil {
		return err
	}
	if log != nil {
		if t.st.dead == nil {
			t.st.dead = roaring.New()
		}
		t.st.dead.Or(log)
	}
	for p, b := range files {
		t.st.suppressAt(p, b)
	}
	return nil
}

// fileLocked is the file of the Live set at path, nil when there is none: of the base, an own one, or the log.
func (t *TxTable) fileLocked(path string) (*liveset.LiveFile, error) {
	if t.inLog(path) {
		f, err := t.memFileLocked()
		if f == nil || err != nil {
			return nil, err
		}
		return &liveset.LiveFile{File: f, Suppressed: t.st.dead}, nil
	}
	var f *liveset.LiveFile
	if !t.st.truncated {
		f = t.baseSet.File(path)
	}
	if f == nil {
		f = t.ownSetLocked().File(path)
	}
	return f, nil
}

// hitLocked is the row of ref where it is by now.
func (t *TxTable) hitLocked(ordinal int, ref RowRef) (liveset.Hit, error) {
	if m := t.shown[ref.Path]; m != nil && !t.inLog(ref.Path) {
		to, pos, ok := m.at(ref.Path, ref.Pos)
		if !ok {
			return liveset.Hit{}, fmt.Errorf("%w: a row that was in memory is in no file", ErrNotLive)
		}
		ref = RowRef{to, pos}
	}
	f, err := t.fileLocked(ref.Path)
	if err != nil {
		return liveset.Hit{}, err
	}
	if f == nil {
		return liveset.Hit{}, fmt.Errorf("%w: no file %s", ErrNotLive, ref.Path)
	}
	return liveset.Hit{KeyOrdinal: ordinal, File: f, Pos: ref.Pos}, nil
}

// ReadRows reads rows of the Live set in the order of refs, with the table's columns.
func (t *TxTable) ReadRows(ctx context.Context, refs []RowRef) (arrow.RecordBatch, error) {
	if err := t.tx.usable(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	hits := make([]liveset.Hit, len(refs))
	for i, r := range refs {
		var err error
		if hits[i], err = t.hitLocked(i, r); err != nil {
			return nil, err
		}
	}
	return t.tx.w.opts.Live.ReadHits(ctx, t.Ref(), t.schema, liveset.MetaColumns{}, hits)
}

// Flush puts the rows in memory into data files, so that later statements find them where they are.
func (t *TxTable) Flush(ctx context.Context) error {
	if err := t.tx.usable(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flushLocked(ctx)
}

// logMoves notes where the rows of a log that was shown go while they are written to files.
type logMoves struct {
	log   *rowLog
	moved *moved
	slots map[slotKey]uint16
	over  bool // more files than slots
}

// trackLog makes the writer tell where the shown rows of a log go; nil when none was shown.
func (w *fileWriter) trackLog(log *rowLog) *logMoves {
	if log.shown == 0 {
		return nil
	}
	lm := &logMoves{log: log, moved: newMoved(int64(log.shown)), slots: map[slotKey]uint16{}}
	w.placed = func(partition string, n int, first int64, origins []int64) {
		k := slotKey{partition, n}
		slot, ok := lm.slots[k]
		if !ok {
			if len(lm.slots) >= noSlot {
				lm.over = true
				return
			}
			slot = uint16(len(lm.slots))
			lm.slots[k] = slot
		}
		for i, o := range origins {
			if o < int64(log.shown) {
				lm.moved.slot[o], lm.moved.pos[o] = slot, uint32(first)+uint32(i)
			}
		}
	}
	return lm
}

// movesTo makes the moves, once the files have names: n-th file of a partition, in the order of the writer's partitions.
func (lm *logMoves) movesTo(names map[slotKey]string) (*moves, error) {
	if lm.over {
		return nil, fmt.Errorf("%w: rows of one transaction in more than %d partitions between two writes", ErrInvalidTable, noSlot)
	}
	m := &moves{files: make([]string, len(lm.slots)), from: map[string]*moved{lm.log.path(): lm.moved}, rows: int64(lm.log.shown)}
	for k, slot := range lm.slots {
		m.files[slot] = names[k]
	}
	return m, nil
}

// withLogOrigins adds the rows' numbers in the log as the last column.
func withLogOrigins(rec arrow.RecordBatch, first int32) arrow.RecordBatch {
	origins := make([]int64, rec.NumRows())
	for i := range origins {
		origins[i] = int64(first) + int64(i)
	}
	col := parquetio.LongArray(origins)
	defer col.Release()
	return parquetio.AppendColumn(rec, arrow.Field{Name: parquetio.OriginColumn, Type: arrow.PrimitiveTypes.Int64}, col)
}
