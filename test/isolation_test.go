package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// recorder collects transactions and one order of their begins and ends.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	txs   []listTx
	codes map[string]int
}

func (r *recorder) tick() int { return int(r.clock.Add(1)) }

// listTx runs one transaction of random appends and reads and records it.
func (r *recorder) run(t *testing.T, c *pgx.Conn, rnd *rand.Rand, values *atomic.Int64) {
	ctx := context.Background()
	tx := listTx{status: aborted}
	err := pgx.BeginFunc(ctx, c, func(q pgx.Tx) error {
		// BEGIN takes no cut: the first statement does, after this instant.
		tx.begin = r.tick()
		for range 1 + rnd.IntN(3) {
			key := rnd.IntN(4)
			if rnd.IntN(2) == 0 {
				v := int(values.Add(1))
				tx.ops = append(tx.ops, appendTo(key, v))
				if _, err := q.Exec(ctx, "INSERT INTO lists VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = lists.v || ',' || EXCLUDED.v", key, strconv.Itoa(v)); err != nil {
					return err
				}
				continue
			}
			var list string
			if err := q.QueryRow(ctx, "SELECT v FROM lists WHERE k = $1", key).Scan(&list); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			op := listOp{read: true, key: key}
			for s := range strings.SplitSeq(list, ",") {
				if v, err := strconv.Atoi(s); err == nil {
					op.list = append(op.list, v)
				}
			}
			tx.ops = append(tx.ops, op)
		}
		return nil
	})
	tx.end = r.tick()
	code := ""
	if err == nil {
		tx.status = committed
	} else {
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "40001" && pe.Code != "40P01" {
			t.Errorf("transaction: %v", err)
		} else {
			code = pe.Code
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.txs = append(r.txs, tx)
	r.codes[code]++
}

// TestListAppend (S1): 32 sessions append to lists and read them, beside compactions; their recorded history shows nothing that
// snapshot isolation forbids.
func TestListAppend(t *testing.T) {
	g := start(t)
	a := g.connect()
	run(t, a, "CREATE TABLE lists (k int PRIMARY KEY, v text)")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &recorder{codes: map[string]int{}}
	var values atomic.Int64
	conns := g.connections(32)
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 6 {
				r.run(t, c, rnd, &values)
			}
		})
	}
	run(t, a, "VACUUM lists")
	wg.Wait()
	final := listTx{begin: r.tick()}
	for _, row := range rows(t, a, "SELECT k, v FROM lists ORDER BY k") {
		op := listOp{read: true}
		op.key, _ = strconv.Atoi(row[0])
		for s := range strings.SplitSeq(row[1], ",") {
			v, err := strconv.Atoi(s)
			require.NoError(t, err)
			op.list = append(op.list, v)
		}
		final.ops = append(final.ops, op)
	}
	final.end = r.tick()
	r.txs = append(r.txs, final)
	require.Empty(t, anomalies(r.txs))
	t.Logf("outcomes %v", r.codes)
	require.Greater(t, r.codes[""], 16)
	acked := 0
	for _, tx := range r.txs {
		for _, op := range tx.ops {
			if !op.read && tx.status == committed {
				acked++
			}
		}
	}
	shown := 0
	for _, op := range final.ops {
		shown += len(op.list)
	}
	require.Equal(t, acked, shown, "no acknowledged append is lost, no other is there")
}

