package warehouse

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrConflict is returned when a concurrent commit took a row, a file or the schema this transaction was built on
	// (SQLSTATE 40001). Nothing happened; running the transaction again on a new cut may succeed.
	ErrConflict = errors.New("could not serialize access due to concurrent update")
	// ErrReadOnly is returned by every write of a transaction begun with ReadOnly (SQLSTATE 25006).
	ErrReadOnly = errors.New("transaction is read-only")
	// ErrTxDone is returned by every method of a transaction that was committed or rolled back.
	ErrTxDone = errors.New("transaction has already ended")
	// ErrNoKey is returned by key operations on a table without identifier fields (SQLSTATE 42P10).
	ErrNoKey = errors.New("table has no identifier fields")
	// ErrSchemaMismatch is returned when a batch's columns do not fit the table's schema (SQLSTATE 42804).
	ErrSchemaMismatch = errors.New("record does not fit the table's schema")
	// ErrInvalidTable is returned when a table cannot be created as asked: a float identifier, an unknown format
	// version, a partition spec on missing fields (SQLSTATE 0A000 or 42P16).
	ErrInvalidTable = errors.New("invalid table definition")
	// ErrNotLive is returned when a position to delete or update is not a live row of the transaction's view.
	ErrNotLive = errors.New("position is not a live row")
	// ErrDuplicateTarget is returned when one statement touches the same row or key twice: ON CONFLICT DO UPDATE
	// cannot affect a row a second time (SQLSTATE 21000).
	ErrDuplicateTarget = errors.New("command cannot affect row a second time")
	// ErrNoMark is returned for a savepoint that was released or rolled back past (SQLSTATE 3B001).
	ErrNoMark = errors.New("savepoint does not exist")
	// ErrNoSuchRef is returned when a table has no branch or tag of that name (SQLSTATE 42704).
	ErrNoSuchRef = errors.New("branch or tag does not exist")
	// ErrNoSuchSnapshot is returned when a branch or tag is set to a snapshot that the table does not retain (SQLSTATE 42704).
	ErrNoSuchSnapshot = errors.New("snapshot does not exist")
	// ErrRefExists is returned when a branch or tag of that name exists (SQLSTATE 42710).
	ErrRefExists = errors.New("branch or tag already exists")
	// ErrNotAncestor is returned for a rollback to a snapshot that is no ancestor of the branch, and for a fast-forward to one that
	// does not descend from it (SQLSTATE 55000).
	ErrNotAncestor = errors.New("snapshots are not ancestor and descendant")
	// ErrRefState is returned when a branch or tag cannot be changed as it stands (SQLSTATE 55000).
	ErrRefState = errors.New("branch or tag is not in a state for this")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("warehouse is closed")
)

// RefError is what a change of a branch or tag fails with. errors.Is finds Err, one of the sentinels above.
type RefError struct {
	Err                   error
	Message, Detail, Hint string
}

func (e *RefError) Error() string { return e.Message }
func (e *RefError) Unwrap() error { return e.Err }

// DuplicateKeyError is returned when a key is inserted that a live row has already (SQLSTATE 23505). Nothing of the
// batch that carried it was written.
type DuplicateKeyError struct {
	Schema     string   // namespace, levels joined by "."
	Table      string   // unqualified table name
	Constraint string   // "<table>_pkey", or the name it was given
	Columns    []string // identifier columns, in key order
	Values     []string // their values as text
	Row        int      // of the batch
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("duplicate key value violates unique constraint %q: %s", e.Constraint, e.Detail())
}

// Detail is PostgreSQL's DETAIL line: Key (id)=(1) already exists.
func (e *DuplicateKeyError) Detail() string {
	return "Key (" + strings.Join(e.Columns, ", ") + ")=(" + strings.Join(e.Values, ", ") + ") already exists."
}

// NotNullError is returned when a required column is NULL in a batch (SQLSTATE 23502). Nothing of the batch was written.
type NotNullError struct {
	Schema string // namespace, levels joined by "."
	Table  string
	Column string
	Row    []string // the row's values as text, NULL as "null"; nil when it is not known
}

// Detail is PostgreSQL's DETAIL line: Failing row contains (1, null). Each value is cut at 64 bytes.
func (e *NotNullError) Detail() string {
	if e.Row == nil {
		return ""
	}
	return FailingRow(e.Row)
}

// FailingRow is the DETAIL line about a row that a constraint refused.
func FailingRow(row []string) string {
	cut := make([]string, len(row))
	for i, v := range row {
		if cut[i] = v; len(v) > 64 {
			n := 64
			for v[n]&0xc0 == 0x80 {
				n--
			}
			cut[i] = v[:n] + "..."
		}
	}
	return "Failing row contains (" + strings.Join(cut, ", ") + ")."
}

func (e *NotNullError) Error() string {
	return fmt.Sprintf("null value in column %q of relation %q violates not-null constraint", e.Column, e.Table)
}
