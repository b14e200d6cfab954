package pgsql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func utility(t *testing.T, sql string) any {
	t.Helper()
	stmts, err := Parse(sql)
	require.NoError(t, err, sql)
	u, err := Utility(stmts[0])
	require.NoError(t, err, sql)
	return u
}

func TestUtility(t *testing.T) {
	yes, no := true, false
	require.Equal(t, &Transaction{Op: "begin", Modes: TransactionModes{Isolation: "serializable", ReadOnly: &yes}}, utility(t, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"))
	require.Equal(t, &Transaction{Op: "begin", Modes: TransactionModes{ReadOnly: &no}}, utility(t, "start transaction read write"))
	require.Equal(t, &Transaction{Op: "commit", Chain: true}, utility(t, "commit and chain"))
	require.Equal(t, &Transaction{Op: "rollback to", Savepoint: "s0"}, utility(t, `rollback to savepoint "s0"`))
	require.Equal(t, &Transaction{Op: "release", Savepoint: "a"}, utility(t, "release a"))
	require.Equal(t, &Set{Name: "search_path", Value: `sales, "X y"`, Args: []string{"sales", "X y"}}, utility(t, `SET SESSION search_path TO 'sales', "X y"`))
	require.Equal(t, &Set{Name: "timezone", Value: "UTC", Args: []string{"UTC"}, Local: true}, utility(t, "set local time zone 'UTC'"))
	require.Equal(t, &Set{Name: "default_transaction_isolation", Reset: true}, utility(t, "SET default_transaction_isolation TO DEFAULT"))
	require.Equal(t, &Set{Name: "all", Reset: true}, utility(t, "reset all"))
	require.Equal(t, &Set{Name: "work_mem", Value: "64", Args: []string{"64"}}, utility(t, "set work_mem = 64"))
	require.Equal(t, &Set{Name: "session characteristics", Transaction: &TransactionModes{Isolation: "repeatable read"}}, utility(t, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
	require.Equal(t, &Set{Name: "skade.as_of", Value: "seq:5", Args: []string{"seq:5"}}, utility(t, "set skade.as_of = 'seq:5'"))
	require.Equal(t, &Show{Name: "transaction_isolation"}, utility(t, "show transaction isolation level"))
	require.Equal(t, &Discard{What: "all"}, utility(t, "discard all"))
	require.Equal(t, &Deallocate{Name: "x"}, utility(t, "deallocate prepare x"))
	require.Equal(t, &Deallocate{All: true}, utility(t, "deallocate all"))
	require.Equal(t, &CloseCursor{Name: "big"}, utility(t, `close "big"`))
	require.Equal(t, &Fetch{Name: "big", Direction: "forward", Count: 100}, utility(t, `FETCH FORWARD 100 FROM "big"`))
	require.Equal(t, &Fetch{Name: "c", Direction: "forward", Count: FetchAll, Move: true}, utility(t, "move all in c"))
	require.Equal(t, &Listen{Channel: "skade_commits"}, utility(t, "listen skade_commits"))
	require.Equal(t, &Unlisten{}, utility(t, "unlisten *"))
	require.Equal(t, &Notify{Channel: "c", Payload: "it's"}, utility(t, "notify c, 'it''s'"))
	require.Equal(t, &Truncate{Tables: []QName{{Schema: "sales", Name: "orders", Loc: 11}, {Name: "t", Loc: 25}}}, utility(t, "truncate  sales.orders, t"))
	require.Equal(t, &Drop{What: "table", Names: []QName{{Schema: "s", Name: "t"}, {Name: "u"}}, IfExists: true, Cascade: true}, utility(t, "drop table if exists s.t, u cascade"))
	require.Equal(t, &Drop{What: "schema", Names: []QName{{Name: "s"}}}, utility(t, "drop schema s"))
	require.Equal(t, &CreateSchema{Name: "s", IfNotExists: true}, utility(t, "create schema if not exists s"))
	require.Equal(t, &Alter{What: "table", Name: QName{Name: "t", Loc: 13}, NewName: "u", Action: "rename"}, utility(t, "alter table t rename to u"))
	text := "x"
	require.Equal(t, &Comment{What: "column", Name: QName{Schema: "sales", Name: "orders"}, Column: "id", Text: &text}, utility(t, "comment on column sales.orders.id is 'x'"))
	d := utility(t, `DECLARE "big" BINARY NO SCROLL CURSOR WITH HOLD FOR select id from t`).(*Declare)
	require.True(t, d.Binary && d.NoScroll && d.Hold && !d.Scroll)
	require.Equal(t, "select id from t", d.Query.Text)
	p := utility(t, "prepare x (int, text) as select $1, $2").(*Prepare)
	require.Equal(t, []uint32{23, 25}, p.Types)
	require.Equal(t, "select $1, $2", p.Stmt.Text)
	e := utility(t, "explain (analyze, verbose off, format json) select 1").(*Explain)
	require.True(t, e.Analyze && !e.Verbose && e.Costs && e.Timing && e.Format == "json")
	ex := utility(t, "execute x (1, 'a')").(*Execute)
	args, err := ex.Arguments([]uint32{20, 25}, newFixture())
	require.NoError(t, err)
	require.Equal(t, "1", args[0].Text)
	require.Equal(t, uint32(20), args[0].Type)
	_, err = ex.Arguments([]uint32{20}, newFixture())
	require.ErrorContains(t, err, "wrong number of parameters")
}

func TestCreateTableStatement(t *testing.T) {
	c := utility(t, `create table if not exists sales.x (id bigint primary key, n numeric(12,2) not null default 1.5 + 1, v varchar(20), t text[] default '{}', "Q q" timestamptz default now()) with (format_version = 3, "Write.X" = 'y')`).(*CreateTable)
	require.Equal(t, []string{"id"}, c.PrimaryKey)
	require.True(t, c.IfNotExists && c.Columns[0].NotNull && c.Columns[1].NotNull)
	require.Equal(t, map[string]string{"format_version": "3", "Write.X": "y"}, c.With)
	require.Equal(t, "1.5 + 1", c.Columns[1].Default)
	require.Equal(t, int32(786438), c.Columns[1].Mod)
	require.Equal(t, uint32(1009), c.Columns[3].Type)
	for _, col := range c.Columns {
		require.NoError(t, CheckDefault(col, newFixture()))
	}
	c = utility(t, "create table k (a int, b text, constraint kk primary key (b, a))").(*CreateTable)
	require.Equal(t, []string{"b", "a"}, c.PrimaryKey)
	require.Equal(t, "kk", c.ConstraintName)
	as := utility(t, "create table x (p, q) with (format_version = 3) as select 1, 2 with no data").(*CreateTableAs)
	require.Equal(t, []string{"p", "q"}, as.Columns)
	require.True(t, as.NoData)
	into := utility(t, "select a, b into sales.y from t").(*CreateTableAs)
	require.Equal(t, "sales.y", into.Schema+"."+into.Name)
	_, err := Analyze(into.Query, newFixture(), nil)
	require.NoError(t, err)
	q, err := AnalyzeExpr("1 + 1", 20, -1, newFixture())
	require.NoError(t, err)
	require.Equal(t, uint32(20), q.Columns[0].Type)
}

func TestNormalizeView(t *testing.T) {
	v := utility(t, `create or replace view w (x, y) as select t.a, "Mixed".x from t join "Mixed" on true where t.a in (select a from u) and 't' <> 'from t'`).(*CreateView)
	sql, cols, err := NormalizeView(v, newFixture())
	require.NoError(t, err)
	require.Equal(t, `select t.a, "Mixed".x from public.t join public."Mixed" on true where t.a in (select a from public.u) and 't' <> 'from t'`, sql)
	require.Equal(t, "x", cols[0].Name)
	require.True(t, v.Replace)
	_, _, err = NormalizeView(utility(t, "create view w as select 1 as a, 2 as a").(*CreateView), newFixture())
	require.ErrorContains(t, err, `column "a" specified more than once`)
	_, _, err = NormalizeView(utility(t, "create view w as select $1").(*CreateView), newFixture())
	require.ErrorContains(t, err, "there is no parameter $1")
}

func TestCopyStatement(t *testing.T) {
	c := utility(t, "copy sales.orders (id, note) from stdin with (format csv, header match, null 'NA', quote '''', force_null (note))").(*Copy)
	require.True(t, c.From && c.Header && c.HeaderMatch && c.NullSet)
	require.Equal(t, []string{"csv", ",", "NA", "'", "'"}, []string{c.Format, c.Delimiter, c.Null, c.Quote, c.Escape})
	require.Equal(t, []string{"note"}, c.ForceNull)
	c = utility(t, "COPY (select id from sales.orders limit 3) TO STDOUT WITH CSV HEADER").(*Copy)
	require.True(t, c.Query != nil && c.Header && c.Format == "csv")
	c = utility(t, "copy t to stdout").(*Copy)
	require.Equal(t, []string{"text", "\t", `\N`}, []string{c.Format, c.Delimiter, c.Null})
	require.Equal(t, "parquet", utility(t, "copy t from stdin (format parquet)").(*Copy).Format)
	c = utility(t, "copy t from stdin where a > 1 and b is not null").(*Copy)
	q, err := c.Filter(newFixture().rels["public.t"], newFixture())
	require.NoError(t, err)
	require.Equal(t, "t / f", rowsRun(t, newFixture(), q, "(VALUES (2, 'x', 1), (1, 'y', 2)) x(c1, c2, c3)"))
	for sql, want := range map[string]string{
		"copy t from stdin (format xml)":              "22023 COPY format \"xml\" not recognized @20",
		"copy t from stdin (delimiter 'ab')":          "0A000 COPY delimiter must be a single one-byte character @0",
		"copy t from stdin (quote '\"')":              "0A000 COPY quote available only in CSV mode @0",
		"copy t from stdin (nosuch 1)":                "42601 option \"nosuch\" not recognized @20",
		"copy t from stdin (format csv, format text)": "42601 conflicting or redundant options @32",
	} {
		require.Equal(t, want, errorLine(everything(newFixture(), sql)), sql)
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{"a": "a", "A": `"A"`, "select": `"select"`, "a b": `"a b"`, `x"y`: `"x""y"`, "1a": `"1a"`, "abs": "abs", "user": `"user"`, "": `""`} {
		require.Equal(t, want, QuoteIdent(in))
	}
	schema, name, err := ParseQualifiedName(`Sales."Order s"`)
	require.NoError(t, err)
	require.Equal(t, "sales/Order s", schema+"/"+name)
	for _, bad := range []string{"", ".", "a.", `"a`, "a.b.c.d"} {
		_, _, err := ParseQualifiedName(bad)
		require.Error(t, err, bad)
	}
	require.Equal(t, "skade:22012 division by zero", RaiseText(func() error { _, err := divDecimal(decimal{pow10(0), 0}, decimal{pow10(0).SetInt64(0), 0}); return err }()))
}

// TestTemplates: every template is for a function that PostgreSQL 15 has, with those argument types.
func TestTemplates(t *testing.T) {
	for name, ts := range functionTable() {
		rows := catalog().procs[name]
		require.NotEmpty(t, rows, name)
		for _, tm := range ts {
			if tm.args == nil {
				continue
			}
			found := false
			for _, p := range rows {
				found = found || len(p.args) >= len(tm.args) && sameTypes(p.args[:len(tm.args)], tm.args)
			}
			require.True(t, found, "%s%v", name, tm.args)
		}
	}
	for name := range aggregates {
		require.NotEmpty(t, catalog().procs[name], name)
	}
}

func TestAlterTableUtility(t *testing.T) {
	a := utility(t, `alter table if exists only s.t add column if not exists c int not null default 1 + 1, drop column d cascade, alter e type bigint using e * 2,
		alter f set default 'x', alter f drop default, add constraint k primary key (a, b), drop constraint if exists k, set (format_version = 3, "a.B" = 'v'), reset (partitioning), owner to me`).(*AlterTable)
	require.Equal(t, QName{Schema: "s", Name: "t", Loc: 28}, a.Name)
	require.True(t, a.IfExists)
	var kinds []AlterKind
	for _, x := range a.Actions {
		kinds = append(kinds, x.Do)
	}
	require.Equal(t, []AlterKind{AddColumn, DropColumn, AlterColumnType, SetDefault, DropDefault, AddConstraint, DropConstraint, SetOptions, ResetOptions, OwnerTo}, kinds)
	require.Equal(t, "1 + 1", a.Actions[0].Def.Default)
	require.True(t, a.Actions[0].Missing && a.Actions[0].Def.NotNull && a.Actions[1].Cascade && a.Actions[6].Missing)
	require.Equal(t, "e * 2", a.Actions[2].Using)
	require.Equal(t, []string{"a", "b"}, a.Actions[5].Constraints.PrimaryKey)
	require.Equal(t, map[string]string{"format_version": "3", "a.B": "v"}, a.Actions[7].Options)
	require.Equal(t, &Alter{What: "table", Name: QName{Name: "t", Loc: 13}, Column: "a", NewName: "b", Action: "rename column"}, utility(t, "alter table t rename a to b"))
	require.Equal(t, &Alter{What: "view", Name: QName{Name: "v", Loc: 12}, NewName: "s", Action: "set schema"}, utility(t, "alter view v set schema s"))
}

// TestRetarget changes what a stored view names, and nothing else.
func TestRetarget(t *testing.T) {
	old := QName{Schema: "s", Name: "t"}
	for sql, want := range map[string]string{
		"SELECT a FROM s.t":                             `SELECT a FROM s.u AS t`,
		"SELECT x.a FROM s.t AS x JOIN r.t ON true":     `SELECT x.a FROM s.u AS x JOIN r.t ON true`,
		"SELECT x.a FROM s.t x(a, b), s.t -- s.t\n":     "SELECT x.a FROM s.u AS x(a, b), s.u AS t -- s.t\n",
		`SELECT 's.t' FROM (SELECT 1 FROM "s" . "t") y`: `SELECT 's.t' FROM (SELECT 1 FROM s.u AS t) y`,
	} {
		got, err := Retarget(sql, old, QName{Schema: "s", Name: "u"}, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := Retarget("SELECT a FROM s.t, s.t x(p)", old, old, func(names []string) []string { return append(names, []string{"a", "b"}[len(names):]...) })
	require.NoError(t, err)
	require.Equal(t, "SELECT a FROM s.t AS t(a, b), s.t AS x(p, b)", got)
}
