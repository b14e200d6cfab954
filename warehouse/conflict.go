package warehouse

import (
	"errors"
	"strings"

	"github.com/nordisk/skade-pg/catalog"
)

// ConflictError is an ErrConflict that knows its table. Nothing of the transaction happened.
type ConflictError struct {
	Schema string // namespace, levels joined by "."
	Table  string // unqualified name, as the transaction knew it
	Reason string // what another commit did, as a clause: "a row was deleted or updated"
	err    error
}

func (e *ConflictError) Error() string { return e.err.Error() }

func (e *ConflictError) Unwrap() error { return e.err }

// conflictOf puts the table's name to an ErrConflict.
func (t *TxTable) conflictOf(err error) error {
	var known *ConflictError
	if !errors.Is(err, ErrConflict) || errors.As(err, &known) {
		return err
	}
	ident := t.ident
	if t.base != nil {
		ident = t.base.Ident
	}
	e := &ConflictError{Schema: strings.Join(ident[:len(ident)-1], "."), Table: ident[len(ident)-1], err: err}
	e.Reason = strings.TrimPrefix(err.Error(), ErrConflict.Error()+": ")
	return e
}

// RequireUnchanged makes Commit fail with a *catalog.ChangedError when another commit changes the rows of a table since the state that the
// transaction read (SERIALIZABLE).
func (tx *Tx) RequireUnchanged(since *catalog.TableState) {
	tx.requires = append(tx.requires, catalog.Unchanged{Since: since})
}
