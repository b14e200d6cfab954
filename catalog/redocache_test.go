package catalog

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// TestOpenWithoutIndexes: Open restores key indexes when it can and goes on, with one warning, when it cannot. Other files it must restore.
func TestOpenWithoutIndexes(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(ctx, Options{Dir: dir})
	require.NoError(t, err)
	st := makeTable(t, c, "t")
	appendTo(t, c, st, 1)
	data := filepath.Join(filepath.Dir(filepath.Dir(storeio.PathOf(st.MetadataLocation))), "data", "one.parquet")
	require.NoError(t, c.Close())
	carry := func() {
		t.Helper()
		s, err := openStore(mustResolve(t, dir), false)
		require.NoError(t, err)
		files := []redoFile{{path: data + ".keyidx", data: []byte("an index")}, {path: data, data: []byte("rows")}, {path: data + "2.keyidx", data: []byte("another")}}
		_, err = s.Apply(ctx, store.Tx{Ops: []store.Op{{Key: redoKey(1 << 40), Value: encodeRedo(files)}}})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	open := func(full func(path string) bool) (string, error) {
		var log bytes.Buffer
		hooks := &storeio.Hooks{Before: func(op storeio.Op, path string) error {
			if op == storeio.OpWrite && full(path) {
				return &fs.PathError{Op: string(op), Path: path, Err: syscall.ENOSPC}
			}
			return nil
		}}
		c, err := Open(ctx, Options{Dir: dir, FS: storeio.NewFS(storeio.Options{Hooks: hooks}), Logger: zerolog.New(&log)})
		if err == nil {
			require.Empty(t, values(t, c.store, familyRedo))
			require.NoError(t, c.Close())
		}
		return log.String(), err
	}
	carry()
	_, err = open(func(path string) bool { return path == data })
	require.ErrorIs(t, err, syscall.ENOSPC, "rows are needed")
	log, err := open(storeio.Cache)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log, `"level":"warn"`), log)
	require.FileExists(t, data)
	require.NoFileExists(t, data+".keyidx")

	carry()
	require.NoError(t, os.Mkdir(data+".keyidx", 0o755))
	log, err = open(func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log, `"level":"warn"`), log)
	require.FileExists(t, data+"2.keyidx")

	require.NoError(t, os.Remove(data+".keyidx"))
	carry()
	log, err = open(func(string) bool { return false })
	require.NoError(t, err)
	require.NotContains(t, log, "warn")
	require.FileExists(t, data+".keyidx")
}
