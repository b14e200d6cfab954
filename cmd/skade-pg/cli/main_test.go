package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs the command line and returns its exit code and both outputs.
func run(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(args, &out, &err)
	return code, out.String(), err.String()
}

// testConfig is a server on a free port.
func testConfig(t *testing.T) *Config {
	return &Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", Database: DefaultDatabase, MaxConnections: 10, DrainSeconds: 5}
}

func startServer(t *testing.T, cfg *Config) *Server {
	t.Helper()
	s, err := Start(context.Background(), cfg, zerolog.New(zerolog.NewTestWriter(t)))
	require.NoError(t, err)
	return s
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
