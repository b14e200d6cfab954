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
	// PartitionRows bounds the rows of one side of a step that are held in memory while they are paired. It is part of
	// the order of a step (see the package comment): one value per warehouse. 0 is 4,194,304.
	PartitionRows int
	Logger        zerolog.Logger
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
		o.PartitionRows = 4 << 20
	}
	return &Reader{opts: o}
}
