package pgcatalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

// testSession is a superuser's session in schema sales' database.
type testSession struct{ path []string }

func (s *testSession) Info() SessionInfo {
	return SessionInfo{PID: 4711, Database: "postgres", User: "postgres", SessionUser: "postgres", Version: "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit", TransactionID: 735}
}
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
func (s *testSession) PreparedStatements() []PreparedStatement { return nil }
func (s *testSession) Cursors() []Cursor                       { return nil }

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

// lab is a DuckDB with the catalog's functions.
type lab struct {
	t       *testing.T
	conn    *sql.Conn
	catalog *Catalog
	snap    *Snapshot
	session *testSession
}

type scalarUDF struct {
	s    Scalar
	lab  *lab
	args []duckdb.TypeInfo
	ret  duckdb.TypeInfo
}

func (u *scalarUDF) Config() duckdb.ScalarFuncConfig {
	return duckdb.ScalarFuncConfig{InputTypeInfos: u.args, ResultTypeInfo: u.ret, SpecialNullHandling: true}
}

func (u *scalarUDF) Executor() duckdb.ScalarFuncExecutor {
	return duckdb.ScalarFuncExecutor{RowExecutor: func(values []driver.Value) (any, error) {
		args := make([]any, len(values))
		for i, v := range values {
			args[i] = v
		}
		out, err := u.s.Call(args)
		switch v := out.(type) {
		case uint32:
			out = int64(v)
		case int:
			if u.s.Result == "INTEGER" {
				out = int32(v)
			} else {
				out = int64(v)
			}
		}
		return out, err
	}}
}

var duckTypes = map[string]duckdb.Type{"BOOLEAN": duckdb.TYPE_BOOLEAN, "INTEGER": duckdb.TYPE_INTEGER, "BIGINT": duckdb.TYPE_BIGINT, "DOUBLE": duckdb.TYPE_DOUBLE,
	"VARCHAR": duckdb.TYPE_VARCHAR, "TIMESTAMPTZ": duckdb.TYPE_TIMESTAMP_TZ}

func typeInfo(name string) (duckdb.TypeInfo, error) {
	if name == "VARCHAR[]" {
		elem, err := duckdb.NewTypeInfo(duckdb.TYPE_VARCHAR)
		if err != nil {
			return nil, err
		}
		return duckdb.NewListInfo(elem)
	}
	return duckdb.NewTypeInfo(duckTypes[name])
}

func newLab(t *testing.T) *lab {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	l := &lab{t: t, conn: conn, catalog: New(Options{Owner: "postgres", Database: "postgres"}), session: &testSession{path: []string{"public"}}}
	l.snap = l.catalog.Snapshot(salesObjects())
	for _, s := range l.catalog.Scalars() {
		u := &scalarUDF{s: s, lab: l}
		for _, a := range s.Args {
			info, err := typeInfo(a)
			require.NoError(t, err)
			u.args = append(u.args, info)
		}
		u.ret, err = typeInfo(s.Result)
		require.NoError(t, err)
		require.NoError(t, duckdb.RegisterScalarUDF(conn, s.Name, u), s.Name)
	}
	for _, stmt := range InitSQL() {
		_, err := conn.ExecContext(context.Background(), stmt)
		require.NoError(t, err, stmt)
	}
	id, release := l.catalog.Bind(l.session, func() *Snapshot { return l.snap })
	t.Cleanup(release)
	_, err = conn.ExecContext(context.Background(), fmt.Sprintf("SET VARIABLE %s = '%s'", Variable, id))
	require.NoError(t, err)
	return l
}

// value runs a query of one value and prints it; NULL is "NULL".
func (l *lab) value(query string) (string, error) {
	var v any
	if err := l.conn.QueryRowContext(context.Background(), query).Scan(&v); err != nil {
		return "", err
	}
	if v == nil {
		return "NULL", nil
	}
	return fmt.Sprint(v), nil
}
