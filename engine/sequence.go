package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	icecatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

const sequenceKind = warehouse.KindSequence

// storedSequence is a sequence's definition as the catalog keeps it (kind "sequence"). Where its values stand is kept apart, under State.
type storedSequence struct {
	Type      string `json:"type"` // smallint, integer or bigint
	Start     int64  `json:"start"`
	Increment int64  `json:"increment"`
	Min       int64  `json:"min"`
	Max       int64  `json:"max"`
	Cache     int64  `json:"cache"`
	Cycle     bool   `json:"cycle,omitempty"`
	// ID names the sequence for its whole life, State its present run of values, which begins at First: RESTART starts a new run.
	ID    uuid.UUID `json:"id"`
	State uuid.UUID `json:"state"`
	First int64     `json:"first"`
	// Owner is the column that the sequence goes with.
	Owner   *sequenceOwner `json:"owner,omitempty"`
	Comment string         `json:"comment,omitempty"`

	ident   table.Identifier
	oid     uint32
	version int
}

// sequenceOwner is a column by what never changes: the table's key and the field's id. Internal is an identity column's.
type sequenceOwner struct {
	Table    catalog.TableKey `json:"table"`
	Field    int              `json:"field"`
	Internal bool             `json:"internal,omitempty"`
}

func (q *storedSequence) def() pgsql.Sequence {
	return pgsql.Sequence{Type: q.typeOID(), Start: q.Start, Increment: q.Increment, Min: q.Min, Max: q.Max, Cache: q.Cache, Cycle: q.Cycle}
}

func (q *storedSequence) typeOID() uint32 {
	switch q.Type {
	case "smallint":
		return pgtype.Int2
	case "integer":
		return pgtype.Int4
	}
	return pgtype.Int8
}

func (q *storedSequence) set(d pgsql.Sequence) {
	q.Type = pgtype.FormatNoTypmod(d.Type)
	q.Start, q.Increment, q.Min, q.Max, q.Cache, q.Cycle = d.Start, d.Increment, d.Min, d.Max, d.Cache, d.Cycle
}

// restart begins a new run of values.
func (q *storedSequence) restart(first int64) { q.State, q.First = uuid.New(), first }

func (q *storedSequence) name() string { return q.ident[len(q.ident)-1] }

// qualified is the sequence's name as SQL.
func (q *storedSequence) qualified() string {
	return pgsql.QuoteIdent(schemaOf(q.ident)) + "." + pgsql.QuoteIdent(q.name())
}

// nextvalSQL is the default of a serial column.
func (q *storedSequence) nextvalSQL() string {
	return "nextval('" + strings.ReplaceAll(q.qualified(), "'", "''") + "'::regclass)"
}

func sequenceOID(o *catalog.Object) uint32 {
	if o.OID != 0 {
		return o.OID
	}
	return provisionalOID("sequence:" + strings.Join(o.Namespace, ".") + "." + o.Name)
}

func decodeSequence(o *catalog.Object) (*storedSequence, error) {
	q := &storedSequence{oid: sequenceOID(o), version: int(o.ChangedSeq), ident: append(append(table.Identifier{}, o.Namespace...), o.Name)}
	if err := json.Unmarshal(o.Payload, q); err != nil {
		return nil, pgerr.Newf(pgerr.DataCorrupted, "definition of sequence \"%s\" is damaged", o.Name).WithCause(err)
	}
	return q, nil
}

// sequence finds a sequence as the transaction sees it; nil when there is none.
func (s *session) sequence(ident table.Identifier) (*storedSequence, error) {
	if len(ident) < 2 {
		return nil, nil
	}
	o, err := s.readTx().Object(sequenceKind, ident[:len(ident)-1], ident[len(ident)-1])
	if errors.Is(err, catalog.ErrNoSuchObject) || errors.Is(err, icecatalog.ErrNoSuchNamespace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeSequence(o)
}

// putSequence stores a sequence.
func (s *session) putSequence(ctx context.Context, q *storedSequence, replace bool) error {
	payload, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode sequence: %w", err)
	}
	return s.tx.warehouseTx().PutObject(ctx, catalog.Object{Kind: sequenceKind, Namespace: q.ident[:len(q.ident)-1], Name: q.name(), Payload: payload}, replace)
}

