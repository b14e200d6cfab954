package warehouse

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
)

// engineName and engineVersion are written into every snapshot's summary (Iceberg spec, "Snapshot Summary": engine
// fields).
const (
	engineName    = "skade-pg"
	engineVersion = "1"
)

// metrics counts what a snapshot adds and removes, in the terms of the spec's optional summary fields.
type metrics struct {
	addedDataFiles, removedDataFiles           int64
	addedRecords, removedRecords               int64
	addedDeleteFiles, removedDeleteFiles       int64
	addedPosDeleteFiles, removedPosDeleteFiles int64
	addedEqDeleteFiles, removedEqDeleteFiles   int64
	addedDVs, removedDVs                       int64
	addedPosDeletes, removedPosDeletes         int64
	addedEqDeletes, removedEqDeletes           int64
	addedSize, removedSize                     int64
}

func isDV(f iceberg.DataFile) bool { return f.FileFormat() == iceberg.PuffinFile }

func (m *metrics) add(f iceberg.DataFile) {
	m.addedSize += contentSize(f)
	switch f.ContentType() {
	case iceberg.EntryContentData:
		m.addedDataFiles++
		m.addedRecords += f.Count()
		return
	case iceberg.EntryContentEqDeletes:
		m.addedEqDeleteFiles++
		m.addedEqDeletes += f.Count()
	default:
		if isDV(f) {
			m.addedDVs++
		} else {
			m.addedPosDeleteFiles++
		}
		m.addedPosDeletes += f.Count()
	}
	m.addedDeleteFiles++
}

func (m *metrics) remove(f iceberg.DataFile) {
	m.removedSize += contentSize(f)
	switch f.ContentType() {
	case iceberg.EntryContentData:
		m.removedDataFiles++
		m.removedRecords += f.Count()
		return
	case iceberg.EntryContentEqDeletes:
		m.removedEqDeleteFiles++
		m.removedEqDeletes += f.Count()
	default:
		if isDV(f) {
			m.removedDVs++
		} else {
			m.removedPosDeleteFiles++
		}
		m.removedPosDeletes += f.Count()
	}
	m.removedDeleteFiles++
}

// contentSize is a deletion vector's own bytes, not those of the puffin file it shares with others.
func contentSize(f iceberg.DataFile) int64 {
	if n := f.ContentSizeInBytes(); n != nil {
		return *n
	}
	return f.FileSizeBytes()
}

func (m *metrics) properties() iceberg.Properties {
	p := iceberg.Properties{}
	set := func(key string, v int64) {
		if v > 0 {
			p[key] = strconv.FormatInt(v, 10)
		}
	}
	set("added-data-files", m.addedDataFiles)
	set("deleted-data-files", m.removedDataFiles)
	set("added-records", m.addedRecords)
	set("deleted-records", m.removedRecords)
	set("added-delete-files", m.addedDeleteFiles)
	set("removed-delete-files", m.removedDeleteFiles)
	set("added-position-delete-files", m.addedPosDeleteFiles)
	set("removed-position-delete-files", m.removedPosDeleteFiles)
	set("added-equality-delete-files", m.addedEqDeleteFiles)
	set("removed-equality-delete-files", m.removedEqDeleteFiles)
	set("added-dvs", m.addedDVs)
	set("removed-dvs", m.removedDVs)
	set("added-position-deletes", m.addedPosDeletes)
	set("removed-position-deletes", m.removedPosDeletes)
	set("added-equality-deletes", m.addedEqDeletes)
	set("removed-equality-deletes", m.removedEqDeletes)
	set("added-files-size", m.addedSize)
	set("removed-files-size", m.removedSize)
	return p
}

// summarize makes a snapshot's summary: the changes, and the totals on top of the parent's.
func summarize(op icetable.Operation, m *metrics, partitions map[string]struct{}, parent *icetable.Snapshot) *icetable.Summary {
	p := m.properties()
	if n := len(partitions); n > 0 {
		p["changed-partition-count"] = strconv.Itoa(n)
	}
	var prev iceberg.Properties
	if parent != nil && parent.Summary != nil {
		prev = parent.Summary.Properties
	}
	total := func(key string, delta int64) {
		var base int64
		if prev != nil {
			s, ok := prev[key]
			if !ok {
				return // unknown in the parent: a total made up from here on would be wrong
			}
			v, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return
			}
			base = v
		}
		if base+delta >= 0 {
			p[key] = strconv.FormatInt(base+delta, 10)
		}
	}
	total("total-data-files", m.addedDataFiles-m.removedDataFiles)
	total("total-records", m.addedRecords-m.removedRecords)
	total("total-delete-files", m.addedDeleteFiles-m.removedDeleteFiles)
	total("total-position-deletes", m.addedPosDeletes-m.removedPosDeletes)
	total("total-equality-deletes", m.addedEqDeletes-m.removedEqDeletes)
	total("total-files-size", m.addedSize-m.removedSize)
	p["engine-name"] = engineName
	p["engine-version"] = engineVersion
	return &icetable.Summary{Operation: op, Properties: p}
}

// partitionKey is a text that is equal exactly for equal partitions of one spec.
func partitionKey(specID int32, partition map[int]any) string {
	if len(partition) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", specID)
	for _, id := range slices.Sorted(maps.Keys(partition)) {
		fmt.Fprintf(&b, "|%d=%T:%v", id, partition[id], partition[id])
	}
	return b.String()
}