// TestBank (S1, C1): transfers between two tables; every transaction that reads both sees the same total.
func TestBank(t *testing.T) {
	g := start(t)
	a := g.connect()
	for _, name := range []string{"left_bank", "right_bank"} {
		run(t, a, "CREATE TABLE "+name+" (id int PRIMARY KEY, balance int)")
		run(t, a, "INSERT INTO "+name+" SELECT i, 100 FROM generate_series(1, 5) i")
	}
	const total, bankRounds = 1000, 3
	ctx := context.Background()
	var mu sync.Mutex
	var reads [][]int
	moved := 0
	codes := together(t, g.connections(32), func(i int, c *pgx.Conn) error {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		for range bankRounds {
			err := pgx.BeginFunc(ctx, c, func(q pgx.Tx) error {
				if i%4 == 0 { // a reader, in two statements
					var sum [2]int
					for n, name := range []string{"left_bank", "right_bank"} {
						if err := q.QueryRow(ctx, "SELECT sum(balance) FROM "+name).Scan(&sum[n]); err != nil {
							return err
						}
					}
					mu.Lock()
					defer mu.Unlock()
					reads = append(reads, sum[:])
					return nil
				}
				n := 1 + rnd.IntN(20)
				if _, err := q.Exec(ctx, "UPDATE left_bank SET balance = balance - $1 WHERE id = $2", n, 1+rnd.IntN(5)); err != nil {
					return err
				}
				_, err := q.Exec(ctx, "UPDATE right_bank SET balance = balance + $1 WHERE id = $2", n, 1+rnd.IntN(5))
				return err
			})
			var pe *pgconn.PgError
			if errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "40P01") {
				continue
			}
			if err != nil {
				return err
			}
			if i%4 != 0 {
				mu.Lock()
				moved++
				mu.Unlock()
			}
		}
		return nil
	})
	require.Equal(t, map[string]int{"": 32}, codes)
	require.Len(t, reads, 8*bankRounds)
	require.Empty(t, bankAnomalies(total, reads))
	require.Positive(t, moved)
	require.Equal(t, [][]string{{fmt.Sprint(total)}}, rows(t, a, "SELECT sum(balance) FROM (SELECT * FROM left_bank UNION ALL SELECT * FROM right_bank) b"))
}

// TestSerializable: who read a table that another commit changed fails at COMMIT; the level, the reason and the table are named.
func TestSerializable(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE duty (name text PRIMARY KEY, on_call bool)")
	run(t, a, "CREATE TABLE other (id int PRIMARY KEY)")
	skew := func(level string) string {
		run(t, a, "TRUNCATE duty")
		run(t, a, "INSERT INTO duty VALUES ('a', true), ('b', true)")
		for _, c := range []*pgx.Conn{a, b} {
			run(t, c, "BEGIN ISOLATION LEVEL "+level)
			require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT count(*) FROM duty WHERE on_call"))
		}
		require.Equal(t, [][]string{{strings.ToLower(level)}}, rows(t, a, "SHOW transaction_isolation"))
		require.Equal(t, [][]string{{strings.ToLower(level)}}, rows(t, a, "SELECT current_setting('transaction_isolation')"))
		run(t, a, "UPDATE duty SET on_call = false WHERE name = 'a'")
		run(t, b, "UPDATE duty SET on_call = false WHERE name = 'b'")
		run(t, a, "COMMIT")
		_, err := b.Exec(context.Background(), "COMMIT")
		if err == nil {
			return ""
		}
		var pe *pgconn.PgError
		require.ErrorAs(t, err, &pe)
		require.Equal(t, "could not serialize access due to read/write dependencies among transactions", pe.Message)
		require.Equal(t, `Table "public.duty", which the transaction read, was changed meanwhile.`, pe.Detail)
		require.Equal(t, []string{"public", "duty"}, []string{pe.SchemaName, pe.TableName})
		return pe.Code
	}
	require.Equal(t, "", skew("REPEATABLE READ"), "write skew is what snapshot isolation allows")
	require.Equal(t, "40001", skew("SERIALIZABLE"))

	// Who only reads never fails; what was not read does not matter; a compaction changes nothing.
	run(t, a, "BEGIN ISOLATION LEVEL SERIALIZABLE")
	run(t, a, "SELECT * FROM duty")
	run(t, b, "INSERT INTO duty VALUES ('c', false)")
	run(t, a, "COMMIT")
	run(t, a, "BEGIN ISOLATION LEVEL SERIALIZABLE")
	run(t, a, "INSERT INTO other VALUES (1)")
	run(t, b, "INSERT INTO duty VALUES ('d', false)")
	run(t, a, "COMMIT")
	run(t, a, "BEGIN ISOLATION LEVEL SERIALIZABLE")
	run(t, a, "SELECT * FROM duty WHERE name = 'd'")
	run(t, b, "VACUUM duty")
	run(t, a, "INSERT INTO other VALUES (2)")
	run(t, a, "COMMIT")
	run(t, a, "BEGIN ISOLATION LEVEL SERIALIZABLE")
	run(t, a, "SELECT * FROM duty WHERE name = 'nobody'")
	run(t, b, "DROP TABLE duty")
	run(t, a, "INSERT INTO other VALUES (3)")
	e := sqlstate(t, a, "COMMIT")
	require.Equal(t, []string{"40001", `Table "public.duty", which the transaction read, was dropped meanwhile.`}, []string{e.Code, e.Detail})
	require.Equal(t, [][]string{{"repeatable read"}}, rows(t, a, "SHOW transaction_isolation"))
}

