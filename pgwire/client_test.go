package pgwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func connect(t *testing.T, url string) *pgconn.PgConn {
	c, err := tryConnect(t, url, nil)
	require.NoError(t, err)
	return c
}

func tryConnect(t *testing.T, url string, change func(*pgconn.Config)) (*pgconn.PgConn, error) {
	conf, err := pgconn.ParseConfig(url)
	require.NoError(t, err)
	if change != nil {
		change(conf)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := pgconn.ConnectConfig(ctx, conf)
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, err
}

func requireCode(t *testing.T, err error, code pgerr.Code) {
	t.Helper()
	var pe *pgconn.PgError
	require.True(t, errors.As(err, &pe), "%v", err)
	require.Equal(t, string(code), pe.Code, pe.Message)
}

func TestPgconn(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
	ctx := t.Context()
	require.Equal(t, "15.18", c.ParameterStatus("server_version"))
	require.EqualValues(t, 1, c.PID())

	res, err := c.Exec(ctx, "select 1; select generate_series(1,3)").ReadAll()
	require.NoError(t, err)
	require.Len(t, res, 2)
	require.Len(t, res[1].Rows, 3)

	r := c.ExecParams(ctx, "select $1::int4", [][]byte{[]byte("42")}, nil, nil, []int16{0}).Read()
	require.NoError(t, r.Err)
	require.Equal(t, "42", string(r.Rows[0][0]))

	var batch pgconn.Batch
	for i := range 100 {
		batch.ExecParams("select $1::int4", [][]byte{fmt.Append(nil, i)}, nil, nil, nil)
	}
	all, err := c.ExecBatch(ctx, &batch).ReadAll()
	require.NoError(t, err)
	require.Len(t, all, 100)
	require.Equal(t, "99", string(all[99].Rows[0][0]))

	_, err = c.Exec(ctx, "create temp table t(a int4, b text)").ReadAll()
	require.NoError(t, err)
	tag, err := c.CopyFrom(ctx, strings.NewReader(strings.Repeat("1\tx\n", 50000)), "copy t from stdin")
	require.NoError(t, err)
	require.EqualValues(t, 50000, tag.RowsAffected())
	var sb strings.Builder
	tag, err = c.CopyTo(ctx, &sb, "copy t to stdout")
	require.NoError(t, err)
	require.EqualValues(t, 50000, tag.RowsAffected())
	require.Len(t, sb.String(), 200000)
	_, err = c.CopyFrom(ctx, strings.NewReader(strings.Repeat("1\tx\n", 1000)+"bad\n"+strings.Repeat("1\tx\n", 100000)), "copy t from stdin")
	requireCode(t, err, pgerr.InvalidTextRepresentation)
	_, err = c.Exec(ctx, "select 1").ReadAll()
	require.NoError(t, err)
}

// TestBigResult streams more than any buffer holds.
func TestBigResult(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
	m := c.Exec(t.Context(), "select repeat('x', 100000) from generate_series(1, 500)")
	n := 0
	for m.NextResult() {
		for r := m.ResultReader(); r.NextRow(); n++ {
			require.Len(t, r.Values()[0], 100000)
		}
	}
	require.NoError(t, m.Close())
	require.Equal(t, 500, n)
}

func TestDatabaseErrors(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b, MaxConnections: 2})
	_, err := tryConnect(t, "postgres://u@"+s.addr+"/nosuch?sslmode=disable", nil)
	requireCode(t, err, pgerr.InvalidCatalogName)
	_, err = tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=require", nil)
	require.ErrorContains(t, err, "refused TLS")
	c1 := connect(t, "postgres://u@"+s.addr+"/db?sslmode=prefer")
	connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable&options=-c%20work_mem%3D1MB%20--a-b%3Dc")
	require.Equal(t, []Param{{"work_mem", "1MB"}, {"a_b", "c"}}, b.get(3).su.Params)
	_, err = tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=disable", nil)
	requireCode(t, err, pgerr.TooManyConnections)
	require.NoError(t, c1.Close(t.Context()))
	require.Eventually(t, func() bool { return s.Sessions() == 1 }, 5*time.Second, time.Millisecond)
	connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
}

func TestScram(t *testing.T) {
	good, err := ScramVerifier("sécret")
	require.NoError(t, err)
	require.True(t, ValidVerifier(good))
	auth := Auth{Method: ScramSHA256, MockSecret: []byte("k"), Verifier: func(_ context.Context, user string) (string, bool, error) {
		switch user {
		case "u":
			return good, true, nil
		case "broken":
			return "md5123", true, nil
		case "failing":
			return "", false, errors.New("disk")
		}
		return "", false, nil
	}}
	cert := testCert(t)
	s := startServer(t, Options{Backend: newFakeBackend(), Auth: auth, TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}})
	for _, mode := range []string{"disable", "require"} {
		connect(t, "postgres://u:s%C3%A9cret@"+s.addr+"/db?sslmode="+mode)
		for _, user := range []string{"u", "unknown", "broken"} {
			_, err := tryConnect(t, "postgres://"+user+":wrong@"+s.addr+"/db?sslmode="+mode, nil)
			requireCode(t, err, pgerr.InvalidPassword)
		}
		_, err := tryConnect(t, "postgres://failing:x@"+s.addr+"/db?sslmode="+mode, nil)
		requireCode(t, err, pgerr.InternalError)
	}
	// -PLUS: channel binding.
	connect(t, "postgres://u:s%C3%A9cret@"+s.addr+"/db?sslmode=require&channel_binding=require")
}

