package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// rawConn is a connection whose bytes the test writes itself.
type rawConn struct {
	net.Conn
	t  testing.TB
	fe *pgproto3.Frontend
}

// raw connects and says hello.
func (g *gateway) raw() *rawConn {
	g.t.Helper()
	c, err := net.Dial("tcp", g.srv.Addr().String())
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = c.Close() })
	r := &rawConn{Conn: c, t: g.t, fe: pgproto3.NewFrontend(c, c)}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	r.fe.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": "skade", "database": "skade"}})
	require.NoError(g.t, r.fe.Flush())
	r.untilReady()
	return r
}

// untilReady reads to ReadyForQuery and returns the SQLSTATEs seen.
func (r *rawConn) untilReady() (codes []string) {
	r.t.Helper()
	for {
		m, err := r.fe.Receive()
		require.NoError(r.t, err)
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			codes = append(codes, m.Code)
		case *pgproto3.ReadyForQuery:
			return codes
		}
	}
}

func (r *rawConn) send(msgs ...pgproto3.FrontendMessage) {
	r.t.Helper()
	for _, m := range msgs {
		r.fe.Send(m)
	}
	require.NoError(r.t, r.fe.Flush())
}

// sessions waits until only the asking session is left: nothing that a client did keeps one alive.
func (g *gateway) sessions(c *pgx.Conn, n string) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		var have string
		err := c.QueryRow(context.Background(), "SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&have)
		return err == nil && have == n
	}, 30*time.Second, 20*time.Millisecond)
}

// TestGarbageOnTheWire is S3: mutated messages end at worst their own connection.
func TestGarbageOnTheWire(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE w (id int PRIMARY KEY, v text)")
	const seed = 20260101
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var good []byte
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.Query{String: "SELECT * FROM w; COPY w FROM STDIN"}, &pgproto3.CopyData{Data: []byte("1\ta\n")}, &pgproto3.CopyDone{},
		&pgproto3.Parse{Name: "s", Query: "INSERT INTO w VALUES ($1, $2)", ParameterOIDs: []uint32{23, 25}},
		&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{1, 0}, Parameters: [][]byte{{0, 0, 0, 9}, []byte("x")}, ResultFormatCodes: []int16{1}},
		&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Flush{}, &pgproto3.Sync{},
		&pgproto3.Query{String: "DELETE FROM w"},
	} {
		var err error
		good, err = m.Encode(good)
		require.NoError(t, err)
	}
	for range 300 {
		r := g.raw()
		msg := bytes.Clone(good)
		for range 1 + rnd.IntN(4) {
			switch i := rnd.IntN(len(msg)); rnd.IntN(4) {
			case 0:
				msg[i] ^= byte(1 << rnd.IntN(8))
			case 1:
				msg[i] = byte(rnd.Uint32())
			case 2:
				msg = append(msg[:i], msg[min(len(msg), i+rnd.IntN(9)):]...)
			default:
				msg = append(msg[:i], append(make([]byte, rnd.IntN(9)), msg[i:]...)...)
			}
		}
		_, _ = r.Write(msg)
		_ = r.Conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
	}
	g.sessions(c, "1")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"))
}

