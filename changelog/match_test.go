package changelog

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// sample columns: an integer key, text with separators and NULLs, doubles with NaN and both zeros, a list, a decimal.
func sampleColumns(rng *rand.Rand, n, keys int, unique bool) []arrow.Array {
	mem := memory.DefaultAllocator
	ids, text := array.NewInt64Builder(mem), array.NewStringBuilder(mem)
	f := array.NewFloat64Builder(mem)
	list := array.NewListBuilder(mem, arrow.PrimitiveTypes.Float32)
	dec := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 20, Scale: 2})
	flag := array.NewBooleanBuilder(mem)
	perm := rng.Perm(max(keys, n))
	words := []string{"", "a", "b\x00c", "a,b", "\x1f", "b\x00", "c"}
	floats := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000123), 1.5, math.Inf(1)}
	for r := range n {
		k := int64(rng.IntN(keys))
		if unique {
			k = int64(perm[r])
		}
		ids.Append(k)
		if w := rng.IntN(len(words) + 1); w < len(words) {
			text.Append(words[w])
		} else {
			text.AppendNull()
		}
		f.Append(floats[rng.IntN(len(floats))])
		if rng.IntN(4) == 0 {
			list.AppendNull()
		} else {
			list.Append(true)
			for range rng.IntN(2) {
				list.ValueBuilder().(*array.Float32Builder).Append(float32(floats[rng.IntN(3)]))
			}
		}
		dec.AppendNull()
		flag.Append(rng.IntN(2) == 0)
	}
	return []arrow.Array{ids.NewArray(), text.NewArray(), f.NewArray(), list.NewArray(), dec.NewArray(), flag.NewArray()}
}

// canon writes a row as row identity sees it.
func canon(cols []arrow.Array, r int) string {
	s := ""
	for _, c := range cols {
		if c.IsNull(r) {
			s += "N|"
			continue
		}
		switch c := c.(type) {
		case *array.Float64:
			s += fmt.Sprintf("%x|", floatBits(c.Value(r)))
		case *array.List:
			lo, hi := c.ValueOffsets(r)
			for k := lo; k < hi; k++ {
				s += fmt.Sprintf("%x,", floatBits(float64(c.ListValues().(*array.Float32).Value(int(k)))))
			}
			s += "|"
		default:
			s += fmt.Sprintf("%q|", c.ValueStr(r))
		}
	}
	return s
}

// TestMatchAgainstModel: what is left after matching is the multiset difference of the sides, no identical rows are left
// on both, and pairs are what the rules say (L1).
func TestMatchAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 300 {
		n := 1 + rng.IntN(60)
		dels := rng.IntN(n + 1)
		keyed := rng.IntN(3) > 0
		cols := sampleColumns(rng, n, 1+rng.IntN(12), false)
		if rng.IntN(3) == 0 {
			// Sides sorted by a unique key take the merge.
			cols = sortedSides(rng, n, dels)
		}
		withIDs := rng.IntN(2) == 0
		a := sampleArena(t, cols, dels)
		var rowIDs *array.Int64
		if withIDs {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			side := [][]int{rng.Perm(n), rng.Perm(n)}
			for r := range n {
				if rng.IntN(3) == 0 {
					b.AppendNull()
				} else if r < dels {
					b.Append(int64(side[0][r]))
				} else {
					b.Append(int64(side[1][r]))
				}
			}
			rowIDs = b.NewArray().(*array.Int64)
			a.rowID = sampleArena(t, []arrow.Array{rowIDs}, dels).cols[0]
			a.hasID = func(ref uint32) bool { return rowIDs.IsValid(int(a.number(ref))) }
		}
		var key []int
		if keyed {
			key = []int{0}
			if rng.IntN(2) == 0 {
				key = []int{0, 1}
			}
		}
		require.NoError(t, a.match(context.Background(), key, []int{0, 1, 2, 3, 4, 5}))
		checkMatch(t, a, cols, dels, key, rowIDs, fmt.Sprintf("seed %d round %d", seed, round))
	}
}

// sampleArena holds the first dels rows as removed ones, in chunks of several sizes.
func sampleArena(t testing.TB, cols []arrow.Array, dels int) *arena {
	t.Helper()
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: fmt.Sprint(i), Type: c.DataType(), Nullable: true}
	}
	all := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(cols[0].Len()))
	left, err := rechunk([]arrow.RecordBatch{all.NewSlice(0, int64(dels))})
	require.NoError(t, err)
	a, err := newArena(append(left, all.NewSlice(int64(dels), all.NumRows())), len(left), 2)
	require.NoError(t, err)
	return a
}

