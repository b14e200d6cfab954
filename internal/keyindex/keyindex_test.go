package keyindex

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

type entry struct {
	key string
	pos uint32
}

func build(t testing.TB, es []entry) *Index {
	t.Helper()
	slices.SortFunc(es, func(a, b entry) int {
		if c := bytes.Compare([]byte(a.key), []byte(b.key)); c != 0 {
			return c
		}
		return int(a.pos) - int(b.pos)
	})
	b := NewBuilder([]Column{{Kind: KindBytes}})
	for _, e := range es {
		require.NoError(t, b.Add([]byte(e.key), e.pos))
	}
	data, err := b.Finish()
	require.NoError(t, err)
	ix, err := Decode(data)
	require.NoError(t, err)
	require.Equal(t, len(es), ix.Len())
	return ix
}

// TestIndexExact is K1 against a map, over key shapes that exercise prefixes, heads and duplicates.
func TestIndexExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	shapes := map[string]func(i int) []byte{
		"dense ints":   func(i int) []byte { return AppendLong(nil, int64(i)) },
		"random ints":  func(int) []byte { return AppendLong(nil, rng.Int64()-rng.Int64()) },
		"strings":      func(i int) []byte { return AppendString(nil, fmt.Sprintf("customer-%07d", rng.IntN(1e6))) },
		"few values":   func(int) []byte { return AppendLong(nil, rng.Int64N(5)) },
		"one value":    func(int) []byte { return AppendString(nil, "same") },
		"odd lengths":  func(int) []byte { return AppendBytes(nil, bytes.Repeat([]byte{byte(rng.IntN(3))}, rng.IntN(40))) },
		"two columns":  func(int) []byte { return AppendString(AppendLong(nil, rng.Int64N(100)), fmt.Sprint(rng.IntN(50))) },
		"long strings": func(int) []byte { return AppendBytes(nil, bytes.Repeat([]byte{'a'}, 1000+rng.IntN(100))) },
	}
	for name, shape := range shapes {
		for _, n := range []int{0, 1, 127, 128, 129, 3000} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				want := map[string][]uint32{}
				var es []entry
				for i := range n {
					k := string(shape(i))
					es = append(es, entry{k, uint32(i)})
					want[k] = append(want[k], uint32(i))
				}
				ix := build(t, es)
				for k, ps := range want {
					require.Equal(t, ps, ix.Find(nil, []byte(k)))
				}
				for range 500 {
					k := shape(rng.IntN(n + 10))
					require.Equal(t, want[string(k)], ix.Find(nil, k))
				}
				for _, k := range []string{"", "\x00", "\xff\xff\xff", "same"} {
					require.Equal(t, want[k], ix.Find(nil, []byte(k)))
				}
				for k := range want {
					if len(k) < 8 {
						continue
					}
					p := []byte(k[:rng.IntN(len(k))])
					var exp []uint32
					for _, e := range es {
						if bytes.HasPrefix([]byte(e.key), p) {
							exp = append(exp, e.pos)
						}
					}
					require.Equal(t, exp, ix.FindPrefix(nil, p))
				}
			})
		}
	}
}

// TestEncodingOrder checks that bytes order like values and that distinct tuples give distinct keys.
func TestEncodingOrder(t *testing.T) {
	ints := []int64{math.MinInt64, -1 << 40, -2, -1, 0, 1, 2, 255, 256, 1 << 40, math.MaxInt64}
	floats := []float64{math.Inf(-1), -1e300, -1, math.Copysign(0, -1), 0, 1e-300, 1, math.Inf(1), math.NaN()}
	strs := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "a", "a\x00", "a\x00b", "a\x01", "ab", "b", "é", "\xff"}
	decs := []decimal128.Num{decimal128.New(math.MinInt64, 0), decimal128.FromI64(-5), decimal128.FromI64(0), decimal128.FromI64(7), decimal128.New(1, 0), decimal128.New(math.MaxInt64, math.MaxUint64)}
	ascending(t, ints, func(v int64) []byte { return AppendLong(nil, v) })
	ascending(t, floats, func(v float64) []byte { return AppendDouble(nil, v) })
	ascending(t, strs, func(v string) []byte { return AppendString(nil, v) })
	ascending(t, decs, func(v decimal128.Num) []byte { return AppendDecimal(nil, v) })
	seen := map[string]string{}
	for _, a := range strs {
		for _, b := range strs {
			k := string(AppendString(AppendString(nil, a), b))
			tuple := fmt.Sprintf("%q,%q", a, b)
			require.Empty(t, seen[k], "%s and %s share a key", seen[k], tuple)
			seen[k] = tuple
			parts := Split(nil, []Column{{Kind: KindBytes}, {Kind: KindBytes}}, []byte(k))
			require.Len(t, parts, 2)
			require.Equal(t, a, string(DecodeBytes(nil, parts[0])))
			require.Equal(t, b, string(DecodeBytes(nil, parts[1])))
		}
	}
	for _, v := range ints {
		require.Equal(t, v, DecodeLong(AppendLong(nil, v)))
	}
	for _, v := range floats[:8] {
		require.Equal(t, math.Float64bits(v), math.Float64bits(DecodeDouble(AppendDouble(nil, v))))
	}
	for _, v := range decs {
		require.Equal(t, v, DecodeDecimal(AppendDecimal(nil, v)))
	}
}

