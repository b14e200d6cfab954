package pgcopy

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Column is a column of the table, in the table's order.
type Column struct {
	Name string
	OID  uint32
	Mod  int32
	// Source is the index of the row's field that fills it; −1 means Default.
	Source int
	// Default is the value's text form; DefaultNull means NULL.
	Default     []byte
	DefaultNull bool
	// NotNull refuses NULL: 23502.
	NotNull bool
}

// Appender turns text values into a batch of a table's storage types.
type Appender struct {
	table string
	cols  []Column
	b     *array.RecordBuilder
	put   []putFunc
	rows  int
	bytes int
	hide  bool
}

// HideValues leaves the value out of an error's place: the data is binary.
func (a *Appender) HideValues() { a.hide = true }

// putFunc appends one value that is not NULL.
type putFunc func(v []byte) error

// NewAppender fills batches of schema, one field per column.
func NewAppender(table string, cols []Column, schema *arrow.Schema, style pgenc.Style) (*Appender, error) {
	a := &Appender{table: table, cols: cols, b: array.NewRecordBuilder(memory.DefaultAllocator, schema)}
	for i, c := range cols {
		p, err := newPut(a.b.Field(i), c.OID, c.Mod, style)
		if err != nil {
			a.b.Release()
			return nil, err
		}
		a.put = append(a.put, p)
	}
	return a, nil
}

// Release frees the builders.
func (a *Appender) Release() { a.b.Release() }

// Rows and Bytes are what the current batch holds.
func (a *Appender) Rows() int  { return a.rows }
func (a *Appender) Bytes() int { return a.bytes }

// Append adds a row. line is for error messages; 0 leaves the place out. After an error the appender is of no more use.
func (a *Appender) Append(fields []Field, line int64) error {
	missing := -1
	for i, c := range a.cols {
		v, null := c.Default, c.DefaultNull
		if c.Source >= 0 {
			v, null = fields[c.Source].Data, fields[c.Source].Null
		}
		if null {
			if c.NotNull && missing < 0 {
				missing = i
			}
			a.b.Field(i).AppendNull()
			continue
		}
		a.bytes += len(v)
		if err := a.put[i](v); err != nil {
			return a.locate(err, c.Name, v, line)
		}
	}
	if missing >= 0 {
		return a.nullIn(missing, fields)
	}
	a.rows++
	return nil
}

// nullIn is the error for a NULL in column i, which is checked when all values have been parsed.
func (a *Appender) nullIn(i int, fields []Field) error {
	e := pgerr.Newf(pgerr.NotNullViolation, "null value in column \"%s\" of relation \"%s\" violates not-null constraint", a.cols[i].Name, a.table)
	e.Table, e.Column = a.table, a.cols[i].Name
	row := make([]string, len(a.cols))
	for j, c := range a.cols {
		v, null := c.Default, c.DefaultNull
		if c.Source >= 0 {
			v, null = fields[c.Source].Data, fields[c.Source].Null
		}
		if row[j] = "null"; !null {
			row[j] = cut(string(v), 64)
		}
	}
	return e.WithDetail("Failing row contains (%s).", strings.Join(row, ", "))
}

// locate adds the place to an error, in PostgreSQL's words.
func (a *Appender) locate(err error, column string, v []byte, line int64) error {
	e := pgerr.As(err)
	if e == nil || line == 0 {
		return err
	}
	c := *e
	c.Where = fmt.Sprintf("COPY %s, line %d, column %s", a.table, line, column)
	if !a.hide {
		c.Where += ": \"" + limit(string(v)) + "\""
	}
	return &c
}

// Take returns the rows so far as a batch, which the caller releases, and starts the next.
func (a *Appender) Take() arrow.RecordBatch {
	n := a.rows
	a.rows, a.bytes = 0, 0
	cols := make([]arrow.Array, len(a.cols))
	for i := range cols {
		all := a.b.Field(i).NewArray()
		cols[i] = array.NewSlice(all, 0, int64(n)) // a row that failed may have left its first values
		all.Release()
	}
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	return array.NewRecordBatch(a.b.Schema(), cols, int64(n))
}

// newPut makes the function that parses a value of a PostgreSQL type and appends it to a storage column.
func newPut(b array.Builder, oid uint32, mod int32, st pgenc.Style) (putFunc, error) {
	switch x := b.(type) {
	case *array.BooleanBuilder:
		return put(pgenc.ParseBool, x.Append), nil
	case *array.Int32Builder:
		if oid == pgtype.Int2 {
			return put(pgenc.ParseInt2, func(v int16) { x.Append(int32(v)) }), nil
		}
		return put(pgenc.ParseInt4, x.Append), nil
	case *array.Int64Builder:
		return put(pgenc.ParseInt8, x.Append), nil
	case *array.Float32Builder:
		return put(pgenc.ParseFloat4, x.Append), nil
	case *array.Float64Builder:
		return put(pgenc.ParseFloat8, x.Append), nil
	case *array.Decimal128Builder:
		return putDecimal(x, mod), nil
	case *array.Date32Builder:
		return putDate(x, st), nil
	case *array.Time64Builder:
		return put(st.ParseTime, func(v int64) { x.Append(arrow.Time64(v)) }), nil
	case *array.TimestampBuilder:
		parse := st.ParseTimestamp
		if oid == pgtype.TimestampTZ {
			parse = st.ParseTimestampTZ
		}
		return put(parse, func(v int64) { x.Append(arrow.Timestamp(v)) }), nil
	case *extensions.UUIDBuilder:
		return put(pgenc.ParseUUID, func(v pgenc.UUID) { x.Append([16]byte(v)) }), nil
	case *array.FixedSizeBinaryBuilder:
		return put(pgenc.ParseUUID, func(v pgenc.UUID) { x.Append(v[:]) }), nil
	case *array.BinaryBuilder:
		var buf []byte
		return func(v []byte) (err error) {
			if buf, err = pgenc.ParseBytea(buf[:0], v); err == nil {
				x.Append(buf)
			}
			return err
		}, nil
	case *array.StringBuilder:
		return putString(x, oid, mod, st), nil
	case *array.ListBuilder:
		return putList(x, oid, mod, st)
	}
	return nil, pgerr.Newf(pgerr.FeatureNotSupported, "COPY into a column of type %s is not supported", pgtype.FormatNoTypmod(oid))
}

