package pgwire

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// AppendNotifications implements Notifier: news counts down, a message a call.
func (s *fakeSession) AppendNotifications(dst []byte) ([]byte, bool) {
	n := s.news.Load()
	if n == 0 {
		return dst, false
	}
	s.news.Store(n - 1)
	return AppendNotification(dst, 0, "news", strconv.FormatInt(n, 10)), n > 1
}

// TestNotifier: a session that is woken tells all it has, a chunk at a time, when it is idle and outside a transaction.
func TestNotifier(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b})
	var got []string
	c, err := tryConnect(t, "postgres://u@"+s.addr+"/db?sslmode=disable", func(c *pgconn.Config) {
		c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { got = append(got, n.Payload) }
	})
	require.NoError(t, err)
	session := b.get(1)
	for round := range 3 {
		got = nil
		session.news.Store(3)
		session.su.Wire.Wake()
		for len(got) < 3 {
			require.NoError(t, c.WaitForNotification(t.Context()), round)
		}
		require.Equal(t, []string{"3", "2", "1"}, got)
	}
	got = nil
	_, err = c.Exec(t.Context(), "begin").ReadAll()
	require.NoError(t, err)
	session.news.Store(2)
	session.su.Wire.Wake()
	_, err = c.Exec(t.Context(), "select 1").ReadAll()
	require.NoError(t, err)
	require.Empty(t, got, "inside a transaction")
	_, err = c.Exec(t.Context(), "commit").ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"2", "1"}, got, "before ReadyForQuery")
	require.Zero(t, session.su.Wire.NotifyUsage())
}
