package cli

import (
	"os"
	"runtime/debug"
)

// heapShares divides --heap-limit: what the caches may hold, and what a table of a transaction keeps in memory before it goes to files. While
// those are sorted and written as much again arrives, and sorting copies it. Zeros are the packages' own defaults.
type heapShares struct {
	files int64 // liveset: footers, bitmaps, key indexes, pages
	rows  int64 // lookup: found rows
	write int64 // warehouse: rows being written
}

const (
	minHeapLimit = 16 << 20
	maxWriteRows = 64 << 20
)

func shareHeap(limit int64) (heapShares, error) {
	switch {
	case limit == 0:
		return heapShares{}, nil
	case limit < minHeapLimit:
		return heapShares{}, usagef("heap-limit must be at least 16MB")
	}
	return heapShares{files: limit * 4 / 10, rows: limit / 10, write: min(limit/12, maxWriteRows)}, nil
}

// limitHeap tells Go's collector the limit, unless GOMEMLIMIT does.
func limitHeap(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
