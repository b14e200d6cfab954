package sqlfuncs

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/lookup"
)

// PropertyKeyOrder is the table property that holds the field ids of the primary key in the order in which it was declared: identifier fields are a set.
const PropertyKeyOrder = "skade.primary-key"

// KeyOrder puts identifier fields into the order of the primary key; without one, into that of their ids.
func KeyOrder(ids []int, props iceberg.Properties) []int {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	var out []int
	for part := range strings.SplitSeq(props[PropertyKeyOrder], ",") {
		if id, err := strconv.Atoi(part); err == nil && slices.Contains(ids, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	if len(out) != len(ids) {
		return ids
	}
	return out
}

// declaredKey names a target's key columns in the order of its primary key; nil when the identifier fields have that order.
func declaredKey(ctx context.Context, env *Env, t *lookup.Target) ([]string, error) {
	var md table.Metadata
	var sc *iceberg.Schema
	switch {
	case t.AsOf != nil:
		md, sc = t.AsOf.Metadata, t.AsOf.Schema
	case t.Ref != nil:
		md = t.Ref.Metadata
	default:
		st, err := env.Cut.Table(t.Ident)
		if err != nil {
			return nil, nil // whoever looks in it says so
		}
		if md, err = st.Metadata(ctx); err != nil {
			return nil, err
		}
	}
	if sc == nil {
		sc = md.CurrentSchema()
	}
	order := KeyOrder(sc.IdentifierFieldIDs, md.Properties())
	if slices.Equal(order, sc.IdentifierFieldIDs) {
		return nil, nil
	}
	names := make([]string, len(order))
	for i, id := range order {
		at := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if at < 0 {
			return nil, nil // inside a struct
		}
		names[i] = sc.Field(at).Name
	}
	return names, nil
}
