package changelog

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// everyType is a schema with a column of each type, its identifier the first keys columns.
func everyType(keys int) *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	types := []iceberg.Type{p.Int64, p.String, p.Int32, p.Binary, p.UUID, p.Date, p.Time, p.Timestamp, p.TimestampTz, p.Bool,
		iceberg.DecimalTypeOf(20, 2), iceberg.FixedTypeOf(5), p.Float32, p.Float64,
		&iceberg.ListType{ElementID: 50, Element: p.Float64},
		&iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 51, Name: "a", Type: p.String}, {ID: 52, Name: "b", Type: p.Float32}}},
		&iceberg.MapType{KeyID: 53, KeyType: p.String, ValueID: 54, ValueType: iceberg.DecimalTypeOf(9, 1)}}
	var fields []iceberg.NestedField
	var ids []int
	for i, t := range types {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i), Type: t})
		if i < keys {
			ids = append(ids, i+1)
		}
	}
	return iceberg.NewSchemaWithIdentifiers(0, ids, fields...)
}

var (
	oddTexts  = []string{"", "a", "b\x00c", "a,b", "\x1f", "b\x00", "c", "\x01\x00\x00\x00a", "ab"}
	oddFloats = []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000123), 1.5, math.Inf(1)}
)

// appendOdd appends the n-th odd value of a column, NULL among them; few values make many rows equal.
func appendOdd(b array.Builder, n int) {
	if n%7 == 6 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(int64(n%5) << 33)
	case *array.Int32Builder:
		b.Append(int32(n%5) - 2)
	case *array.StringBuilder:
		b.Append(oddTexts[n%len(oddTexts)])
	case *array.BinaryBuilder:
		b.Append([]byte(oddTexts[n%len(oddTexts)]))
	case *array.Float64Builder:
		b.Append(oddFloats[n%len(oddFloats)])
	case *array.Float32Builder:
		b.Append(float32(oddFloats[n%len(oddFloats)]))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n % 3))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n % 3))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n % 3))
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(n%2), uint64(n%3)))
	case *array.FixedSizeBinaryBuilder:
		w := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth
		b.Append([]byte(strings.Repeat(string(rune('a'+n%3)), w)))
	case *array.MapBuilder:
		b.Append(true)
		for k := range n % 3 {
			b.KeyBuilder().(*array.StringBuilder).Append(oddTexts[k+1])
			appendOdd(b.ItemBuilder(), n)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range n % 3 {
			appendOdd(b.ValueBuilder(), n)
		}
	case *array.StructBuilder:
		b.Append(true)
		appendOdd(b.FieldBuilder(0), n)
		appendOdd(b.FieldBuilder(1), n/2)
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte{byte(n % 3)})
	default:
		panic(fmt.Sprintf("no odd value for %T", b))
	}
}

// textOf writes a value as row identity sees it.
func textOf(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return textOf(a.Storage(), i)
	case *array.Float32:
		return fmt.Sprintf("%x", floatBits(float64(a.Value(i))))
	case *array.Float64:
		return fmt.Sprintf("%x", floatBits(a.Value(i)))
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		var out []string
		for k := lo; k < hi; k++ {
			out = append(out, textOf(a.ListValues(), int(k)))
		}
		return "[" + strings.Join(out, ",") + "]"
	case *array.Struct:
		var out []string
		for f := range a.NumField() {
			out = append(out, textOf(a.Field(f), i))
		}
		return "(" + strings.Join(out, ",") + ")"
	}
	return fmt.Sprintf("%q", a.ValueStr(i))
}

func rowOf(rec arrow.RecordBatch, r int, cols []int) string {
	var out []string
	for _, c := range cols {
		out = append(out, textOf(rec.Column(c), r))
	}
	return strings.Join(out, "|")
}

