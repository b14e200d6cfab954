package duck

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
	"unsafe"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// softLimit is how many bytes AppendDataRows appends before it returns early.
const softLimit = 1 << 20

// A fieldKind is a field's encoding. The common ones are inlined in the row loop; kindFunc calls a function, which writes
// the payload without its length word.
type fieldKind uint8

const (
	kindFunc fieldKind = iota
	kindTextInt32
	kindTextInt64
	kindBytes // VARCHAR and BLOB as they are: text of strings, binary of strings and bytea
	kindBin2
	kindBin4
	kindBin8
	kindBool
	kindBinBool
	kindBinTimestamp
	kindBinDate
)

// encodeFunc appends one value's payload.
type encodeFunc func(dst []byte, v *vec, row int) ([]byte, error)

type field struct {
	kind fieldKind
	fn   encodeFunc
}

// output is how the columns of a stream become fields, settled at the first call of AppendDataRows.
type output struct {
	ready   bool
	formats []int16
	types   []uint32
	tz      *time.Location
	fields  []field
	trim    []bool
	names   func(typeOID, oid uint32) string
	records [][]uint32
}

// TrimNumeric makes numeric columns show no trailing zeros after the point: for columns declared numeric without a scale, which
// data files keep with nine digits.
func (r *Rows) TrimNumeric(trim []bool) { r.out.trim = trim; r.out.ready = false }

// NameOIDs gives the text of regclass, regtype and their kind; without it they show their number.
func (r *Rows) NameOIDs(names func(typeOID, oid uint32) string) {
	r.out.names = names
	r.out.ready = false
}

// AppendDataRows appends complete DataRow messages to dst and returns it with their number: at most max rows (0 = no limit),
// at most what is left of one chunk, and little more than 1 MiB. done means that the stream is exhausted (n may be > 0).
// A later call goes on where this one stopped; after an error there is none.
//
// formats follow the Bind message's rule (none = all text, one = all, else one a column). types override the
// columns' type OIDs (nil = as described, 0 = as described); values are range-checked (22003). tz is the session time zone (nil
// = that of SetStyle).
func (r *Rows) AppendDataRows(dst []byte, formats []int16, types []uint32, tz *time.Location, max int) (out []byte, n int, done bool, err error) {
	if err := r.settle(formats, types, tz); err != nil {
		return dst, 0, true, err
	}
	if err := r.more(); err != nil {
		if err == io.EOF {
			return dst, 0, true, nil
		}
		return dst, 0, true, err
	}
	end := r.size
	if max > 0 && end-r.next > max {
		end = r.next + max
	}
	first := r.next
	dst, err = r.appendRows(dst, end)
	n = r.next - first
	if err != nil {
		r.err = err
		return dst, n, true, err
	}
	return dst, n, r.eof && r.next == r.size, nil
}

func (r *Rows) settle(formats []int16, types []uint32, tz *time.Location) error {
	o := &r.out
	if o.ready && o.tz == tz && slices.Equal(o.formats, formats) && slices.Equal(o.types, types) {
		return nil
	}
	o.formats, o.types, o.tz = slices.Clone(formats), slices.Clone(types), tz
	style := r.style
	if tz != nil {
		style.Loc = tz
	}
	o.fields = o.fields[:0]
	for i := range r.cols {
		e := encoder{style: style, trim: i < len(o.trim) && o.trim[i], names: o.names}
		if i < len(o.records) {
			e.fields = o.records[i]
		}
		switch {
		case len(formats) == 1:
			e.binary = formats[0] == 1
		case i < len(formats):
			e.binary = formats[i] == 1
		}
		oid := r.cols[i].t.oid
		if i < len(types) && types[i] != 0 {
			oid = types[i]
		}
		f, err := e.field(r.cols[i].t, oid)
		if err != nil {
			return err
		}
		o.fields = append(o.fields, f)
	}
	o.ready = true
	return nil
}

