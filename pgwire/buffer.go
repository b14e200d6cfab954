package pgwire

import "sync"

// bigBuffer is what a busy connection reads into and gathers output in; idle connections share the pool.
const bigBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new([bigBuffer]byte) }}

func takeBuffer() []byte { return buffers.Get().(*[bigBuffer]byte)[:] }

// giveBuffer returns a buffer of takeBuffer's; others are left to the collector.
func giveBuffer(b []byte) {
	if cap(b) == bigBuffer {
		buffers.Put((*[bigBuffer]byte)(b[:bigBuffer]))
	}
}
