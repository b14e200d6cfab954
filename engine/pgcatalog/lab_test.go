package pgcatalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
)

// testSession is a superuser's session in schema sales' database.
type testSession struct{ path []string }

func (s *testSession) Info() SessionInfo {
	return SessionInfo{PID: 4711, Database: "postgres", User: "postgres", SessionUser: "postgres", Version: "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit", TransactionID: 735}
}
func (s *testSession) TempSchema() (string, uint32)                     { return "", 0 }
func (s *testSession) SearchPath() []string                             { return s.path }
func (s *testSession) HasPrivilege(uint32, string, uint32, string) bool { return true }
func (s *testSession) Settings() []Setting {
	return []Setting{{Name: "work_mem", Value: "4096", Unit: "kB", Category: "Resource Usage / Memory", ShortDesc: "Sets the maximum memory to be used for query workspaces.",
		Context: "user", VarType: "integer", Source: "default", MinVal: "64", MaxVal: "2147483647", BootVal: "4096", ResetVal: "4096"},
		{Name: "max_index_keys", Value: "32", Context: "internal", VarType: "integer", Source: "default", BootVal: "32", ResetVal: "32"}}
}
func (s *testSession) Activity() []Backend {
	return []Backend{{PID: 4711, Database: "postgres", User: "postgres", ApplicationName: "psql", State: "active", Query: "select 1", BackendType: "client backend"}}
}
func (s *testSession) Locks() []Lock                           { return nil }
func (s *testSession) Copies() []CopyProgress                  { return nil }
func (s *testSession) Blockers(int32) []int32                  { return nil }
func (s *testSession) PreparedStatements() []PreparedStatement { return nil }
func (s *testSession) Cursors() []Cursor                       { return nil }
func (s *testSession) SequenceValue(uint32) (int64, bool)      { return 0, false }

// salesObjects is the schema that the clients were recorded on, with the OIDs of the recording.
func salesObjects() *Objects {
	c := func(n int16, name string, typ uint32) RelationColumn {
		return RelationColumn{Name: name, AttNum: n, TypeOID: typ, TypeMod: -1}
	}
	orders := Relation{OID: 16386, Kind: Table, Namespace: "sales", Name: "orders", PrimaryKey: []int16{1}, Comment: "orders table", Rows: -1, Bytes: 0, Columns: []RelationColumn{
		c(1, "id", 20), c(2, "ts", 1184), c(3, "d", 1082), c(4, "amt", 1700), c(5, "note", 25), c(6, "tags", 1009), c(7, "doc", 3802), c(8, "uid", 2950), c(9, "iv", 1186),
		c(10, "f", 700), c(11, "g", 701), c(12, "b", 16), c(13, "by", 17), c(14, "sm", 21), c(15, "i", 23), c(16, "vc", 1043), c(17, "tm", 1083)}}
	orders.Columns[0].NotNull = true
	orders.Columns[3].TypeMod = 786438
	orders.Columns[15].TypeMod = 24
	v := Relation{OID: 16393, Kind: View, Namespace: "sales", Name: "v", Rows: -1, Definition: " SELECT orders.id,\n    orders.amt\n   FROM sales.orders;",
		Columns: []RelationColumn{c(1, "id", 20), c(2, "amt", 1700)}}
	v.Columns[1].TypeMod = 786438
	return &Objects{
		Databases:  []Database{{OID: 5, Name: "postgres", Comment: "default administrative connection database"}},
		Namespaces: []Namespace{{OID: 16385, Name: "sales"}},
		Relations:  []Relation{orders, v},
		Functions: []Function{{OID: 15100, Namespace: "skade", Name: "commits_since", Args: []FunctionArg{{Name: "seq", TypeOID: 20}, {Name: "lim", TypeOID: 23, Default: "100"}}, Defaults: 1,
			Out: []FunctionArg{{Name: "commit_seq", TypeOID: 20}, {Name: "tables", TypeOID: 1009}}, Return: 2249, ReturnsSet: true, Volatile: 's', Strict: false, Comment: "commits after a seq"}},
	}
}

