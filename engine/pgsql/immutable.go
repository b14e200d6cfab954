package pgsql

import "github.com/nordisk/skade-pg/internal/pgtype"

// unstableOps are the operators whose functions are not immutable in PostgreSQL 15 (pg_operator joined with pg_proc), among the types of columns.
// Comparisons are in unstablePairs.
var unstableOps = map[operRow]bool{
	{"+", pgtype.TimestampTZ, pgtype.Interval, pgtype.TimestampTZ}: true,
	{"+", pgtype.Interval, pgtype.TimestampTZ, pgtype.TimestampTZ}: true,
	{"-", pgtype.TimestampTZ, pgtype.Interval, pgtype.TimestampTZ}: true,
	{"||", pgtype.Text, tAnyNonArray, pgtype.Text}:                 true,
	{"||", tAnyNonArray, pgtype.Text, pgtype.Text}:                 true,
}

// unstablePairs are the types between which comparisons, and casts, need the session's time zone.
var unstablePairs = map[[2]uint32]bool{
	{pgtype.Date, pgtype.TimestampTZ}: true, {pgtype.Timestamp, pgtype.TimestampTZ}: true,
	{pgtype.TimestampTZ, pgtype.Date}: true, {pgtype.TimestampTZ, pgtype.Timestamp}: true,
}

// unstableTexts are the types whose text forms depend on settings: input, output.
var unstableTexts = map[uint32][2]bool{
	pgtype.Date: {true, true}, pgtype.Timestamp: {true, true}, pgtype.TimestampTZ: {true, true}, pgtype.Interval: {true, true},
	pgtype.Time: {true, false}, pgtype.TimeTZ: {true, false}, pgtype.RegClass: {true, true}, pgtype.RegType: {true, true}, pgtype.RegProc: {true, true},
}

// noteOperator remembers an operator that is not immutable.
func (az *analyzer) noteOperator(op *operRow) {
	if unstableOps[*op] || op.result == pgtype.Bool && unstablePairs[[2]uint32{op.left, op.right}] {
		az.unstable = true
	}
}

// noteCast remembers a cast that is not immutable.
func (az *analyzer) noteCast(from, to uint32) {
	if e := elemType(from); e != 0 {
		from = e
	}
	if e := elemType(to); e != 0 {
		to = e
	}
	switch {
	case from == to:
	case unstablePairs[[2]uint32{from, to}], from == pgtype.TimestampTZ && to == pgtype.Time,
		isString(from) && unstableTexts[to][0], isString(to) && unstableTexts[from][1]:
		az.unstable = true
	}
}
