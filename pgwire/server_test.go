package pgwire

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type testServer struct {
	*Server
	addr string
}

// startServer starts a server that the test's end stops; what it leaves behind fails the test.
func startServer(t testing.TB, o Options) *testServer {
	if o.Logger.GetLevel() == zerolog.Disabled || testing.Verbose() {
		o.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel)
	}
	s, err := New(o)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
		require.ErrorIs(t, <-served, ErrServerStopped)
	})
	return &testServer{s, l.Addr().String()}
}
