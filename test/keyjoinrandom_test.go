package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// queryMaker makes queries of joins. Its columns are integers, NULL here and there.
type queryMaker struct {
	*rand.Rand
	names int
	past  int64
}

func (m *queryMaker) pick(of ...string) string { return of[m.IntN(len(of))] }

func (m *queryMaker) name() string {
	m.names++
	return "t" + strconv.Itoa(m.names)
}

func (m *queryMaker) number() string { return strconv.Itoa(m.IntN(9)) }

// value is an expression over one of the columns, often the column.
func (m *queryMaker) value(cols []string) string {
	c := m.pick(cols...)
	switch m.IntN(9) {
	case 0:
		return "coalesce(" + c + ", " + m.number() + ")"
	case 1:
		return c + " + " + m.pick("1", "2", m.pick(cols...))
	case 2:
		return "CASE WHEN " + m.condition(cols, 0) + " THEN " + m.number() + " ELSE " + m.pick(cols...) + " END"
	case 3:
		return "coalesce(" + c + ", " + m.pick(cols...) + ", " + m.number() + ")"
	}
	return c
}

// condition accepts NULL about as often as not.
func (m *queryMaker) condition(cols []string, depth int) string {
	c := m.pick(cols...)
	switch n := m.IntN(18); {
	case n < 3:
		return c + " IS NULL"
	case n == 3:
		return "coalesce(" + c + ", " + m.number() + ") = " + m.number()
	case n == 4:
		return c + " IS DISTINCT FROM " + m.number()
	case n == 5:
		return "NOT (" + c + " IS NOT NULL)"
	case n == 6:
		return "(" + c + " > " + m.number() + ") IS NOT TRUE"
	case n == 7:
		return c + " IS NOT DISTINCT FROM " + m.pick(cols...)
	case n == 8:
		return "(" + m.condition(cols, 0) + " OR " + m.condition(cols, 0) + ")"
	case n == 9:
		return c + " IN (" + m.number() + ", " + m.number() + ")"
	case n == 10 && depth > 0:
		q, _ := m.query(depth-1, nil, 1)
		return m.value(cols) + m.pick(" IN (", " IN (", " NOT IN (") + q + ")"
	case n == 11 && depth > 0:
		q, _ := m.query(depth-1, cols, 1)
		return m.pick("", "", "NOT ") + "EXISTS (" + q + ")"
	case n == 12:
		return c + m.pick(" < ", " >= ", " <> ") + m.number()
	case n == 13:
		return m.value(cols) + " = " + m.pick(cols...)
	}
	return m.pick(cols...) + " IS NOT NULL"
}

// item is an item of FROM, with its columns. outer are the columns that it may see laterally.
func (m *queryMaker) item(depth int, outer []string) (sql string, cols []string) {
	name := m.name()
	named := func(cs ...string) []string {
		for i := range cs {
			cs[i] = name + "." + cs[i]
		}
		return cs
	}
	switch n := m.IntN(15); {
	case n < 4:
		return "big " + name, named("id", "g")
	case n < 6:
		return "wide " + name, named("a", "b")
	case n < 8:
		return m.pick("d0 ", "d1 ") + name, named("a", "k")
	case n == 8:
		return fmt.Sprintf("table_at('big', 'seq:%d') %s", m.past, name), named("id", "g")
	case n == 9:
		return "(VALUES (" + m.number() + ", NULL), (" + m.number() + ", " + m.number() + ")) " + name + "(p, q)", named("p", "q")
	case n == 10:
		return "made " + name, named("p", "q")
	case n == 11 && len(outer) > 0:
		return "LATERAL lookup('big', " + m.value(outer) + ") " + name, named("id", "g")
	case n == 12 && len(outer) > 0 && depth > 0:
		q, _ := m.query(depth-1, outer, 2)
		return "LATERAL (" + q + ") " + name + "(p, q)", named("p", "q")
	case n > 12:
		q, _ := m.query(max(depth-1, 0), nil, 2)
		return "(" + q + ") " + name + "(p, q)", named("p", "q")
	}
	return "d0 " + name, named("a", "k")
}

