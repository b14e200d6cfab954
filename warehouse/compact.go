package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// CompactOptions tunes Compact.
type CompactOptions struct {
	// SmallFileBytes: files below it are rewritten together. 0 is 32 MiB.
	SmallFileBytes int64
	// MinInputFiles: fewer small files than this in a partition are left alone. 0 is 8.
	MinInputFiles int
	// SuppressedRatio: a file with more than this share of its rows suppressed is rewritten. 0 is 0.2.
	SuppressedRatio float64
	// MaxDeleteFiles: with more position and equality delete files than this they are rewritten into one position delete
	// file per partition (v2) or deletion vectors (v3), also when no data file is. 0 is 16.
	MaxDeleteFiles int
	// MaxRows: one run rewrites about as many rows at most (one file may have more). 0 is 8 Mi rows. Run it again for the rest.
	MaxRows int64
	// Progress, when set, is told how many of how many rows are rewritten.
	Progress func(done, total int64)
}

// CompactResult says what Compact did.
type CompactResult struct {
	FilesRemoved, FilesAdded             int
	DeleteFilesRemoved, DeleteFilesAdded int
	Rows                                 int64           // rewritten
	Suppressed                           int64           // rows that the removed files held and no longer had
	More                                 bool            // there is more to rewrite than MaxRows
	Record                               *catalog.Record // nil when there was nothing to do
}

func (o CompactOptions) defaults() CompactOptions {
	if o.SmallFileBytes <= 0 {
		o.SmallFileBytes = 32 << 20
	}
	if o.MinInputFiles <= 0 {
		o.MinInputFiles = 8
	}
	if o.SuppressedRatio <= 0 {
		o.SuppressedRatio = 0.2
	}
	if o.MaxDeleteFiles <= 0 {
		o.MaxDeleteFiles = 16
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 8 << 20
	}
	return o
}

// compaction is one run of Compact.
type compaction struct {
	tableCommit
	start    *icetable.Snapshot // the snapshot that was compacted
	victims  []*liveset.LiveFile
	merge    bool // rewrite the delete files of the remaining files
	replaced []*liveset.DeleteFile
	own      []*ownFile // the new files, as in moves
	moves    *moves
	progress func(done, total int64)
	result   CompactResult
}

// Compact rewrites small files and files with many suppressed rows into sorted ones, and scattered delete files into
// few, as one replace snapshot that changes no row (L5). On v3 rows keep their _row_id and
// _last_updated_sequence_number. The new files carry the data sequence number of the snapshot they were read from, so
// that later equality deletes still reach them. Rows that concurrent commits delete or update meanwhile are carried over as suppressions of the new
// files, and the positions of waiting writers are translated. ErrConflict when something else happened to the files, such as a rollback.
func (w *Warehouse) Compact(ctx context.Context, ident icetable.Identifier, opts CompactOptions) (CompactResult, error) {
	if state, err := w.opts.Catalog.Cut().Table(ident); err == nil && state.Mounted() {
		return CompactResult{}, fmt.Errorf("%s %w", strings.Join(ident, "."), catalog.ErrMounted)
	}
	tx := w.Begin(ctx, TxOptions{ApplicationName: "compact"})
	c := &compaction{}
	err := c.run(ctx, tx, ident, opts.defaults())
	if err != nil && !errors.Is(err, catalog.ErrUnknownOutcome) {
		tx.extra = slices.Concat(tx.extra, c.paths, c.attempt, c.stale)
		return CompactResult{}, errors.Join(err, tx.Rollback())
	}
	if err == nil {
		w.removePaths(c.stale)
	}
	tx.done = true
	return c.result, err
}

