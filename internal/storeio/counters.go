package storeio

import "sync/atomic"

// Counters count what an FS asked of the operating system since it was made. They only grow.
type Counters struct {
	// Opens counts open calls for reading, Reads the read calls and Bytes the bytes they returned.
	Opens, Reads, Bytes atomic.Int64
	// Creates counts new files, Written their bytes, Fsyncs the fsync calls of files and directories.
	Creates, Written, Fsyncs atomic.Int64
}

// Counts is a reading of Counters.
type Counts struct{ Opens, Reads, Bytes, Creates, Written, Fsyncs int64 }

// Snapshot reads the counters, each on its own.
func (c *Counters) Snapshot() Counts {
	return Counts{
		Opens: c.Opens.Load(), Reads: c.Reads.Load(), Bytes: c.Bytes.Load(),
		Creates: c.Creates.Load(), Written: c.Written.Load(), Fsyncs: c.Fsyncs.Load(),
	}
}

// Sub returns a - b, field by field.
func (a Counts) Sub(b Counts) Counts {
	return Counts{a.Opens - b.Opens, a.Reads - b.Reads, a.Bytes - b.Bytes, a.Creates - b.Creates, a.Written - b.Written, a.Fsyncs - b.Fsyncs}
}
