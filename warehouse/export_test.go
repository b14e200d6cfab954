package warehouse

import "github.com/apache/arrow-go/v18/arrow"

// BufferedBytes are the bytes of rows and keys a table of a transaction holds in memory.
func BufferedBytes(t *TxTable) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.st.log.bytes()
	if t.spill != nil {
		n += t.spill.log.bytes()
	}
	return n
}

// RecordBytes is how the memory of a batch is counted.
func RecordBytes(rec arrow.RecordBatch) int64 { return recordBytes(rec) }