func put[T any](parse func([]byte) (T, error), app func(T)) putFunc {
	return func(v []byte) error {
		x, err := parse(v)
		if err != nil {
			return err
		}
		app(x)
		return nil
	}
}

// putDecimal rounds to the declared scale, as PostgreSQL does for numeric(p, s), and refuses what has more digits than a
// column without declared scale stores.
func putDecimal(x *array.Decimal128Builder, mod int32) putFunc {
	dt := x.Type().(*arrow.Decimal128Type)
	return func(v []byte) error {
		hi, lo, err := pgenc.ParseDecimal(v, dt.Precision, dt.Scale)
		if err != nil {
			return err
		}
		if mod < 0 {
			if err := exactScale(v, dt.Scale); err != nil {
				return err
			}
		}
		x.Append(decimal128.New(hi, lo))
		return nil
	}
}

// exactScale refuses a numeric with more significant digits after the point than are stored: never rounded silently.
func exactScale(v []byte, scale int32) error {
	point := bytes.IndexByte(v, '.')
	if point < 0 || bytes.ContainsAny(v, "eE") {
		return nil
	}
	frac := bytes.TrimRight(bytes.TrimRight(v[point+1:], " \t\n\r"), "0")
	if len(frac) > int(scale) {
		return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A column of type numeric without declared scale holds %d digits after the decimal point.", scale)
	}
	return nil
}

// putDate refuses infinity, which Iceberg has not.
func putDate(x *array.Date32Builder, st pgenc.Style) putFunc {
	const infinity = 1<<31 - 1
	return func(v []byte) error {
		d, err := st.ParseDate(v)
		if err != nil {
			return err
		}
		if d == infinity || d == -infinity || d == -infinity-1 {
			return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: infinity cannot be stored")
		}
		x.Append(arrow.Date32(d))
		return nil
	}
}

// putString appends text and the types that are stored as text.
func putString(x *array.StringBuilder, oid uint32, mod int32, st pgenc.Style) putFunc {
	var buf []byte
	switch oid {
	case pgtype.JSON:
		return func(v []byte) error {
			if err := pgenc.CheckJSON(v); err != nil {
				return err
			}
			x.Append(string(v))
			return nil
		}
	case pgtype.JSONB:
		return func(v []byte) (err error) {
			if buf, err = pgenc.AppendJSONB(buf[:0], v); err == nil {
				x.Append(string(buf))
			}
			return err
		}
	case pgtype.Interval:
		return func(v []byte) error {
			iv, err := st.ParseInterval(v)
			if err != nil {
				return err
			}
			buf = pgenc.AppendIntervalISO(buf[:0], iv)
			x.Append(string(buf))
			return nil
		}
	case pgtype.Name:
		return func(v []byte) error { x.Append(string(pgenc.TruncateName(v))); return nil }
	}
	if (oid == pgtype.Varchar || oid == pgtype.BPChar) && mod >= 4 {
		return putSized(x, oid, int(mod-4))
	}
	return func(v []byte) error { x.Append(string(v)); return nil }
}

// putSized checks the length of varchar(n) and char(n): blanks beyond it are cut, anything else is 22001; char is padded.
func putSized(x *array.StringBuilder, oid uint32, n int) putFunc {
	return func(v []byte) error {
		have := utf8.RuneCount(v)
		if have > n {
			cut := 0
			for range n {
				_, size := utf8.DecodeRune(v[cut:])
				cut += size
			}
			if len(bytes.TrimRight(v[cut:], " ")) > 0 {
				word := "character varying"
				if oid == pgtype.BPChar {
					word = "character"
				}
				return pgerr.Newf(pgerr.StringDataRightTruncation, "value too long for type %s(%d)", word, n)
			}
			v, have = v[:cut], n
		}
		if oid == pgtype.BPChar && have < n {
			v = append(bytes.Clone(v), bytes.Repeat([]byte{' '}, n-have)...)
		}
		x.Append(string(v))
		return nil
	}
}

// putList appends an array of one dimension.
func putList(x *array.ListBuilder, oid uint32, mod int32, st pgenc.Style) (putFunc, error) {
	elem, err := newPut(x.ValueBuilder(), pgtype.ElemOf(oid), mod, st)
	if err != nil {
		return nil, err
	}
	return func(v []byte) error {
		x.Append(true)
		dims, err := pgenc.EachArrayElem(v, func(text []byte) error {
			if text == nil {
				x.ValueBuilder().AppendNull()
				return nil
			}
			return elem(text)
		})
		if err == nil && len(dims) > 1 {
			return pgerr.New(pgerr.FeatureNotSupported, "arrays of several dimensions cannot be stored")
		}
		if e := pgenc.BeginAtOne(dims); err == nil && e != nil {
			return e
		}
		return err
	}, nil
}