// keysAmong are those of the columns that are keys.
func keysAmong(cols []string) (keys []string) {
	for _, c := range cols {
		if strings.HasSuffix(c, ".id") {
			keys = append(keys, c)
		}
	}
	return keys
}

// from is a tree of joins.
func (m *queryMaker) from(depth int, outer []string) (sql string, cols []string) {
	if depth == 0 || m.IntN(8) == 0 {
		return m.item(depth, outer)
	}
	left, lc := m.from(depth-1, outer)
	kind := m.pick("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
	var seen []string
	if kind == "JOIN" || kind == "LEFT JOIN" {
		seen = lc
	}
	right, rc := m.from(depth-1, seen)
	on := m.pick(lc...) + " = " + m.pick(rc...)
	lk, rk := keysAmong(lc), keysAmong(rc)
	switch n := m.IntN(4); {
	case kind == "FULL JOIN" || n == 3:
	case len(rk) > 0 && (len(lk) == 0 || n > 0):
		on = m.value(lc) + " = " + m.pick(rk...)
	case len(lk) > 0:
		on = m.pick(lk...) + " = " + m.value(rc)
	}
	if kind != "FULL JOIN" {
		if m.IntN(5) == 0 {
			on += " AND " + m.condition(append(lc[:len(lc):len(lc)], rc...), 0)
		}
	}
	return "(" + left + " " + kind + " " + right + " ON " + on + ")", append(lc[:len(lc):len(lc)], rc...)
}

// query gives width columns, none of them by an order of the rows.
func (m *queryMaker) query(depth int, outer []string, width int) (sql string, cols []string) {
	if depth > 0 && m.IntN(8) == 0 {
		l, _ := m.query(depth-1, outer, width)
		r, _ := m.query(depth-1, outer, width)
		return l + m.pick(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + "(" + r + ")", nil
	}
	from, cols := m.from(depth+1, outer)
	sees := append(cols[:len(cols):len(cols)], outer...)
	grouped := m.IntN(4) == 0 && len(cols) > 1
	var list []string
	a, b := m.pick(cols...), m.pick(cols...)
	for range width {
		switch {
		case grouped:
			list = append(list, m.pick(a, "max("+m.pick(cols...)+")::int", "coalesce("+b+", "+m.number()+") + "+a, "coalesce("+b+", "+m.number()+")", "count(*)::int"))
		default:
			list = append(list, m.value(sees))
		}
	}
	sql = "SELECT " + strings.Join(list, ", ") + " FROM " + from
	if !grouped && m.IntN(8) == 0 {
		sql = strings.Replace(sql, "SELECT ", "SELECT DISTINCT ", 1)
	}
	for i := range []int{0, 1, 1, 1, 2}[m.IntN(5)] {
		sql += []string{" WHERE ", " AND "}[min(i, 1)] + m.condition(sees, depth)
	}
	if grouped {
		sql += " GROUP BY " + m.pick(a+", "+b, "ROLLUP ("+a+", "+b+")", "CUBE ("+a+", "+b+")", "GROUPING SETS (("+a+"), ("+b+"))", a+", ROLLUP ("+b+")")
	}
	return sql, cols
}

// missing is a join by key on the side of an outer join that may be missing, under a condition on what drives it.
func (m *queryMaker) missing() string {
	cols := []string{"y.a", "y.k"}
	inner := "(" + m.pick("d0", "d1", "(SELECT k AS a, a AS k FROM d0)") + " y " + m.pick("JOIN", "JOIN", "LEFT JOIN") + " big b ON b.id = " + m.value(cols) + ")"
	outer := "(VALUES (1), (3), (4), (5), (9)) o(x)"
	on := " ON " + m.pick("b.id", "b.id", "y.k") + " = o.x"
	from := m.pick(outer+" LEFT JOIN "+inner+on, inner+" RIGHT JOIN "+outer+on, outer+" FULL JOIN "+inner+on)
	return "SELECT o.x, y.a, b.id FROM " + from + " WHERE " + m.condition(cols, 0)
}

// grouped is a semi join with the keys that a query with grouping sets gives.
func (m *queryMaker) grouped() string {
	cols := []string{"y.a", "y.k"}
	return "SELECT b.id, b.g FROM big b WHERE b.id IN (SELECT " + m.pick("coalesce(y.a, 1) + coalesce(y.k, 2)", m.value(cols)) + " FROM " + m.pick("d0", "d1", "made") + " y(a, k)" +
		m.pick("", " WHERE "+m.condition(cols, 0)) + " GROUP BY " + m.pick("ROLLUP (y.a, y.k)", "CUBE (y.a, y.k)", "GROUPING SETS ((y.a), (y.k))", "y.a, y.k", "y.k, ROLLUP (y.a)") + ")"
}

// answer is a query's rows in an order of their own, columns joined by commas.
func answer(c *pgx.Conn, sql string) (out []string, err error) {
	res, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, r := range res[0].Rows {
		row := ""
		for _, v := range r {
			if v == nil {
				v = []byte("∅")
			}
			row += string(v) + ","
		}
		out = append(out, row)
	}
	slices.Sort(out)
	return out, nil
}

// Joins by key change no answer: queries made at random give the same rows with and without them. SKADE_TEST_SEED makes others, SKADE_TEST_QUERIES more.
func TestJoinsByKeyAtRandom(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, `CREATE TABLE big (id int PRIMARY KEY, g int);
		CREATE TABLE wide (a int, b int, PRIMARY KEY (a, b));
		CREATE TABLE d0 (a int, k int); INSERT INTO d0 VALUES (1, 3), (2, 4), (NULL, 5), (3, NULL), (2, 9);
		CREATE TABLE d1 (a int, k int); INSERT INTO d1 VALUES (4, 1), (5, NULL), (NULL, NULL), (6, 6)`)
	run(t, c, "INSERT INTO big SELECT i, i % 3 FROM generate_series(0, 8) i; INSERT INTO wide SELECT i % 4, i FROM generate_series(0, 8) i")
	past := number(t, c, "SELECT current_commit_seq()")
	run(t, c, "DELETE FROM big WHERE id = 4; UPDATE big SET g = NULL WHERE id % 3 = 2; INSERT INTO big VALUES (10, 7)")
	run(t, c, "SET skade.key_joins = off")
	run(t, other, "SET skade.key_joins = always")

	seed, queries := uint64(1), 60
	if s := os.Getenv("SKADE_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	if s := os.Getenv("SKADE_TEST_QUERIES"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		queries = n
	}
	t.Log("seed", seed)
	m := &queryMaker{Rand: rand.New(rand.NewPCG(seed, 0)), past: past}
	answered, found := 0, 0
	for i := range queries {
		m.names = 0
		made, _ := m.query(0, nil, 2)
		q := m.pick(m.missing(), m.missing(), m.grouped())
		if i%8 == 0 {
			q, _ = m.query(m.IntN(2), nil, 2)
		}
		if strings.Contains(made, "made t") {
			made = "SELECT a, k FROM d1"
		}
		sql := "WITH made(p, q) AS (" + made + ") " + q
		want, err := answer(c, sql)
		got, also := answer(other, sql)
		if err != nil {
			require.EqualError(t, also, err.Error(), sql)
			if os.Getenv("SKADE_TEST_LOG") != "" {
				t.Log(err, sql)
			}
			continue
		}
		answered++
		if len(want) > 0 {
			found++
		}
		require.NoError(t, also, sql)
		require.Equal(t, want, got, "seed %d: %s", seed, sql)
	}
	t.Log(answered, "answered", found, "with rows")
	require.Greater(t, answered, queries*9/10, "the queries mean something")
	require.Greater(t, found, queries/2, "the queries find something")
}
