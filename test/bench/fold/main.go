package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/changelog"
)

const recordRows = 32 << 10

func main() {
	rows := flag.Int("rows", 10_000_000, "change rows")
	text := flag.Bool("text", false, "keys are texts")
	flag.Parse()
	b := changes(*rows, *rows/8, *text)
	cores := runtime.GOMAXPROCS(0)
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var a answer
		runtime.GC()
		begin, used := time.Now(), cpu()
		switch in.Text() {
		case "serial":
			a = serial(b, *text)
		case "one":
			runtime.GOMAXPROCS(1)
			a = collapse(b, begin, used)
			runtime.GOMAXPROCS(cores)
		default:
			a = collapse(b, begin, used)
		}
		fmt.Println(a.took.Nanoseconds(), a.cpu.Nanoseconds(), a.keys, a.olds, a.news, a.oldSum, a.newSum, a.min, a.max)
	}
}

// cpu is what the process has used of its cores.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fmt.Fprintln(os.Stderr, "fold:", err)
		os.Exit(1)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// answer is the aggregate that the peers compute, too.
type answer struct {
	took, cpu      time.Duration
	keys           int64
	olds, news     int64
	oldSum, newSum int64
	min, max       string
}

func (a *answer) key(k string, first bool) {
	if first {
		a.keys++
	}
	// Numbers compare by length first; texts here are of one length.
	less := func(x, y string) bool { return len(x) < len(y) || len(x) == len(y) && x < y }
	if a.min == "" || less(k, a.min) {
		a.min = k
	}
	if less(a.max, k) {
		a.max = k
	}
}

// changes are n rows of updates: key u mod keys goes from u/keys to the next value, each round in an order of its own.
func changes(n, keys int, text bool) *changelog.Batch {
	id := iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}
	arrowID := arrow.DataType(arrow.PrimitiveTypes.Int64)
	if text {
		id.Type, arrowID = iceberg.PrimitiveTypes.String, arrow.BinaryTypes.String
	}
	long := arrow.PrimitiveTypes.Int64
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrowID, Nullable: true}, {Name: "v", Type: long, Nullable: true},
		{Name: changelog.ColChangeType, Type: arrow.BinaryTypes.String}, {Name: changelog.ColChangeOrdinal, Type: arrow.PrimitiveTypes.Int32},
		{Name: changelog.ColCommitSnapshot, Type: long}, {Name: changelog.ColCommitSeq, Type: long},
		{Name: changelog.ColCommitTimestamp, Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: changelog.ColChangeRow, Type: long}}, nil)
	kind := changelog.PrimaryKey(1)
	b := &changelog.Batch{Kind: kind, Columns: &changelog.Columns{Schema: sc, Kind: kind, FormatVersion: 2,
		Table: iceberg.NewSchemaWithIdentifiers(0, []int{1}, id, iceberg.NestedField{ID: 2, Name: "v", Type: iceberg.PrimitiveTypes.Int64})}}
	for lo := 0; lo < n; lo += recordRows {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := lo; i < min(lo+recordRows, n); i++ {
			u := i / 2
			k := int64((u%keys*7_919+u/keys*104_729)%keys) * 1_000_003
			if text {
				rb.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("%012d", k))
			} else {
				rb.Field(0).(*array.Int64Builder).Append(k)
			}
			rb.Field(1).(*array.Int64Builder).Append(int64(u/keys + i&1))
			rb.Field(2).(*array.StringBuilder).Append([]string{changelog.UpdateBefore, changelog.UpdateAfter}[i&1])
			rb.Field(3).(*array.Int32Builder).Append(0)
			rb.Field(4).(*array.Int64Builder).Append(int64(u / keys))
			rb.Field(5).(*array.Int64Builder).Append(int64(u / keys))
			rb.Field(6).(*array.TimestampBuilder).Append(arrow.Timestamp(u / keys))
			rb.Field(7).(*array.Int64Builder).Append(int64(i))
		}
		b.Records = append(b.Records, rb.NewRecordBatch())
		rb.Release()
	}
	return b
}

// collapse folds by the library; what is timed is the rows of the answer in memory, not their aggregate.
func collapse(b *changelog.Batch, begin time.Time, used time.Duration) (a answer) {
	out, err := b.Collapse()
	a.took, a.cpu = time.Since(begin), cpu()-used
	if err != nil {
		fmt.Fprintln(os.Stderr, "fold:", err)
		os.Exit(1)
	}
	for _, rec := range out.Records {
		kinds, vs := rec.Column(2).(*array.String), rec.Column(1).(*array.Int64)
		for r := range int(rec.NumRows()) {
			k := kinds.Value(r)
			if k == changelog.Delete || k == changelog.UpdateBefore {
				a.olds, a.oldSum = a.olds+1, a.oldSum+vs.Value(r)
			} else {
				a.news, a.newSum = a.news+1, a.newSum+vs.Value(r)
			}
			a.key(rec.Column(0).ValueStr(r), k != changelog.UpdateAfter)
		}
	}
	return a
}

// state is what is known of a key: its value at the window's begin and end, where it has one.
type state struct {
	old, new       int64
	hasOld, hasNew bool
}

// serial folds with a map of keys: the first value taken away, the last value brought.
func serial(b *changelog.Batch, text bool) (a answer) {
	if text {
		return fold(b, func(rec arrow.RecordBatch) func(int) string { return rec.Column(0).(*array.String).Value }, func(k string) string { return k })
	}
	return fold(b, func(rec arrow.RecordBatch) func(int) int64 { return rec.Column(0).(*array.Int64).Value }, func(k int64) string { return fmt.Sprint(k) })
}

func fold[K comparable](b *changelog.Batch, keysOf func(arrow.RecordBatch) func(int) K, print func(K) string) (a answer) {
	begin := time.Now()
	states := map[K]state{}
	for _, rec := range b.Records {
		key, kinds, vs := keysOf(rec), rec.Column(2).(*array.String), rec.Column(1).(*array.Int64)
		for r := range int(rec.NumRows()) {
			s, known := states[key(r)]
			if k := kinds.Value(r); k == changelog.Delete || k == changelog.UpdateBefore {
				if !known {
					s.old, s.hasOld = vs.Value(r), true
				}
				s.hasNew = false
			} else {
				s.new, s.hasNew = vs.Value(r), true
			}
			states[key(r)] = s
		}
	}
	a.took = time.Since(begin)
	for k, s := range states {
		if s.hasOld == s.hasNew && (!s.hasOld || s.old == s.new) {
			continue
		}
		if s.hasOld {
			a.olds, a.oldSum = a.olds+1, a.oldSum+s.old
		}
		if s.hasNew {
			a.news, a.newSum = a.news+1, a.newSum+s.new
		}
		a.key(print(k), true)
	}
	return a
}
