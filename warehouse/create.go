package warehouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// CreateTable describes a table to create.
type CreateTable struct {
	Ident         icetable.Identifier
	Schema        *iceberg.Schema // identifier fields set for a primary-key table; ids are assigned afresh, 1…n in order for the top level
	Spec          *iceberg.PartitionSpec
	SortOrder     *icetable.SortOrder
	FormatVersion int // 2 (0 is 2) or 3
	Properties    iceberg.Properties
	IfNotExists   bool   // an existing table is returned as it is
	Location      string // empty: the catalog's choice
}

// CreateTable creates a table, which may be written to at once. Identifier fields become required.
func (tx *Tx) CreateTable(ctx context.Context, c CreateTable) (*TxTable, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	if h := tx.hidden(c.Ident); h != nil {
		return h.CreateTable(ctx, c)
	}
	if len(c.Ident) < 2 {
		return nil, fmt.Errorf("%w: %v has no namespace", ErrInvalidTable, c.Ident)
	}
	ns, name := c.Ident[:len(c.Ident)-1], c.Ident[len(c.Ident)-1]
	if !tx.NamespaceExists(ns) {
		return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	if err := tx.writableNamespace(ns); err != nil {
		return nil, err
	}
	switch t, err := tx.Table(ctx, c.Ident); {
	case err == nil && c.IfNotExists:
		return t, nil
	case err == nil:
		return nil, fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(c.Ident, "."))
	case !errors.Is(err, icecat.ErrNoSuchTable):
		return nil, err
	}
	if tx.objectNamed(ns, name) {
		return nil, fmt.Errorf("%w: %s", catalog.ErrObjectAlreadyExists, strings.Join(c.Ident, "."))
	}
	id := uuid.New()
	meta, err := tx.newMetadata(c, id)
	if err != nil {
		return nil, err
	}
	t := &TxTable{tx: tx, key: catalog.TableKey(id.String()), ident: c.Ident, baseMeta: meta, baseSet: liveset.Empty()}
	if t.setMetadata(meta); t.unwritable != nil {
		return nil, t.unwritable
	}
	t.st = newState(t.keyed())
	if tx.side != nil {
		t.oid = tx.side.opts.NewOID()
	}
	tx.names.tables[t.key] = t
	tx.names.byIdent[identKey(c.Ident)] = t.key
	tx.addOp(catalog.CreateTable{Ident: c.Ident, Metadata: meta}, t.key)
	return t, nil
}

func (tx *Tx) newMetadata(c CreateTable, id uuid.UUID) (icetable.Metadata, error) {
	version := c.FormatVersion
	if version == 0 {
		version = 2
	}
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("%w: format version %d", ErrInvalidTable, version)
	}
	sc, err := keySchema(c.Schema)
	if err != nil {
		return nil, err
	}
	loc := c.Location
	if loc == "" && tx.side != nil {
		loc = tx.side.location(id)
	}
	if loc == "" {
		if loc, err = tx.w.opts.Catalog.NewTableLocation(tx.cut, c.Ident, id); err != nil {
			return nil, fmt.Errorf("table location: %w", err)
		}
	}
	props := iceberg.Properties{
		"write.parquet.compression-codec": "zstd",
		"write.delete.mode":               "merge-on-read",
		"write.update.mode":               "merge-on-read",
		"write.merge.mode":                "merge-on-read",
	}
	maps.Copy(props, c.Properties)
	meta, err := buildMetadata(version, id, sc, c.Spec, c.SortOrder, loc, props)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTable, err)
	}
	return meta, nil
}

