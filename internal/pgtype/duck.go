package pgtype

import "strconv"

var duckNames = map[uint32]string{
	Bool:        "BOOLEAN",
	Int2:        "SMALLINT",
	Int4:        "INTEGER",
	Int8:        "BIGINT",
	Float4:      "FLOAT",
	Float8:      "DOUBLE",
	Bytea:       "BLOB",
	UUID:        "UUID",
	Date:        "DATE",
	Time:        "TIME",
	TimeTZ:      "TIMETZ",
	Timestamp:   "TIMESTAMP",
	TimestampTZ: "TIMESTAMPTZ",
	Interval:    "INTERVAL",
	JSON:        "JSON",
	JSONB:       "JSON",
	OID:         "BIGINT",
	XID:         "BIGINT",
	CID:         "BIGINT",
	RegClass:    "BIGINT",
	RegType:     "BIGINT",
	RegProc:     "BIGINT",
	RegRole:     "BIGINT",
	// An int2vector is 0-based in PostgreSQL; the catalog's rewriting takes care of the subscript.
	RegNamespace: "BIGINT",
	RegProcedure: "BIGINT",
	Int2Vector:   "SMALLINT[]",
	OIDVector:    "BIGINT[]",
}

// DuckName is the DuckDB type in which expressions of the PostgreSQL type are computed: "DECIMAL(12,2)", "VARCHAR[]".
// numeric without precision is DECIMAL(38,9); types that DuckDB lacks are VARCHAR; lengths of varchar are not part of it.
func DuckName(oid uint32, typmod int32) string {
	if oid == Numeric {
		t, _ := decimalType(typmod)
		d := arrowType(t).(interface {
			GetPrecision() int32
			GetScale() int32
		})
		return "DECIMAL(" + strconv.Itoa(int(d.GetPrecision())) + "," + strconv.Itoa(int(d.GetScale())) + ")"
	}
	if name, ok := duckNames[oid]; ok {
		return name
	}
	if elem := ElemOf(oid); elem != 0 {
		return DuckName(elem, typmod) + "[]"
	}
	return "VARCHAR"
}

// DuckStorageName is the DuckDB type in which a column of the type comes out of its data files: as DuckName, but
// interval, json and jsonb are the VARCHAR that Iceberg's string is and smallint is INTEGER.
func DuckStorageName(oid uint32, typmod int32) string {
	switch oid {
	case Interval, JSON, JSONB:
		return "VARCHAR"
	case Int2:
		return "INTEGER"
	}
	if elem := ElemOf(oid); elem != 0 {
		return DuckStorageName(elem, typmod) + "[]"
	}
	return DuckName(oid, typmod)
}
