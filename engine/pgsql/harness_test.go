package pgsql

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// answer is a line of testdata/*.jsonl, written by testdata/gen/answers from PostgreSQL 15.
type answer struct {
	SQL    string      `json:"sql"`
	Names  []string    `json:"names"`
	Types  []uint32    `json:"types"`
	Mods   []int32     `json:"mods"`
	Tables []bool      `json:"tables"`
	Params []uint32    `json:"params"`
	Rows   [][]*string `json:"rows"`
	Err    *struct {
		Code, Message, Hint string
		Position            int
	} `json:"err"`
}

func answers(t *testing.T, file string) []answer {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var out []answer
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		var a answer
		require.NoError(t, json.Unmarshal(in.Bytes(), &a))
		out = append(out, a)
	}
	require.NoError(t, in.Err())
	require.NotEmpty(t, out)
	return out
}

// fixture is the schema of testdata/schema.sql as a Resolver over DuckDB tables.
type fixture struct {
	rels map[string]*Relation
	// tables that are DuckDB tables in schema main, by "schema.name"
	duckName map[string]string
}

func col(name string, typ uint32, mod ...int32) RelColumn {
	c := RelColumn{Name: name, Type: typ, Mod: -1}
	if len(mod) > 0 {
		c.Mod = mod[0]
	}
	return c
}

func newFixture() *fixture {
	f := &fixture{rels: map[string]*Relation{}, duckName: map[string]string{}}
	oid := uint32(16384)
	add := func(schema, name string, key []int, cols ...RelColumn) *Relation {
		oid++
		for i := range cols {
			cols[i].AttNum = int16(i + 1)
		}
		r := &Relation{Kind: Table, Schema: schema, Name: name, OID: oid, Columns: cols, Key: key, Constraint: name + "_pkey"}
		f.rels[schema+"."+name] = r
		f.duckName[schema+"."+name] = "main.\"" + schema + "_" + name + "\""
		return r
	}
	add("sales", "orders", []int{0}, col("id", pgtype.Int8), col("ts", pgtype.TimestampTZ), col("d", pgtype.Date), col("amt", pgtype.Numeric, pgtype.NumericTypmod(12, 2)),
		col("note", pgtype.Text), col("tags", pgtype.TextArray), col("doc", pgtype.JSONB), col("uid", pgtype.UUID), col("iv", pgtype.Interval), col("f", pgtype.Float4), col("g", pgtype.Float8),
		col("b", pgtype.Bool), col("by", pgtype.Bytea), col("sm", pgtype.Int2), col("i", pgtype.Int4), col("vc", pgtype.Varchar, pgtype.LengthTypmod(20)), col("tm", pgtype.Time))
	add("public", "t", []int{0}, col("a", pgtype.Int4), col("b", pgtype.Text), col("c", pgtype.Int4))
	add("public", "u", nil, col("a", pgtype.Int4), col("n", pgtype.Numeric, pgtype.NumericTypmod(10, 3)), col("s", pgtype.Varchar, pgtype.LengthTypmod(5)))
	add("public", "Mixed", nil, col("X", pgtype.Int4), col("x", pgtype.Int4), col("order", pgtype.Text))
	add("public", "k2", []int{0, 1}, col("a", pgtype.Int4), col("b", pgtype.Text), col("v", pgtype.Int4))
	view := func(schema, name, sql string, cols ...RelColumn) {
		r := add(schema, name, nil, cols...)
		r.Kind, r.ViewSQL = View, sql
	}
	view("public", "v", "SELECT a, b, c * 2 AS c2 FROM public.t WHERE a < 4", col("a", pgtype.Int4), col("b", pgtype.Text), col("c2", pgtype.Int4))
	view("sales", "ov", "SELECT id, amt FROM sales.orders", col("id", pgtype.Int8), col("amt", pgtype.Numeric, pgtype.NumericTypmod(12, 2)))
	return f
}

func (f *fixture) ResolveRelation(schema, name string) (*Relation, error) {
	if schema == "" {
		schema = "public"
	}
	return f.rels[schema+"."+name], nil
}

// Functions are a few of the engine's, as the gate and the binding see them.
func (f *fixture) Functions(schema, name string) []EngineFunc {
	if schema != "" && schema != "skade" {
		return nil
	}
	all := []EngineFunc{
		{Schema: "skade", Name: "table_changes", Args: []uint32{pgtype.Text, pgtype.Text, pgtype.Text}, ArgNames: []string{"tbl", "from", "to"}, Defaults: 1, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "table_changes", Args: []uint32{pgtype.Text, pgtype.Int8, pgtype.Int8}, Defaults: 1, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "table_at", Args: []uint32{pgtype.Text, pgtype.Text}, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "table_at", Args: []uint32{pgtype.Text, pgtype.Int8}, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "table_at", Args: []uint32{pgtype.Text, pgtype.TimestampTZ}, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "lookup", Args: []uint32{pgtype.Text, pgtype.Any, pgtype.Text}, ArgNames: []string{"tbl", "key", "as_of"}, Defaults: 1, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "commits_since", Args: []uint32{pgtype.Int8}, Ret: pgtype.Record, SetOf: true},
		{Schema: "skade", Name: "current_commit_seq", Ret: pgtype.Int8},
		{Schema: "skade", Name: "set_config", Args: []uint32{pgtype.Text, pgtype.Text, pgtype.Bool}, Ret: pgtype.Text},
	}
	var out []EngineFunc
	for _, fn := range all {
		if fn.Name == name {
			out = append(out, fn)
		}
	}
	return out
}

