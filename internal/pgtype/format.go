package pgtype

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// sqlNames are the types that format_type spells in SQL's words; the others are shown by their pg_type name.
var sqlNames = map[uint32]string{
	Bool:        "boolean",
	Int2:        "smallint",
	Int4:        "integer",
	Int8:        "bigint",
	Float4:      "real",
	Float8:      "double precision",
	Varchar:     "character varying",
	BPChar:      "character",
	Char:        `"char"`,
	Bit:         "bit",
	VarBit:      "bit varying",
	Time:        "time without time zone",
	TimeTZ:      "time with time zone",
	Timestamp:   "timestamp without time zone",
	TimestampTZ: "timestamp with time zone",
	Any:         `"any"`,
}

// Format is format_type(oid, typmod): "character varying(20)", "timestamp(3) without time zone", "integer[]", "???" for
// an unknown OID and "-" for 0. Pass -1 when there is no typmod.
// Source: format_type_extended in PostgreSQL 15; char without typmod is "bpchar" there when a typmod is asked for and absent.
func Format(oid uint32, typmod int32) string {
	if oid == 0 {
		return "-"
	}
	t, ok := byOID[oid]
	if !ok {
		return "???"
	}
	if elem := ElemOf(oid); elem != 0 {
		return Format(elem, typmod) + "[]"
	}
	mod := TypmodOut(oid, typmod)
	switch oid {
	case BPChar:
		// A bare char is char(1) in SQL; without a typmod it is the internal name that says "no limit".
		if mod == "" {
			return "bpchar"
		}
		return "character" + mod
	case Bit:
		if mod == "" {
			return `"bit"`
		}
	case Time, Timestamp, TimeTZ, TimestampTZ:
		// The typmod stands before "without time zone".
		word, zone, _ := strings.Cut(sqlNames[oid], " ")
		return word + mod + " " + zone
	}
	if name, ok := sqlNames[oid]; ok {
		return name + mod
	}
	return t.Name + mod
}

// FormatNoTypmod is format_type(oid, NULL) and regtype's text: char and bit lose the marks that say "no typmod given".
func FormatNoTypmod(oid uint32) string {
	if elem := ElemOf(oid); elem != 0 {
		return FormatNoTypmod(elem) + "[]"
	}
	if oid == BPChar || oid == Bit {
		return sqlNames[oid]
	}
	return Format(oid, -1)
}

// shortName is the spelling of a property: pg_type's name with the typmod, "varchar(20)", "int2[]".
func shortName(oid uint32, typmod int32) string {
	if elem := ElemOf(oid); elem != 0 {
		return shortName(elem, typmod) + "[]"
	}
	t, ok := byOID[oid]
	if !ok {
		return ""
	}
	return t.Name + TypmodOut(oid, typmod)
}

// Parse reads a type's text: a name of ByName, an optional typmod in parentheses anywhere after its first word and an
// optional "[]". It reads what Format and a property write. Errors: 42704 unknown type, EncodeTypmod's.
func Parse(text string) (oid uint32, typmod int32, err error) {
	name := strings.TrimSpace(text)
	base, isArray := strings.CutSuffix(name, "[]")
	var args []int32
	if open := strings.IndexByte(base, '('); open >= 0 {
		end := strings.IndexByte(base[open:], ')')
		if end < 0 {
			return 0, -1, pgerr.Newf(pgerr.UndefinedObject, "type %q does not exist", text)
		}
		for _, arg := range strings.Split(base[open+1:open+end], ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(arg), 10, 32)
			if err != nil {
				return 0, -1, pgerr.Newf(pgerr.UndefinedObject, "type %q does not exist", text)
			}
			args = append(args, int32(n))
		}
		base = strings.TrimSpace(base[:open]) + base[open+end+1:]
	}
	t, ok := ByName(strings.TrimSpace(base))
	if !ok {
		return 0, -1, pgerr.Newf(pgerr.UndefinedObject, "type %q does not exist", text)
	}
	if t.OID == Interval && len(args) == 1 {
		args = []int32{intervalFullRange, args[0]}
	}
	typmod, err = EncodeTypmod(t.OID, args)
	if err != nil {
		return 0, -1, err
	}
	if isArray {
		if t.ArrayOID == 0 {
			return 0, -1, pgerr.Newf(pgerr.UndefinedObject, "type %q does not exist", text)
		}
		return t.ArrayOID, typmod, nil
	}
	return t.OID, typmod, nil
}
