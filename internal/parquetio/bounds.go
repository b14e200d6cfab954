package parquetio

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// truncateLength is the number of characters (bytes of a binary) kept of a bound, Iceberg's write.metadata.metrics.default.
const truncateLength = 16

// columnStats gathers one top-level column's metrics for the manifest entry.
type columnStats struct {
	id     int
	typ    iceberg.Type
	values int64
	nulls  int64
	nans   int64
	seen   bool

	minI, maxI int64
	minF, maxF float64
	minD, maxD decimal128.Num
	minB, maxB []byte
}

func newStats(sc *iceberg.Schema) []columnStats {
	out := make([]columnStats, 0, sc.NumFields())
	for _, f := range sc.Fields() {
		out = append(out, columnStats{id: f.ID, typ: f.Type})
	}
	return out
}

// observe adds a batch's column.
func (s *columnStats) observe(a arrow.Array) {
	s.values += int64(a.Len())
	s.nulls += int64(a.NullN())
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	if a.NullN() == a.Len() {
		return
	}
	switch v := a.(type) {
	case *array.Int64:
		minMax(s, v, v.Int64Values(), s.long)
	case *array.Int32:
		minMax(s, v, v.Int32Values(), func(lo, hi int32) { s.long(int64(lo), int64(hi)) })
	case *array.Date32:
		minMax(s, v, v.Date32Values(), func(lo, hi arrow.Date32) { s.long(int64(lo), int64(hi)) })
	case *array.Timestamp:
		minMax(s, v, v.TimestampValues(), func(lo, hi arrow.Timestamp) { s.long(int64(lo), int64(hi)) })
	case *array.Time64:
		minMax(s, v, v.Time64Values(), func(lo, hi arrow.Time64) { s.long(int64(lo), int64(hi)) })
	case *array.Float64:
		for i, x := range v.Float64Values() {
			if v.IsValid(i) {
				s.double(x)
			}
		}
	case *array.Float32:
		for i, x := range v.Float32Values() {
			if v.IsValid(i) {
				s.double(float64(x))
			}
		}
	case *array.Boolean:
		for i := range v.Len() {
			if v.IsValid(i) {
				x := int64(0)
				if v.Value(i) {
					x = 1
				}
				s.long(x, x)
			}
		}
	case *array.Decimal128:
		for i := range v.Len() {
			if v.IsValid(i) {
				s.decimal(v.Value(i))
			}
		}
	case *array.String:
		for i := range v.Len() {
			if v.IsValid(i) {
				x := v.Value(i)
				if !s.seen || x < string(s.minB) {
					s.minB = append(s.minB[:0], x...)
				}
				if !s.seen || x > string(s.maxB) {
					s.maxB = append(s.maxB[:0], x...)
				}
				s.seen = true
			}
		}
	case *array.Binary:
		for i := range v.Len() {
			if v.IsValid(i) {
				s.bytes(v.Value(i))
			}
		}
	case *array.FixedSizeBinary:
		for i := range v.Len() {
			if v.IsValid(i) {
				s.bytes(v.Value(i))
			}
		}
	}
}

func minMax[T int32 | int64 | arrow.Date32 | arrow.Timestamp | arrow.Time64](s *columnStats, a arrow.Array, vs []T, add func(lo, hi T)) {
	if a.NullN() > 0 {
		for i, x := range vs {
			if a.IsValid(i) {
				add(x, x)
			}
		}
		return
	}
	lo, hi := vs[0], vs[0]
	for _, x := range vs {
		lo, hi = min(lo, x), max(hi, x)
	}
	add(lo, hi)
}

func (s *columnStats) long(lo, hi int64) {
	if !s.seen {
		s.minI, s.maxI, s.seen = lo, hi, true
		return
	}
	s.minI, s.maxI = min(s.minI, lo), max(s.maxI, hi)
}

func (s *columnStats) double(x float64) {
	switch {
	case x != x:
		s.nans++
	case !s.seen:
		s.minF, s.maxF, s.seen = x, x, true
	default:
		s.minF, s.maxF = min(s.minF, x), max(s.maxF, x)
	}
}

