package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/warehouse"
)

// Retention is what maintenance keeps of a table's past: the newest Snapshots snapshots, and all that are younger than Age. A table's own
// properties history.expire.min-snapshots-to-keep and history.expire.max-snapshot-age-ms stand above it. Snapshots that a branch or tag
// names, or that an open transaction reads, always stay.
type Retention struct {
	Snapshots int
	Age       time.Duration
	// Dropped is how long a dropped table can come back (skade.undrop) before maintenance removes its files.
	Dropped time.Duration
	// Log is how long commits stay in the log; 0 keeps them. What durable feeds have not acknowledged, and what open transactions read, stays.
	Log time.Duration
}

// DefaultRetention keeps a week, 100 snapshots of tables that change less often, and the log of a month.
var DefaultRetention = Retention{Snapshots: 100, Age: 7 * 24 * time.Hour, Dropped: 7 * 24 * time.Hour, Log: 30 * 24 * time.Hour}

// minRetentionAge covers cuts that are taken while an expiry runs.
const minRetentionAge = time.Minute

// orphanAge is the age from which a file that nothing names is an orphan: longer than any transaction takes.
const orphanAge = 72 * time.Hour

// Properties of Iceberg's table specification.
const (
	propMinSnapshots   = "history.expire.min-snapshots-to-keep"
	propMaxSnapshotAge = "history.expire.max-snapshot-age-ms"
	propMaxRefAge      = "history.expire.max-ref-age-ms"
)

// maintainAttempts bounds how often a rewrite that lost against other commits is tried again.
const maintainAttempts = 3

// maintainRounds bounds the rewrites of one run: each takes a part of a large table.
const maintainRounds = 1000

// maintenance is one run over one table.
type maintenance struct {
	gw       *Gateway
	ident    table.Identifier
	key      catalog.TableKey
	full     bool // VACUUM FULL: every suppressed row and every small file
	gentle   bool // in the background: only what is worth it
	progress *vacuumProgress
	report   maintenanceReport
}

// maintenanceReport is what VACUUM (VERBOSE) tells.
type maintenanceReport struct {
	filesRemoved, filesAdded         int
	deletesRemoved, deletesAdded     int
	rows, suppressed                 int64
	manifestsRemoved, manifestsAdded int
	snapshots, refs, expiredFiles    int
	metadataFiles, orphans           int
}

func (r *maintenanceReport) String() string {
	return fmt.Sprintf("data files: %d rewritten into %d (%d rows, %d suppressed rows removed)\ndelete files: %d removed, %d added\n"+
		"manifests: %d rewritten into %d\nsnapshots: %d expired, and %d branches and tags; %d files were theirs alone\n"+
		"removed: %d old metadata files, %d orphan files",
		r.filesRemoved, r.filesAdded, r.rows, r.suppressed, r.deletesRemoved, r.deletesAdded,
		r.manifestsRemoved, r.manifestsAdded, r.snapshots, r.refs, r.expiredFiles, r.metadataFiles, r.orphans)
}

// run compacts the table, joins its manifests, and lets go of what the retention no longer keeps. One run at a time is on a table.
func (m *maintenance) run(ctx context.Context) error {
	state, err := m.gw.catalog.Cut().Table(m.ident)
	if err != nil {
		return err
	}
	m.key = state.Key
	m.progress.phase("compacting files")
	if err := m.compact(ctx); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	m.progress.phase("rewriting manifests")
	err = m.again(func() error {
		res, err := m.gw.warehouse.RewriteManifests(ctx, m.ident)
		m.report.manifestsRemoved += res.Removed
		m.report.manifestsAdded += res.Added
		return err
	})
	if err != nil && !errors.Is(err, warehouse.ErrConflict) { // writers rewrite them too: the next run finds fewer
		return fmt.Errorf("rewrite manifests: %w", err)
	}
	m.progress.phase("expiring snapshots")
	if err := m.expire(ctx); err != nil {
		return fmt.Errorf("expire snapshots: %w", err)
	}
	m.progress.phase("removing files")
	if m.report.metadataFiles, err = m.gw.catalog.RemoveOldMetadata(ctx, m.ident); err != nil {
		return fmt.Errorf("remove old metadata: %w", err)
	}
	if m.gentle {
		return nil
	}
	if m.report.orphans, err = m.gw.warehouse.RemoveOrphans(ctx, m.ident, orphanAge); err != nil {
		return fmt.Errorf("remove orphan files: %w", err)
	}
	return nil
}

