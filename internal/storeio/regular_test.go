package storeio

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotRegular: pipes are not waited for, devices not read to their end, larger files not read at all.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	f := NewFS(Options{NoSync: true})
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", at("zero")))
	require.NoError(t, os.Mkdir(at("dir"), 0o755))
	for _, name := range []string{"pipe", "zero", "dir"} {
		_, err := f.ReadFile(at(name))
		require.ErrorIs(t, err, ErrNotRegular, name)
		_, err = f.ReadAtMost(at(name), 10)
		require.ErrorIs(t, err, ErrNotRegular, name)
		_, err = f.OpenRange(at(name))
		require.ErrorIs(t, err, ErrNotRegular, name)
		_, err = f.Open(at(name))
		if name == "dir" {
			require.NoError(t, err, "directories are opened to be listed")
		} else {
			require.ErrorIs(t, err, ErrNotRegular, name)
		}
	}
	require.NoError(t, os.WriteFile(at("huge"), []byte("0123456789"), 0o600))
	data, err := f.ReadAtMost(at("huge"), 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data))
	require.NoError(t, os.Truncate(at("huge"), 3<<30))
	before := f.Counters().Snapshot().Bytes
	_, err = f.ReadAtMost(at("huge"), 10)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Equal(t, before, f.Counters().Snapshot().Bytes)
	for _, name := range []string{"pipe", "zero", "huge", "none"} {
		wrote, err := f.Restore(at(name), []byte("right"))
		require.NoError(t, err, name)
		require.True(t, wrote)
		data, err := f.ReadFile(at(name))
		require.NoError(t, err)
		require.Equal(t, "right", string(data))
	}
	_, err = f.Restore(at("dir"), []byte("right"))
	require.Error(t, err)
}

// TestSyncSparesCaches: a file that only saves work need not be there when a batch is synced, nor be one that can be synced; the others must.
func TestSyncSparesCaches(t *testing.T) {
	for _, many := range []int{1, syncfsFrom + 1} {
		dir := t.TempDir()
		var bad string
		f := NewFS(Options{Hooks: &Hooks{Before: func(op Op, path string) error {
			if op == OpSync && path == bad {
				return ErrInjected
			}
			return nil
		}}})
		var paths []string
		for i := range many {
			p := filepath.Join(dir, string(rune('a'+i)))
			require.NoError(t, os.WriteFile(p, nil, 0o600))
			paths = append(paths, p)
		}
		index := paths[0] + KeyIndexSuffix
		for _, sync := range []func(context.Context, []string) error{f.SyncFiles, f.SyncMany} {
			require.NoError(t, sync(t.Context(), append([]string{index}, paths...)), "missing")
			require.NoError(t, os.WriteFile(index, nil, 0o600))
			bad = index
			require.NoError(t, sync(t.Context(), append([]string{index}, paths...)))
			require.NoFileExists(t, index, "what it holds after a power cut is not known")
			bad = paths[0]
			require.ErrorIs(t, sync(t.Context(), append([]string{index}, paths...)), ErrInjected)
			bad = ""
		}
	}
}
