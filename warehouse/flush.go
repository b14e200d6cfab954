package warehouse

import (
	"context"
	"fmt"
	"os"
	"path"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// fileWriter writes rows into data files of the table's data folder, one writer per partition.
type fileWriter struct {
	t       *TxTable
	dir     string
	rowIDs  bool
	schema  *arrow.Schema
	writers map[string]*parquetio.Writer
	order   []string
	// placed, when set, is told where rows went; route then takes batches with a trailing column of origins.
	placed func(partition string, n int, first int64, origins []int64)
	names  map[slotKey]string // of the files, once they are closed
}

// newFileWriter begins. rowIDs: the rows bring _row_id and _last_updated_sequence_number (v3).
func (t *TxTable) newFileWriter(rowIDs bool) (*fileWriter, error) {
	as, err := parquetio.ArrowSchema(t.schema, rowIDs)
	if err != nil {
		return nil, err
	}
	loc, err := icetable.LoadLocationProvider(t.meta.Location(), t.meta.Properties())
	if err != nil {
		return nil, fmt.Errorf("location provider: %w", err)
	}
	if tmp := t.tx.w.opts.TempDir; tmp != "" {
		if err := os.MkdirAll(tmp, 0o700); err != nil {
			return nil, fmt.Errorf("make folder for sorts: %w", err)
		}
	}
	dir := path.Dir(loc.NewDataLocation("x"))
	return &fileWriter{t: t, dir: dir, rowIDs: rowIDs, schema: as, writers: map[string]*parquetio.Writer{}, names: map[slotKey]string{}}, nil
}

// write takes rows of a log with the table's columns: ids are to keep (nil: none), first is the number of the first row.
func (w *fileWriter) write(ctx context.Context, rec arrow.RecordBatch, ids []int64, first int32) error {
	if !w.rowIDs {
		return w.routeLog(ctx, rec, first)
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range int(rec.NumRows()) {
		if ids == nil || ids[i] == noRowID {
			b.AppendNull()
		} else {
			b.Append(ids[i])
		}
	}
	idCol := b.NewArray()
	defer idCol.Release()
	seqCol := array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, int(rec.NumRows()))
	defer seqCol.Release()
	wide := array.NewRecordBatch(w.schema, append(rec.Columns()[:rec.NumCols():rec.NumCols()], idCol, seqCol), rec.NumRows())
	defer wide.Release()
	return w.routeLog(ctx, wide, first)
}

// routeLog is route for rows of a log.
func (w *fileWriter) routeLog(ctx context.Context, rec arrow.RecordBatch, first int32) error {
	if w.placed == nil {
		return w.route(ctx, rec)
	}
	rec = withLogOrigins(rec, first)
	defer rec.Release()
	return w.route(ctx, rec)
}

// route sends rows that have the writer's own schema to their partitions.
func (w *fileWriter) route(ctx context.Context, rec arrow.RecordBatch) error {
	if !w.t.router.partitioned() {
		pw, err := w.writer(ctx, nil)
		if err != nil {
			return err
		}
		return pw.Write(rec)
	}
	parts, err := w.t.router.split(rec)
	if err != nil {
		return err
	}
	for _, p := range parts {
		pw, err := w.writer(ctx, p.values)
		if err != nil {
			return err
		}
		rows := rec
		if len(parts) > 1 {
			if rows, err = take(ctx, rec, p.rows); err != nil {
				return err
			}
		}
		err = pw.Write(rows)
		if len(parts) > 1 {
			rows.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *fileWriter) writer(ctx context.Context, partition map[int]any) (*parquetio.Writer, error) {
	spec := w.t.meta.PartitionSpec()
	key := partitionKey(int32(spec.ID()), partition)
	if pw := w.writers[key]; pw != nil {
		return pw, nil
	}
	opts := w.t.tx.w.opts
	var placed func(n int, first int64, origins []int64)
	if w.placed != nil {
		placed = func(n int, first int64, origins []int64) { w.placed(key, n, first, origins) }
	}
	pw, err := parquetio.NewWriter(ctx, w.dir, parquetio.WriterOptions{
		FS: opts.FS, Schema: w.t.schema, Spec: spec, Partition: partition,
		SortIDs: w.t.keyIDs, BloomIDs: w.t.keyIDs, RowIDs: w.rowIDs, Order: w.t.order, SortOrderID: w.t.orderID, Placed: placed,
		TargetFileSize: w.t.meta.Properties().GetInt64("write.target-file-size-bytes", defaultTargetFileSize),
		MemoryBudget:   max(minSortBudget, 2*opts.MemoryLimit), TempDir: opts.TempDir,
	})
	if err != nil {
		return nil, fmt.Errorf("create data file: %w", err)
	}
	w.writers[key] = pw
	w.order = append(w.order, key)
	return pw, nil
}

const (
	defaultTargetFileSize = 512 << 20
	// minSortBudget keeps a sort in memory that a small memory limit would push to disk row by row.
	minSortBudget = 8 << 20
)

// close finishes the files, in order of their partitions' first rows.
func (w *fileWriter) close(ctx context.Context) ([]*ownFile, error) {
	var out []*ownFile
	for _, key := range w.order {
		files, err := w.writers[key].Close(ctx)
		if err != nil {
			w.abort()
			return nil, fmt.Errorf("write data file: %w", err)
		}
		for n, f := range files {
			w.names[slotKey{key, n}] = f.DataFile.FilePath()
			out = append(out, &ownFile{file: liveset.NewFile(f.DataFile), written: f})
			w.t.tx.addFile(f)
		}
		delete(w.writers, key)
	}
	return out, nil
}

func (w *fileWriter) abort() {
	for _, pw := range w.writers {
		pw.Abort()
	}
}

// writeLog writes the live rows of a log into own files. to says where rows went that had been shown, nil when none had.
func (t *TxTable) writeLog(ctx context.Context, log *rowLog, rows int32, dead *roaring.Bitmap) (files []*ownFile, to *moves, err error) {
	if liveRows(rows, dead) == 0 {
		return nil, &moves{from: map[string]*moved{log.path(): newMoved(int64(log.shown))}}, nil
	}
	w, err := t.newFileWriter(log.rowIDs != nil)
	if err != nil {
		return nil, nil, err
	}
	track := w.trackLog(log)
	t.tx.writes(1)
	defer t.tx.writes(-1)
	err = log.live(rows, dead, func(rec arrow.RecordBatch, ids []int64, first int32) error { return w.write(ctx, rec, ids, first) })
	if err != nil {
		w.abort()
		return nil, nil, fmt.Errorf("write data file: %w", err)
	}
	if files, err = w.close(ctx); err != nil || track == nil {
		return files, nil, err
	}
	to, err = track.movesTo(w.names)
	return files, to, err
}

// ownLocked takes over the files that a log has become.
func (t *TxTable) ownLocked(st *state, log *rowLog, files []*ownFile, moved *moves) {
	st.own = append(st.own, files...)
	t.ownSet, t.liveSet, t.memFile = nil, nil, nil
	if moved == nil || log.shown == 0 {
		return
	}
	if t.shown == nil {
		t.shown = map[string]*moves{}
	}
	t.shown[log.path()] = moved
}

// flushLocked puts the rows in memory into own files. The lock is held throughout: it is for the calls that need every
// row in a file.
func (t *TxTable) flushLocked(ctx context.Context) error {
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	if t.st.err != nil {
		return t.st.err
	}
	if liveRows(t.st.rows, t.st.dead) == 0 {
		return nil
	}
	own, moved, err := t.writeLog(ctx, t.st.log, t.st.rows, t.st.dead)
	if err != nil {
		return err // the rows are still in the log
	}
	t.ownLocked(t.st, t.st.log, own, moved)
	t.dropLogLocked()
	return nil
}

// dropLogLocked replaces the state's log by an empty one, after its rows went into a file. Savepoints that share the
// log keep their own prefix of it.
func (t *TxTable) dropLogLocked() {
	old := t.st.log
	t.st.log, t.st.rows, t.st.dead = newRowLog(t.keyed()), 0, nil
	t.ownSet, t.liveSet = nil, nil
	t.detachLog(old)
	old.release()
}

// detachLog gives the savepoints that share log copies of their prefixes.
func (t *TxTable) detachLog(log *rowLog) {
	copies := map[int32]*rowLog{}
	for _, m := range t.tx.marks {
		s := m.states[t]
		if s == nil || s == t.st || s.log != log {
			continue
		}
		p := copies[s.rows]
		if p == nil {
			p = log.prefix(s.rows)
			copies[s.rows] = p
		}
		s.log = p
	}
}

// waitSpillLocked waits for a flush that an Append started.
func (t *TxTable) waitSpillLocked(ctx context.Context) error {
	for t.spill != nil {
		done := t.spill.done
		t.mu.Unlock()
		select {
		case <-done:
			t.mu.Lock()
		case <-ctx.Done():
			t.mu.Lock()
			return ctx.Err()
		}
	}
	return t.st.err
}

// spillLocked writes the log to data files when it holds more than the memory limit. The lock is released while the
// file is written, so that other appenders go on; they wait when the next log is full too. Rows in memory are thus at
// most twice the limit and one batch per appender.
func (t *TxTable) spillLocked(ctx context.Context) error {
	limit := t.tx.w.opts.MemoryLimit
	for t.st.log.bytes() >= limit && t.spill != nil {
		if err := t.waitSpillLocked(ctx); err != nil {
			return err
		}
	}
	if t.st.log.bytes() < limit {
		return nil
	}
	st := t.st
	log, rows, dead := st.log, st.rows, st.dead
	sp := &spill{log: log, rows: rows, done: make(chan struct{})}
	sp.dead = func(r int32) bool { return dead != nil && dead.Contains(uint32(r)) }
	t.spill = sp
	st.log, st.rows, st.dead = newRowLog(t.keyed()), 0, nil
	t.detachLog(log)
	t.mu.Unlock()
	own, moved, err := t.writeLog(ctx, log, rows, dead)
	t.mu.Lock()
	t.spill = nil
	close(sp.done)
	if err != nil {
		st.err = err
		return err
	}
	t.ownLocked(st, log, own, moved)
	log.release()
	return nil
}