func (s *columnStats) decimal(x decimal128.Num) {
	if !s.seen {
		s.minD, s.maxD, s.seen = x, x, true
		return
	}
	if x.Less(s.minD) {
		s.minD = x
	}
	if s.maxD.Less(x) {
		s.maxD = x
	}
}

func (s *columnStats) bytes(x []byte) {
	if !s.seen || bytes.Compare(x, s.minB) < 0 {
		s.minB = append(s.minB[:0], x...)
	}
	if !s.seen || bytes.Compare(x, s.maxB) > 0 {
		s.maxB = append(s.maxB[:0], x...)
	}
	s.seen = true
}

// bounds are the spec's single-value serialisations (Appendix D), nil when there is none.
func (s *columnStats) bounds() (lower, upper []byte) {
	if !s.seen {
		return nil, nil
	}
	// The bound of empty values is the empty value, which is not the same as no bound.
	if s.minB == nil {
		s.minB = []byte{}
	}
	if s.maxB == nil {
		s.maxB = []byte{}
	}
	switch s.typ.(type) {
	case iceberg.BooleanType:
		return []byte{byte(s.minI)}, []byte{byte(s.maxI)}
	case iceberg.Int32Type, iceberg.DateType:
		return le32(uint32(int32(s.minI))), le32(uint32(int32(s.maxI)))
	case iceberg.Float32Type:
		return le32(math.Float32bits(float32(zeroAs(s.minF, true)))), le32(math.Float32bits(float32(zeroAs(s.maxF, false))))
	case iceberg.Float64Type:
		return le64(math.Float64bits(zeroAs(s.minF, true))), le64(math.Float64bits(zeroAs(s.maxF, false)))
	case iceberg.DecimalType:
		return decimalBytes(s.minD), decimalBytes(s.maxD)
	case iceberg.StringType:
		return bytes.Clone(truncateString(s.minB)), upperString(s.maxB)
	case iceberg.BinaryType:
		return bytes.Clone(s.minB[:min(len(s.minB), truncateLength)]), upperBinary(s.maxB)
	case iceberg.UUIDType, iceberg.FixedType:
		return bytes.Clone(s.minB), bytes.Clone(s.maxB)
	case iceberg.Int64Type, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return le64(uint64(s.minI)), le64(uint64(s.maxI))
	}
	return nil, nil
}

// zeroAs makes a zero bound cover both zeros: readers may order −0.0 below +0.0.
func zeroAs(x float64, lower bool) float64 {
	if x != 0 {
		return x
	}
	if lower {
		return math.Copysign(0, -1)
	}
	return 0
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// decimalBytes is the unscaled value as big-endian two's complement in the fewest bytes.
func decimalBytes(v decimal128.Num) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(v.HighBits()))
	b = binary.BigEndian.AppendUint64(b, v.LowBits())
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

// truncateString keeps the first 16 characters.
func truncateString(b []byte) []byte {
	n := 0
	for i := range string(b) {
		if n == truncateLength {
			return b[:i]
		}
		n++
	}
	return b
}

// upperString is the maximum cut to 16 characters with its last character raised, so that it bounds what was cut off. When no character
// can be raised there is no short bound and the whole value stays.
func upperString(b []byte) []byte {
	cut := truncateString(b)
	if len(cut) == len(b) {
		return bytes.Clone(b)
	}
	for len(cut) > 0 {
		r, size := utf8.DecodeLastRune(cut)
		cut = cut[:len(cut)-size]
		if r == utf8.RuneError && size <= 1 {
			continue
		}
		switch r++; {
		case r == 0xd800:
			r = 0xe000
		case r > utf8.MaxRune:
			continue
		}
		return utf8.AppendRune(bytes.Clone(cut), r)
	}
	return bytes.Clone(b)
}

func upperBinary(b []byte) []byte {
	if len(b) <= truncateLength {
		return bytes.Clone(b)
	}
	cut := bytes.Clone(b[:truncateLength])
	for i := len(cut) - 1; i >= 0; i-- {
		if cut[i] != 0xff {
			cut[i]++
			return cut[:i+1]
		}
	}
	return bytes.Clone(b)
}