// lab is a DuckDB with the catalog's functions and relations.
type lab struct {
	t       testing.TB
	db      *duck.DB
	conn    *duck.Conn
	catalog *Catalog
	snap    *Snapshot
	session *testSession
	ids     map[string]string // relation → its number in DuckDB
}

func newLab(t testing.TB, objects *Objects) *lab {
	t.Helper()
	l := &lab{t: t, catalog: New(Options{Owner: "postgres", Database: "postgres"}), session: &testSession{path: []string{"public"}}, ids: map[string]string{}}
	l.snap = l.catalog.Snapshot(objects)
	var err error
	l.db, err = duck.Open(duck.Options{TempDir: t.TempDir(), Scalars: labScalars(l.catalog), Funcs: pgsql.GoFuncs(),
		InitSQL: append(pgsql.InitSQL(), InitSQL()...)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.db.Close()) })
	l.conn, err = l.db.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(l.conn.Close)
	id, release := l.catalog.Bind(l.session, func() *Snapshot { return l.snap })
	t.Cleanup(release)
	_, err = l.conn.Exec(context.Background(), fmt.Sprintf("SET VARIABLE %s = '%s'", Variable, id))
	require.NoError(t, err)
	return l
}

// relation registers a relation's rows and gives its number.
func (l *lab) relation(r *SystemRelation) string {
	key := r.Schema + "." + r.Name
	if id := l.ids[key]; id != "" {
		return id
	}
	schema, batches, n, err := l.snap.Relation(l.session, r.Schema, r.Name)
	require.NoError(l.t, err)
	id, release, err := l.db.RegisterRelation(schema, n, func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for _, b := range batches {
				b.Retain()
				if !yield(b, nil) {
					return
				}
			}
		}, nil
	})
	require.NoError(l.t, err)
	l.t.Cleanup(release)
	l.ids[key] = id
	return id
}

// query runs SQL and gives the rows as PostgreSQL's text of the column types (nil: what DuckDB's types are). NULL is \N.
func (l *lab) query(sql string, types []uint32) ([][]string, error) {
	ctx := context.Background()
	st, err := l.conn.Prepare(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	res, err := st.Query(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	if types == nil {
		for _, c := range res.Columns() {
			types = append(types, c.TypeOID)
		}
	}
	var rows [][]string
	for {
		msgs, _, done, err := res.AppendDataRows(nil, nil, types, time.UTC, 1000)
		if err != nil {
			return nil, err
		}
		rows = append(rows, dataRows(msgs)...)
		if done {
			return l.names(rows, types), nil
		}
	}
}

// dataRows reads DataRow messages in text format. NULL is \N.
func dataRows(msgs []byte) [][]string {
	var rows [][]string
	for len(msgs) > 0 {
		end := binary.BigEndian.Uint32(msgs[1:]) + 1
		msg := msgs[7:end]
		cells := make([]string, binary.BigEndian.Uint16(msgs[5:]))
		for i := range cells {
			n := int32(binary.BigEndian.Uint32(msg))
			msg = msg[4:]
			if n < 0 {
				cells[i] = `\N`
				continue
			}
			cells[i], msg = string(msg[:n]), msg[n:]
		}
		rows = append(rows, cells)
		msgs = msgs[end:]
	}
	return rows
}

// names turns values of reg* types into names, as the analyser's SQL does.
func (l *lab) names(rows [][]string, types []uint32) [][]string {
	for _, row := range rows {
		for i := range row {
			for _, r := range regTypes {
				if r.oid == types[i] && row[i] != `\N` {
					row[i] = l.snap.RegOut(l.session, r.oid, parseOID(row[i]))
				}
			}
		}
	}
	return rows
}

// value runs a query of one value.
func (l *lab) value(query string) (string, error) {
	rows, err := l.query(query, nil)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

func labScalars(c *Catalog) []duck.Scalar {
	var out []duck.Scalar
	for _, s := range c.Scalars() {
		out = append(out, duck.Scalar{Name: s.Name, Args: s.Args, Result: s.Result, Eval: s.Eval})
	}
	return out
}
