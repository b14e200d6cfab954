package keyindex

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// rows are the keys of a file by position; nil is a row without one.
type rows [][]byte

func (rs rows) find(key []byte) (out []uint32) {
	for i, k := range rs {
		if k != nil && bytes.Equal(k, key) {
			out = append(out, uint32(i))
		}
	}
	return out
}

func (rs rows) prefix(p []byte) (out []uint32) {
	for i, k := range rs {
		if k != nil && bytes.HasPrefix(k, p) {
			out = append(out, uint32(i))
		}
	}
	slices.SortStableFunc(out, func(a, b uint32) int { return bytes.Compare(rs[a], rs[b]) })
	return out
}

func (rs rows) build(t testing.TB, cols []Column) *Index {
	t.Helper()
	b := NewBuilder(cols)
	n := 0
	for i, k := range rs {
		if k != nil {
			require.NoError(t, b.Add(k, uint32(i)))
			n++
		}
	}
	data, err := b.Finish(Source{Size: 7, Hash: 9})
	require.NoError(t, err)
	ix, err := Decode(data)
	require.NoError(t, err)
	require.Equal(t, n, ix.Len())
	require.Equal(t, Source{Size: 7, Hash: 9}, ix.Source())
	require.Equal(t, cols, ix.Columns())
	return ix
}

// check compares an index with the rows; fingerprints may name others, which are few.
func (rs rows) check(t testing.TB, ix *Index, keys [][]byte) (needless int) {
	for _, k := range keys {
		got, want := ix.Find(nil, k), rs.find(k)
		if !ix.Exact() {
			all := len(got)
			got = slices.DeleteFunc(got, func(p uint32) bool { return !bytes.Equal(rs[p], k) })
			needless += all - len(got)
		}
		require.ElementsMatch(t, want, got, "%x", k)
	}
	return needless
}

type shapeCase struct {
	cols  []Column
	key   func(i int) []byte
	exact bool
}

func shapes(rng *rand.Rand) map[string]shapeCase {
	long, str := Column{Kind: KindLong}, Column{Kind: KindBytes}
	dec := Column{Kind: KindDecimal, Width: 2}
	return map[string]shapeCase{
		"dense ints":   {[]Column{long}, func(i int) []byte { return AppendLong(nil, int64(i)) }, true},
		"random ints":  {[]Column{long}, func(int) []byte { return AppendLong(nil, rng.Int64()-rng.Int64()) }, true},
		"extreme ints": {[]Column{long}, func(int) []byte { return AppendLong(nil, []int64{math.MinInt64, -1, 0, math.MaxInt64}[rng.IntN(4)]) }, true},
		"few values":   {[]Column{long}, func(int) []byte { return AppendLong(nil, rng.Int64N(5)) }, true},
		"doubles": {[]Column{{Kind: KindDouble}}, func(int) []byte {
			return AppendDouble(nil, []float64{math.NaN(), 0, math.Copysign(0, -1), 1, rng.Float64()}[rng.IntN(5)])
		}, true},
		"booleans":        {[]Column{{Kind: KindBool}, long}, func(i int) []byte { return AppendLong(AppendBool(nil, i%3 == 0), int64(i/2)) }, true},
		"short fixed":     {[]Column{{Kind: KindFixed, Width: 5}}, func(int) []byte { return AppendLong(nil, rng.Int64())[:5] }, true},
		"uuids":           {[]Column{{Kind: KindFixed, Width: 16}}, func(int) []byte { return AppendLong(AppendLong(nil, rng.Int64()), rng.Int64()) }, false},
		"small decimals":  {[]Column{dec}, func(int) []byte { return AppendDecimal(nil, decimal128.FromI64(rng.Int64N(1000)-500)) }, true},
		"large decimals":  {[]Column{dec}, func(i int) []byte { return AppendDecimal(nil, decimal128.New(int64(i%3)-1, rng.Uint64()%7)) }, false},
		"strings":         {[]Column{str}, func(int) []byte { return AppendString(nil, fmt.Sprintf("customer-%07d", rng.IntN(1e6))) }, false},
		"one value":       {[]Column{str}, func(int) []byte { return AppendString(nil, "same") }, false},
		"zero bytes":      {[]Column{str}, func(int) []byte { return AppendBytes(nil, bytes.Repeat([]byte{byte(rng.IntN(3))}, rng.IntN(40))) }, false},
		"long strings":    {[]Column{str}, func(int) []byte { return AppendBytes(nil, bytes.Repeat([]byte{'a'}, 1000+rng.IntN(100))) }, false},
		"pairs in 64":     {[]Column{long, long}, func(int) []byte { return AppendLong(AppendLong(nil, rng.Int64N(100)-50), rng.Int64N(1<<40)) }, true},
		"pairs past 64":   {[]Column{long, long}, func(int) []byte { return AppendLong(AppendLong(nil, rng.Int64()), rng.Int64N(50)) }, false},
		"long and string": {[]Column{long, str}, func(int) []byte { return AppendString(AppendLong(nil, rng.Int64N(100)), fmt.Sprint(rng.IntN(50))) }, false},
		"triple": {[]Column{{Kind: KindLong, Unit: UnitDay}, long, {Kind: KindBool}}, func(int) []byte {
			return AppendBool(AppendLong(AppendLong(nil, rng.Int64N(3)), rng.Int64N(9)), rng.IntN(2) == 0)
		}, true},
	}
}

