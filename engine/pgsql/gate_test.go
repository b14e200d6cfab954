package pgsql

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// TestGate: no statement of testdata/hostile.sql, alone or inside any other statement, gives DuckDB text (S2, G2).
func TestGate(t *testing.T) {
	f := newFixture()
	n := 0
	file, err := os.Open("testdata/hostile.sql")
	require.NoError(t, err)
	defer file.Close()
	in := bufio.NewScanner(file)
	for in.Scan() {
		sql := strings.TrimSpace(in.Text())
		if sql == "" || strings.HasPrefix(sql, "#") {
			continue
		}
		for _, form := range wrapped(sql) {
			n++
			err := everything(f, form)
			e := pgerr.As(err)
			if err == nil {
				t.Errorf("passes the gate: %s", form)
			} else if e == nil || e.Code == pgerr.InternalError || e.Code == "" {
				t.Errorf("refused without a proper error: %s: %v %s", form, err, causeOf(err))
			}
		}
	}
	t.Logf("%d hostile statements refused", n)
	require.Greater(t, n, 800)
}

// wrapped puts a query into the statements that contain queries.
func wrapped(sql string) []string {
	forms := []string{sql, strings.ToUpper(sql[:1]) + sql[1:]}
	low := strings.ToLower(sql)
	query := strings.HasPrefix(low, "select") || strings.HasPrefix(low, "with") || strings.HasPrefix(low, "values") || strings.HasPrefix(low, "table")
	if !query || strings.Contains(low, " into ") {
		return forms
	}
	return append(forms,
		"prepare q as "+sql, "explain "+sql, "explain (analyze) "+sql, "declare c cursor for "+sql, "copy ("+sql+") to stdout", "create table zz as "+sql,
		"create view zz as "+sql, "select * from ("+sql+") z", "with z as ("+sql+") select * from z", "select exists ("+sql+")", "insert into t "+sql,
		"select 1 union all "+sql, "explain declare c cursor for "+sql, "create table if not exists zz as "+sql, "select array("+sql+")")
}

// everything takes a statement through all that the engine would ask of it, and returns the first error. nil means that DuckDB text came out.
func everything(f *fixture, sql string) error {
	stmts, err := Parse(sql)
	if err != nil {
		return err
	}
	for _, st := range stmts {
		if err := whole(f, st); err != nil {
			return err
		}
	}
	return nil
}

func whole(f *fixture, st *Stmt) error {
	switch st.Kind {
	case Select, InsertStmt, UpdateStmt, DeleteStmt, MergeStmt:
		_, err := Analyze(st, f, nil)
		return err
	}
	u, err := Utility(st)
	if err != nil {
		return err
	}
	switch x := u.(type) {
	case *Prepare:
		return whole(f, x.Stmt)
	case *Explain:
		return whole(f, x.Stmt)
	case *Declare:
		return whole(f, x.Query)
	case *CreateTableAs:
		return whole(f, x.Query)
	case *CreateView:
		_, _, err := NormalizeView(x, f)
		return err
	case *Copy:
		if x.Query != nil {
			return whole(f, x.Query)
		}
	case *Execute:
		_, err := x.Arguments([]uint32{25}, f)
		return err
	case *CreateTable:
		for _, c := range x.Columns {
			if err := CheckDefault(c, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestGateErrors: what a client sees.
func TestGateErrors(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]string{
		"select * from read_csv('/etc/passwd')": "42883 function read_csv(unknown) does not exist @15",
		"select getenv('HOME')":                 "42883 function getenv(unknown) does not exist @8",
		"select * from '/etc/passwd'":           "42601 syntax error at or near \"'/etc/passwd'\" @15",
		`select * from "/etc/passwd"`:           "42P01 relation \"/etc/passwd\" does not exist @15",
		"copy t to '/tmp/x'":                    "42501 must be superuser or have privileges of the pg_write_server_files role to COPY to a file @0",
		"do 'x'":                                "0A000 DO is not supported @0",
		"load 'x'":                              "0A000 LOAD is not supported @0",
		"with x as (merge into t using u on true when matched then delete) select 1": "0A000 MERGE not supported in WITH query @6",
		"attach 'x'":                                                              "42601 syntax error at or near \"attach\" @1",
		"select 'x'::hugeint":                                                     "42704 type \"hugeint\" does not exist @13",
		"select '1.2.3.4'::inet":                                                  "0A000 type inet is not supported @8",
		"create index on t (a)":                                                   "0A000 CREATE INDEX is not supported @0",
		"create table x (a int references t)":                                     "0A000 a FOREIGN KEY constraint is not supported @23",
		"alter table t enable row level security":                                 "0A000 ALTER TABLE ... ENABLE ROW LEVEL SECURITY is not supported @0",
		"alter table t disable trigger all":                                       "0A000 ALTER TABLE ... DISABLE TRIGGER ALL is not supported @0",
		"select pg_read_file('/etc/passwd')":                                      "42883 function pg_read_file(unknown) does not exist @8",
		"insert into t values (1) on conflict (b) do nothing":                     "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification @0",
		"insert into k2 values (1,'x',2) on conflict (a) do nothing":              "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification @0",
		"insert into v values (1)":                                                "0A000 cannot insert into view \"v\" @0",
		"select 1 operator(main.+) 2":                                             "42883 operator does not exist: main.+ @10",
		"select 1 from (with x as (delete from t returning *) select * from x) y": "0A000 WITH clause containing a data-modifying statement must be at the top level @21",
	} {
		if got := errorLine(everything(f, sql)); got != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", sql, got, want)
		}
	}
}

// TestNoClientText: quoted names, literals and comments of the client never appear as SQL (G1).
func TestNoClientText(t *testing.T) {
	f := newFixture()
	for _, sql := range []string{
		`select "X" as "a"" from read_csv('x') --" from "Mixed"`,
		`select 'it''s' as "x', (select 1) --" from t`,
		"select a /* ') from read_csv('x') */ from t",
		`with "w'; attach 'x" as (select 1 as "c'") select "c'" from "w'; attach 'x"`,
		`select x."order" from "Mixed" as x("p'q", r, "order")`,
		`select E'\x27 || getenv(\x27HOME\x27) || \x27'`,
		`select 'a' collate "C", $$ ') $$`,
	} {
		stmts, err := Parse(sql)
		require.NoError(t, err, sql)
		q, err := Analyze(stmts[0], f, nil)
		require.NoError(t, err, sql)
		text := q.Render(f.fromItem)
		for _, bad := range []string{"read_csv", "attach", "getenv"} {
			i := strings.Index(text, bad)
			if i < 0 {
				continue
			}
			// Only inside a literal: an odd number of quotes before it.
			if strings.Count(text[:i], "'")%2 == 0 {
				t.Errorf("%s\n\t%s", sql, text)
			}
		}
	}
}

// errorLine is an error's code, message and position.
func errorLine(err error) string {
	e := pgerr.As(err)
	if e == nil {
		return "no error"
	}
	return string(e.Code) + " " + e.Message + " @" + itoa(int64(e.Position))
}
