package duck

import (
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Mappable reports whether read_parquet maps a file's columns by field id as Iceberg wants. It does not when a top-level
// column lacks a field id, and it maps the fields of a struct by name: nested gives the names that the table has now, by
// field id, of every field below the top. A file that is not mappable is fed from Go (ScanFile.Relation).
func Mappable(file *schema.Schema, nested map[int]string) bool {
	root := file.Root()
	for i := range root.NumFields() {
		f := root.Field(i)
		if f.FieldID() < 0 {
			return false
		}
		if !nestedMappable(f, nested, 0) {
			return false
		}
	}
	return true
}

func nestedMappable(n schema.Node, nested map[int]string, depth int) bool {
	if depth > 0 && n.FieldID() >= 0 {
		name, ok := nested[int(n.FieldID())]
		switch {
		case synthetic(n):
		case ok && name != n.Name():
			return false
		case !ok && named(nested, n.Name()):
			// A dropped field whose name another field has now.
			return false
		}
	}
	g, ok := n.(*schema.GroupNode)
	if !ok {
		return true
	}
	for i := range g.NumFields() {
		c := g.Field(i)
		if depth > 0 && c.FieldID() < 0 && !synthetic(c) {
			return false
		}
		if !nestedMappable(c, nested, depth+1) {
			return false
		}
	}
	return true
}

func named(nested map[int]string, name string) bool {
	for _, n := range nested {
		if n == name {
			return true
		}
	}
	return false
}

// synthetic are the nodes that Parquet's lists and maps put between a column and its elements; DuckDB finds those by
// their place, whatever their name.
func synthetic(n schema.Node) bool {
	switch n.Name() {
	case "list", "element", "array", "bag", "item", "array_element", "key_value", "key", "value", "map":
		return true
	}
	return n.RepetitionType() == 2
}
