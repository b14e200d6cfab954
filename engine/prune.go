package engine

import (
	"bytes"
	"strconv"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// pruner says which data files can hold a row that a query's simple predicates let through. It reads bounds only: a file that
// it keeps may hold none, a file that it drops holds none.
func pruner(sc *iceberg.Schema, use *pgsql.RelUse, s *session, args []value) func(iceberg.DataFile) bool {
	var tests []func(iceberg.DataFile) bool
	fields := sc.Fields()
	for _, p := range use.Preds {
		if p.Column >= len(fields) || use.Relation.Columns[p.Column].Type == pgtype.BPChar {
			continue // char(n) is compared without its trailing blanks, which bounds have
		}
		if t := boundsTest(fields[p.Column], p, s, args); t != nil {
			tests = append(tests, t)
		}
	}
	return func(df iceberg.DataFile) bool {
		for _, t := range tests {
			if !t(df) {
				return false
			}
		}
		return true
	}
}

// boundsTest is the test of one predicate, nil when bounds cannot tell.
func boundsTest(f iceberg.NestedField, p pgsql.Predicate, s *session, args []value) func(iceberg.DataFile) bool {
	compare := boundCompare(f.Type)
	if compare == nil {
		return nil
	}
	var lits [][]byte
	for _, a := range p.Values {
		enc, ok := boundValue(f.Type, a, s, args)
		if !ok {
			return nil
		}
		lits = append(lits, enc)
	}
	if len(lits) == 0 {
		return nil
	}
	above := func(df iceberg.DataFile, v []byte) int { return cmpBound(compare, df.LowerBoundValues()[f.ID], v) } // >0: everything is above v
	below := func(df iceberg.DataFile, v []byte) int { return cmpBound(compare, df.UpperBoundValues()[f.ID], v) } // <0: everything is below v
	switch p.Op {
	case "=", "in":
		return func(df iceberg.DataFile) bool {
			for _, v := range lits {
				if above(df, v) <= 0 && below(df, v) >= 0 {
					return true
				}
			}
			return false
		}
	case "<", "<=": // a bound that cannot be compared counts as equal, so < keeps the equal case too
		return func(df iceberg.DataFile) bool { return above(df, lits[0]) <= 0 }
	case ">", ">=":
		return func(df iceberg.DataFile) bool { return below(df, lits[0]) >= 0 }
	}
	return nil
}

// cmpBound compares a bound with a value; a missing bound compares as equal: it excludes nothing.
func cmpBound(compare func(a, b []byte) (int, bool), bound, v []byte) int {
	if bound == nil {
		return 0
	}
	c, ok := compare(bound, v)
	if !ok {
		return 0
	}
	return c
}

// boundCompare compares two values in Iceberg's single-value serialisation.
func boundCompare(t iceberg.Type) func(a, b []byte) (int, bool) {
	little := func(n int) func(a, b []byte) (int, bool) {
		return func(a, b []byte) (int, bool) {
			x, ok1 := littleInt(a, n)
			y, ok2 := littleInt(b, n)
			switch {
			case !ok1 || !ok2:
				return 0, false
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	switch t.(type) {
	case iceberg.Int32Type, iceberg.DateType:
		return little(4)
	case iceberg.Int64Type, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimeType:
		return little(8)
	case iceberg.StringType:
		return func(a, b []byte) (int, bool) { return bytes.Compare(a, b), true }
	}
	return nil
}

// littleInt reads a little-endian integer; a bound written before a promotion is shorter.
func littleInt(b []byte, n int) (int64, bool) {
	switch len(b) {
	case 4:
		return int64(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)), true
	case 8:
		if n == 8 {
			var v uint64
			for i := 7; i >= 0; i-- {
				v = v<<8 | uint64(b[i])
			}
			return int64(v), true
		}
	}
	return 0, false
}

// argText is a constant's or a parameter's type and text; false for others and NULL.
func argText(a *pgsql.Arg, s *session, args []value) (oid uint32, text string, ok bool) {
	switch {
	case a == nil || a.Row != nil || a.Array != nil || (!a.Const && a.Param == 0) || a.Null:
		return 0, "", false
	case a.Param == 0:
		return a.Type, a.Text, true
	case a.Param > len(args) || args[a.Param-1].null:
		return 0, "", false
	}
	v := args[a.Param-1].text(s.style())
	return v.OID, v.Text, true
}

func isInteger(oid uint32) bool {
	return oid == pgtype.Int2 || oid == pgtype.Int4 || oid == pgtype.Int8
}

// boundValue serialises a predicate's value as the column's bounds are.
func boundValue(t iceberg.Type, a *pgsql.Arg, s *session, args []value) ([]byte, bool) {
	oid, text, ok := argText(a, s, args)
	if !ok {
		return nil, false
	}
	le := func(n int, v int64) []byte {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte(v >> (8 * i))
		}
		return out
	}
	integer := isInteger(oid)
	st := s.style()
	switch t.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		n, err := strconv.ParseInt(text, 10, 64)
		if !integer || err != nil {
			return nil, false
		}
		if _, small := t.(iceberg.Int32Type); small && (n < -1<<31 || n >= 1<<31) {
			return nil, false
		}
		return le(intWidth(t), n), true
	case iceberg.DateType:
		d, err := st.ParseDate([]byte(text))
		return le(4, int64(d)), oid == pgtype.Date && err == nil
	case iceberg.TimestampType:
		v, err := st.ParseTimestamp([]byte(text))
		return le(8, v), oid == pgtype.Timestamp && err == nil
	case iceberg.TimestampTzType:
		v, err := st.ParseTimestampTZ([]byte(text))
		return le(8, v), oid == pgtype.TimestampTZ && err == nil
	case iceberg.TimeType:
		v, err := st.ParseTime([]byte(text))
		return le(8, v), oid == pgtype.Time && err == nil
	case iceberg.StringType:
		return []byte(text), oid == pgtype.Text || oid == pgtype.Varchar || oid == pgtype.Unknown
	}
	return nil, false
}

func intWidth(t iceberg.Type) int {
	if _, ok := t.(iceberg.Int32Type); ok {
		return 4
	}
	return 8
}
