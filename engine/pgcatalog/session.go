package pgcatalog

import "time"

// Session is what the catalog asks of an SQL session. Engine implements it; its methods may be called from several of
// DuckDB's threads at once while a statement of the session runs.
type Session interface {
	// Info is the session's identity.
	Info() SessionInfo
	// SearchPath is the effective search path without the implicit pg_catalog and skade: existing schemas only.
	SearchPath() []string
	// TempSchema is the session's temporary schema, which is searched first of all unless SearchPath has it; "" and 0 without one.
	TempSchema() (name string, oid uint32)
	// HasPrivilege reports whether role (an OID) has a privilege ("SELECT", "USAGE", …) on an object of a catalog (pg_class, pg_namespace …).
	HasPrivilege(role uint32, class string, object uint32, privilege string) bool
	Settings() []Setting
	Activity() []Backend
	Locks() []Lock
	// Blockers are the pids that a session waits for.
	Blockers(pid int32) []int32
	Copies() []CopyProgress
	PreparedStatements() []PreparedStatement
	Cursors() []Cursor
	// SequenceValue is the last value of a sequence that was handed out; ok is false when there is none.
	SequenceValue(oid uint32) (v int64, ok bool)
}

// SessionInfo identifies a session.
type SessionInfo struct {
	PID           int32
	Database      string
	User          string // current_user
	SessionUser   string
	Version       string // version()
	ServerAddr    string // "" on a Unix socket
	ServerPort    int32
	ClientAddr    string
	ClientPort    int32
	ServerStarted time.Time
	// TransactionID is what txid_current() shows.
	TransactionID int64
}

// Setting is a row of pg_settings.
type Setting struct {
	Name, Value, Unit, Category, ShortDesc string
	Context, VarType, Source               string
	MinVal, MaxVal                         string // "" is NULL
	EnumVals                               []string
	BootVal, ResetVal                      string
}

// Backend is a row of pg_stat_activity.
type Backend struct {
	PID                                             int32
	Database, User, ApplicationName                 string
	ClientAddr                                      string
	ClientPort                                      int32
	BackendStart, XactStart, QueryStart, StateSince time.Time // zero is NULL
	WaitEventType, WaitEvent                        string
	State, Query                                    string
	BackendType                                     string // "client backend"
}

// Lock is a row of pg_locks.
type Lock struct {
	LockType string // relation, virtualxid, advisory …
	Database uint32
	Relation uint32
	PID      int32
	Mode     string
	Granted  bool
	// VirtualXID is set for a transaction's lock on itself.
	VirtualXID string
	// Advisory locks have a number in two halves, or two numbers (ObjSubID 2).
	Advisory       bool
	ClassID, ObjID uint32
	ObjSubID       uint16
	WaitStart      time.Time // zero is NULL
}

// CopyProgress is a row of pg_stat_progress_copy.
type CopyProgress struct {
	PID           int32
	Database      string
	Relation      uint32 // 0 for a query
	Command, Type string
	Bytes, Tuples int64
}

// PreparedStatement is a row of pg_prepared_statements.
type PreparedStatement struct {
	Name, Statement string
	PrepareTime     time.Time
	ParameterTypes  []uint32
	FromSQL         bool
}

// Cursor is a row of pg_cursors.
type Cursor struct {
	Name, Statement              string
	Holdable, Binary, Scrollable bool
	CreationTime                 time.Time
}
