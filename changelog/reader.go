package changelog

import (
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// Options opens a Reader. Catalog and Live are required.
type Options struct {
	Catalog *catalog.Catalog
	Live    *liveset.Cache
	// TempDir is where steps larger than a partition spill. Empty is the operating system's.
	TempDir string
	// Workers bounds the goroutines that decode files for one Result. 0 is GOMAXPROCS, at most 8.
	Workers int
	// BatchRows bounds the rows of a batch. 0 is 32,768.
	BatchRows int
	// TempLimit bounds what one step may spill, in bytes; beyond it reading fails with ErrTooLarge. 0 is 8 GiB.
	TempLimit int64
	// PartitionRows and PartitionBytes bound the rows of one side of a step, and the bytes of their values on both, that
	// are held in memory while they are paired; a step that has more is spilled and paired a partition at a time. They are part of the order
	// of a step (see the package comment): one value per warehouse. 0 is 1,048,576 rows and 64 MiB.
	PartitionRows  int
	PartitionBytes int64
	Logger         zerolog.Logger
}

// Reader reads the changes of tables. Safe for concurrent use.
type Reader struct {
	opts  Options
	hooks streamHooks
}

// streamHooks are set by tests.
type streamHooks struct {
	// subscribed runs between a stream's subscription and its look at the current state, woken when an event has come.
	subscribed, woken func()
}

// New returns a Reader. It starts no goroutine.
func New(o Options) *Reader {
	if o.Workers <= 0 {
		o.Workers = defaultWorkers()
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 32 << 10
	}
	if o.PartitionRows <= 0 {
		o.PartitionRows = 1 << 20
	}
	if o.PartitionBytes <= 0 {
		o.PartitionBytes = 64 << 20
	}
	if o.TempLimit <= 0 {
		o.TempLimit = 8 << 30
	}
	return &Reader{opts: o}
}
