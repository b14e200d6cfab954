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
	Table    RelationKind = 'r'
	View     RelationKind = 'v'
	Sequence RelationKind = 'S'
)

// Relation is a table, view or sequence of the user.
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
	// Unique says that the key is a UNIQUE constraint, not a PRIMARY KEY.
	Unique bool
	// Checks are CHECK constraints, by name.
	Checks  []Check
	Comment string
	// Sequence is set for a sequence.
	Sequence *SequenceInfo
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
	// Default is the default expression as pg_get_expr shows it, or that of a generated column; "" means none. What is shown prettily
	// lacks parentheses around the whole.
	Default string
	// Pretty is Default as pretty printing shows it; "" when that is Default without the parentheses around it.
	Pretty string
	// Generated is a GENERATED ALWAYS AS (…) STORED column; Uses are the columns in its expression.
	Generated bool
	Uses      []int16
	// Identity is 'a' (always), 'd' (by default) or 0.
	Identity byte
	Comment  string
}

// Check is a CHECK constraint.
type Check struct {
	Name string
	// Expr is the condition as pg_get_expr shows it.
	Expr string
	// Pretty is Expr as pretty printing shows it; "" when that is Expr without the parentheses around it.
	Pretty              string
	Columns             []int16
	NotValid, NoInherit bool
}

// SequenceInfo is a row of pg_sequence and what owns it.
type SequenceInfo struct {
	Type                              uint32
	Start, Increment, Min, Max, Cache int64
	Cycle                             bool
	// OwnerTable and OwnerColumn are the owning column, 0 without one. Internal is an identity column's sequence.
	OwnerTable  uint32
	OwnerColumn int16
	Internal    bool
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
