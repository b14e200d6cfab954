package changelog

import (
	"slices"

	"github.com/apache/iceberg-go"
)

// layout says which columns of the files one step is read by, and what for. The columns asked for come first.
type layout struct {
	read    *iceberg.Schema // columns in read order
	asked   int             // the first columns of read are the asked schema's
	cast    []bool          // asked columns that are read in a wider type than asked
	compare []int           // columns of read that make row identity; all of them
	own     []int           // columns of read that the step's own schema has: what a row's shard hash covers
	key     []int           // columns of read that pair rows; empty: none
}

// newLayout makes the layout of a step. before and after are the schemas of the step's two ends, asked the schema of the
// answer, known all of the table's, keyIDs the identifier override (nil: after's identifier fields).
//
// Row identity covers every column that either end or the asked schema has: what a window shows must balance under the
// asked schema (L1), whatever columns came and went.
func newLayout(asked, before, after *iceberg.Schema, known []*iceberg.Schema, keyIDs []int) *layout {
	l := &layout{asked: asked.NumFields(), cast: make([]bool, asked.NumFields())}
	fields := slices.Clone(asked.Fields())
	for _, sc := range []*iceberg.Schema{after, before} {
		for _, f := range sc.Fields() {
			if !slices.ContainsFunc(fields, func(g iceberg.NestedField) bool { return g.ID == f.ID }) {
				fields = append(fields, f)
			}
		}
	}
	l.widest(asked, fields, known)
	l.read = uniqueNames(asked, fields)
	if keyIDs == nil {
		keyIDs = kindOf(after).Identifier
	}
	for i, f := range fields {
		l.compare = append(l.compare, i)
		if _, ok := topField(after, f.ID); ok {
			l.own = append(l.own, i)
		}
	}
	for _, id := range keyIDs {
		if i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == id }); i >= 0 {
			l.key = append(l.key, i)
		}
	}
	return l
}

// widest makes fields nullable and gives them the widest type they ever had: a rollback brings files of a wider type to a state of a narrower one.
func (l *layout) widest(asked *iceberg.Schema, fields []iceberg.NestedField, known []*iceberg.Schema) {
	for i := range fields {
		fields[i].Required = false
		for _, sc := range known {
			if g, ok := topField(sc, fields[i].ID); ok && widens(fields[i].Type, g.Type) {
				fields[i].Type = g.Type
			}
		}
		if i < l.asked {
			l.cast[i] = !fields[i].Type.Equals(asked.Field(i).Type)
		}
	}
}

// narrow returns the layout without the columns that only comparing needs.
func (l *layout) narrow() *layout {
	if l.read.NumFields() == l.asked {
		return l
	}
	n := *l
	n.read = iceberg.NewSchema(l.read.ID, l.read.Fields()[:l.asked]...)
	n.compare, n.own, n.key = nil, nil, nil
	return &n
}

// widens reports whether Iceberg promotes from to to.
func widens(from, to iceberg.Type) bool {
	if from.Equals(to) {
		return false
	}
	_, err := iceberg.PromoteType(from, to)
	return err == nil
}

func topField(sc *iceberg.Schema, id int) (iceberg.NestedField, bool) {
	for _, f := range sc.Fields() {
		if f.ID == id {
			return f, true
		}
	}
	return iceberg.NestedField{}, false
}

// uniqueNames makes a schema of fields of different schemas of one table: two of them may have had the same name.
func uniqueNames(asked *iceberg.Schema, fields []iceberg.NestedField) *iceberg.Schema {
	seen := map[string]bool{}
	for i := range fields {
		for seen[fields[i].Name] {
			fields[i].Name += "\x00"
		}
		seen[fields[i].Name] = true
	}
	return iceberg.NewSchema(asked.ID, fields...)
}