// TestOversizedMessages: a length that cannot be is refused before memory is taken for it.
func TestOversizedMessages(t *testing.T) {
	g := start(t)
	c := g.connect()
	for _, n := range []uint32{0, 3, 0x7fffffff, 0x80000000, 0xffffffff} {
		r := g.raw()
		_, err := r.Write(binary.BigEndian.AppendUint32([]byte{'Q'}, n))
		require.NoError(t, err)
		_ = r.Conn.(*net.TCPConn).CloseWrite()
		m, err := r.fe.Receive()
		if err == nil { // PostgreSQL says 08P01 and hangs up
			e, ok := m.(*pgproto3.ErrorResponse)
			require.True(t, ok, "%T", m)
			require.Equal(t, "08P01", e.Code)
			require.Equal(t, "FATAL", e.Severity)
			_, err = r.fe.Receive()
		}
		require.Error(t, err)
	}
	// A long statement is a statement.
	require.Equal(t, [][]string{{"3000000"}}, rows(t, c, "SELECT length('"+strings.Repeat("x", 3_000_000)+"')"))
	// As deep as a client likes: an error, not a stack overflow.
	for _, sql := range []string{
		"SELECT " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000),
		"SELECT " + strings.Repeat("-", 1) + strings.Repeat("- ", 50_000) + "1",
		"SELECT " + strings.Repeat("NOT ", 50_000) + "true",
		"SELECT 1" + strings.Repeat(" + 1", 50_000),
		"SELECT " + strings.Repeat("abs(", 20_000) + "1" + strings.Repeat(")", 20_000),
		"SELECT " + strings.Repeat("ARRAY[", 5_000) + "1" + strings.Repeat("]", 5_000),
		"SELECT * FROM " + strings.Repeat("(SELECT * FROM ", 5_000) + "w" + strings.Repeat(") x", 5_000),
		"SELECT CASE WHEN true THEN " + strings.Repeat("CASE WHEN true THEN ", 5_000) + "1" + strings.Repeat(" END", 5_000) + " END",
		"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 20_000),
		"SELECT '" + strings.Repeat("[", 100_000) + "'::jsonb",
		"SELECT '" + strings.Repeat("{", 100_000) + "'::int[]",
		"SELECT regexp_replace('a', '" + strings.Repeat("(", 50_000) + strings.Repeat(")", 50_000) + "', 'b')",
	} {
		_, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
		if err != nil {
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe, "%.60s", sql)
			require.Contains(t, []string{"54001", "42601", "22P02", "42P01", "54000", "54023", "0A000", "2201B"}, pe.Code, "%.60s: %s", sql, pe.Message)
		}
	}
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"))
}

// TestBadUTF8: 22021 wherever text comes in, and the session lives on.
func TestBadUTF8(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE u (id int PRIMARY KEY, v text)")
	bad := []string{"\xff", "\xc3\x28", "a\xed\xa0\x80b", "\xf4\x90\x80\x80", "\xc0\x80"}
	for _, b := range bad {
		_, err := c.PgConn().Exec(context.Background(), "SELECT '"+b+"'").ReadAll()
		requireCode(t, "22021", err)
		res := c.PgConn().ExecParams(context.Background(), "SELECT $1::text", [][]byte{[]byte(b)}, nil, nil, nil).Read()
		requireCode(t, "22021", res.Err)
		res = c.PgConn().ExecParams(context.Background(), "SELECT $1::text", [][]byte{[]byte(b)}, []uint32{25}, []int16{1}, nil).Read()
		requireCode(t, "22021", res.Err)
		_, err = c.PgConn().Prepare(context.Background(), "", "SELECT '"+b+"'", nil)
		requireCode(t, "22021", err)
		for _, f := range []string{"text", "csv"} {
			_, err = c.PgConn().CopyFrom(context.Background(), strings.NewReader("1\tok\n2\t"+b+"\n"), "COPY u FROM STDIN WITH (FORMAT "+f+", DELIMITER E'\\t')")
			requireCode(t, "22021", err)
		}
		require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM u"))
	}
	requireCode(t, "22021", onlyErr(c.PgConn().Exec(context.Background(), `SELECT E'a\xff'`).ReadAll()))
	requireCode(t, "22021", onlyErr(c.PgConn().Exec(context.Background(), `SELECT E'a\000b'`).ReadAll()))
	requireCode(t, "22021", c.PgConn().ExecParams(context.Background(), "SELECT $1::text", [][]byte{{'a', 0, 'b'}}, nil, nil, nil).Read().Err)
	requireCode(t, "22021", onlyErr(c.PgConn().CopyFrom(context.Background(), strings.NewReader("1\ta\\x00b\n"), "COPY u FROM STDIN")))
	requireCode(t, "22021", onlyErr(c.PgConn().Exec(context.Background(), `SELECT convert_from('\xff', 'UTF8')`).ReadAll()))
}

func onlyErr[T any](_ T, err error) error { return err }

