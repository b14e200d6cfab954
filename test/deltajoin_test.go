package test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// docsSQL are the SQL blocks of a page of docs/.
func docsSQL(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// signed counts rows: each with its sign in the last column.
func signed(t *testing.T, rows [][]string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, r := range rows {
		sign := 0
		_, err := fmt.Sscan(r[len(r)-1], &sign)
		require.NoError(t, err)
		k := strings.Join(r[:len(r)-1], "\x00")
		if out[k] += sign; out[k] == 0 {
			delete(out, k)
		}
	}
	return out
}

// joinHistory changes two tables at random: keys too, NULLs, deletes, both tables in one commit. Rows of b may have equal columns, and a has no key.
func joinHistory(t *testing.T, c *pgx.Conn, rnd *rand.Rand, commits int) (first, last int64) {
	t.Helper()
	run(t, c, "CREATE TABLE a (ref int, v int); CREATE TABLE b (id int PRIMARY KEY, w text)")
	first = number(t, c, "SELECT current_commit_seq()")
	ref := func() string {
		if rnd.Intn(6) == 0 {
			return "NULL"
		}
		return fmt.Sprint(rnd.Intn(8))
	}
	one := func() string {
		switch rnd.Intn(9) {
		case 0, 1:
			return fmt.Sprintf("INSERT INTO a VALUES (%s, %d), (%s, %d)", ref(), rnd.Intn(3), ref(), rnd.Intn(3))
		case 2:
			return fmt.Sprintf("UPDATE a SET ref = %s WHERE v = %d", ref(), rnd.Intn(3))
		case 3:
			return fmt.Sprintf("DELETE FROM a WHERE ref = %d AND v = %d", rnd.Intn(8), rnd.Intn(3))
		case 4, 5:
			return fmt.Sprintf("INSERT INTO b VALUES (%d, 'w%d') ON CONFLICT (id) DO UPDATE SET w = excluded.w", rnd.Intn(8), rnd.Intn(3))
		case 6:
			return fmt.Sprintf("UPDATE b SET id = id + 8 WHERE id = %d AND NOT EXISTS (SELECT FROM b x WHERE x.id = b.id + 8)", rnd.Intn(8))
		case 7:
			return fmt.Sprintf("UPDATE b SET id = id - 8 WHERE id = %d AND NOT EXISTS (SELECT FROM b x WHERE x.id = b.id - 8)", 8+rnd.Intn(8))
		}
		return fmt.Sprintf("DELETE FROM b WHERE id = %d", rnd.Intn(16))
	}
	for range commits {
		run(t, c, "BEGIN")
		for range 1 + rnd.Intn(3) {
			run(t, c, one())
		}
		run(t, c, "COMMIT")
	}
	return first, number(t, c, "SELECT current_commit_seq()")
}

// dJ = dA ⋈ B(from) + A(to) ⋈ dB is J(to) - J(from), as signed multisets, in every window of a random history, with every kind of dA and dB, and however
// the tables are joined.
func TestDeltaJoinIsExact(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	g := start(t)
	c := g.connect()
	first, last := joinHistory(t, c, rnd, 30)
	const sign = "CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END AS sign"
	delta := `WITH da AS (SELECT *, ` + sign + ` FROM %[1]s('a', $1, $2)), db AS (SELECT *, ` + sign + ` FROM %[1]s('b', $1, $2))
		SELECT da.ref, da.v, b.w, da.sign FROM da JOIN table_at('b', $1) b ON b.id = da.ref
		UNION ALL SELECT a.ref, a.v, db.w, db.sign FROM table_at('a', $2) a JOIN db ON db.id = a.ref`
	looked := `WITH da AS (SELECT *, ` + sign + ` FROM %[1]s('a', $1, $2)), db AS (SELECT *, ` + sign + ` FROM %[1]s('b', $1, $2))
		SELECT da.ref, da.v, b.w, da.sign FROM da, lookup('b', da.ref, $1) b
		UNION ALL SELECT a.ref, a.v, db.w, db.sign FROM db, lookup('a', db.id, $2, key_columns => '{ref}') a`
	ends := `SELECT a.ref, a.v, b.w, 1 FROM table_at('a', $2) a JOIN table_at('b', $2) b ON b.id = a.ref
		UNION ALL SELECT a.ref, a.v, b.w, -1 FROM table_at('a', $1) a JOIN table_at('b', $1) b ON b.id = a.ref`
	ask := func(sql, from, to string) map[string]int {
		return signed(t, rows(t, c, strings.NewReplacer("$1", "'"+from+"'", "$2", "'"+to+"'").Replace(sql)))
	}
	changed := 0
	for range 10 {
		x, y := first+rnd.Int63n(last-first+1), first+rnd.Int63n(last-first+1)
		from, to := fmt.Sprintf("seq:%d", min(x, y)), fmt.Sprintf("seq:%d", max(x, y))
		want := ask(ends, from, to)
		changed += len(want)
		for _, mode := range []string{"off", "always"} {
			run(t, c, "SET skade.key_joins = "+mode)
			for _, changes := range []string{"table_changes", "table_changes_net"} {
				require.Equal(t, want, ask(fmt.Sprintf(delta, changes), from, to), "%s, %s from %s to %s", mode, changes, from, to)
				require.Equal(t, want, ask(fmt.Sprintf(looked, changes), from, to), "lookups, %s, %s from %s to %s", mode, changes, from, to)
			}
		}
	}
	require.Positive(t, changed)
}

// The SQL of docs/deltajoin.md, as it stands there: the delta join, the joins at the ends, and the consumer of a feed.
func TestDeltaJoinOfTheDocs(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text);
		CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text NOT NULL, total numeric(12,2), placed_at timestamptz NOT NULL)`)
	blocks := docsSQL(t, "deltajoin.md")
	require.Len(t, blocks, 4)
	prepare := func(block string) {
		i, j := strings.Index(block, "PREPARE"), strings.Index(block, "EXECUTE")
		run(t, c, block[i:j])
	}
	prepare(blocks[0])
	prepare(blocks[1])
	run(t, c, blocks[2])
	consume := blocks[3]
	start := number(t, c, "SELECT current_commit_seq()")
	rnd := rand.New(rand.NewSource(1))
	for i := range 12 {
		run(t, c, "BEGIN")
		for range 3 {
			run(t, c, fmt.Sprintf("INSERT INTO customers VALUES (%d, 'n', 'city %d') ON CONFLICT (id) DO UPDATE SET city = excluded.city", rnd.Intn(6), rnd.Intn(4)))
			run(t, c, fmt.Sprintf("INSERT INTO orders VALUES (%d, %d, 'new', 1, now()) ON CONFLICT (id) DO UPDATE SET customer_id = excluded.customer_id, status = 'moved'", rnd.Intn(20), rnd.Intn(7)))
		}
		switch i % 4 {
		case 1:
			run(t, c, fmt.Sprintf("DELETE FROM customers WHERE id = %d", rnd.Intn(6)))
		case 3:
			run(t, c, fmt.Sprintf("DELETE FROM orders WHERE id = %d", rnd.Intn(20)))
		}
		run(t, c, "COMMIT")
		if i%3 == 2 {
			before := number(t, c, "SELECT current_commit_seq()")
			require.Len(t, rows(t, c, consume), 1)
			require.Equal(t, before+1, number(t, c, "SELECT current_commit_seq()"), "one commit")
			want := rows(t, c, "SELECT o.id, o.status, c.city FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY 1")
			require.Equal(t, want, rows(t, c, "SELECT * FROM order_cities ORDER BY 1"))
			require.NotEmpty(t, want)
		}
	}
	end := number(t, c, "SELECT current_commit_seq()")
	for _, from := range []int64{start, start + 5, end - 1} {
		bounds := fmt.Sprintf("('seq:%d', 'seq:%d')", from, end)
		require.Equal(t, signed(t, rows(t, c, "EXECUTE ends"+bounds)), signed(t, rows(t, c, "EXECUTE delta"+bounds)))
	}
	require.NoError(t, c.Ping(context.Background()))
}