// TestIndex is K1 against a scan, over shapes of keys, sorted files and others, with rows that have no key.
func TestIndex(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for name, s := range shapes(rng) {
		for _, n := range []int{0, 1, 15, 16, 17, 127, 128, 129, 1300} {
			for _, order := range []string{"sorted", "shuffled", "gaps"} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, n, order), func(t *testing.T) {
					rs := make(rows, n)
					for i := range rs {
						rs[i] = s.key(i)
					}
					slices.SortFunc(rs, bytes.Compare)
					switch order {
					case "shuffled":
						rng.Shuffle(n, func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
					case "gaps":
						for i := 0; i < n; i += 7 {
							rs[i] = nil
						}
					}
					ix := rs.build(t, s.cols)
					if n > 128 {
						require.Equal(t, s.exact, ix.Exact())
					}
					var keys [][]byte
					for i := range min(n, 40) {
						keys = append(keys, rs[rng.IntN(n)], s.key(i))
					}
					keys = slices.DeleteFunc(keys, func(k []byte) bool { return k == nil })
					for _, k := range []string{"", "\x00", "\xff\xff\xff", "same", "\x80\x00\x00\x00\x00\x00\x00\x00"} {
						keys = append(keys, []byte(k))
					}
					require.LessOrEqual(t, rs.check(t, ix, keys), 1)
					rs.checkPrefix(t, ix, keys)
				})
			}
		}
	}
}

func (rs rows) checkPrefix(t *testing.T, ix *Index, keys [][]byte) {
	for _, k := range keys {
		parts := Split(nil, ix.columns, k)
		for n := 1; n < len(parts); n++ {
			p := k[:len(bytes.Join(parts[:n], nil))]
			want := rs.prefix(p)
			if got, ok := ix.FindPrefix(nil, p); ok {
				require.Equal(t, want, got)
				continue
			}
			lo, hi, ok := ix.PrefixRange(p)
			if !ok {
				require.False(t, ix.ordinal)
				continue
			}
			for _, pos := range want {
				require.True(t, lo <= pos && pos < hi, "%d in [%d, %d)", pos, lo, hi)
			}
			require.LessOrEqual(t, int(hi-lo), len(want)+2*sparseEntries)
		}
	}
}

// TestBytesAKey: an index takes at most 12 bytes a key on disk, whatever its type, and needless answers are rarer than one in 10,000.
func TestBytesAKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	for name, s := range shapes(rng) {
		if name == "long strings" || name == "one value" {
			continue
		}
		for _, sorted := range []bool{true, false} {
			b := NewBuilder(s.cols)
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = s.key(i)
			}
			if sorted {
				slices.SortFunc(keys, bytes.Compare)
			}
			for i, k := range keys {
				require.NoError(t, b.Add(k, uint32(i)))
			}
			data, err := b.Finish(Source{})
			require.NoError(t, err)
			require.Less(t, float64(len(data))/n, 12.0, name)
			t.Logf("%-16s sorted=%-5v %.2f bytes a key", name, sorted, float64(len(data))/n)
			ix, err := Decode(data)
			require.NoError(t, err)
			if ix.Exact() {
				continue
			}
			hits := 0
			for i := range n {
				hits += len(ix.Find(nil, AppendString(nil, fmt.Sprintf("absent %d", i))))
			}
			require.Less(t, hits, n/10_000, "%s: needless", name)
		}
	}
}