func requireCode(t *testing.T, code string, err error, what ...any) *pgconn.PgError {
	t.Helper()
	var pe *pgconn.PgError
	require.ErrorAs(t, err, &pe, what...)
	require.Equal(t, code, pe.Code, pe.Message)
	return pe
}

// TestBrokenCopy: the error names line and column as PostgreSQL 15 does, and no row of the COPY is visible.
func TestBrokenCopy(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE b (id int PRIMARY KEY, v varchar(5), n numeric(4,1) NOT NULL, d date)")
	run(t, c, "INSERT INTO b VALUES (7, 'seven', 7, NULL)")
	many := func(last string) string {
		var s strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&s, "%d,v,1.5,\n", 100+i)
		}
		return s.String() + last
	}
	const csv = "COPY b FROM STDIN WITH (FORMAT csv)"
	for _, tc := range []struct{ sql, data, code, message, where string }{
		{csv, "1,a,1,\n2,b,x,\n", "22P02", `invalid input syntax for type numeric: "x"`, `COPY b, line 2, column n: "x"`},
		{csv, "1,a,1,\n2,b,1\n", "22P04", `missing data for column "d"`, `COPY b, line 2: "2,b,1"`},
		{csv, "1,a,1,,,\n", "22P04", `extra data after last expected column`, `COPY b, line 1: "1,a,1,,,"`},
		{csv, "1,\"a,1,\n", "22P04", `unterminated CSV quoted field`, "COPY b, line 1: \"1,\"a,1,\n\""},
		{csv, "1,toolong,1,\n", "22001", `value too long for type character varying(5)`, `COPY b, line 1, column v: "toolong"`},
		{csv, "1,a,1,2020-13-01\n", "22008", `date/time field value out of range: "2020-13-01"`, `COPY b, line 1, column d: "2020-13-01"`},
		{csv, "99999999999,a,1,\n", "22003", `value "99999999999" is out of range for type integer`, `COPY b, line 1, column id: "99999999999"`},
		{csv, "1,a,12345,\n", "22003", `numeric field overflow`, `COPY b, line 1, column n: "12345"`},
		{csv, "1,a,,\n", "23502", `null value in column "n" of relation "b" violates not-null constraint`, `COPY b, line 1: "1,a,,"`},
		{csv, ",a,1,\n", "23502", `null value in column "id" of relation "b" violates not-null constraint`, `COPY b, line 1: ",a,1,"`},
		{csv, "7,a,1,\n", "23505", `duplicate key value violates unique constraint "b_pkey"`, "-"},
		{csv, "1,a,1,\n1,b,1,\n", "23505", `duplicate key value violates unique constraint "b_pkey"`, "-"},
		{csv, many("100,dup,1,\n"), "23505", `duplicate key value violates unique constraint "b_pkey"`, "-"},
		{csv, many("1,a,never,\n"), "22P02", `invalid input syntax for type numeric: "never"`, `COPY b, line 100001, column n: "never"`},
		{"COPY b FROM STDIN", "1\ta\t1\n", "22P04", `missing data for column "d"`, "COPY b, line 1: \"1\ta\t1\""},
		{"COPY b FROM STDIN", "1\ta\t1\t\\N\tx\n", "22P04", `extra data after last expected column`, "COPY b, line 1: \"1\ta\t1\t\\N\tx\""},
		{"COPY b FROM STDIN WITH (FORMAT csv, HEADER MATCH)", "id,v,x,d\n1,a,1,\n", "22P04", `column name mismatch in header line field 3: got "x", expected "n"`, "COPY b, line 1: \"id,v,x,d\""},
	} {
		_, err := c.PgConn().CopyFrom(context.Background(), strings.NewReader(tc.data), tc.sql)
		pe := requireCode(t, tc.code, err, tc.sql, tc.message)
		require.Equal(t, tc.message, pe.Message)
		if tc.code == "23502" {
			require.Equal(t, "Failing row contains ("+map[string]string{"n": "1, a, null, null", "id": "null, a, 1, null"}[pe.ColumnName]+").", pe.Detail)
		}
		if tc.where != "-" {
			require.Equal(t, tc.where, pe.Where, tc.message)
		}
		require.Equal(t, [][]string{{"1", "7"}}, rows(t, c, "SELECT count(*), min(id) FROM b"), tc.message)
	}
	// In a transaction the COPY's rows go, and what was before stays behind the savepoint.
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO b VALUES (8, 'eight', 8)")
	run(t, c, "SAVEPOINT s")
	_, err := c.PgConn().CopyFrom(context.Background(), strings.NewReader("9,a,1,\nx,a,1,\n"), csv)
	requireCode(t, "22P02", err)
	require.Equal(t, byte('E'), c.PgConn().TxStatus())
	run(t, c, "ROLLBACK TO s")
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"2", "8"}}, rows(t, c, "SELECT count(*), max(id) FROM b"))
}

