package pgcatalog

import (
	"context"
	"fmt"
	"time"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
)

// resolver binds names to the relations of a lab; of the user's it knows the OIDs.
type resolver struct{ lab *lab }

func (r resolver) ResolveRelation(schema, name string) (*pgsql.Relation, error) {
	if schema == "" {
		schema = "pg_catalog"
	}
	if own := r.lab.snap.byName[qualified{schema, name}]; own != nil {
		return &pgsql.Relation{Kind: pgsql.Table, Schema: schema, Name: name, OID: own.OID}, nil
	}
	sys := LookupRelation(schema, name)
	if sys == nil {
		return nil, nil
	}
	rel := &pgsql.Relation{Kind: pgsql.System, Schema: sys.Schema, Name: sys.Name, OID: sys.OID, ReadOnly: true, Handle: sys}
	for _, c := range sys.Columns {
		rel.Columns = append(rel.Columns, pgsql.RelColumn{Name: c.Name, Type: c.TypeOID, Mod: c.TypeMod, AttNum: c.AttNum, NotNull: c.NotNull, Hidden: c.Hidden})
	}
	return rel, nil
}

func (resolver) Functions(string, string) []pgsql.EngineFunc { return nil }

func (resolver) TableFunction(fn pgsql.EngineFunc, _ []*pgsql.Arg) (*pgsql.Relation, error) {
	return nil, fmt.Errorf("no function %s", fn.Name)
}

// bindValue gives a DuckDB parameter's value.
func (l *lab) bindValue(b pgsql.Bind) any {
	info := l.session.Info()
	switch b.Session {
	case pgsql.CurrentUser, pgsql.SessionUser:
		return info.User
	case pgsql.CurrentSchema:
		return "public"
	case pgsql.CurrentSchemas:
		return duck.List{Elem: "VARCHAR", Values: []any{"public"}}
	case pgsql.CurrentSchemasAll:
		return duck.List{Elem: "VARCHAR", Values: []any{"pg_catalog", "public"}}
	case pgsql.CurrentDatabase:
		return info.Database
	case pgsql.BackendPID:
		return info.PID
	case pgsql.ServerVersion:
		return info.Version
	}
	return nil
}

// analyzed runs a query as the engine does: analysed, its system relations read from Go. columns are RowDescription's.
func (l *lab) analyzed(sql string) (columns []pgsql.OutCol, rows [][]string, err error) {
	stmts, err := pgsql.Parse(sql)
	if err != nil {
		return nil, nil, err
	}
	q, err := pgsql.Analyze(stmts[0], resolver{l}, nil)
	if err != nil {
		return nil, nil, err
	}
	text := q.Render(func(_ int, use *pgsql.RelUse) string {
		sys := use.Relation.Handle.(*SystemRelation)
		cols := ""
		for i, c := range use.Columns {
			if i > 0 {
				cols += ", "
			}
			cols += quoteIdent(sys.Columns[c].Name)
		}
		if cols == "" {
			cols = "1"
		}
		return "(SELECT " + cols + " FROM skade_rel('" + l.relation(sys) + "'))"
	})
	ctx := context.Background()
	st, err := l.conn.Prepare(ctx, text)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, text)
	}
	defer st.Close()
	var args []any
	for _, b := range q.Binds {
		args = append(args, l.bindValue(b))
	}
	res, err := st.Query(ctx, args)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, text)
	}
	defer res.Close()
	var types []uint32
	for _, c := range q.Columns {
		types = append(types, c.Type)
	}
	for {
		msgs, _, done, err := res.AppendDataRows(nil, nil, types, time.UTC, 1000)
		if err != nil {
			return nil, nil, fmt.Errorf("%w\n%s", err, text)
		}
		rows = append(rows, dataRows(msgs)...)
		if done {
			return q.Columns, rows, nil
		}
	}
}