func (f *fixture) TableFunction(fn EngineFunc, args []*Arg) (*Relation, error) {
	if fn.Name == "commits_since" {
		return &Relation{Kind: Function, Schema: "skade", Name: fn.Name, Columns: []RelColumn{col("seq", pgtype.Int8), col("ts", pgtype.TimestampTZ)}}, nil
	}
	if args[0] == nil || !args[0].Const {
		return nil, pgerr.New(pgerr.IndeterminateDatatype, "table name must be a constant")
	}
	schema, name, _ := SplitName(args[0].Text)
	rel, _ := f.ResolveRelation(schema, name)
	if rel == nil {
		return nil, pgerr.Newf(pgerr.UndefinedTable, "relation %q does not exist", args[0].Text)
	}
	c := *rel
	c.Kind = Function
	if fn.Name == "table_changes" {
		c.Columns = append(append([]RelColumn(nil), c.Columns...), col("_change_type", pgtype.Text))
	}
	return &c, nil
}

// fromItem is the FROM item of a source over the fixture's DuckDB tables.
func (f *fixture) fromItem(_ int, use *RelUse) string {
	var cols []string
	for _, c := range use.Columns {
		cols = append(cols, "c"+itoa(int64(c+1)))
	}
	if len(cols) == 0 {
		cols = append(cols, "1")
	}
	if use.Position {
		cols = append(cols, "'file'", "rowid")
	}
	return "(SELECT " + strings.Join(cols, ", ") + " FROM " + f.duckName[use.Relation.Schema+"."+use.Relation.Name] + ")"
}

var testDB = sync.OnceValues(func() (*duck.DB, error) {
	var funcs []duck.Func
	for _, g := range GoFuncs() {
		g := g
		funcs = append(funcs, duck.Func{Name: g.Name, Args: g.Args, Ret: g.Ret, Volatile: g.Volatile, NullIn: g.NullIn, Fn: func(args []duck.Value) (duck.Value, error) {
			v, err := g.Fn(fromDuck(args))
			return toDuck(v), err
		}})
	}
	funcs = append(funcs, duck.Func{Name: "test_regtype_out", Args: []string{"BIGINT"}, Ret: "VARCHAR", Fn: func(a []duck.Value) (duck.Value, error) {
		return duck.Value{S: pgtype.FormatNoTypmod(uint32(a[0].I))}, nil
	}})
	init := append(InitSQL(), "CREATE SCHEMA skade_pg", "CREATE MACRO skade_pg.regtype_out(x) AS test_regtype_out(x)", "CREATE MACRO skade_pg.current_setting(x) AS x")
	return duck.Open(duck.Options{Funcs: funcs, InitSQL: append(init, fixtureSQL...)})
})

// fixtureSQL makes the rows of testdata/schema.sql; columns are c1, c2 ….
var fixtureSQL = []string{
	`CREATE TABLE main.sales_orders AS SELECT CAST(n AS BIGINT) c1, TIMESTAMPTZ '2026-01-01 00:00:00+00' + n * INTERVAL 1 MINUTE c2, DATE '2026-01-01' + CAST(n AS INTEGER) c3, CAST(n * 1.5 AS DECIMAL(12,2)) c4, 'n' || n c5,
		['a', 'b' || n] c6, '{"a": [1, 2], "k": 1}' c7, CAST('00000000-0000-4000-8000-' || lpad(CAST(n AS VARCHAR), 12, '0') AS UUID) c8, INTERVAL '1 day 02:03:00' c9, CAST(n / 2.0 AS FLOAT) c10, CAST(n * 2.5 AS DOUBLE) c11,
		n % 2 = 0 c12, CAST('\x00\xFF' AS BLOB) c13, CAST(n % 3 AS SMALLINT) c14, CAST(n * 10 AS INTEGER) c15, 'v' || n c16, TIME '10:11:12' c17 FROM range(1, 7) r(n)`,
	`CREATE TABLE main.public_t AS SELECT * FROM (VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, 30), (4, 'four', 10)) x(c1, c2, c3)`,
	`CREATE TABLE main.public_u AS SELECT CAST(c1 AS INTEGER) c1, CAST(c2 AS DECIMAL(10,3)) c2, c3 FROM (VALUES (1, 1.5, 'x'), (2, 2.25, 'y'), (2, NULL, 'z'), (5, 100, NULL)) x(c1, c2, c3)`,
	`CREATE TABLE main."public_Mixed" AS SELECT 1 c1, 2 c2, 'o' c3`,
	`CREATE TABLE main.public_k2 AS SELECT * FROM (VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3)) x(c1, c2, c3)`,
}