// TestBrokenParquet: what is not a Parquet file, or not all of it, is 22P04.
func TestBrokenParquet(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE p (id int, v text)")
	run(t, c, "INSERT INTO p SELECT n, 'value ' || n FROM generate_series(1, 5000) n")
	var whole bytes.Buffer
	_, err := c.PgConn().CopyTo(context.Background(), &whole, "COPY p TO STDOUT WITH (FORMAT parquet)")
	require.NoError(t, err)
	run(t, c, "CREATE TABLE q (id int, v text)")
	const in = "COPY q FROM STDIN WITH (FORMAT parquet)"
	_, err = c.PgConn().CopyFrom(context.Background(), bytes.NewReader(whole.Bytes()), in)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"5000", "12502500"}}, rows(t, c, "SELECT count(*), sum(id) FROM q"))
	run(t, c, "TRUNCATE q")
	rnd := rand.New(rand.NewPCG(7, 7))
	cut := [][]byte{nil, []byte("PAR1"), []byte("not parquet at all"), whole.Bytes()[:whole.Len()-1], whole.Bytes()[:whole.Len()/2],
		append(bytes.Clone(whole.Bytes()[:whole.Len()/2]), "PAR1"...), append([]byte("PAR1"), append(make([]byte, 100), "PAR1"...)...)}
	for range 40 { // damaged anywhere
		b := bytes.Clone(whole.Bytes())
		for range 1 + rnd.IntN(20) {
			b[4+rnd.IntN(len(b)-8)] ^= byte(1 << rnd.IntN(8))
		}
		cut = append(cut, b)
	}
	for i, b := range cut {
		_, err := c.PgConn().CopyFrom(context.Background(), bytes.NewReader(b), in)
		if err != nil {
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe)
			require.Contains(t, []string{"22P04", "22021", "22P02", "22003", "42804", "42703"}, pe.Code, "%d: %s", i, pe.Message)
			requireClean(t, pe)
		} else {
			require.Greater(t, i, 6, "accepted a broken file")
			run(t, c, "TRUNCATE q")
		}
		require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM q"))
	}
	// A column that is not there.
	run(t, c, "CREATE TABLE r (id int, other text NOT NULL)")
	_, err = c.PgConn().CopyFrom(context.Background(), bytes.NewReader(whole.Bytes()), "COPY r FROM STDIN WITH (FORMAT parquet)")
	var pe *pgconn.PgError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, "42703", pe.Code, pe.Message)
}

// requireClean refuses the engine's own words in an error that a client sees.
func requireClean(t *testing.T, pe *pgconn.PgError) {
	t.Helper()
	all := strings.Join([]string{pe.Message, pe.Detail, pe.Hint, pe.Where}, "\n")
	for _, word := range []string{"Error:", "Did you mean", "Candidate", "LINE 1", "panic", "goroutine", "duckdb", "DuckDB", "runtime error", "skade_", "read_parquet", "/tmp/", "HUGEINT", "nil pointer", ".go:"} {
		require.NotContains(t, all, word)
	}
}