// TestCollidingFingerprints: when all hashes are one, every row is named and none is lost.
func TestCollidingFingerprints(t *testing.T) {
	was := Hash
	Hash = func(b []byte) uint64 { return was(b) & 0x3 << 50 }
	defer func() { Hash = was }()
	rs := make(rows, 1000)
	for i := range rs {
		rs[i] = AppendString(nil, fmt.Sprintf("%06d", i*7))
	}
	ix := rs.build(t, []Column{{Kind: KindBytes}})
	require.Positive(t, rs.check(t, ix, rs), "hashes collide")
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

// indexes are one index of each layout.
func indexes(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	for name, s := range map[string]struct {
		col Column
		key func(i int) []byte
		pos func(i int) uint32
	}{
		"exact sorted": {Column{Kind: KindLong}, func(i int) []byte { return AppendLong(nil, int64(i*i)) }, func(i int) uint32 { return uint32(i) }},
		"exact":        {Column{Kind: KindLong}, func(i int) []byte { return AppendLong(nil, int64(-i)) }, func(i int) uint32 { return uint32(i * 3) }},
		"print sorted": {Column{Kind: KindBytes}, func(i int) []byte { return AppendString(nil, fmt.Sprintf("k%05d", i)) }, func(i int) uint32 { return uint32(i) }},
		"print":        {Column{Kind: KindBytes}, func(i int) []byte { return AppendString(nil, fmt.Sprint(i)) }, func(i int) uint32 { return uint32(i * 3) }},
	} {
		b := NewBuilder([]Column{s.col})
		for i := range 600 {
			require.NoError(t, b.Add(s.key(i), s.pos(i)))
		}
		data, err := b.Finish(Source{Size: 1, Hash: 2})
		require.NoError(t, err)
		out[name] = data
	}
	return out
}

// TestDamage flips and cuts every byte: Decode refuses (K3).
func TestDamage(t *testing.T) {
	for name, data := range indexes(t) {
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 0x40
			_, err := Decode(bad)
			require.Error(t, err, "%s: byte %d", name, i)
			_, err = Decode(data[:i:i])
			require.Error(t, err, "%s: cut at %d", name, i)
		}
	}
}

// TestOlderLayout: version 1 is told from damage.
func TestOlderLayout(t *testing.T) {
	data := append([]byte("SKKEYIX\x01"), make([]byte, 100)...)
	_, err := Decode(data)
	require.ErrorIs(t, err, ErrVersion)
}

func FuzzDecode(f *testing.F) {
	for _, data := range indexes(f) {
		f.Add(data, AppendString(nil, "k00010"))
		f.Add(data[:60], AppendLong(nil, 9))
	}
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
	ix.PrefixRange(key)
}

// BenchmarkFind probes an index of a million keys of each type: present ones and absent ones.
func BenchmarkFind(b *testing.B) {
	const n = 1 << 20
	for _, c := range []struct {
		name string
		cols []Column
		key  func(dst []byte, i uint64) []byte
	}{
		{"int8", []Column{{Kind: KindLong}}, func(d []byte, i uint64) []byte { return AppendLong(d, int64(i)*37) }},
		{"int8random", []Column{{Kind: KindLong}}, func(d []byte, i uint64) []byte { return AppendLong(d, int64(scramble(i))) }},
		{"text20", []Column{{Kind: KindBytes}}, func(d []byte, i uint64) []byte { return AppendString(d, fmt.Sprintf("%020d", scramble(i))) }},
		{"pair", []Column{{Kind: KindLong}, {Kind: KindLong}}, func(d []byte, i uint64) []byte { return AppendLong(AppendLong(d, int64(i%1000)), int64(i)) }},
		{"pairrandom", []Column{{Kind: KindLong}, {Kind: KindLong}}, func(d []byte, i uint64) []byte {
			return AppendLong(AppendLong(d, int64(scramble(i))), int64(scramble(^i)))
		}},
		{"uuid", []Column{{Kind: KindFixed, Width: 16}}, func(d []byte, i uint64) []byte {
			return AppendLong(AppendLong(d, int64(scramble(i))), int64(scramble(^i)))
		}},
	} {
		keys := make([][]byte, 2*n) // the odd ones are absent
		for i := range keys {
			keys[i] = c.key(nil, uint64(i))
		}
		present := make([][]byte, 0, n)
		for i := 0; i < len(keys); i += 2 {
			present = append(present, keys[i])
		}
		slices.SortFunc(present, bytes.Compare)
		began := time.Now()
		bld := NewBuilder(c.cols)
		for i, k := range present {
			_ = bld.Add(k, uint32(i))
		}
		data, err := bld.Finish(Source{})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		ix, err := Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		for odd, name := range []string{"hit", "miss"} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				sample := make([][]byte, 1<<14) // few enough to stay in the processor's cache
				for i := range sample {
					sample[i] = bytes.Clone(keys[rng.IntN(n)*2+odd])
				}
				var dst []uint32
				i := 0
				for b.Loop() {
					i++
					if dst = ix.Find(dst[:0], sample[i&(1<<14-1)]); odd == 0 && len(dst) == 0 {
						b.Fatal("not found")
					}
				}
				b.ReportMetric(float64(len(data))/n, "bytes/key")
				b.ReportMetric(float64(ix.Size())/n, "memory/key")
				b.ReportMetric(float64(took.Nanoseconds())/n, "build-ns/key")
			})
		}
	}
}

func scramble(x uint64) uint64 {
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}