func fromDuck(in []duck.Value) []Value {
	out := make([]Value, len(in))
	for i, v := range in {
		out[i] = Value{Null: v.Null, I: v.I, Months: v.Months, Days: v.Days, F: v.F, S: v.S}
		if v.L != nil {
			out[i].L = fromDuck(v.L)
		}
	}
	return out
}

func toDuck(v Value) duck.Value {
	out := duck.Value{Null: v.Null, I: v.I, Months: v.Months, Days: v.Days, F: v.F, S: v.S}
	if v.L != nil {
		out.L = make([]duck.Value, len(v.L))
		for i, x := range v.L {
			out.L[i] = toDuck(x)
		}
	}
	return out
}

func testConn(t testing.TB) *duck.Conn {
	t.Helper()
	db, err := testDB()
	require.NoError(t, err)
	c, err := db.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.SetTimeZone(context.Background(), "UTC"))
	return c
}

// sessionBind is a session's values in tests.
func sessionBind(b Bind) any {
	now := time.Now()
	switch {
	case b.Setting != "":
		return "on"
	case b.Call != nil:
		return int64(42)
	}
	switch b.Session {
	case TransactionTimestamp, StatementTimestamp:
		return duck.TimestampTZ(now.UnixMicro())
	case CurrentDatabase, CurrentUser, SessionUser:
		return "postgres"
	case CurrentSchema:
		return "public"
	case BackendPID:
		return int32(1)
	case ServerVersion:
		return "PostgreSQL 15.0 (skade-pg)"
	}
	return nil
}

// run executes a query and gives its rows as PostgreSQL's text.
func run(t testing.TB, c *duck.Conn, f *fixture, q *Query) ([][]*string, error) {
	return runText(c, q.Render(f.fromItem), q)
}

// runDML is run for UPDATE and DELETE, whose rows are not q.Columns.
func runDML(t testing.TB, f *fixture, q *Query) ([][]*string, error) {
	plain := *q
	plain.Columns = nil
	plain.Insert = &Insert{}
	return runText(testConn(t), q.Render(f.fromItem), &plain)
}

func runText(c *duck.Conn, text string, q *Query) (rows [][]*string, err error) {
	ctx := context.Background()
	st, err := c.Prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var args []any
	for _, b := range q.Binds {
		args = append(args, sessionBind(b))
	}
	rs, err := st.Query(ctx, args)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	trim := make([]bool, len(q.Columns))
	for i, c := range q.Columns {
		trim[i] = c.Trim
	}
	if q.Insert == nil {
		rs.TrimNumeric(trim)
	}
	types := make([]uint32, len(st.Columns()))
	for i := range types {
		types[i] = st.Columns()[i].TypeOID
		if i < len(q.Columns) && q.Insert == nil {
			types[i] = q.Columns[i].Type
		}
	}
	for {
		out, n, done, err := rs.AppendDataRows(nil, []int16{0}, types, time.UTC, 100)
		if err != nil {
			return rows, err
		}
		for range n {
			var row []*string
			row, out = dataRow(out)
			if len(q.Columns) == 0 && q.Insert == nil && len(types) == 1 && q.text != "" {
				row = nil // SELECT without columns: DuckDB yields one to ignore
			}
			rows = append(rows, row)
		}
		if done {
			rs.Close()
			return rows, nameOIDs(c, rows, types)
		}
	}
}

// nameOIDs is what the engine does for output columns of reg types.
func nameOIDs(c *duck.Conn, rows [][]*string, types []uint32) error {
	for _, row := range rows {
		for i, f := range row {
			if f == nil || !isReg(types[i]) {
				continue
			}
			text := &Query{}
			out, err := runText(c, "SELECT "+CatalogSchema+"."+regNames[types[i]]+"_out("+*f+")", text)
			if err != nil {
				return err
			}
			row[i] = out[0][0]
		}
	}
	return nil
}

// dataRow decodes one DataRow message.
func dataRow(b []byte) ([]*string, []byte) {
	be32 := func(b []byte) int32 { return int32(b[0])<<24 | int32(b[1])<<16 | int32(b[2])<<8 | int32(b[3]) }
	total := 1 + int(be32(b[1:5]))
	rest := b[total:]
	n := int(b[5])<<8 | int(b[6])
	p := b[7:total]
	row := make([]*string, n)
	for i := range row {
		l := be32(p)
		p = p[4:]
		if l < 0 {
			continue
		}
		s := string(p[:l])
		row[i] = &s
		p = p[l:]
	}
	return row, rest
}