// TestCopyAborted: CopyFail, a hang-up and a cancel leave nothing of the COPY.
func TestCopyAborted(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE a (id int PRIMARY KEY, v text)")
	var data bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&data, "%d\tsome text\n", i)
	}
	// CopyFail
	r := g.raw()
	r.send(&pgproto3.Query{String: "COPY a FROM STDIN"}, &pgproto3.CopyData{Data: data.Bytes()}, &pgproto3.CopyFail{Message: "no more"})
	require.Equal(t, []string{"57014"}, r.untilReady())
	r.send(&pgproto3.Query{String: "SELECT 1"})
	require.Empty(t, r.untilReady())
	// Another message in the middle
	r.send(&pgproto3.Query{String: "COPY a FROM STDIN"}, &pgproto3.CopyData{Data: data.Bytes()}, &pgproto3.Query{String: "SELECT 1"})
	require.Equal(t, []string{"08P01"}, r.untilReady()[:1])
	require.NoError(t, r.Close())
	// Hang-up
	for _, f := range []string{"COPY a FROM STDIN", "COPY a FROM STDIN (FORMAT parquet)"} {
		r = g.raw()
		r.send(&pgproto3.Query{String: f}, &pgproto3.CopyData{Data: data.Bytes()})
		require.NoError(t, r.Close())
	}
	// Cancel, while the client sends and while it does not
	for _, feed := range []bool{true, false} {
		pc := g.connect()
		pr, pw := io.Pipe()
		if feed {
			go func() {
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(pw, "%d\tx\n", i); err != nil {
						return
					}
				}
			}()
		} else {
			go func() { _, _ = pw.Write([]byte("1\tx\n")) }()
		}
		done := make(chan error, 1)
		go func() {
			_, err := pc.PgConn().CopyFrom(context.Background(), pr, "COPY a FROM STDIN")
			done <- err
		}()
		require.Eventually(t, func() bool {
			return rows(t, c, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY a%'")[0][0] == "1"
		}, 30*time.Second, 10*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, pc.PgConn().CancelRequest(context.Background()))
		time.AfterFunc(100*time.Millisecond, func() { _ = pw.CloseWithError(errors.New("the client notices")) })
		requireCode(t, "57014", <-done)
		_ = pr.Close()
		require.Equal(t, [][]string{{"1"}}, rows(t, pc, "SELECT 1"))
		require.NoError(t, pc.Close(context.Background()))
	}
	// statement_timeout ends a COPY whose client sends nothing
	r = g.raw()
	r.send(&pgproto3.Query{String: "SET statement_timeout = '100ms'"})
	require.Empty(t, r.untilReady())
	r.send(&pgproto3.Query{String: "COPY a FROM STDIN"})
	require.Equal(t, []string{"57014"}, r.untilReady())
	require.NoError(t, r.Close())
	// Cancel in the middle of a message: what comes of it later is not taken for another message.
	for _, cut := range []int{1, 5, 40} {
		r = g.raw()
		r.send(&pgproto3.Query{String: "COPY a FROM STDIN"})
		msg, err := (&pgproto3.CopyData{Data: []byte(strings.Repeat("1\tx\n", 50))}).Encode(nil)
		require.NoError(t, err)
		_, err = r.Write(msg[:cut])
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			// The session before this one may still look active for a moment: it is gone when it is to be cancelled.
			return slices.Contains(slices.Concat(rows(t, c, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY a%'")...), "t")
		}, 30*time.Second, 50*time.Millisecond)
		require.Equal(t, []string{"57014"}, r.untilReady())
		_, err = r.Write(msg[cut:])
		require.NoError(t, err)
		r.send(&pgproto3.CopyDone{}, &pgproto3.Query{String: "SELECT 1"})
		require.Empty(t, r.untilReady())
		require.NoError(t, r.Close())
	}
	g.sessions(c, "1")
	require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM a"))
}