// TestConflictTells: a lost race names its table and what happened.
func TestConflictTells(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE SCHEMA s")
	run(t, a, "CREATE TABLE s.t (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO s.t VALUES (1, 1), (2, 2)")
	run(t, a, "BEGIN")
	run(t, a, "UPDATE s.t SET v = 10 WHERE id = 1")
	run(t, b, "UPDATE s.t SET v = 20 WHERE id = 1")
	e := sqlstate(t, a, "COMMIT")
	require.Equal(t, []string{"40001", "could not serialize access due to concurrent update", `Table "s.t": a row was deleted or updated.`, "s", "t"},
		[]string{e.Code, e.Message, e.Detail, e.SchemaName, e.TableName})

	// A statement that sees it says it at once, as PostgreSQL does.
	run(t, a, "BEGIN")
	run(t, a, "SELECT * FROM s.t")
	run(t, b, "UPDATE s.t SET v = 30 WHERE id = 1")
	e = sqlstate(t, a, "UPDATE s.t SET v = 11 WHERE id = 1")
	require.Equal(t, []string{"40001", "could not serialize access due to concurrent update", "s", "t"}, []string{e.Code, e.Message, e.SchemaName, e.TableName})
	run(t, a, "ROLLBACK")

	// READ COMMITTED goes on, with its own writes on the newer cut.
	run(t, a, "BEGIN ISOLATION LEVEL READ UNCOMMITTED")
	run(t, a, "UPDATE s.t SET v = 0 WHERE id = 2")
	run(t, a, "INSERT INTO s.t VALUES (3, 3)")
	run(t, b, "UPDATE s.t SET v = 40 WHERE id = 1")
	run(t, b, "INSERT INTO s.t VALUES (4, 4)")
	require.Equal(t, [][]string{{"1", "40"}, {"2", "0"}, {"3", "3"}, {"4", "4"}}, rows(t, a, "SELECT * FROM s.t ORDER BY id"))
	run(t, a, "SAVEPOINT x")
	run(t, a, "UPDATE s.t SET v = v + 1 WHERE id = 1")
	run(t, b, "DELETE FROM s.t WHERE id = 4")
	require.Equal(t, [][]string{{"1", "41"}, {"2", "0"}, {"3", "3"}}, rows(t, a, "SELECT * FROM s.t ORDER BY id"))
	run(t, a, "ROLLBACK TO x")
	require.Equal(t, [][]string{{"1", "40"}, {"2", "0"}, {"3", "3"}}, rows(t, a, "SELECT * FROM s.t ORDER BY id"))
	run(t, a, "COMMIT")
	require.Equal(t, [][]string{{"1", "40"}, {"2", "0"}, {"3", "3"}}, rows(t, b, "SELECT * FROM s.t ORDER BY id"))
}
