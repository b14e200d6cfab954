package liveset

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
)

// keySchema is a schema of the fields ids, in that order, each in the newest type any schema of the table gives it: a key column may have
// been dropped or widened since a delete file was written.
func (r Ref) keySchema(ids []int) (*iceberg.Schema, error) {
	fields := make([]iceberg.NestedField, len(ids))
	for i, id := range ids {
		f, ok := r.field(id)
		if !ok {
			return nil, fmt.Errorf("%w: %d", ErrUnknownField, id)
		}
		f.Required = false
		fields[i] = f
	}
	return iceberg.NewSchema(0, fields...), nil
}

// field is a field at any depth, as the newest schema that has it describes it.
func (r Ref) field(id int) (iceberg.NestedField, bool) {
	if sc := r.schemaWith(id); sc != nil {
		return sc.FindFieldByID(id)
	}
	return iceberg.NestedField{}, false
}

// KeyType is the type that probes encode a field's values in, whatever state they read: that of the newest schema that has it.
func (r Ref) KeyType(id int) (iceberg.Type, bool) {
	f, ok := r.field(id)
	return f.Type, ok
}

// schemaWith is the current schema, or else the newest, that has a field; nil when none has.
func (r Ref) schemaWith(id int) *iceberg.Schema {
	out := r.Metadata.CurrentSchema()
	if _, ok := out.FindFieldByID(id); ok {
		return out
	}
	out = nil
	for _, s := range r.Metadata.Schemas() {
		if _, ok := s.FindFieldByID(id); ok && (out == nil || s.ID > out.ID) {
			out = s
		}
	}
	return out
}

// keyOrder is ids in the order of the identifier fields when they are the same, so that key indexes fit; else ascending.
func (r Ref) keyOrder(ids []int) []int {
	out := slices.Clone(ids)
	slices.Sort(out)
	ident := slices.Clone(r.Metadata.CurrentSchema().IdentifierFieldIDs)
	slices.Sort(ident)
	if slices.Equal(ident, out) {
		return slices.Clone(r.Metadata.CurrentSchema().IdentifierFieldIDs)
	}
	return slices.Compact(out)
}
