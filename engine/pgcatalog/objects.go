package pgcatalog

import "time"

// Objects is what the user has, at one cut of the warehouse's catalog. It is not changed after Catalog.Snapshot.
type Objects struct {
	Databases  []Database
	Roles      []Role
	Namespaces []Namespace
	Relations  []Relation
	Functions  []Function
}

// Database is a row of pg_database.
type Database struct {
	OID     uint32
	Name    string
	Owner   uint32
	Bytes   int64
	Comment string
}

// Role is a row of pg_authid. The bootstrap superuser has OID 10.
type Role struct {
	OID         uint32
	Name        string
	Superuser   bool
	CreateDB    bool
	CreateRole  bool
	Inherit     bool
	Login       bool
	Replication bool
	BypassRLS   bool
	ConnLimit   int32 // -1: no limit
	ValidUntil  time.Time
	MemberOf    []uint32
	Comment     string
}

// Namespace is a schema of the user. pg_catalog, information_schema, pg_toast and skade are added by the Snapshot; public has
// OID 2200 whether or not it is listed.
type Namespace struct {
	// OID may be 0: it is then a function of the name.
	OID     uint32
	Name    string
	Owner   uint32
	Comment string
}

// RelationKind is pg_class.relkind.
type RelationKind byte

// The kinds of user relations.
const (
	Table RelationKind = 'r'
	View  RelationKind = 'v'
)

// Relation is a table or view of the user.
type Relation struct {
	OID       uint32 // 16384 ≤ OID < 2^28
	Kind      RelationKind
	Namespace string
	Name      string
	Owner     uint32
	Columns   []RelationColumn
	// PrimaryKey holds attribute numbers in key order; nil means none. ConstraintName "" means <table>_pkey.
	PrimaryKey     []int16
	ConstraintName string
	Comment        string
	// Rows is -1 when unknown. Bytes is the size of the live data files.
	Rows  int64
	Bytes int64
	// Definition is a view's query as pg_get_viewdef shows it, with its closing semicolon.
	Definition string
	Options    []string
	Temporary  bool
}

// RelationColumn is a column of a Relation.
type RelationColumn struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypeMod int32
	NotNull bool
	// Default is the default expression as pg_get_expr shows it; "" means none.
	Default string
	Comment string
}

// Function is a function of schema skade.
type Function struct {
	OID       uint32
	Namespace string
	Name      string
	// Args are the input arguments; Result are the columns of a set-returning function, in Out.
	Args       []FunctionArg
	Defaults   int // how many of the last Args have defaults
	Out        []FunctionArg
	Return     uint32 // type OID; 2249 (record) with Out
	ReturnsSet bool
	Volatile   byte // i, s, v
	Strict     bool
	Comment    string
}

// FunctionArg is one argument or result column.
type FunctionArg struct {
	Name    string
	TypeOID uint32
	Default string
}