// serialFold is Collapse in the plainest way: a multiset of texts per key. Its answer is a multiset of "DELETE row",
// "INSERT row" and "UPDATE row → row".
func serialFold(b *Batch) map[string]int {
	var all, key []int
	for i, f := range b.Columns.Table.Fields() {
		all = append(all, i)
		if slices.Contains(b.Kind.Identifier, f.ID) {
			key = append(key, i)
		}
	}
	if len(key) == 0 {
		key = all
	}
	byKey := map[string]map[string]int{}
	for _, rec := range b.Records {
		kinds := rec.Column(len(all)).(*array.String)
		for r := range int(rec.NumRows()) {
			k, sign := rowOf(rec, r, key), 1
			if kinds.Value(r) == Delete || kinds.Value(r) == UpdateBefore {
				sign = -1
			}
			if byKey[k] == nil {
				byKey[k] = map[string]int{}
			}
			byKey[k][rowOf(rec, r, all)] += sign
		}
	}
	out := map[string]int{}
	for _, rows := range byKey {
		var olds, news []string
		for row, n := range rows {
			for ; n < 0; n++ {
				olds = append(olds, row)
			}
			for ; n > 0; n-- {
				news = append(news, row)
			}
		}
		if len(olds) == 1 && len(news) == 1 && len(b.Kind.Identifier) > 0 {
			out["UPDATE "+olds[0]+" → "+news[0]]++
			continue
		}
		for _, row := range olds {
			out["DELETE "+row]++
		}
		for _, row := range news {
			out["INSERT "+row]++
		}
	}
	return out
}

// foldTexts are the rows of a folded batch, in order.
func foldTexts(t testing.TB, b *Batch) []string {
	t.Helper()
	var all []int
	for i := range b.Columns.Table.Fields() {
		all = append(all, i)
	}
	var out []string
	for _, rec := range b.Records {
		kinds, places := rec.Column(len(all)).(*array.String), rec.Column(len(all)+5).(*array.Int64)
		for r := range int(rec.NumRows()) {
			out = append(out, fmt.Sprint(kinds.Value(r), " ", rowOf(rec, r, all), " #", places.Value(r)))
		}
	}
	return out
}

// foldCounts turns the rows of a folded batch into serialFold's form.
func foldCounts(t testing.TB, texts []string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for i := 0; i < len(texts); i++ {
		text := texts[i][:strings.LastIndex(texts[i], " #")]
		kind, row, _ := strings.Cut(text, " ")
		if kind == UpdateBefore {
			i++
			after, ok := strings.CutPrefix(texts[i][:strings.LastIndex(texts[i], " #")], UpdateAfter+" ")
			require.True(t, ok, "an UPDATE_AFTER follows its UPDATE_BEFORE")
			kind, row = "UPDATE", row+" → "+after
		}
		out[kind+" "+row]++
	}
	return out
}

// randomChanges are n change rows. unique histories have at most one row a key at any time, as a table's have.
func randomChanges(rng *rand.Rand, sc *iceberg.Schema, n, values int, unique bool) *Batch {
	cols, err := describeColumns(sc, 2)
	if err != nil {
		panic(err)
	}
	b := &Batch{Columns: cols, Kind: cols.Kind}
	live := map[string][]int{} // key → the row's values
	var keys []string
	width, place := sc.NumFields(), int64(0)
	for done := 0; done < n; {
		size := 1 + rng.IntN(max(n/5, 2))
		rb := array.NewRecordBuilder(memory.DefaultAllocator, cols.Schema)
		add := func(kind string, vals []int) {
			for c, v := range vals {
				appendOdd(rb.Field(c), v)
			}
			rb.Field(width).(*array.StringBuilder).Append(kind)
			for c := width + 1; c < width+5; c++ {
				rb.Field(c).AppendEmptyValue()
			}
			rb.Field(width + 5).(*array.Int64Builder).Append(place)
			place++
			done++
		}
		for range size {
			vals := make([]int, width)
			for c := range vals {
				vals[c] = rng.IntN(values)
			}
			switch {
			case !unique:
				add([]string{Insert, Delete, UpdateBefore, UpdateAfter}[rng.IntN(4)], vals)
			case len(keys) > 0 && rng.IntN(3) > 0:
				k := keys[rng.IntN(len(keys))]
				old := live[k]
				switch {
				case old == nil: // it comes again, often as it was
					live[k] = vals
					copy(vals[:len(cols.Kind.Identifier)], []int{0})
					continue
				case rng.IntN(3) == 0:
					add(Delete, old)
					live[k] = nil
				default:
					copy(vals, old[:len(cols.Kind.Identifier)])
					if rng.IntN(3) == 0 {
						copy(vals, old)
					}
					add(UpdateBefore, old)
					add(UpdateAfter, vals)
					live[k] = vals
				}
			default:
				k := fmt.Sprint(vals[:len(cols.Kind.Identifier)])
				if live[k] == nil {
					add(Insert, vals)
					keys, live[k] = append(keys, k), vals
				}
			}
		}
		b.Records = append(b.Records, rb.NewRecordBatch())
		rb.Release()
	}
	return b
}

