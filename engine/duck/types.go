package duck

import (
	"fmt"
	"strings"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// logical is a DuckDB type, taken apart once per statement.
type logical struct {
	id           bind.Type
	phys         bind.Type // of DECIMAL and ENUM: the integer that holds it
	width, scale uint8
	json         bool
	array        int // elements of a fixed-size ARRAY
	enum         []string
	names        []string // of STRUCT and UNION members
	child        []*logical
	oid          uint32
	typmod       int32
	name         string
}

// newLogical reads lt and destroys it.
func newLogical(lt bind.LogicalType) *logical {
	defer bind.DestroyLogicalType(&lt)
	t := &logical{id: bind.GetTypeId(lt), typmod: -1}
	t.phys = t.id
	switch t.id {
	case bind.TypeVarchar:
		t.json = bind.LogicalTypeGetAlias(lt) == "JSON"
	case bind.TypeDecimal:
		t.width, t.scale = bind.DecimalWidth(lt), bind.DecimalScale(lt)
		t.phys = bind.DecimalInternalType(lt)
		t.typmod = int32(t.width)<<16 | int32(t.scale) + 4
	case bind.TypeEnum:
		t.phys = bind.EnumInternalType(lt)
		t.enum = make([]string, bind.EnumDictionarySize(lt))
		for i := range t.enum {
			t.enum[i] = bind.EnumDictionaryValue(lt, bind.IdxT(i))
		}
	case bind.TypeList:
		t.child = []*logical{newLogical(bind.ListTypeChildType(lt))}
	case bind.TypeArray:
		t.child = []*logical{newLogical(bind.ArrayTypeChildType(lt))}
		t.array = int(bind.ArrayTypeArraySize(lt))
	case bind.TypeStruct:
		for i := range bind.StructTypeChildCount(lt) {
			t.names = append(t.names, bind.StructTypeChildName(lt, i))
			t.child = append(t.child, newLogical(bind.StructTypeChildType(lt, i)))
		}
	case bind.TypeMap:
		t.child = []*logical{newLogical(bind.MapTypeKeyType(lt)), newLogical(bind.MapTypeValueType(lt))}
	case bind.TypeUnion:
		for i := range bind.UnionTypeMemberCount(lt) {
			t.names = append(t.names, bind.UnionTypeMemberName(lt, i))
			t.child = append(t.child, newLogical(bind.UnionTypeMemberType(lt, i)))
		}
	}
	t.name = t.sqlName()
	t.oid = t.pgOID()
	return t
}

var scalarTypes = map[bind.Type]struct {
	name string
	oid  uint32
}{
	bind.TypeBoolean:     {"BOOLEAN", pgtype.Bool},
	bind.TypeTinyInt:     {"TINYINT", pgtype.Int2},
	bind.TypeSmallInt:    {"SMALLINT", pgtype.Int2},
	bind.TypeInteger:     {"INTEGER", pgtype.Int4},
	bind.TypeBigInt:      {"BIGINT", pgtype.Int8},
	bind.TypeHugeInt:     {"HUGEINT", pgtype.Numeric},
	bind.TypeUTinyInt:    {"UTINYINT", pgtype.Int2},
	bind.TypeUSmallInt:   {"USMALLINT", pgtype.Int4},
	bind.TypeUInteger:    {"UINTEGER", pgtype.Int8},
	bind.TypeUBigInt:     {"UBIGINT", pgtype.Numeric},
	bind.TypeUHugeInt:    {"UHUGEINT", pgtype.Numeric},
	bind.TypeBigNum:      {"BIGNUM", pgtype.Numeric},
	bind.TypeFloat:       {"FLOAT", pgtype.Float4},
	bind.TypeDouble:      {"DOUBLE", pgtype.Float8},
	bind.TypeDecimal:     {"DECIMAL", pgtype.Numeric},
	bind.TypeVarchar:     {"VARCHAR", pgtype.Text},
	bind.TypeBlob:        {"BLOB", pgtype.Bytea},
	bind.TypeBit:         {"BIT", pgtype.Text},
	bind.TypeUUID:        {"UUID", pgtype.UUID},
	bind.TypeDate:        {"DATE", pgtype.Date},
	bind.TypeTime:        {"TIME", pgtype.Time},
	bind.TypeTimeNS:      {"TIME_NS", pgtype.Time},
	bind.TypeTimeTZ:      {"TIMETZ", pgtype.TimeTZ},
	bind.TypeTimestamp:   {"TIMESTAMP", pgtype.Timestamp},
	bind.TypeTimestampS:  {"TIMESTAMP_S", pgtype.Timestamp},
	bind.TypeTimestampMS: {"TIMESTAMP_MS", pgtype.Timestamp},
	bind.TypeTimestampNS: {"TIMESTAMP_NS", pgtype.Timestamp},
	bind.TypeTimestampTZ: {"TIMESTAMPTZ", pgtype.TimestampTZ},
	bind.TypeInterval:    {"INTERVAL", pgtype.Interval},
	bind.TypeEnum:        {"VARCHAR", pgtype.Text},
	bind.TypeSQLNull:     {"VARCHAR", pgtype.Text},
	bind.TypeGeometry:    {"GEOMETRY", pgtype.Text},
	bind.TypeVariant:     {"VARIANT", pgtype.JSONB},
}

func (t *logical) sqlName() string {
	switch t.id {
	case bind.TypeDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.width, t.scale)
	case bind.TypeVarchar:
		if t.json {
			return "JSON"
		}
	case bind.TypeList:
		return t.child[0].name + "[]"
	case bind.TypeArray:
		return fmt.Sprintf("%s[%d]", t.child[0].name, t.array)
	case bind.TypeStruct, bind.TypeUnion:
		parts := make([]string, len(t.child))
		for i, c := range t.child {
			parts[i] = quoteIdent(t.names[i]) + " " + c.name
		}
		if t.id == bind.TypeUnion {
			return "UNION(" + strings.Join(parts, ", ") + ")"
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	case bind.TypeMap:
		return "MAP(" + t.child[0].name + ", " + t.child[1].name + ")"
	}
	return scalarTypes[t.id].name
}

// pgOID is the PostgreSQL type that a client sees: arrays by the type of the innermost element, whatever the number of
// dimensions; composite values, and arrays of them, as jsonb; 0 for a type that has none.
func (t *logical) pgOID() uint32 {
	switch t.id {
	case bind.TypeVarchar:
		if t.json {
			return pgtype.JSON
		}
	case bind.TypeList, bind.TypeArray:
		e := t.innermost()
		if e.composite() {
			return pgtype.JSONB
		}
		return pgtype.ArrayOf(e.oid)
	case bind.TypeStruct, bind.TypeMap, bind.TypeUnion:
		return pgtype.JSONB
	}
	return scalarTypes[t.id].oid
}

func (t *logical) innermost() *logical {
	for t.id == bind.TypeList || t.id == bind.TypeArray {
		t = t.child[0]
	}
	return t
}

func (t *logical) composite() bool {
	return t.id == bind.TypeStruct || t.id == bind.TypeMap || t.id == bind.TypeUnion || t.id == bind.TypeVariant
}

func (t *logical) column(name string) Column {
	c := Column{Name: name, TypeOID: t.oid, TypeMod: -1, DuckType: t.name}
	if t.id == bind.TypeDecimal {
		c.TypeMod = t.typmod
	}
	c.TypeLen = pgtype.LenOf(t.oid)
	return c
}
