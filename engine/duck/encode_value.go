package duck

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// encoder makes the functions that encode one column.
type encoder struct {
	binary bool
	trim   bool
	style  pgenc.Style
	names  func(typeOID, oid uint32) string
	fields []uint32
}

func textual(oid uint32) bool {
	switch oid {
	case pgtype.Text, pgtype.Varchar, pgtype.BPChar, pgtype.Name, pgtype.Char, pgtype.Unknown, pgtype.JSON, pgtype.JSONB,
		pgtype.XML, pgtype.CString, pgtype.PgNodeTree:
		return true
	}
	return false
}

// integral are the types whose binary form is a plain integer.
func integral(oid uint32) bool {
	switch oid {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8, pgtype.OID, pgtype.XID, pgtype.CID, pgtype.RegProc, pgtype.RegClass, pgtype.RegType,
		pgtype.RegNamespace, pgtype.RegRole, pgtype.RegProcedure, pgtype.RegOper, pgtype.RegOperator, pgtype.RegConfig,
		pgtype.RegDictionary, pgtype.RegCollation, pgtype.XID8:
		return true
	}
	return false
}

// reg are the types whose text is the name behind an OID.
func reg(oid uint32) bool {
	switch oid {
	case pgtype.RegProc, pgtype.RegClass, pgtype.RegType, pgtype.RegNamespace, pgtype.RegRole, pgtype.RegProcedure, pgtype.RegOper,
		pgtype.RegOperator, pgtype.RegConfig, pgtype.RegDictionary, pgtype.RegCollation:
		return true
	}
	return false
}

// regName writes a name in place of an OID.
func (e *encoder) regName(oid uint32) encodeFunc {
	names := e.names
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x, ok := asInt64(v, row, 0, math.MaxUint32)
		if !ok {
			return dst, pgerr.New(pgerr.NumericValueOutOfRange, "OID out of range")
		}
		return append(dst, names(oid, uint32(x))...), nil
	}
}

func (t *logical) numeric() bool {
	switch t.id {
	case bind.TypeTinyInt, bind.TypeSmallInt, bind.TypeInteger, bind.TypeBigInt, bind.TypeHugeInt, bind.TypeUTinyInt, bind.TypeUSmallInt,
		bind.TypeUInteger, bind.TypeUBigInt, bind.TypeUHugeInt, bind.TypeDecimal, bind.TypeFloat, bind.TypeDouble:
		return true
	}
	return false
}

func (t *logical) float() bool { return t.id == bind.TypeFloat || t.id == bind.TypeDouble }

func (t *logical) timestamp() bool {
	switch t.id {
	case bind.TypeTimestamp, bind.TypeTimestampS, bind.TypeTimestampMS, bind.TypeTimestampNS, bind.TypeTimestampTZ:
		return true
	}
	return false
}

// function finds the encoding of DuckDB type t as PostgreSQL type oid.
func (e *encoder) function(t *logical, oid uint32) (encodeFunc, error) {
	switch {
	case t.id == bind.TypeSQLNull:
		return func(dst []byte, _ *vec, _ int) ([]byte, error) { return dst, nil }, nil
	case oid == pgtype.JSONB:
		return e.jsonb(t), nil
	case textual(oid):
		return e.text(t, oid)
	case pgtype.ElemOf(oid) != 0 && (t.id == bind.TypeList || t.id == bind.TypeArray):
		return e.array(t, pgtype.ElemOf(oid))
	case (oid == pgtype.Int2Vector || oid == pgtype.OIDVector) && t.id == bind.TypeList:
		return e.vector(t, oid)
	case t.numeric() && reg(oid) && !e.binary && e.names != nil:
		return e.regName(oid), nil
	case t.numeric() && integral(oid):
		return e.integer(t, oid), nil
	case t.numeric() && oid == pgtype.Numeric:
		return e.numericValue(t), nil
	case t.numeric() && (oid == pgtype.Float8 || oid == pgtype.Float4):
		return e.float(t, oid), nil
	case oid == pgtype.Bool && (t.id == bind.TypeBoolean || t.numeric() && !t.float()):
		return e.boolean(t), nil
	case t.timestamp() || t.id == bind.TypeDate || t.id == bind.TypeTime || t.id == bind.TypeTimeTZ || t.id == bind.TypeTimeNS:
		if fn := e.datetime(t, oid); fn != nil {
			return fn, nil
		}
	case oid == pgtype.Interval && t.id == bind.TypeInterval:
		return e.interval(), nil
	case oid == pgtype.UUID && t.id == bind.TypeUUID:
		return e.uuid(), nil
	case oid == pgtype.Bytea && (t.id == bind.TypeBlob || t.id == bind.TypeVarchar):
		return e.bytea(), nil
	case t.id == bind.TypeVarchar && !e.binary && oid != pgtype.Interval:
		return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }, nil
	case t.id == bind.TypeVarchar && (oid == pgtype.Record || oid == pgtype.RecordArray) && e.fields != nil:
		return e.record(oid), nil
	case t.id == bind.TypeVarchar:
		return e.reparse(oid), nil
	case t.id == bind.TypeEnum && !e.binary:
		return e.text(t, pgtype.Text)
	}
	return nil, pgerr.Newf(pgerr.CannotCoerce, "cannot cast type %s to %s", typeName(t.oid), typeName(oid))
}

