package duck

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	bind "github.com/duckdb/duckdb-go-bindings"
)

// The Go types of bound values that have no built-in counterpart.
type (
	// Hugeint is a 128-bit two's complement integer.
	Hugeint struct {
		Hi int64
		Lo uint64
	}
	// Decimal is Value × 10^-Scale of at most Width digits.
	Decimal struct {
		Value        Hugeint
		Width, Scale uint8
	}
	// Date is days since 1970-01-01.
	Date int32
	// Time is microseconds since midnight.
	Time int64
	// Timestamp is microseconds since 1970-01-01, without zone.
	Timestamp int64
	// TimestampTZ is microseconds since 1970-01-01 UTC.
	TimestampTZ int64
	// Interval is PostgreSQL's: months, days and microseconds, each for itself.
	Interval struct {
		Months, Days int32
		Micros       int64
	}
	// UUID is the 16 bytes in text order.
	UUID [16]byte
	// List is an array value. Elem is the DuckDB type name of the elements ("BIGINT", "DECIMAL(10,2)", "VARCHAR[]"), which are
	// values of the types that Query takes; nil is NULL.
	List struct {
		Elem   string
		Values []any
	}
)

func (u UUID) halves() (lo, hi uint64) {
	return binary.BigEndian.Uint64(u[8:]), binary.BigEndian.Uint64(u[:8])
}

var typesByName = func() map[string]bind.Type {
	m := map[string]bind.Type{"JSON": bind.TypeVarchar}
	for id, t := range scalarTypes {
		if id != bind.TypeEnum && id != bind.TypeSQLNull {
			m[t.name] = id
		}
	}
	return m
}()

// typeByName makes the logical type of a scalar or list type name, which the caller destroys.
func typeByName(name string) (bind.LogicalType, error) {
	if elem, ok := strings.CutSuffix(name, "[]"); ok {
		e, err := typeByName(elem)
		if err != nil {
			return e, err
		}
		defer bind.DestroyLogicalType(&e)
		return bind.CreateListType(e), nil
	}
	if args, ok := strings.CutPrefix(name, "DECIMAL("); ok {
		w, s, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		width, err1 := strconv.ParseUint(strings.TrimSpace(w), 10, 8)
		scale, err2 := strconv.ParseUint(strings.TrimSpace(s), 10, 8)
		if err1 == nil && err2 == nil && width >= 1 && width <= 38 && scale <= width {
			return bind.CreateDecimalType(uint8(width), uint8(scale)), nil
		}
	}
	if id, ok := typesByName[name]; ok && id != bind.TypeDecimal {
		return bind.CreateLogicalType(id), nil
	}
	return bind.LogicalType{}, fmt.Errorf("%w: %s", ErrUnsupportedType, name)
}

func (l List) elementType() (bind.LogicalType, error) { return typeByName(l.Elem) }