// TestCollapseAgainstSerial: on random changes of every type, with NULLs, NaNs, both zeros, separators in texts and
// duplicate keys, the parallel fold gives the serial one's answer, and the same rows in the same order with any number of
// workers and parts of any size (L3).
func TestCollapseAgainstSerial(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	defer func(n uint32) { partRows = n }(partRows)
	for round := range 25 {
		keys := rng.IntN(13)
		b := randomChanges(rng, everyType(keys), 1+rng.IntN(800), 1+rng.IntN(40), rng.IntN(2) == 0)
		want := serialFold(b)
		var first []string
		for _, workers := range []int{1, 2, 3} {
			partRows = []uint32{8192, 1, 37}[rng.IntN(3)]
			got, err := b.collapse(workers)
			require.NoError(t, err)
			texts := foldTexts(t, got)
			require.Equal(t, want, foldCounts(t, texts), "seed %d round %d, %d key columns, %d workers, parts of %d", seed, round, keys, workers, partRows)
			if workers == 1 {
				first = texts
			}
			require.Equal(t, first, texts, "seed %d round %d: the order depends on the workers", seed, round)
		}
	}
}

// TestCollapseKeepsOrder: rows come in the batch's order, an update where its old value was.
func TestCollapseKeepsOrder(t *testing.T) {
	b := updatesOf(300_000, 50_000, false)
	out, err := b.Collapse()
	require.NoError(t, err)
	require.EqualValues(t, 100_000, out.Rows())
	k := int64(0)
	for _, rec := range out.Records {
		ids := rec.Column(0).(*array.Int64)
		for r := range ids.Len() {
			require.Equal(t, benchKey(int(k/2), 0, 50_000), ids.Value(r))
			k++
		}
	}
}

// keyBatch is one commit's changes of a table whose key is the first columns; each row is a kind, then values.
func keyBatch(t *testing.T, keys int, types []iceberg.Type, rows ...[]any) *Batch {
	t.Helper()
	var fields []iceberg.NestedField
	var ids []int
	for i, typ := range types {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: fmt.Sprint("k", i), Type: typ})
		if i < keys {
			ids = append(ids, i+1)
		}
	}
	cols, err := describeColumns(iceberg.NewSchemaWithIdentifiers(0, ids, fields...), 2)
	require.NoError(t, err)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, cols.Schema)
	defer rb.Release()
	for _, row := range rows {
		for c, v := range row[1:] {
			switch v := v.(type) {
			case nil:
				rb.Field(c).AppendNull()
			case int:
				rb.Field(c).(*array.Int64Builder).Append(int64(v))
			case string:
				rb.Field(c).(*array.StringBuilder).Append(v)
			case float64:
				rb.Field(c).(*array.Float64Builder).Append(v)
			}
		}
		rb.Field(len(types)).(*array.StringBuilder).Append(row[0].(string))
		for c := len(types) + 1; c < len(types)+6; c++ {
			rb.Field(c).AppendEmptyValue()
		}
	}
	return &Batch{Columns: cols, Kind: cols.Kind, Records: []arrow.RecordBatch{rb.NewRecordBatch()}}
}

