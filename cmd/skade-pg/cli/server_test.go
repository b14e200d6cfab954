package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
)

// A second server on the same folder gets an error that names the first one, at once.
func TestSecondServer(t *testing.T) {
	cfg := testConfig(t)
	s := startServer(t, cfg)
	second := *cfg
	_, err := Start(context.Background(), &second, zerolog.Nop())
	require.ErrorIs(t, err, catalog.ErrLocked)
	require.ErrorContains(t, err, "another skade-pg is serving "+cfg.Data+" (it listens at "+s.URL()+")")
	// It did not disturb the first one, nor its note of the address.
	fill(t, s)
	noted, err := readURL(cfg.Data)
	require.NoError(t, err)
	require.Equal(t, s.URL(), noted)
	require.NoError(t, s.Close())
	require.NoFileExists(t, filepath.Join(cfg.Data, urlFile))
	// The folder is free again.
	s = startServer(t, cfg)
	require.NoError(t, s.Close())
}

func TestAddressInUse(t *testing.T) {
	s := startServer(t, testConfig(t))
	defer func() { require.NoError(t, s.Close()) }()
	cfg := testConfig(t)
	cfg.Listen = s.Addr().String()
	_, err := Start(context.Background(), cfg, zerolog.Nop())
	require.ErrorContains(t, err, "choose another with --listen")
	cfg.Listen = "127.0.0.1:0" // nothing of the failed start holds the folder
	other := startServer(t, cfg)
	require.NoError(t, other.Close())
}

func TestHTTP(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTP = "127.0.0.1:0"
	s := startServer(t, cfg)
	fill(t, s)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		res, err := client.Get("http://" + s.http.l.Addr().String() + path)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(b)
	}
	code, body := get("/healthz")
	require.Equal(t, 200, code, body)
	code, body = get("/readyz")
	require.Equal(t, 200, code, body)
	code, body = get("/metrics")
	require.Equal(t, 200, code)
	require.Contains(t, body, "skade_commit_seq 2\n") // schema public, then one query string
	require.Contains(t, body, "go_goroutines")
	require.Contains(t, body, "skade_lookup_keys_total")
	require.Contains(t, body, "skade_lookup_needless_reads_total 0\n")
	s.ready.Store(false)
	code, body = get("/readyz")
	require.Equal(t, 503, code, body)
	require.NoError(t, s.Close())
}

// What a killed server left in tmp goes at the next start.
func TestStartClearsTheTemporaryFolder(t *testing.T) {
	cfg := testConfig(t)
	left := filepath.Join(cfg.Data, "tmp", "left")
	require.NoError(t, os.MkdirAll(filepath.Dir(left), 0o755))
	require.NoError(t, os.WriteFile(left, []byte("x"), 0o600))
	s := startServer(t, cfg)
	require.NoFileExists(t, left)
	require.NoError(t, s.Close())
}
