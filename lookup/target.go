package lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// ColKeyOrdinal is the last column of LookupMany's result: bigint, 0-based.
const ColKeyOrdinal = "_key_ordinal"

// Target says what is looked up in: a table at a cut, current unless AsOf or Live says otherwise.
type Target struct {
	Cut   *catalog.Cut
	Ident table.Identifier
	// AsOf pins an earlier state (a resolved bound); nil is the cut's.
	AsOf *AsOf
	// Live, when set, is what is probed instead: a transaction's base plus its own writes. Its results are not kept.
	Live *liveset.Set
	// Ref is the table that Live is of when Cut does not know it: a transaction has created it.
	Ref *liveset.Ref
	// KeyColumns names the key; nil is the table's identifier fields in their order.
	KeyColumns []string
	// Schema is the schema of the rows; nil is the state's. Columns, when not nil, keeps only these of it.
	Schema  *iceberg.Schema
	Columns []string
	// Strict makes a key that several rows have an error, ErrSeveralRows.
	Strict bool
}

// AsOf is a resolved bound.
type AsOf struct {
	// Metadata knows the snapshot.
	Metadata table.Metadata
	// Snapshot is nil for the empty state.
	Snapshot *int64
	// Schema is the schema of the state; nil is the metadata's current one.
	Schema *iceberg.Schema
}

// Columns describes a lookup, known without reading data.
type Columns struct {
	// Schema is the shape of the rows, Key that of a key. LookupMany's batches have _key_ordinal after Schema's columns.
	Schema, Key *arrow.Schema
	// Table is the schema of the rows by field id, KeyIDs the key columns' field ids.
	Table  *iceberg.Schema
	KeyIDs []int
}

// bound is a target resolved: everything a probe needs.
type bound struct {
	ref      liveset.Ref
	snapshot *int64
	cols     *Columns
	kinds    []keyindex.Column
	keyTypes []iceberg.Type
	// prefixOf holds all identifier fields when the key is a strict leading part of them.
	prefixOf []int
}

// bind resolves a target.
func bind(ctx context.Context, t Target) (*bound, error) {
	b := &bound{}
	sc, err := b.bindState(ctx, t)
	if err != nil {
		return nil, err
	}
	rows := t.Schema
	if rows == nil {
		rows = sc
	}
	if t.Columns != nil {
		if rows, err = keep(rows, t.Columns); err != nil {
			return nil, err
		}
	}
	b.cols = &Columns{Table: rows}
	if b.cols.Schema, err = parquetio.ArrowSchema(rows, false); err != nil {
		return nil, fmt.Errorf("convert table schema: %w", err)
	}
	return b, b.bindKey(sc, t)
}

// bindState finds the table's state and its schema.
func (b *bound) bindState(ctx context.Context, t Target) (*iceberg.Schema, error) {
	if t.Ref != nil {
		b.ref = *t.Ref
		return b.ref.Metadata.CurrentSchema(), nil
	}
	state, err := t.Cut.Table(t.Ident)
	if err != nil {
		return nil, err
	}
	if a := t.AsOf; a != nil {
		b.ref, b.snapshot = liveset.Ref{UUID: state.UUID, Metadata: a.Metadata}, a.Snapshot
		if a.Schema != nil {
			return a.Schema, nil
		}
		return a.Metadata.CurrentSchema(), nil
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("read table metadata: %w", err)
	}
	b.ref = liveset.Ref{UUID: state.UUID, Metadata: meta}
	if snap, ok := state.SnapshotID(); ok {
		b.snapshot = &snap
	}
	return meta.CurrentSchema(), nil
}

// bindKey finds the key's columns.
func (b *bound) bindKey(sc *iceberg.Schema, t Target) error {
	var fields []iceberg.NestedField
	if t.KeyColumns == nil {
		for _, id := range sc.IdentifierFieldIDs {
			i := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
			if i < 0 {
				return fmt.Errorf("%w: an identifier field is inside a struct", ErrNoKey)
			}
			fields = append(fields, sc.Field(i))
		}
	}
	for _, name := range t.KeyColumns {
		i := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: %q", ErrUnknownColumn, name)
		}
		fields = append(fields, sc.Field(i))
	}
	if len(fields) == 0 {
		return ErrNoKey
	}
	for i, f := range fields {
		// Keys are encoded in the newest type a column has had, whatever state is asked.
		if t, ok := b.ref.KeyType(f.ID); ok {
			f.Type = t
			fields[i].Type = t
		}
		k, err := keyindex.ColumnOf(f.Type)
		if err != nil {
			return fmt.Errorf("%w: column %q of type %s: %w", ErrKeyType, f.Name, f.Type, err)
		}
		b.kinds, b.keyTypes, b.cols.KeyIDs = append(b.kinds, k), append(b.keyTypes, f.Type), append(b.cols.KeyIDs, f.ID)
	}
	if ids := sc.IdentifierFieldIDs; len(fields) < len(ids) && slices.Equal(ids[:len(fields)], b.cols.KeyIDs) {
		b.prefixOf = ids
	}
	var err error
	if b.cols.Key, err = parquetio.ArrowSchema(iceberg.NewSchema(sc.ID, fields...), false); err != nil {
		return fmt.Errorf("convert key schema: %w", err)
	}
	return nil
}

// keep projects a schema to the named columns, in their order.
func keep(sc *iceberg.Schema, names []string) (*iceberg.Schema, error) {
	fields := make([]iceberg.NestedField, len(names))
	for k, name := range names {
		i := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: %q", ErrUnknownColumn, name)
		}
		fields[k] = sc.Field(i)
	}
	return iceberg.NewSchema(sc.ID, fields...), nil
}

// identity names everything the answers of a bound target depend on.
func (b *bound) identity(strict bool) string {
	s := fmt.Appendf(nil, "%s %v %t", b.ref.UUID, b.cols.KeyIDs, strict)
	if b.snapshot != nil {
		s = fmt.Appendf(s, " %d", *b.snapshot)
	}
	for _, k := range b.kinds {
		s = fmt.Appendf(s, " %v", k)
	}
	return string(append(s, b.shape()...))
}

// shape names the rows' schema.
func (b *bound) shape() string {
	s := []byte("|")
	for _, f := range b.cols.Table.Fields() {
		s = fmt.Appendf(s, "%d %q %s %t;", f.ID, f.Name, f.Type, f.Required)
	}
	return string(s)
}