// TestKeysAreInjective: keys that a careless encoding confuses stay apart: separators inside texts, values that run into
// their neighbours, NULL and empty, numbers and their texts, NaN and both zeros. A removed row of one such key and an
// inserted row of the other are neither an update nor nothing.
func TestKeysAreInjective(t *testing.T) {
	text, long, double := iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.Float64
	zero := math.Copysign(0, -1)
	for name, c := range map[string]struct {
		types []iceberg.Type
		a, b  []any
	}{
		"texts run together":      {[]iceberg.Type{text, text}, []any{"a", "bc"}, []any{"ab", "c"}},
		"empty first or last":     {[]iceberg.Type{text, text}, []any{"", "a"}, []any{"a", ""}},
		"a separator inside":      {[]iceberg.Type{text, text}, []any{"a|b", "c"}, []any{"a", "b|c"}},
		"a zero byte inside":      {[]iceberg.Type{text, text}, []any{"a\x00", "b"}, []any{"a", "\x00b"}},
		"a length inside":         {[]iceberg.Type{text, text}, []any{"\x01\x01\x00\x00\x00", "a"}, []any{"", "\x01\x01\x00\x00\x00a"}},
		"NULL and empty":          {[]iceberg.Type{text, text}, []any{nil, "a"}, []any{"", "a"}},
		"NULL here or there":      {[]iceberg.Type{text, text}, []any{nil, ""}, []any{"", nil}},
		"NULL and a zero":         {[]iceberg.Type{long, text}, []any{nil, "a"}, []any{0, "a"}},
		"one NULL number":         {[]iceberg.Type{long}, []any{nil}, []any{0}},
		"a number and its text":   {[]iceberg.Type{long, text}, []any{1, "12"}, []any{11, "2"}},
		"a number in the text":    {[]iceberg.Type{text, long}, []any{"\x01", 1}, []any{"", 257}},
		"case and trailing space": {[]iceberg.Type{text}, []any{"a"}, []any{"a "}},
		"both zeros":              {[]iceberg.Type{double}, []any{0.0}, []any{zero}},
		"NaN and NULL":            {[]iceberg.Type{double}, []any{math.NaN()}, []any{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			types := append(append([]iceberg.Type(nil), c.types...), long)
			row := func(kind string, key []any, v int) []any { return append(append([]any{kind}, key...), v) }
			for _, rows := range [][][]any{
				{row(Delete, c.a, 1), row(Insert, c.b, 1)},
				{row(Insert, c.a, 1), row(Delete, c.b, 1)},
				{row(Delete, c.a, 1), row(Insert, c.b, 2)},
			} {
				for _, keys := range []int{len(c.types), 0} {
					out, err := keyBatch(t, keys, types, rows...).Collapse()
					require.NoError(t, err)
					require.EqualValues(t, 2, out.Rows())
					for _, r := range foldTexts(t, out) {
						require.False(t, strings.HasPrefix(r, "UPDATE"), r)
					}
				}
			}
			out, err := keyBatch(t, len(c.types), types, row(Delete, c.a, 1), row(Insert, c.a, 2), row(Delete, c.b, 1), row(Insert, c.b, 1)).Collapse()
			require.NoError(t, err)
			require.EqualValues(t, 2, out.Rows(), "one update; the other key is as it was")
		})
	}
}

// TestCollapseAllocates little: what it allocates grows with bytes, not with a piece for each row, whatever the key.
func TestCollapseAllocates(t *testing.T) {
	const n = 200_000
	for _, text := range []bool{false, true} {
		b := updatesOf(n, n/4, text)
		per := testing.AllocsPerRun(2, func() {
			if _, err := b.collapse(1); err != nil {
				t.Fatal(err)
			}
		}) / n
		require.Less(t, per, 0.02, "allocations a row, text key %t", text)
	}
	// The count can fail: formatting a key is an allocation a row.
	b := updatesOf(n/10, n/40, true)
	require.Greater(t, testing.AllocsPerRun(1, func() { serialFold(b) })/(n/10), 1.0)
}

// TestCollapseUsesCores: with two workers the cores work side by side; with one they do not. The collector rests
// meanwhile: it would be a second worker.
func TestCollapseUsesCores(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one core")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	b := updatesOf(600_000, 75_000, false)
	ratio := func(fn func()) float64 {
		cpu, wall := cpuTime(), time.Now()
		fn()
		return float64(cpuTime()-cpu) / float64(time.Since(wall))
	}
	collapse := func(workers int) float64 {
		return ratio(func() {
			_, err := b.collapse(workers)
			require.NoError(t, err)
		})
	}
	// What two goroutines that only count get on this machine now: on a busy one it is less than two.
	spin := func() float64 {
		return ratio(func() {
			_ = inParallel(context.Background(), 2, 2, func(_, _ int) error {
				x := uint64(1)
				for range 15_000_000 {
					x = mix(x, 3)
				}
				runtime.KeepAlive(x)
				return nil
			})
		})
	}
	best, ok := 0.0, false
	for try := 0; try < 40 && !ok; try++ {
		can := spin()
		got := collapse(2)
		can = min(can, spin())
		best, ok = max(best, got), got >= min(1.3, 0.85*can)
	}
	require.True(t, ok, "CPU/wall of a parallel collapse is %.2f at best", best)
	t.Logf("CPU/wall %.2f", best)
	for range 3 {
		require.Less(t, collapse(1), 1.3, "one worker must not pass the check")
	}
}