// newSequence makes a sequence that is not stored yet.
func newSequence(ident table.Identifier, o *pgsql.SequenceOptions) (*storedSequence, error) {
	def, err := o.Apply(nil)
	if err != nil {
		return nil, err
	}
	q := &storedSequence{ident: ident, ID: uuid.New()}
	q.set(def)
	q.restart(def.Start)
	if o.RestartAt != nil {
		q.First = *o.RestartAt
	}
	return q, nil
}

func (s *session) createSequence(ctx context.Context, w pgwire.Writer, u *pgsql.CreateSequence) error {
	ident, err := s.createWhere(u.Temp, u.Schema, u.Name)
	if err != nil {
		if e := pgerr.As(err); e != nil && e.Code == pgerr.InvalidSchemaName {
			return e.WithPosition(u.Loc)
		}
		return err
	}
	if skip, err := s.refuseExisting(ctx, w, ident, u.IfNotExists); skip || err != nil {
		return err
	}
	q, err := newSequence(ident, u.Options)
	if err != nil {
		return err
	}
	if err := s.setOwner(ctx, q, u.Options); err != nil {
		return err
	}
	return s.putSequence(ctx, q, false)
}

// setOwner is process_owned_by.
func (s *session) setOwner(ctx context.Context, q *storedSequence, o *pgsql.SequenceOptions) error {
	if !o.Owned {
		return nil
	}
	if q.Owner != nil && q.Owner.Internal {
		t := s.ownerTable(q)
		e := pgerr.New(pgerr.FeatureNotSupported, "cannot change ownership of identity sequence")
		if t != nil {
			e = e.WithDetail("Sequence \"%s\" is linked to table \"%s\".", q.name(), t.Ident[len(t.Ident)-1])
		}
		return e
	}
	if o.OwnerTable.Name == "" {
		q.Owner = nil
		return nil
	}
	t, err := s.findTable(ctx, o.OwnerTable)
	if err != nil {
		return err
	}
	if schemaOf(t.Ident()) != schemaOf(q.ident) {
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "sequence must be in same schema as table it is linked to")
	}
	for _, f := range t.Schema().Fields() {
		if f.Name == o.OwnerColumn {
			q.Owner = &sequenceOwner{Table: t.Key(), Field: f.ID}
			return nil
		}
	}
	return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", o.OwnerColumn, o.OwnerTable.Name)
}

// ownerTable is the table of the column that owns a sequence, nil when there is none.
func (s *session) ownerTable(q *storedSequence) *warehouse.TableInfo {
	if q.Owner == nil {
		return nil
	}
	for _, t := range s.readTx().Tables() {
		if t.Key == q.Owner.Table {
			return &t
		}
	}
	return nil
}

// ownedSequences are the sequences of a table's columns; field 0 means all of them.
func (s *session) ownedSequences(key catalog.TableKey, field int) ([]*storedSequence, error) {
	var out []*storedSequence
	for _, o := range s.readTx().Objects(sequenceKind) {
		q, err := decodeSequence(o)
		if err != nil {
			return nil, err
		}
		if q.Owner != nil && q.Owner.Table == key && (field == 0 || q.Owner.Field == field) {
			out = append(out, q)
		}
	}
	return out, nil
}

// dropOwnedSequences drops the sequences that go with a column, or with a whole table (field 0).
func (s *session) dropOwnedSequences(ctx context.Context, key catalog.TableKey, field int) error {
	owned, err := s.ownedSequences(key, field)
	if err != nil {
		return err
	}
	for _, q := range owned {
		if err := s.tx.warehouseTx().DropObject(ctx, sequenceKind, q.ident[:len(q.ident)-1], q.name()); err != nil {
			return err
		}
	}
	return nil
}