// buildMetadata is iceberg-go's NewMetadataWithUUID with ids assigned as Java does: the top-level columns 1…n, then the
// nested ones.
func buildMetadata(version int, id uuid.UUID, sc *iceberg.Schema, spec *iceberg.PartitionSpec, order *icetable.SortOrder, loc string, props iceberg.Properties) (icetable.Metadata, error) {
	fresh := freshSchema(sc)
	var opts []iceberg.PartitionOption
	if spec != nil {
		for _, f := range spec.Fields() {
			name, ok := sc.FindColumnName(f.SourceID())
			if !ok {
				return nil, fmt.Errorf("partition field %s: no column %d", f.Name, f.SourceID())
			}
			opts = append(opts, iceberg.AddPartitionFieldByName(name, f.Name, f.Transform, fresh, nil))
		}
	}
	freshSpec, err := iceberg.NewPartitionSpecOpts(opts...)
	if err != nil {
		return nil, err
	}
	freshOrder := icetable.UnsortedSortOrder
	if order != nil {
		if freshOrder, err = icetable.AssignFreshSortOrderIDs(*order, sc, fresh); err != nil {
			return nil, err
		}
	}
	b, err := icetable.NewMetadataBuilder(version)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return b.SetUUID(id) },
		func() error { return b.AddSchema(fresh) },
		func() error { return b.SetCurrentSchemaID(-1) },
		func() error { return b.AddSortOrder(&freshOrder) },
		func() error { return b.SetDefaultSortOrderID(-1) },
		func() error { return b.AddPartitionSpec(&freshSpec, true) },
		func() error { return b.SetDefaultSpecID(-1) },
		func() error { return b.SetLoc(loc) },
		func() error { return b.SetProperties(props) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// freshSchema assigns ids to a schema's fields level by level.
func freshSchema(sc *iceberg.Schema) *iceberg.Schema {
	next := 0
	fields, renamed := freshFields(sc.Fields(), &next)
	ids := make([]int, len(sc.IdentifierFieldIDs))
	for i, id := range sc.IdentifierFieldIDs {
		ids[i] = renamed[id]
	}
	return iceberg.NewSchemaWithIdentifiers(0, ids, fields...)
}

func freshFields(fields []iceberg.NestedField, next *int) ([]iceberg.NestedField, map[int]int) {
	out := slices.Clone(fields)
	renamed := map[int]int{}
	for i := range out {
		*next++
		renamed[out[i].ID] = *next
		out[i].ID = *next
	}
	for i := range out {
		out[i].Type = freshType(out[i].Type, next)
	}
	return out, renamed
}

func freshType(t iceberg.Type, next *int) iceberg.Type {
	id := func() int { *next++; return *next }
	switch t := t.(type) {
	case *iceberg.StructType:
		fields, _ := freshFields(t.FieldList, next)
		return &iceberg.StructType{FieldList: fields}
	case *iceberg.ListType:
		elem := id()
		return &iceberg.ListType{ElementID: elem, Element: freshType(t.Element, next), ElementRequired: t.ElementRequired}
	case *iceberg.MapType:
		key, value := id(), id()
		return &iceberg.MapType{KeyID: key, KeyType: freshType(t.KeyType, next), ValueID: value,
			ValueType: freshType(t.ValueType, next), ValueRequired: t.ValueRequired}
	}
	return t
}

// keySchema makes identifier fields required, and refuses those the spec forbids.
func keySchema(sc *iceberg.Schema) (*iceberg.Schema, error) {
	if sc == nil {
		return nil, fmt.Errorf("%w: no schema", ErrInvalidTable)
	}
	fields := slices.Clone(sc.Fields())
	for _, id := range sc.IdentifierFieldIDs {
		i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%w: identifier field %d is not a top-level column", ErrInvalidTable, id)
		}
		if _, ok := fields[i].Type.(iceberg.PrimitiveType); !ok || isFloat(fields[i].Type) {
			return nil, fmt.Errorf("%w: column %s of type %s cannot be an identifier field", ErrInvalidTable, fields[i].Name, fields[i].Type)
		}
		fields[i].Required = true
	}
	return iceberg.NewSchemaWithIdentifiers(sc.ID, sc.IdentifierFieldIDs, fields...), nil
}