func typeName(oid uint32) string {
	if t, ok := pgtype.ByOID(oid); ok {
		return t.Name
	}
	return strconv.FormatUint(uint64(oid), 10)
}

// text encodes any value as a string: strings as they are, others as their own type's text.
func (e *encoder) text(t *logical, oid uint32) (encodeFunc, error) {
	binaryForm := e.binary
	switch {
	case t.id == bind.TypeVarchar && oid == pgtype.Char:
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			b := v.bytes(row)
			if len(b) == 0 && binaryForm {
				return append(dst, 0), nil
			}
			return append(dst, b[:min(len(b), 1)]...), nil
		}, nil
	case t.id == bind.TypeVarchar:
		return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }, nil
	case t.id == bind.TypeEnum:
		return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, t.enum[v.integer(row)]...), nil }, nil
	case t.id == bind.TypeBit:
		return func(dst []byte, v *vec, row int) ([]byte, error) { return appendBits(dst, v.bytes(row)), nil }, nil
	case t.id == bind.TypeGeometry || t.id == bind.TypeVariant:
		return nil, pgerr.Newf(pgerr.FeatureNotSupported, "values of type %s cannot be shown", t.name)
	}
	plain := *e
	plain.binary = false
	f, err := plain.field(t, t.oid)
	if err != nil || f.fn != nil {
		return f.fn, err
	}
	return plain.function(t, t.oid)
}

// appendBits writes a BIT value: a byte that counts the padding bits, then the bits, padded at the front.
func appendBits(dst, b []byte) []byte {
	for i := 8 + int(b[0]); i < len(b)*8; i++ {
		dst = append(dst, '0'+b[i/8]>>(7-i%8)&1)
	}
	return dst
}

func (e *encoder) boolean(t *logical) encodeFunc {
	app := pgenc.AppendBool
	if e.binary {
		app = pgenc.AppendBoolBinary
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		hi, lo := v.wide(row)
		return app(dst, hi != 0 || lo != 0), nil
	}
}

// asInt64 reads any numeric value as an integer of the range [lo, hi], rounded as PostgreSQL's casts do: decimals half away
// from zero, floats half to even.
func asInt64(v *vec, row int, lo, hi int64) (int64, bool) {
	if v.t.float() {
		f := math.RoundToEven(asFloat(v, row))
		if !(f >= -(1<<63) && f < 1<<63) {
			return 0, false
		}
		return int64(f), int64(f) >= lo && int64(f) <= hi
	}
	h, l := v.wide(row)
	if v.t.id == bind.TypeUHugeInt && h < 0 {
		return 0, false
	}
	if v.t.scale > 0 {
		h, l = roundDiv(h, l, pow10(v.t.scale))
	}
	x := int64(l)
	return x, h == x>>63 && x >= lo && x <= hi
}

// pow10 is 10^n as 128 bits, n ≤ 38.
func pow10(n uint8) (p [2]uint64) {
	p[1] = 1
	for range n {
		h, l := bits.Mul64(p[1], 10)
		p[0], p[1] = p[0]*10+h, l
	}
	return p
}