// TestInterrupted: a cancel and statement_timeout end what runs with 57014, and nothing of it stays.
func TestInterrupted(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE i (id bigint)")
	run(t, c, "CREATE TABLE k (id bigint PRIMARY KEY)")
	const endless = "SELECT a.n * 1000000 + b.n FROM generate_series(1, 1000000) a(n), generate_series(1, 1000000) b(n)"
	for _, sql := range []string{
		"SELECT count(*) FROM (" + endless + " WHERE a.n % 7 = b.n % 5) x",
		endless,
		"INSERT INTO i " + endless,
		"INSERT INTO k " + endless,
		"CREATE TABLE c AS " + endless,
		"COPY (" + endless + ") TO STDOUT",
		"EXPLAIN ANALYZE " + endless,
		"SELECT pg_sleep(600)",
		"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r WHERE n < 0",
		"SELECT max(regexp_replace(n || repeat('a', 10000), '(a|aa)*', 'b')) FROM generate_series(1, 1000000) n",
	} {
		if strings.HasPrefix(sql, "WITH") {
			sql = strings.Replace(sql, "FROM r)", "FROM r WHERE n > 0)", 1)
		}
		x := g.connect()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		time.AfterFunc(200*time.Millisecond, func() { _ = x.PgConn().CancelRequest(context.Background()) })
		err := drain(x, ctx, sql)
		requireCode(t, "57014", err, sql)
		require.Contains(t, err.Error(), "canceling statement due to user request", sql)
		run(t, x, "SET statement_timeout = '200ms'")
		err = drain(x, ctx, sql)
		requireCode(t, "57014", err, sql)
		require.Contains(t, err.Error(), "canceling statement due to statement timeout", sql)
		cancel()
		require.Equal(t, [][]string{{"1"}}, rows(t, x, "SELECT 1"))
		require.NoError(t, x.Close(context.Background()))
	}
	require.Equal(t, [][]string{{"0", "0"}}, rows(t, c, "SELECT (SELECT count(*) FROM i), (SELECT count(*) FROM k)"))
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM c").Code)
	g.sessions(c, "1")
}

// drain runs a statement and throws its rows away as they come.
func drain(c *pgx.Conn, ctx context.Context, sql string) error {
	if strings.HasPrefix(sql, "COPY") {
		_, err := c.PgConn().CopyTo(ctx, io.Discard, sql)
		return err
	}
	m := c.PgConn().Exec(ctx, sql)
	for m.NextResult() {
		for m.ResultReader().NextRow() {
		}
	}
	return m.Close()
}

// TestClientGoesAway: hang-ups in the middle of results, of batches and of waiting, and readers that stop reading, end their sessions only.
func TestClientGoesAway(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE z (id int PRIMARY KEY)")
	for i := range 12 {
		r := g.raw()
		switch i % 6 {
		case 0: // in the middle of a large result that nobody reads
			r.send(&pgproto3.Query{String: "SELECT n, repeat('x', 1000) FROM generate_series(1, 10000000) n"})
			_, _ = r.fe.Receive()
		case 1: // while it computes
			r.send(&pgproto3.Query{String: "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"})
		case 2: // in a transaction with a cursor
			r.send(&pgproto3.Query{String: "BEGIN; INSERT INTO z VALUES (1); DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 1000000); FETCH 10 FROM c"})
			r.untilReady()
		case 3: // in the middle of a batch
			r.send(&pgproto3.Parse{Query: "INSERT INTO z VALUES (2)"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
			_, _ = r.fe.Receive()
		case 4: // in the middle of a message
			_, err := r.Write([]byte{'Q', 0, 0, 1, 0, 'S', 'E'})
			require.NoError(t, err)
		case 5: // a suspended portal
			r.send(&pgproto3.Parse{Query: "SELECT * FROM generate_series(1, 1000000)"}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 10}, &pgproto3.Flush{})
			_, _ = r.fe.Receive()
		}
		_ = r.Conn.(*net.TCPConn).SetLinger(0)
		require.NoError(t, r.Close())
	}
	g.sessions(c, "1")
	require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM z"))
	// A slow reader gets every row.
	r := g.raw()
	r.send(&pgproto3.Query{String: "SELECT n, repeat('x', 100) FROM generate_series(1, 200000) n"})
	n := 0
	for {
		m, err := r.fe.Receive()
		require.NoError(t, err)
		if _, ok := m.(*pgproto3.DataRow); ok {
			if n++; n%50_000 == 0 {
				time.Sleep(20 * time.Millisecond)
				require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1")) // nobody waits for it
			}
		}
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			break
		}
	}
	require.Equal(t, 200_000, n)
}