// again repeats what lost against other commits.
func (m *maintenance) again(f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || n == maintainAttempts || !errors.Is(err, warehouse.ErrConflict) {
			return err
		}
	}
}

func (m *maintenance) compact(ctx context.Context) error {
	opts := warehouse.CompactOptions{Progress: m.progress.rows}
	switch {
	case m.full:
		opts.MinInputFiles, opts.SuppressedRatio, opts.MaxDeleteFiles = 2, 1e-9, 1
	case m.gentle:
		opts.MinInputFiles, opts.MaxRows = 16, 2<<20
	}
	for range maintainRounds {
		var res warehouse.CompactResult
		err := m.again(func() (err error) {
			res, err = m.gw.warehouse.Compact(ctx, m.ident, opts)
			return err
		})
		if err != nil {
			return err
		}
		r := &m.report
		r.filesRemoved, r.filesAdded = r.filesRemoved+res.FilesRemoved, r.filesAdded+res.FilesAdded
		r.deletesRemoved, r.deletesAdded = r.deletesRemoved+res.DeleteFilesRemoved, r.deletesAdded+res.DeleteFilesAdded
		r.rows, r.suppressed = r.rows+res.Rows, r.suppressed+res.Suppressed
		if !res.More {
			return nil
		}
	}
	return nil
}

func (m *maintenance) expire(ctx context.Context) error {
	state, err := m.gw.catalog.Cut().Table(m.ident)
	if err != nil {
		return err
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return err
	}
	keep := m.gw.retention.of(meta.Properties())
	pinned := m.gw.pinnedSnapshots(state.Key)
	feeds, err := m.gw.feedPins(ctx, state.Key)
	if err != nil {
		return err
	}
	for _, p := range feeds {
		if !p.late {
			maps.Copy(pinned, p.snapshots)
		}
	}
	maxRefAge, _ := millis(meta.Properties(), propMaxRefAge)
	res, err := m.gw.warehouse.ExpireSnapshots(ctx, m.ident, warehouse.Retain{
		Min: keep.Snapshots, MaxAge: keep.Age, MaxRefAge: maxRefAge,
		Pinned: func(id int64) bool { return pinned[id] },
		Before: func(ctx context.Context, gone []int64) error { return m.gw.loseFeeds(ctx, feeds, gone) },
		Later:  func(rec *catalog.Record, paths []string) { m.gw.upkeep.later(rec.Seq, paths) },
	})
	m.report.snapshots, m.report.refs, m.report.expiredFiles = res.Snapshots, res.Refs, res.FilesRemoved
	return err
}

// of is the retention of a table with these properties. A value that is no number counts as absent.
func (r Retention) of(props iceberg.Properties) Retention {
	if n, err := strconv.Atoi(props[propMinSnapshots]); err == nil && n > 0 {
		r.Snapshots = n
	}
	if d, ok := millis(props, propMaxSnapshotAge); ok {
		r.Age = d
	}
	r.Age = max(r.Age, minRetentionAge)
	return r
}

// millis reads a property of milliseconds; false when it is absent or no sensible number.
func millis(props iceberg.Properties, key string) (time.Duration, bool) {
	ms, err := strconv.ParseInt(props[key], 10, 64)
	if err != nil || ms < 0 || ms >= int64(1<<62)/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}
