package pgwire

import (
	"context"
	"io"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Identity is who is at the other end, settled before a Session exists.
type Identity struct {
	// User is the role name that was authenticated.
	User string
	// Method is how: "trust", "scram-sha-256", "cert".
	Method string
	// TLS reports whether the connection is encrypted; CertSubject is the verified client certificate's CN, if any.
	TLS         bool
	CertSubject string
	// RemoteAddr is the peer as host:port.
	RemoteAddr string
}

// Startup is what a StartupMessage asked for.
type Startup struct {
	Identity Identity
	Database string
	// PID and Secret are what BackendKeyData carries; PID is also pg_backend_pid().
	PID    int32
	Secret uint32
	// Params holds the start-up parameters other than user, database and replication, in the order sent; options=-c k=v are expanded into it.
	Params []Param
	// Wire is the session's way to send messages that no statement asked for. It lives as long as the session.
	Wire Asyncer
	// Prepared is the connection's prepared statements: SQL's PREPARE, EXECUTE and DEALLOCATE use the same names as Parse and Close.
	Prepared *Prepared
}

// Param is one start-up parameter.
type Param struct{ Name, Value string }

// Backend makes sessions. It is shared by all connections and safe for concurrent use.
type Backend interface {
	// NewSession opens a session. An *pgerr.Error of class 3D, 28 or 53 ends the connection as FATAL.
	NewSession(ctx context.Context, s Startup) (Session, error)
}

// Session is one connection's SQL session. Its methods are called from one goroutine at a time, except Cancel and Terminate.
type Session interface {
	// ParameterStatus lists the GUC_REPORT parameters to send after authentication, name by name.
	ParameterStatus() []Param
	// Split parses a simple Query string into its statements. An empty string gives an empty list. A syntax error anywhere
	// gives an error and no statement, as PostgreSQL does.
	Split(ctx context.Context, sql string) ([]Statement, error)
	// Prepare is the extended protocol's Parse: one statement, parameter type OIDs (0 = infer). It executes nothing.
	Prepare(ctx context.Context, sql string, paramOIDs []uint32) (Statement, error)
	// Bind makes a portal. params[i] is nil for NULL. paramFormats and resultFormats follow the Bind message's rules
	// (none = all text, one = all, else one each). params refer to the message and are valid during the call only. For the simple protocol it is called with no parameters and text results.
	// While the transaction is failed it returns 25P02, except for statements that end the transaction.
	Bind(ctx context.Context, st Statement, paramFormats []int16, params [][]byte, resultFormats []int16) (Portal, error)
	// LookupPortal finds a portal that SQL made (DECLARE name CURSOR): portals and cursors share one namespace. nil when absent.
	LookupPortal(name string) Portal
	// BeginImplicit opens the implicit transaction of a simple Query of several statements or of an extended batch up to Sync.
	// It does nothing inside an explicit transaction.
	BeginImplicit(ctx context.Context) error
	// Sync ends the implicit transaction: commit when nothing failed, else roll back. Its error goes to the client before ReadyForQuery.
	// It is called once per ReadyForQuery; after a simple Query without error before the last statement's CommandComplete is sent,
	// so that a failed commit takes that message's place. It is also called when BeginImplicit was not, and once more after it failed.
	// BeginImplicit is called before every statement of a batch: within an open implicit transaction it does nothing.
	Sync(ctx context.Context) error
	// Fail tells the session that a statement failed (or that the wire did on its behalf): the transaction becomes failed.
	Fail(err error)
	// TxStatus is ReadyForQuery's byte: 'I', 'T' or 'E'.
	TxStatus() byte
	// Idle tells the session that its statement has ended and ReadyForQuery goes out (true), or that a message came (false).
	// Notifications are delivered only while idle and outside a transaction.
	Idle(idle bool)
	// Cancel interrupts the running statement with cause (57014 from CancelRequest or pg_cancel_backend, statement_timeout …). From any goroutine; it must not
	// call the connection.
	Cancel(cause *pgerr.Error)
	// Close rolls back what is open and frees everything. Called once, last.
	Close() error
}

// Statement is a prepared statement. Immutable after Prepare, except that a later Bind may find its tables changed.
type Statement interface {
	// ParamOIDs are the parameter types, all settled.
	ParamOIDs() []uint32
	// Columns describes the rows, or is nil when the statement returns none (NoData).
	Columns() []Column
	// Empty reports an empty query string (EmptyQueryResponse).
	Empty() bool
	// Close frees what the statement holds.
	Close()
}

// Portal is a bound statement, ready to run.
type Portal interface {
	// Columns is the row description with the formats of the Bind, or nil.
	Columns() []Column
	// Execute runs the portal, or goes on with it, for at most maxRows rows (0 = all). It writes rows, COPY data and notices to w.
	// suspended means that rows are left (PortalSuspended); else tag is the CommandComplete tag.
	Execute(ctx context.Context, w Writer, maxRows int64) (tag string, suspended bool, err error)
	// Close frees the portal. A portal is closed at the end of its transaction at the latest; closing twice is harmless.
	Close()
}

// Column is one field of a RowDescription.
type Column struct {
	Name     string
	TableOID uint32
	AttNum   int16
	TypeOID  uint32
	TypeLen  int16
	TypeMod  int32
	// Format is 0 (text) or 1 (binary); in a Statement it is 0.
	Format int16
}

// Writer is where a running portal sends its results. It is valid during Execute only.
type Writer interface {
	// Rows sends n complete DataRow messages that msgs holds back to back. The buffer may be reused after the call.
	// It blocks while the client does not read, and returns an error when the connection is gone or the statement was cancelled.
	Rows(msgs []byte, n int) error
	// Describe sends a RowDescription. Only statements whose columns were not known at Prepare (EXPLAIN variants, FETCH in the simple protocol) need it.
	Describe(cols []Column) error
	// Notice sends a NoticeResponse.
	Notice(n *pgerr.Error)
	// ParameterStatus sends a ParameterStatus.
	ParameterStatus(name, value string)
	// CopyIn sends CopyInResponse and returns the client's CopyData as a stream: io.EOF at CopyDone, an error with SQLSTATE 57014 at CopyFail.
	// overall is the overall format and columns the per-column formats. After CopyIn returns the rest of the client's data is discarded by the server when Execute returns.
	CopyIn(overall byte, columns []int16) (io.Reader, error)
	// CopyOut sends CopyOutResponse; each Write is one CopyData message; Close sends CopyDone.
	CopyOut(overall byte, columns []int16) (io.WriteCloser, error)
}

// Asyncer sends messages outside a statement. Safe for concurrent use. It never blocks on a slow client.
type Asyncer interface {
	// Notify queues messages of AppendNotification, all or none, to be sent when the session is idle and outside a transaction. They must
	// not change any more: one message may be sent to many. false: the queue is full twice over.
	Notify(msgs ...[]byte) bool
	// NotifyUsage is how full the queue is. From 1 on nobody should commit what adds to it.
	NotifyUsage() float64
	// Wake says that a Notifier has something to tell.
	Wake()
	// ParameterStatus queues a ParameterStatus, sent before the next ReadyForQuery.
	ParameterStatus(name, value string)
	// Cancel ends the running statement with cause, as a CancelRequest does: a read or write on its behalf ends, and
	// Session.Cancel is called. Nothing happens when no statement runs.
	Cancel(cause *pgerr.Error)
	// Terminate ends the connection with a FATAL message (57P01, timeouts).
	Terminate(cause *pgerr.Error)
}

// Notifier is a Session that makes notifications when they can be sent, instead of queueing them for a client that may never read.
type Notifier interface {
	// AppendNotifications appends messages of AppendNotification, some 64 KiB of them, and reports whether there are more. It is called
	// from the connection's goroutine, after Wake, once the session is idle and outside a transaction.
	AppendNotifications(dst []byte) (out []byte, more bool)
}

// Noticer is an Asyncer that also takes notices for which no Writer is at hand (during Prepare, Bind, Sync). They are sent with
// the next answer. The Wire of a Startup made by this package is one.
type Noticer interface {
	Notice(n *pgerr.Error)
}