func (c *compaction) run(ctx context.Context, tx *Tx, ident icetable.Identifier, opts CompactOptions) error {
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return err
	}
	if t.unwritable != nil {
		return t.unwritable
	}
	c.t, c.start, c.batch = t, t.baseMeta.CurrentSnapshot(), tx.w.opts.FS.NewBatch()
	if c.start == nil {
		return nil
	}
	c.progress = opts.Progress
	c.choose(opts)
	if len(c.victims) == 0 && !c.merge {
		return nil
	}
	if err := c.rewrite(ctx); err != nil {
		return fmt.Errorf("compact %v: %w", ident, err)
	}
	if err := c.batch.SyncLarge(ctx); err != nil {
		return fmt.Errorf("sync data files: %w", err)
	}
	c.result.Record, err = tx.w.opts.Catalog.Commit(ctx, &catalog.Request{
		TxID: tx.opts.TxID, ApplicationName: tx.opts.ApplicationName,
		Changes: []catalog.Change{catalog.UpdateTable{Key: t.key, Ident: t.ident, Build: c.build}},
	})
	if errors.Is(err, catalog.ErrConflict) && !errors.Is(err, ErrConflict) {
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// choose picks the files to rewrite.
func (c *compaction) choose(opts CompactOptions) {
	var rows int64
	small := map[string][]*liveset.LiveFile{}
	picked := map[string]bool{}
	pick := func(f *liveset.LiveFile) {
		if picked[f.File.Path] {
			return
		}
		if rows += f.File.Records; rows > opts.MaxRows && len(c.victims) > 1 {
			c.result.More = true
			return
		}
		picked[f.File.Path] = true
		c.victims = append(c.victims, f)
	}
	for f := range c.t.baseSet.Files() {
		gone := f.File.Records - f.Live()
		if gone > 0 && float64(gone) > opts.SuppressedRatio*float64(f.File.Records) {
			pick(f)
		}
		if f.File.Size < opts.SmallFileBytes {
			k := partitionKey(int32(f.File.SpecID), f.File.Data.Partition())
			small[k] = append(small[k], f)
		}
	}
	for f := range c.t.baseSet.Files() { // in the set's order, so that a run is reproducible
		k := partitionKey(int32(f.File.SpecID), f.File.Data.Partition())
		if f.File.Size < opts.SmallFileBytes && len(small[k]) >= opts.MinInputFiles {
			pick(f)
		}
	}
	scattered := 0
	for d := range c.t.baseSet.DeleteFiles() {
		if d.Kind != liveset.DeletionVector {
			scattered++
		}
	}
	c.merge = scattered > opts.MaxDeleteFiles || (scattered > 0 && len(c.victims) > 0)
}

// rewrite writes the victims' live rows into new files, and the suppressed rows of the others into new delete files.
func (c *compaction) rewrite(ctx context.Context) error {
	t := c.t
	c.snapshotID = newSnapshotID(t.baseMeta)
	w, err := t.newFileWriter(t.v3())
	if err != nil {
		return err
	}
	c.moves = newMoves(c.victims)
	slots := map[slotKey]uint16{}
	w.placed = c.placer(slots)
	var want int64
	for _, v := range c.victims {
		want += v.Live()
		c.result.Suppressed += v.File.Records - v.Live()
	}
	for i := range c.victims {
		if err := c.rewriteFile(ctx, w, i, want); err != nil {
			w.abort()
			return err
		}
	}
	if c.rows != want {
		w.abort()
		return fmt.Errorf("read %d rows, want %d", c.rows, want)
	}
	order := slices.Clone(w.order)
	if c.own, err = w.close(ctx); err != nil {
		return err
	}
	if err := c.nameSlots(order, slots); err != nil {
		return err
	}
	for _, o := range c.own {
		c.added = append(c.added, o.written.DataFile)
		c.batch.Add(o.written.Path)
		if o.written.KeyIndexPath != "" {
			c.batch.Add(o.written.KeyIndexPath)
		}
	}
	c.result.FilesAdded, c.result.FilesRemoved, c.result.Rows = len(c.added), len(c.victims), c.rows
	return c.rewriteDeletes()
}

// slotKey names a new file before it has a name: its partition and its number there.
type slotKey struct {
	partition string
	n         int
}

// placer notes where rows go. An origin is the victim's index and the row's position in it.
func (c *compaction) placer(slots map[slotKey]uint16) func(partition string, n int, first int64, origins []int64) {
	from := make([]*moved, len(c.victims))
	for i, v := range c.victims {
		from[i] = c.moves.from[v.File.Path]
	}
	return func(partition string, n int, first int64, origins []int64) {
		k := slotKey{partition, n}
		slot, ok := slots[k]
		if !ok {
			slot = uint16(min(len(slots), noSlot))
			slots[k] = slot
		}
		for i, o := range origins {
			f, pos := from[o>>32], uint32(o)
			f.slot[pos], f.pos[pos] = slot, uint32(first+int64(i))
		}
	}
}

// nameSlots gives the moves the names of the new files, which come by partition and number.
func (c *compaction) nameSlots(order []string, slots map[slotKey]uint16) error {
	if len(slots) != len(c.own) || len(slots) > noSlot {
		return fmt.Errorf("%d new files, rows went to %d", len(c.own), len(slots))
	}
	c.moves.files = make([]string, len(c.own))
	next := 0
	for _, partition := range order {
		for n := 0; ; n++ {
			slot, ok := slots[slotKey{partition, n}]
			if !ok {
				break
			}
			c.moves.files[slot] = c.own[next].file.Path
			next++
		}
	}
	return nil
}

// rewriteFile writes the live rows of the i-th victim.
func (c *compaction) rewriteFile(ctx context.Context, w *fileWriter, i int, total int64) error {
	t := c.t
	if c.victims[i].Live() == 0 {
		return nil
	}
	opts := liveset.ScanOptions{Files: c.victims[i : i+1], Meta: liveset.MetaColumns{Pos: true, RowID: t.v3(), LastUpdatedSeq: t.v3()}}
	for rec, err := range t.tx.w.opts.Live.Scan(ctx, t.Ref(), t.baseSet, t.schema, opts) {
		if err != nil {
			return err
		}
		wide, err := withOrigins(rec, t.schema.NumFields(), i)
		rec.Release()
		if err != nil {
			return err
		}
		c.rows += wide.NumRows()
		err = w.route(ctx, wide)
		wide.Release()
		if err != nil {
			return err
		}
		if c.progress != nil {
			c.progress(c.rows, total)
		}
	}
	return nil
}

// withOrigins moves the column of positions, which follows the table's n columns, to the end and makes origins of it.
func withOrigins(rec arrow.RecordBatch, n, victim int) (arrow.RecordBatch, error) {
	pos, ok := rec.Column(n).(*array.Int64)
	if !ok {
		return nil, fmt.Errorf("scan: position column is %s", rec.Column(n).DataType())
	}
	origins := make([]int64, pos.Len())
	for i := range origins {
		origins[i] = int64(victim)<<32 | pos.Value(i)
	}
	col := parquetio.LongArray(origins)
	defer col.Release()
	cols := slices.Concat(rec.Columns()[:n], rec.Columns()[n+1:], []arrow.Array{col})
	fields := slices.Concat(rec.Schema().Fields()[:n], rec.Schema().Fields()[n+1:], []arrow.Field{{Name: parquetio.OriginColumn, Type: arrow.PrimitiveTypes.Int64}})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows()), nil
}

// rewriteDeletes writes v2 position deletes for the files that stay, and the manifests.
func (c *compaction) rewriteDeletes() error {
	t := c.t
	if c.merge {
		victim := map[string]bool{}
		for _, v := range c.victims {
			victim[v.File.Path] = true
		}
		for f := range t.baseSet.Files() {
			if f.Suppressed != nil && !f.Suppressed.IsEmpty() && !victim[f.File.Path] {
				c.sup = append(c.sup, suppression{f.File, f.Suppressed})
			}
		}
		for d := range t.baseSet.DeleteFiles() {
			if d.Kind != liveset.DeletionVector {
				c.replaced = append(c.replaced, d)
			}
		}
		if err := c.writeDeletes(); err != nil {
			return err
		}
	}
	c.dataSeq = &c.start.SequenceNumber
	return c.writeManifests()
}