// roundDiv divides a signed 128-bit value by an unsigned one, rounding half away from zero.
func roundDiv(h int64, l uint64, d [2]uint64) (int64, uint64) {
	neg := h < 0
	uh, ul := uint64(h), l
	if neg {
		ul = -ul
		uh = ^uh
		if ul == 0 {
			uh++
		}
	}
	// Add half of the divisor (a power of ten, so even or one) and truncate.
	var carry uint64
	half := [2]uint64{d[0] >> 1, d[1]>>1 | d[0]<<63}
	ul, carry = bits.Add64(ul, half[1], 0)
	uh, _ = bits.Add64(uh, half[0], carry)
	qh, ql := div128(uh, ul, d)
	if neg {
		ql = -ql
		qh = ^qh
		if ql == 0 {
			qh++
		}
	}
	return int64(qh), ql
}

// div128 is schoolbook division, bit by bit when the divisor exceeds 64 bits.
func div128(h, l uint64, d [2]uint64) (qh, ql uint64) {
	if d[0] == 0 {
		var rem uint64
		qh, rem = h/d[1], h%d[1]
		ql, _ = bits.Div64(rem, l, d[1])
		return qh, ql
	}
	var rh, rl uint64
	for i := 127; i >= 0; i-- {
		rh = rh<<1 | rl>>63
		rl <<= 1
		if i >= 64 {
			rl |= h >> (i - 64) & 1
		} else {
			rl |= l >> i & 1
		}
		if rh > d[0] || rh == d[0] && rl >= d[1] {
			var b uint64
			rl, b = bits.Sub64(rl, d[1], 0)
			rh, _ = bits.Sub64(rh, d[0], b)
			if i >= 64 {
				qh |= 1 << (i - 64)
			} else {
				ql |= 1 << i
			}
		}
	}
	return qh, ql
}

func (e *encoder) integer(t *logical, oid uint32) encodeFunc {
	lo, hi, size, name := int64(math.MinInt64), int64(math.MaxInt64), 8, "bigint"
	switch oid {
	case pgtype.Int2:
		lo, hi, size, name = math.MinInt16, math.MaxInt16, 2, "smallint"
	case pgtype.Int4:
		lo, hi, size, name = math.MinInt32, math.MaxInt32, 4, "integer"
	case pgtype.Int8:
	case pgtype.XID8:
		lo = 0
	default:
		lo, hi, size, name = 0, math.MaxUint32, 4, "OID"
	}
	binaryForm := e.binary
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x, ok := asInt64(v, row, lo, hi)
		switch {
		case !ok:
			return dst, pgerr.New(pgerr.NumericValueOutOfRange, name+" out of range")
		case !binaryForm:
			return strconv.AppendInt(dst, x, 10), nil
		case size == 2:
			return binary.BigEndian.AppendUint16(dst, uint16(x)), nil
		case size == 4:
			return binary.BigEndian.AppendUint32(dst, uint32(x)), nil
		}
		return binary.BigEndian.AppendUint64(dst, uint64(x)), nil
	}
}

// asFloat reads any numeric value as a double. Decimals go through their text: the digits are exact, a division would
// round twice.
func asFloat(v *vec, row int) float64 {
	switch v.t.id {
	case bind.TypeDouble:
		return at[float64](v, row)
	case bind.TypeFloat:
		return float64(at[float32](v, row))
	}
	h, l := v.wide(row)
	if v.t.scale == 0 && h == int64(l)>>63 {
		return float64(int64(l))
	}
	var buf [48]byte
	f, _ := strconv.ParseFloat(string(pgenc.AppendDecimal(buf[:0], h, l, int32(v.t.scale))), 64)
	return f
}

func (e *encoder) float(t *logical, oid uint32) encodeFunc {
	style := e.style
	if oid == pgtype.Float8 {
		if e.binary {
			return func(dst []byte, v *vec, row int) ([]byte, error) {
				return pgenc.AppendFloat8Binary(dst, asFloat(v, row)), nil
			}
		}
		if t.id == bind.TypeDouble && e.style.FloatDigits == 0 {
			return func(dst []byte, v *vec, row int) ([]byte, error) {
				return pgenc.AppendFloat8(dst, at[float64](v, row)), nil
			}
		}
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return style.AppendFloat8(dst, asFloat(v, row)), nil
		}
	}
	app := style.AppendFloat4
	if e.binary {
		app = pgenc.AppendFloat4Binary
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		f := asFloat(v, row)
		x := float32(f)
		if math.IsInf(float64(x), 0) && !math.IsInf(f, 0) {
			return dst, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
		}
		return app(dst, x), nil
	}
}

