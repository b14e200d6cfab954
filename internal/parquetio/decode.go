package parquetio

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// errShort is returned when a column ends before the row group does.
var errShort = errors.New("column ends before its row group")

// columnStream decodes a flat column of one row group from front to back.
type columnStream struct {
	rd   file.ColumnChunkReader
	conv *conversion
	opt  bool // the column is optional: definition levels are stored
	defs []int16
	i32  []int32
	i64  []int64
	f32  []float32
	b    []bool
	ba   []parquet.ByteArray
	flba []parquet.FixedLenByteArray
	i96  []parquet.Int96
}

func newColumnStream(rd file.ColumnChunkReader, c *conversion) *columnStream {
	return &columnStream{rd: rd, conv: c, opt: rd.Descriptor().MaxDefinitionLevel() > 0}
}

// scratch makes s at least n long.
func scratch[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

func (s *columnStream) levels(n int) []int16 {
	if !s.opt {
		return nil
	}
	return scratch(&s.defs, n)
}

// read appends the next n rows to v.
func (s *columnStream) read(v *vector, n int) error {
	for n > 0 {
		got, err := s.readSome(v, n)
		if err != nil {
			return err
		}
		if got <= 0 || got > n {
			if err := s.rd.Err(); err != nil {
				return err
			}
			return errShort
		}
		n -= got
	}
	return nil
}

// readSome decodes up to n rows, at least one unless the column has ended.
func (s *columnStream) readSome(v *vector, n int) (int, error) {
	defs := s.levels(n)
	switch rd := s.rd.(type) {
	case *file.Int64ColumnChunkReader:
		if s.conv.dec || s.conv.mul > 1 || s.conv.div > 1 {
			vals := scratch(&s.i64, n)
			rows, read, err := rd.ReadBatch(int64(n), vals, defs, nil)
			return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { v.appendInt(vals[i]); return nil })
		}
		return direct(s, v, n, func(vals []int64) (int64, int, error) { return rd.ReadBatch(int64(n), vals, defs, nil) })
	case *file.Int32ColumnChunkReader:
		if s.conv.dec || s.conv.widen {
			vals := scratch(&s.i32, n)
			rows, read, err := rd.ReadBatch(int64(n), vals, defs, nil)
			return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { v.appendInt(int64(vals[i])); return nil })
		}
		return direct(s, v, n, func(vals []int32) (int64, int, error) { return rd.ReadBatch(int64(n), vals, defs, nil) })
	case *file.Float64ColumnChunkReader:
		return direct(s, v, n, func(vals []float64) (int64, int, error) { return rd.ReadBatch(int64(n), vals, defs, nil) })
	case *file.Float32ColumnChunkReader:
		if s.conv.widen {
			vals := scratch(&s.f32, n)
			rows, read, err := rd.ReadBatch(int64(n), vals, defs, nil)
			return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { v.appendFloat(vals[i]); return nil })
		}
		return direct(s, v, n, func(vals []float32) (int64, int, error) { return rd.ReadBatch(int64(n), vals, defs, nil) })
	case *file.BooleanColumnChunkReader:
		vals := scratch(&s.b, n)
		rows, read, err := rd.ReadBatch(int64(n), vals, defs, nil)
		return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { v.appendBool(vals[i]); return nil })
	case *file.ByteArrayColumnChunkReader:
		vals := scratch(&s.ba, n)
		// In one page: the values alias it, and are copied before the next is read.
		rows, read, err := rd.ReadBatchInPage(int64(n), vals, defs, nil)
		return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { return v.appendBytes(vals[i]) })
	case *file.FixedLenByteArrayColumnChunkReader:
		vals := scratch(&s.flba, n)
		rows, read, err := rd.ReadBatchInPage(int64(n), vals, defs, nil)
		return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error {
			if len(vals[i]) != s.conv.srcLen {
				return errShort
			}
			return v.appendBytes(vals[i])
		})
	case *file.Int96ColumnChunkReader:
		vals := scratch(&s.i96, n)
		rows, read, err := rd.ReadBatch(int64(n), vals, defs, nil)
		return int(rows), s.each(v, defs, int(rows), read, err, func(i int) error { v.appendInt96(vals[i]); return nil })
	}
	return 0, fmt.Errorf("unknown physical type %s", s.rd.Type())
}

// each appends rows one by one: a value where the level says so, else NULL.
func (s *columnStream) each(v *vector, defs []int16, rows, read int, err error, value func(i int) error) error {
	if err != nil {
		return err
	}
	if !s.opt {
		if rows > read {
			return errShort
		}
		for i := range rows {
			if err := value(i); err != nil {
				return err
			}
		}
		return nil
	}
	at := 0
	for row := range rows {
		if defs[row] == 0 {
			v.appendNull()
			continue
		}
		if at >= read {
			return errShort
		}
		if err := value(at); err != nil {
			return err
		}
		at++
	}
	return nil
}

// direct decodes values whose stored form is Arrow's straight into the vector, then moves them apart where NULLs stand.
func direct[T int32 | int64 | float32 | float64](s *columnStream, v *vector, n int, read func([]T) (int64, int, error)) (int, error) {
	start := len(v.data)
	out := grow[T](v, n)
	rows64, got, err := read(out)
	rows := int(rows64)
	if err != nil {
		return 0, err
	}
	if rows > n || got > rows {
		return 0, errShort
	}
	v.data = v.data[:start+rows*v.conv.width]
	if !s.opt || got == rows {
		if v.valid == nil {
			v.n += rows
			return rows, nil
		}
		for range rows {
			v.mark(true)
		}
		return rows, nil
	}
	at := got
	for row := rows - 1; row >= 0; row-- {
		if s.defs[row] == 0 {
			out[row] = 0
			continue
		}
		if at == 0 {
			return 0, errShort
		}
		at--
		out[row] = out[at]
	}
	for row := range rows {
		v.mark(s.defs[row] != 0)
	}
	return rows, nil
}
