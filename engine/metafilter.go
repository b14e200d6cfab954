package engine

import (
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// onlyTables says which tables a query of a view over all tables can show: those whose names its conditions on table_schema and table_name let
// through. The conditions are also in the query.
func (s *session) onlyTables(use *pgsql.RelUse, args []value) func(table.Identifier) bool {
	var schema, name []map[string]bool
	for _, p := range use.Preds {
		if p.Op != "=" && p.Op != "in" || p.Column >= len(use.Relation.Columns) {
			continue
		}
		into := &schema
		switch use.Relation.Columns[p.Column].Name {
		case "table_schema":
		case "table_name":
			into = &name
		default:
			continue
		}
		want := map[string]bool{}
		for _, a := range p.Values {
			text, ok := s.knownText(a, args)
			if !ok {
				want = nil
				break
			}
			want[text] = true
		}
		if want != nil {
			*into = append(*into, want)
		}
	}
	if len(schema)+len(name) == 0 {
		return nil
	}
	return func(ident table.Identifier) bool {
		for _, w := range schema {
			if !w[schemaOf(ident)] {
				return false
			}
		}
		for _, w := range name {
			if !w[ident[len(ident)-1]] {
				return false
			}
		}
		return true
	}
}

// knownText is a text value that is known before the query runs.
func (s *session) knownText(a *pgsql.Arg, args []value) (string, bool) {
	if a == nil || a.Row != nil || a.Array != nil || a.Null || (!a.Const && a.Param == 0) {
		return "", false
	}
	oid, text := a.Type, a.Text
	if a.Param > 0 {
		if a.Param > len(args) || args[a.Param-1].null {
			return "", false
		}
		v := args[a.Param-1].text(s.style())
		oid, text = v.OID, v.Text
	}
	return text, oid == pgtype.Text || oid == pgtype.Varchar || oid == pgtype.Unknown
}