func ascending[T any](t *testing.T, vs []T, enc func(T) []byte) {
	t.Helper()
	for i := 1; i < len(vs); i++ {
		require.Negative(t, bytes.Compare(enc(vs[i-1]), enc(vs[i])), "%v < %v", vs[i-1], vs[i])
	}
}

func TestEncoderNulls(t *testing.T) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.Append(3)
	b.AppendNull()
	a := b.NewArray()
	e, err := NewArrayEncoder([]arrow.Array{a})
	require.NoError(t, err)
	_, err = e.Append(nil, 1)
	require.ErrorIs(t, err, ErrNullKey)
	e, err = NewArrayEncoder([]arrow.Array{a}, WithNulls())
	require.NoError(t, err)
	k, err := e.Append(nil, 1)
	require.NoError(t, err)
	require.Equal(t, []byte{0}, k)
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = e.Append(buf[:0], 0) }))
}

// TestIntSurvivesPromotion: a key written from an int column equals the key of the long it became.
func TestIntSurvivesPromotion(t *testing.T) {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.Append(-7)
	e, err := NewArrayEncoder([]arrow.Array{b.NewArray()})
	require.NoError(t, err)
	k, err := e.Append(nil, 0)
	require.NoError(t, err)
	require.Equal(t, AppendLong(nil, -7), k)
}

func TestBuilderRefusesDisorder(t *testing.T) {
	b := NewBuilder(nil)
	require.NoError(t, b.Add([]byte("b"), 1))
	require.ErrorIs(t, b.Add([]byte("a"), 2), ErrNotSorted)
	require.ErrorIs(t, b.Add([]byte("b"), 1), ErrNotSorted)
}

// TestDamage flips and cuts every byte: Decode refuses (K3).
func TestDamage(t *testing.T) {
	b := NewBuilder([]Column{{Kind: KindLong}})
	for i := range 300 {
		require.NoError(t, b.Add(AppendLong(nil, int64(i)), uint32(i*2)))
	}
	data, err := b.Finish()
	require.NoError(t, err)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x40
		_, err := Decode(bad)
		require.Error(t, err, "byte %d", i)
		_, err = Decode(data[:i])
		require.Error(t, err, "cut at %d", i)
	}
}

func FuzzDecode(f *testing.F) {
	b := NewBuilder([]Column{{Kind: KindBytes}})
	for i := range 200 {
		_ = b.Add(AppendString(nil, fmt.Sprintf("k%05d", i)), uint32(i*3))
	}
	data, _ := b.Finish()
	f.Add(data, []byte("k00010\x00\x01"))
	f.Add(data[:40], []byte{})
	f.Fuzz(func(t *testing.T, data, key []byte) {
		probe(data, key)
		if len(data) > trailerSize { // also behind the checksum
			probe(seal(bytes.Clone(data[:len(data)-trailerSize])), key)
		}
	})
}

func probe(data, key []byte) {
	ix, err := Decode(data)
	if err != nil {
		return
	}
	ix.Find(nil, key)
	ix.FindPrefix(nil, key)
	ix.FindBatch([][]byte{key}, func(int, uint32) bool { return true })
}

func BenchmarkFind(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	bld := NewBuilder([]Column{{Kind: KindLong}})
	const n = 1 << 20
	for i := range n {
		_ = bld.Add(AppendLong(nil, int64(i)*37), uint32(i))
	}
	data, _ := bld.Finish()
	ix, _ := Decode(data)
	b.ReportMetric(float64(len(data))/n, "bytes/key")
	var key []byte
	var dst []uint32
	for b.Loop() {
		key = AppendLong(key[:0], rng.Int64N(n)*37)
		dst = ix.Find(dst[:0], key)
		if len(dst) != 1 {
			b.Fatal(len(dst))
		}
	}
}