// TestMockSalt: an unknown user sees the same salt every time, and it differs by user.
func TestMockSalt(t *testing.T) {
	a, b := mockSecret([]byte("k"), "a"), mockSecret([]byte("k"), "b")
	require.Equal(t, a, mockSecret([]byte("k"), "a"))
	require.NotEqual(t, a.salt, b.salt)
	require.Len(t, a.salt, scramSaltLen)
}

func testCert(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "u"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestClientCertificate(t *testing.T) {
	cert := testCert(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	s := startServer(t, Options{Backend: newFakeBackend(), Auth: Auth{Method: Cert}, RequireTLS: true,
		TLS: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}})
	withCert := func(c *pgconn.Config) { c.TLSConfig.Certificates = []tls.Certificate{cert} }
	_, err = tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=require", withCert)
	require.NoError(t, err)
	_, err = tryConnect(t, "postgres://other@"+s.addr+"/db?sslmode=require", withCert)
	requireCode(t, err, pgerr.InvalidAuthorizationSpec)
	_, err = tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=require", nil)
	requireCode(t, err, pgerr.InvalidAuthorizationSpec)
	_, err = tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=disable", nil)
	requireCode(t, err, pgerr.InvalidAuthorizationSpec)
}

func TestCancel(t *testing.T) {
	for _, version := range []string{"3.0", "3.2"} {
		t.Run(version, func(t *testing.T) {
			s := startServer(t, Options{Backend: newFakeBackend()})
			c := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable&max_protocol_version="+version)
			done := make(chan error, 1)
			go func() {
				_, err := c.Exec(context.Background(), "select sleep").ReadAll()
				done <- err
			}()
			for {
				require.NoError(t, c.CancelRequest(t.Context()))
				select {
				case err := <-done:
					requireCode(t, err, pgerr.QueryCanceled)
				case <-time.After(20 * time.Millisecond):
					continue
				}
				break
			}
			// A wrong key and a late cancel do nothing.
			s.cancelRequest(int32(c.PID()), []byte{1, 2, 3, 4})
			s.cancelRequest(int32(c.PID()), nil)
			require.NoError(t, c.CancelRequest(t.Context()))
			_, err := c.Exec(t.Context(), "select 1").ReadAll()
			require.NoError(t, err)
		})
	}
}

// TestCancelCopy: a cancel interrupts COPY FROM STDIN while it waits for the client, and the protocol stays in step.
func TestCancelCopy(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b})
	c := dialRaw(t, s.addr)
	c.startup("u", "db")
	c.until('Z', 1)
	write := func(lines ...string) {
		var buf []byte
		for _, l := range lines {
			buf = c.encode(buf, l)
		}
		_, err := c.Write(buf)
		require.NoError(t, err)
	}
	write(`Q "create temp table t(a int4, b text)"`, `Q "copy t from stdin"`)
	c.until('G', 1)
	write(`d "1\tx\n"`)
	// Half a message is on its way when the cancel comes.
	_, err := c.Write([]byte{'d', 0, 0})
	require.NoError(t, err)
	s.srvConn(1).Cancel(errUserCancel)
	require.Equal(t, []string{`E ERROR 57014 "canceling statement due to user request" where "COPY t, line 1"`, "Z I"}, c.until('Z', 1))
	_, err = c.Write([]byte{0, 4})
	require.NoError(t, err)
	write(`c`, `Q "select 1"`)
	require.Equal(t, []string{"T (?column? 23 4 -1 0)", `D "1"`, `C "SELECT 1"`, "Z I"}, c.until('Z', 1))
}

func (s *testServer) srvConn(pid int32) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.byPID[pid]
}

func TestNotifyWhileIdle(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b, NotifyQueue: 3})
	got := make(chan *pgconn.Notification, 10)
	c, err := tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=disable", func(c *pgconn.Config) {
		c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { got <- n }
	})
	require.NoError(t, err)
	wire := b.get(1).su.Wire
	require.True(t, wire.Notify(AppendNotification(nil, 7, "c", "one")))
	require.NoError(t, c.WaitForNotification(t.Context()))
	require.Equal(t, &pgconn.Notification{PID: 7, Channel: "c", Payload: "one"}, <-got)
	// Inside a transaction they wait, and the queue is bounded.
	_, err = c.Exec(t.Context(), "begin").ReadAll()
	require.NoError(t, err)
	for i := range 8 {
		require.Equal(t, i < 6, wire.Notify(AppendNotification(nil, 7, "c", fmt.Sprint(i))))
	}
	_, err = c.Exec(t.Context(), "select 1").ReadAll()
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = c.Exec(t.Context(), "commit").ReadAll()
	require.NoError(t, err)
	require.Len(t, got, 6)
}