func sortedSides(rng *rand.Rand, n, dels int) []arrow.Array {
	cols := sampleColumns(rng, n, 4, false)
	b := array.NewInt64Builder(memory.DefaultAllocator)
	k := int64(0)
	for r := range n {
		if r == dels {
			k = 0
		}
		k += 1 + int64(rng.IntN(2))
		b.Append(k)
	}
	cols[0] = b.NewArray()
	return cols
}

func checkMatch(t *testing.T, a *arena, cols []arrow.Array, dels int, key []int, rowIDs *array.Int64, msg string) {
	t.Helper()
	want, got := map[string]int{}, map[string]int{}
	leftDel, leftIns := map[string]int{}, map[string]int{}
	keyDel, keyIns := map[string]int{}, map[string]int{}
	pick := func(r int) string {
		var k []arrow.Array
		for _, c := range key {
			k = append(k, cols[c])
		}
		return canon(k, r)
	}
	for r := range int(a.n) {
		row, sign := canon(cols, r), 1
		if r < dels {
			sign = -1
		}
		want[row] += sign
		p := a.partner[r]
		if p == cancelled {
			continue
		}
		got[row] += sign
		if p == 0 {
			if sign < 0 {
				leftDel[row]++
				keyDel[pick(r)]++
			} else {
				leftIns[row]++
				keyIns[pick(r)]++
			}
			continue
		}
		o := int(a.number(p - 1))
		require.Equal(t, r, int(a.number(a.partner[o]-1)), msg)
		require.NotEqual(t, r < dels, o < dels, msg)
		require.NotEqual(t, row, canon(cols, o), msg)
		sameID := rowIDs != nil && rowIDs.IsValid(r) && rowIDs.IsValid(o) && rowIDs.Value(r) == rowIDs.Value(o)
		require.True(t, sameID || len(key) > 0 && pick(r) == pick(o), msg)
	}
	for row, n := range want {
		require.Equal(t, n, got[row], "%s: %s", msg, row)
	}
	for row := range leftDel {
		require.Zero(t, leftIns[row], "%s: identical rows are left on both sides: %s", msg, row)
	}
	if len(key) > 0 {
		for k, n := range keyDel {
			require.False(t, n == 1 && keyIns[k] == 1, "%s: key %s is alone on both sides and not paired", msg, k)
		}
	}
}

// TestGatherKeepsValues: gathered rows are the rows asked for, whatever the type and the slice.
func TestGatherKeepsValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range sampleColumns(rng, 100, 50, false) {
		for _, col := range []arrow.Array{c, array.NewSlice(c, 13, 77)} {
			rows := make([]uint32, 40)
			for k := range rows {
				rows[k] = uint32(rng.IntN(col.Len()))
			}
			out, err := newVector(col).gather(rows)
			require.NoError(t, err)
			require.True(t, arrow.TypeEqual(col.DataType(), out.DataType()))
			for k, r := range rows {
				require.Equal(t, canon([]arrow.Array{col}, int(r)), canon([]arrow.Array{out}, k), "%s", col.DataType())
			}
		}
	}
}

// TestHashFollowsPromotion: a shard stays the same when int becomes long or float becomes double.
func TestHashFollowsPromotion(t *testing.T) {
	mem := memory.DefaultAllocator
	i32, i64 := array.NewInt32Builder(mem), array.NewInt64Builder(mem)
	f32, f64 := array.NewFloat32Builder(mem), array.NewFloat64Builder(mem)
	for _, v := range []int32{-1, 0, 7} {
		i32.Append(v)
		i64.Append(int64(v))
		f32.Append(float32(v) / 2)
		f64.Append(float64(v) / 2)
	}
	a, b := newVector(i32.NewArray()), newVector(i64.NewArray())
	c, d := newVector(f32.NewArray()), newVector(f64.NewArray())
	for r := range uint32(3) {
		require.Equal(t, a.hashAt(r, 9), b.hashAt(r, 9))
		require.Equal(t, c.hashAt(r, 9), d.hashAt(r, 9))
	}
}

// BenchmarkMatch pairs a million updates, sorted and shuffled, without reading files.
func BenchmarkMatch(b *testing.B) {
	const n = 1 << 20
	for _, shuffled := range []bool{false, true} {
		b.Run(fmt.Sprintf("shuffled=%t", shuffled), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			ids, vals := make([]int64, 2*n), make([]int64, 2*n)
			for i := range n {
				ids[i], ids[n+i] = int64(3*i), int64(3*i)
				vals[i], vals[n+i] = int64(i), int64(i+1)
			}
			if shuffled {
				rng.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			}
			cols := []arrow.Array{int64Array(arrow.PrimitiveTypes.Int64, ids), int64Array(arrow.PrimitiveTypes.Int64, vals)}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				a := sampleArena(b, cols, n)
				require.NoError(b, a.match(context.Background(), []int{0}, []int{0, 1}))
			}
			b.ReportMetric(float64(n)*2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
