package changelog

import (
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

var benchRows = flag.Int("bench.rows", 10_000_000, "rows of BenchmarkCollapse")

// updatesOf is the batch of n change rows that n/2 updates make: key u mod keys goes from value u/keys to the next one,
// in n/2/keys rounds, each in an order of its own. text makes the key a string of twelve digits.
func updatesOf(n, keys int, text bool) *Batch {
	sc := iceberg.NewSchemaWithIdentifiers(0, []int{1},
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "v", Type: iceberg.PrimitiveTypes.Int64})
	if text {
		sc = iceberg.NewSchemaWithIdentifiers(0, []int{1},
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.String, Required: true},
			iceberg.NestedField{ID: 2, Name: "v", Type: iceberg.PrimitiveTypes.Int64})
	}
	cols, err := describeColumns(sc, 2)
	if err != nil {
		panic(err)
	}
	b := &Batch{Columns: cols, Kind: cols.Kind}
	const rows = 32 << 10
	em := newEmitter(cols, rows, func(rec arrow.RecordBatch) error {
		b.Records = append(b.Records, rec)
		return nil
	})
	snap := int64(1)
	for lo := 0; lo < n; lo += rows {
		m := min(rows, n-lo)
		ids, vs := make([]int64, m), make([]int64, m)
		for i := range m {
			u := (lo + i) / 2
			round, k := u/keys, u%keys
			ids[i] = benchKey(k, round, keys)
			vs[i] = int64(round + i&1)
		}
		snap++
		em.begin(&step{new: &snap, seq: uint64(snap)}, int64(m))
		var id arrow.Array = int64Array(arrow.PrimitiveTypes.Int64, ids)
		if text {
			sb := array.NewStringBuilder(memory.DefaultAllocator)
			sb.Reserve(m)
			for _, x := range ids {
				sb.Append(fmt.Sprintf("%012d", x))
			}
			id = sb.NewArray()
		}
		if err := em.emit([]arrow.Array{id, int64Array(arrow.PrimitiveTypes.Int64, vs)}, em.mixedKinds(alternating(m)), m, 0, nil, nil); err != nil {
			panic(err)
		}
	}
	return b
}

func alternating(n int) []changeKind {
	out := make([]changeKind, n)
	for i := range out {
		out[i] = kindBefore + changeKind(i&1)
	}
	return out
}

// benchKey is the k-th key of a round; every round has all keys, in another order.
func benchKey(k, round, keys int) int64 {
	return int64((k*7_919+round*104_729)%keys) * 1_000_003
}

// cpuTime is what the process has used of its cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkCollapse(b *testing.B) {
	n := *benchRows
	for _, text := range []bool{false, true} {
		for _, rounds := range []int{1, 4} {
			batch := updatesOf(n, n/2/rounds, text)
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("text=%t/rounds=%d/workers=%d", text, rounds, workers), func(b *testing.B) {
					b.ReportAllocs()
					cpu := cpuTime()
					for range b.N {
						out, err := batch.collapse(workers)
						require.NoError(b, err)
						require.EqualValues(b, n/rounds, out.Rows())
					}
					b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(n)/float64(b.N), "cpu-ns/row")
					b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				})
			}
		}
	}
}