// TestStuckClient is W3: a client that does not read blocks neither notifiers nor others, and Terminate gets rid of it.
func TestStuckClient(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b, NotifyQueue: 50})
	stuck := dialRaw(t, s.addr)
	stuck.startup("u", "db")
	stuck.until('Z', 1)
	_, err := stuck.Write(stuck.encode(nil, `Q "select repeat('x', 1000000) from generate_series(1, 1000)"`))
	require.NoError(t, err)
	other := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
	require.Eventually(t, func() bool {
		c := s.srvConn(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.writing
	}, 5*time.Second, time.Millisecond)
	refused := 0
	for range 200 {
		if !b.get(1).su.Wire.Notify(AppendNotification(nil, 1, "c", "p")) {
			refused++
		}
	}
	require.Equal(t, 100, refused)
	_, err = other.Exec(t.Context(), "select 1").ReadAll()
	require.NoError(t, err)
	// A cancel gets the statement out of its blocked write; the cut message is finished first.
	s.srvConn(1).Cancel(errUserCancel)
	last := ""
	for {
		typ, text, err := stuck.message()
		require.NoError(t, err)
		if typ != 'D' {
			last += text + "|"
		}
		if typ == 'Z' {
			break
		}
	}
	require.Equal(t, `T (repeat 25 -1 -1 0)|E ERROR 57014 "canceling statement due to user request"|A c "p"|`+strings.Repeat(`A c "p"|`, 99)+"Z I|", last)
	// Stuck again, then terminated.
	_, err = stuck.Write(stuck.encode(nil, `Q "select repeat('x', 1000000) from generate_series(1, 1000)"`))
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond)
	b.get(1).su.Wire.Terminate(errShutdown)
	require.Eventually(t, func() bool { return s.Sessions() == 1 }, 5*time.Second, time.Millisecond)
}

func TestTerminateIdle(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b})
	c := dialRaw(t, s.addr)
	c.startup("u", "db")
	c.until('Z', 1)
	b.get(1).su.Wire.Terminate(pgerr.New(pgerr.IdleSessionTimeout, "terminating connection due to idle-session timeout"))
	require.Equal(t, []string{`E FATAL 57P05 "terminating connection due to idle-session timeout"`, "closed"}, c.until('Z', 1))
}

// TestPanic is S3: a panic in a session is XX000 to its client and nobody else notices.
func TestPanic(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
	_, err := c.Exec(t.Context(), "panic").ReadAll()
	requireCode(t, err, pgerr.InternalError)
	r := c.ExecParams(t.Context(), "panic", nil, nil, nil, nil).Read()
	requireCode(t, r.Err, pgerr.InternalError)
	_, err = c.Exec(t.Context(), "select 1").ReadAll()
	require.NoError(t, err)
}

// TestDrain: Stop lets the running statement finish, ends idle connections with 57P01, and kills after its deadline.
func TestDrain(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b})
	idle := dialRaw(t, s.addr)
	idle.startup("u", "db")
	idle.until('Z', 1)
	busy := dialRaw(t, s.addr)
	busy.startup("u", "db")
	busy.until('Z', 1)
	_, err := busy.Write(busy.encode(nil, `Q "select sleep"`))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c := s.srvConn(2)
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.busy
	}, 5*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Stop(ctx), ErrKilled)
	require.Equal(t, []string{`E FATAL 57P01 "terminating connection due to administrator command"`, "closed"}, idle.until('Z', 1))
	require.Equal(t, []string{"T (sleep 25 -1 -1 0)", `E FATAL 57P01 "terminating connection due to administrator command"`, "closed"}, busy.until('Z', 1))
	require.Equal(t, 2, b.closed)
}

func TestDrainFinishes(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := dialRaw(t, s.addr)
	c.startup("u", "db")
	c.until('Z', 1)
	_, err := c.Write(c.encode(nil, `Q "select repeat('x', 1000000) from generate_series(1, 50)"`))
	require.NoError(t, err)
	_, _, err = c.message()
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	rows := 0
	for {
		typ, text, err := c.message()
		require.NoError(t, err)
		if typ == 'D' {
			rows++
		}
		if typ == 'E' {
			require.Contains(t, text, "57P01")
			break
		}
	}
	require.Equal(t, 50, rows)
	require.NoError(t, <-stopped)
}

// TestClientGone: a statement whose client has gone is cancelled.
func TestClientGone(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b, CheckInterval: 5 * time.Millisecond})
	c := dialRaw(t, s.addr)
	c.startup("u", "db")
	c.until('Z', 1)
	_, err := c.Write(c.encode(nil, `Q "select sleep"`))
	require.NoError(t, err)
	c.until('T', 0)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return s.Sessions() == 0 }, 5*time.Second, time.Millisecond)
}
