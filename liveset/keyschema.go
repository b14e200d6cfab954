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

func (r Ref) field(id int) (iceberg.NestedField, bool) {
	if f, ok := r.Metadata.CurrentSchema().FindFieldByID(id); ok {
		return f, true
	}
	var out iceberg.NestedField
	newest := -1
	for _, s := range r.Metadata.Schemas() {
		if f, ok := s.FindFieldByID(id); ok && s.ID > newest {
			out, newest = f, s.ID
		}
	}
	return out, newest >= 0
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
