package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/warehouse"
)

// Retention is what VACUUM keeps of a table's past: the newest Snapshots snapshots, and all that are younger than Age. A table's own
// properties history.expire.min-snapshots-to-keep and history.expire.max-snapshot-age-ms stand above it. Snapshots that a branch or tag
// names, or that an open transaction reads, always stay.
type Retention struct {
	Snapshots int
	Age       time.Duration
	// Dropped is how long a dropped table can come back (skade.undrop) before maintenance removes its files.
	Dropped time.Duration
}

// DefaultRetention keeps a week, and 100 snapshots of tables that change less often.
var DefaultRetention = Retention{Snapshots: 100, Age: 7 * 24 * time.Hour, Dropped: 7 * 24 * time.Hour}

// minRetentionAge covers cuts that are taken while an expiry runs.
const minRetentionAge = time.Minute

// Properties of Iceberg's table specification.
const (
	propMinSnapshots   = "history.expire.min-snapshots-to-keep"
	propMaxSnapshotAge = "history.expire.max-snapshot-age-ms"
)

// maintainAttempts bounds how often a compaction that lost against writers is tried again.
const maintainAttempts = 3

// maintain compacts a table and lets go of snapshots that the retention no longer keeps.
func (gw *Gateway) maintain(ctx context.Context, ident table.Identifier) error {
	for n := 1; ; n++ {
		_, err := gw.warehouse.Compact(ctx, ident, warehouse.CompactOptions{})
		if err == nil {
			break
		}
		if n == maintainAttempts || !errors.Is(err, warehouse.ErrConflict) {
			return fmt.Errorf("compact: %w", err)
		}
	}
	state, err := gw.catalog.Cut().Table(ident)
	if err != nil {
		return err
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return err
	}
	keep := gw.retention.of(meta.Properties())
	pinned := gw.pinnedSnapshots(state.Key)
	if _, err := gw.warehouse.ExpireSnapshots(ctx, ident, warehouse.Retain{
		Min: keep.Snapshots, MaxAge: keep.Age, Pinned: func(id int64) bool { return pinned[id] },
	}); err != nil {
		return fmt.Errorf("expire snapshots: %w", err)
	}
	if _, err := gw.catalog.RemoveOldMetadata(ctx, ident); err != nil {
		return fmt.Errorf("remove old metadata: %w", err)
	}
	return nil
}

// of is the retention of a table with these properties. A value that is no number counts as absent.
func (r Retention) of(props iceberg.Properties) Retention {
	if n, err := strconv.Atoi(props[propMinSnapshots]); err == nil && n > 0 {
		r.Snapshots = n
	}
	if ms, err := strconv.ParseInt(props[propMaxSnapshotAge], 10, 64); err == nil && ms >= 0 && ms < int64(1<<62)/int64(time.Millisecond) {
		r.Age = time.Duration(ms) * time.Millisecond
	}
	r.Age = max(r.Age, minRetentionAge)
	return r
}

// pinnedSnapshots are the snapshots of a table that open transactions read.
func (gw *Gateway) pinnedSnapshots(key catalog.TableKey) map[int64]bool {
	pinned := map[int64]bool{}
	gw.mu.Lock()
	defer gw.mu.Unlock()
	for _, s := range gw.mu.sessions {
		for _, t := range s.pinned.Load().of(key) {
			if id, ok := t.SnapshotID(); ok {
				pinned[id] = true
			}
		}
	}
	return pinned
}