// appendRows appends rows r.next … end-1, or fewer when dst grows beyond the soft limit. The loop is the hot path: D4.
func (r *Rows) appendRows(dst []byte, end int) ([]byte, error) {
	fields, cols := r.out.fields, r.cols
	limit := len(dst) + softLimit
	ncol := len(fields)
	for row := r.next; row < end && len(dst) < limit; row++ {
		msg := len(dst)
		dst = append(dst, 'D', 0, 0, 0, 0, byte(ncol>>8), byte(ncol))
		for i := range fields {
			f, v := &fields[i], &cols[i]
			if v.valid != nil && *(*uint64)(unsafe.Add(v.valid, row>>6<<3))>>(row&63)&1 == 0 {
				dst = append(dst, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			switch f.kind {
			case kindTextInt32:
				start := len(dst)
				dst = strconv.AppendInt(append(dst, 0, 0, 0, 0), int64(at[int32](v, row)), 10)
				binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
			case kindTextInt64:
				start := len(dst)
				dst = strconv.AppendInt(append(dst, 0, 0, 0, 0), at[int64](v, row), 10)
				binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
			case kindBytes:
				b := v.bytes(row)
				dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
			case kindBin2:
				x := at[uint16](v, row)
				dst = append(dst, 0, 0, 0, 2, byte(x>>8), byte(x))
			case kindBin4:
				x := at[uint32](v, row)
				dst = append(dst, 0, 0, 0, 4, byte(x>>24), byte(x>>16), byte(x>>8), byte(x))
			case kindBin8:
				dst = binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 8), at[uint64](v, row))
			case kindBool:
				dst = append(dst, 0, 0, 0, 1, 'f')
				if at[uint8](v, row) != 0 {
					dst[len(dst)-1] = 't'
				}
			case kindBinBool:
				dst = append(dst, 0, 0, 0, 1, at[uint8](v, row))
			case kindBinTimestamp:
				dst = pgenc.AppendTimestampBinary(append(dst, 0, 0, 0, 8), at[int64](v, row))
			case kindBinDate:
				dst = pgenc.AppendDateBinary(append(dst, 0, 0, 0, 4), at[int32](v, row))
			default:
				start := len(dst)
				var err error
				dst, err = f.fn(append(dst, 0, 0, 0, 0), v, row)
				if err != nil {
					return dst[:msg], err
				}
				binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
			}
		}
		if len(dst)-msg-1 > math.MaxInt32 {
			return dst[:msg], rowTooLarge()
		}
		binary.BigEndian.PutUint32(dst[msg+1:], uint32(len(dst)-msg-1))
		r.next = row + 1
	}
	return dst, nil
}

// field chooses the encoding of a column of DuckDB type t that a client reads as type oid.
func (e *encoder) field(t *logical, oid uint32) (field, error) {
	if k := e.inline(t, oid); k != kindFunc {
		return field{kind: k}, nil
	}
	fn, err := e.function(t, oid)
	return field{fn: fn}, err
}

// inline finds the kind of the common encodings, kindFunc when there is none.
func (e *encoder) inline(t *logical, oid uint32) fieldKind {
	switch {
	case t.id == bind.TypeVarchar && textual(oid) && oid != pgtype.Char && (!e.binary || oid != pgtype.JSONB),
		t.id == bind.TypeVarchar && !e.binary && pgtype.LenOf(oid) == -1 && oid != pgtype.Interval,
		t.id == bind.TypeBlob && e.binary && oid == pgtype.Bytea:
		return kindBytes
	case t.id == bind.TypeBoolean && oid == pgtype.Bool:
		if e.binary {
			return kindBinBool
		}
		return kindBool
	}
	if !e.binary {
		switch {
		case t.id == bind.TypeInteger && integral(oid) && oid != pgtype.Int2 && oid != pgtype.OID:
			return kindTextInt32
		case t.id == bind.TypeBigInt && oid == pgtype.Int8:
			return kindTextInt64
		}
		return kindFunc
	}
	switch {
	case t.id == bind.TypeSmallInt && oid == pgtype.Int2:
		return kindBin2
	case t.id == bind.TypeInteger && oid == pgtype.Int4, t.id == bind.TypeFloat && oid == pgtype.Float4:
		return kindBin4
	case t.id == bind.TypeBigInt && oid == pgtype.Int8, t.id == bind.TypeDouble && oid == pgtype.Float8,
		t.id == bind.TypeTime && oid == pgtype.Time:
		return kindBin8
	case t.id == bind.TypeTimestamp && oid == pgtype.Timestamp, t.id == bind.TypeTimestampTZ && oid == pgtype.TimestampTZ:
		return kindBinTimestamp
	case t.id == bind.TypeDate && oid == pgtype.Date:
		return kindBinDate
	}
	return kindFunc
}
