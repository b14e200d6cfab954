package changelog

import (
	"sync"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// snapshotIndex keeps, per table, the map from snapshot id to snapshot of the metadata file last asked for: metadata
// finds a snapshot by a linear search, and a walk over n snapshots would be n².
type snapshotIndex struct {
	mu struct {
		sync.Mutex
		tables map[catalog.TableKey]indexed
	}
}

type indexed struct {
	location string
	byID     map[int64]*table.Snapshot
}

// maxIndexed bounds the tables kept; past it the index starts afresh.
const maxIndexed = 256

func (x *snapshotIndex) snapshots(key catalog.TableKey, location string, meta table.Metadata) map[int64]*table.Snapshot {
	x.mu.Lock()
	have, ok := x.mu.tables[key]
	x.mu.Unlock()
	if ok && have.location == location {
		return have.byID
	}
	list := meta.Snapshots()
	byID := make(map[int64]*table.Snapshot, len(list))
	for i := range list {
		byID[list[i].SnapshotID] = &list[i]
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.tables == nil || len(x.mu.tables) >= maxIndexed {
		x.mu.tables = make(map[catalog.TableKey]indexed)
	}
	x.mu.tables[key] = indexed{location, byID}
	return byID
}