func (e *encoder) interval() encodeFunc {
	style, bin := e.style, e.binary
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x := at[interval](v, row)
		iv := pgenc.IntervalValue{Months: x.months, Days: x.days, Micros: x.micros}
		if bin {
			return pgenc.AppendIntervalBinary(dst, iv), nil
		}
		return style.AppendInterval(dst, iv), nil
	}
}

func (e *encoder) uuid() encodeFunc {
	if e.binary {
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			u := v.uuid(row)
			return append(dst, u[:]...), nil
		}
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) { return pgenc.AppendUUID(dst, v.uuid(row)), nil }
}

func (e *encoder) bytea() encodeFunc {
	if e.binary {
		return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }
	}
	if e.style.ByteaEscape {
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return pgenc.AppendByteaEscape(dst, v.bytes(row)), nil
		}
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) { return pgenc.AppendBytea(dst, v.bytes(row)), nil }
}

// datetime encodes dates, times and timestamps; nil when oid is something else.
func (e *encoder) datetime(t *logical, oid uint32) encodeFunc {
	style := e.style
	switch {
	case oid == pgtype.Date && t.id == bind.TypeDate:
		if e.binary {
			return func(dst []byte, v *vec, row int) ([]byte, error) {
				return pgenc.AppendDateBinary(dst, at[int32](v, row)), nil
			}
		}
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return style.AppendDate(dst, at[int32](v, row)), nil
		}
	case oid == pgtype.Time && (t.id == bind.TypeTime || t.id == bind.TypeTimeNS):
		app, unit := pgenc.AppendTime, int64(1)
		if e.binary {
			app = pgenc.AppendTimeBinary
		}
		if t.id == bind.TypeTimeNS {
			unit = 1000
		}
		return func(dst []byte, v *vec, row int) ([]byte, error) { return app(dst, at[int64](v, row)/unit), nil }
	case oid == pgtype.TimeTZ && t.id == bind.TypeTimeTZ:
		app := pgenc.AppendTimeTZ
		if e.binary {
			app = pgenc.AppendTimeTZBinary
		}
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			micros, offset := timeTZ(at[uint64](v, row))
			return app(dst, micros, offset), nil
		}
	case oid != pgtype.Timestamp && oid != pgtype.TimestampTZ:
		return nil
	case !t.timestamp() && t.id != bind.TypeDate:
		return nil
	case e.binary:
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return pgenc.AppendTimestampBinary(dst, instant(v, row)), nil
		}
	case oid == pgtype.Timestamp:
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return style.AppendTimestamp(dst, instant(v, row)), nil
		}
	}
	return zoned(style)
}

// instant is a DATE or TIMESTAMP in microseconds.
func instant(v *vec, row int) int64 {
	if v.t.id != bind.TypeDate {
		return v.micros(row)
	}
	switch d := at[int32](v, row); {
	case d == pgenc.DateInfinity:
		return pgenc.TimestampInfinity
	case d <= pgenc.DateNegInfinity:
		return pgenc.TimestampNegInfinity
	default:
		return int64(d) * 86400e6
	}
}

// zoned encodes timestamptz text. Finding the offset of an instant is the dear part, so the period in which it holds is kept.
func zoned(style pgenc.Style) encodeFunc {
	if style.Loc == nil || style.Loc == time.UTC {
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return style.AppendTimestampTZ(dst, instant(v, row)), nil
		}
	}
	loc, fixed := style.Loc, style
	from, to := int64(1), int64(0)
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x := instant(v, row)
		if x < from || x >= to {
			at := time.UnixMicro(x).In(loc)
			name, offset := at.Zone()
			fixed.Loc = time.FixedZone(name, offset)
			from, to = math.MinInt64, math.MaxInt64
			start, end := at.ZoneBounds()
			if !start.IsZero() {
				from = start.UnixMicro()
			}
			if !end.IsZero() {
				to = end.UnixMicro()
			}
		}
		return fixed.AppendTimestampTZ(dst, x), nil
	}
}

// timeTZ unpacks DuckDB's TIMETZ: 40 bits of microseconds, 24 bits of offset, stored so that the bits sort.
func timeTZ(bits uint64) (micros int64, offsetEast int) {
	const maxOffset = 16*3600 - 1
	return int64(bits >> 24), maxOffset - int(bits&0xffffff)
}
