package changelog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// spillTable is a table whose last commit updates all its rows; it returns the window of that commit.
func spillTable(t *testing.T, k *testkit.Kit, version int, key []string, rows int) (table.Identifier, changelog.Bound, changelog.Bound) {
	t.Helper()
	ctx := context.Background()
	sc := testkit.Columns(key, "id long", "n long", "name string")
	ident := k.Table(t, "s.t", version, sc)
	base := k.Append(t, ident, numbered(sc, 0, 1, rows, 0)).Seq
	last := k.Do(t, ident, func(tt *warehouse.TxTable) error {
		if len(key) > 0 {
			_, err := tt.Upsert(ctx, numbered(sc, 0, 1, rows, 1), warehouse.Replace)
			return err
		}
		if _, err := tt.Truncate(ctx); err != nil {
			return err
		}
		if err := tt.Append(ctx, numbered(sc, rows/2, 1, rows, 0)); err != nil {
			return err
		}
		return tt.Append(ctx, numbered(sc, 1<<40, 0, rows/8, 0)) // one row, many times
	}).Seq
	return ident, seq(base), seq(last)
}

// TestSpillKeepsTheAnswer: whatever the limits on rows and bytes, and however often partitions are cut again, a step has
// the same rows, an UPDATE_AFTER follows its UPDATE_BEFORE, rows are numbered from 0, and the order is one of the limits
// and the rows alone: batches of another size and other workers do not change it (L1, L6).
func TestSpillKeepsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		version int
		key     []string
	}{{2, []string{"id"}}, {3, []string{"id"}}, {2, nil}, {3, nil}} {
		t.Run(fmt.Sprint("v", c.version, c.key), func(t *testing.T) {
			k := testkit.Open(t)
			ident, from, to := spillTable(t, k, c.version, c.key, 1200)
			read := func(o changelog.Options) []change {
				o.Catalog, o.Live, o.TempDir = k.Catalog, k.Live, t.TempDir()
				x, err := changelog.New(o).Changes(context.Background(), changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: from, To: to})
				require.NoError(t, err)
				out := readChanges(t, x.Batches(context.Background()), 3)
				left, err := os.ReadDir(o.TempDir)
				require.NoError(t, err)
				require.Empty(t, left)
				for i, c := range out {
					require.EqualValues(t, i, c.num)
					if c.typ == changelog.UpdateBefore {
						require.Equal(t, changelog.UpdateAfter, out[i+1].typ)
					}
				}
				return out
			}
			want := sorted(brief(read(changelog.Options{})))
			for _, o := range []changelog.Options{{PartitionRows: 100}, {PartitionBytes: 20_000}, {PartitionBytes: 6_000}, {PartitionRows: 400, PartitionBytes: 12_000}} {
				o.Workers, o.BatchRows = 1, 1000
				first := read(o)
				require.True(t, slices.Equal(want, sorted(brief(first))), "%+v: %d rows, not %d, or others", o, len(first), len(want))
				o.Workers, o.BatchRows = 2, 77
				require.True(t, slices.Equal(first, read(o)), "%+v: the order depends on batches or workers", o)
			}
		})
	}
}

// TestSpillFails: beyond its limit, on a full disk and when it is cancelled a step that spills ends with that error, and
// leaves no file, open or named.
func TestSpillFails(t *testing.T) {
	disk := error(nil)
	k := testkit.OpenWith(t, testkit.Options{Hooks: &storeio.Hooks{Before: func(op storeio.Op, path string) error {
		if op == storeio.OpWrite && strings.Contains(path, "changes-") {
			return disk
		}
		return nil
	}}})
	ident, from, to := spillTable(t, k, 2, []string{"id"}, 20_000)
	temp := t.TempDir()
	try := func(ctx context.Context, limit int64, each func()) error {
		r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: k.Live, TempDir: temp, PartitionRows: 1000, TempLimit: limit})
		x, err := r.Changes(ctx, changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: from, To: to})
		require.NoError(t, err)
		for _, err := range x.Batches(ctx) {
			if err != nil {
				return err
			}
			each()
		}
		return nil
	}
	ctx := context.Background()
	require.NoError(t, try(ctx, 0, func() { require.NotEmpty(t, spilledFiles(t, temp), "the step spills") }))
	err := try(ctx, 100_000, func() {})
	require.ErrorIs(t, err, changelog.ErrTooLarge)
	require.ErrorContains(t, err, "temporary space")
	disk = syscall.ENOSPC
	require.ErrorIs(t, try(ctx, 0, func() {}), syscall.ENOSPC)
	disk = nil
	ctx, cancel := context.WithCancel(ctx)
	require.ErrorIs(t, try(ctx, 0, cancel), context.Canceled)
	require.Empty(t, spilledFiles(t, temp))
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// spilledFiles are the open files of this process that were in a folder.
func spilledFiles(t *testing.T, dir string) (open []string) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, dir) {
			open = append(open, to)
		}
	}
	return open
}

// TestEqualRowsDoNotFit: rows that no hash tells apart end with an error when they are more than fit, not without memory.
func TestEqualRowsDoNotFit(t *testing.T) {
	k := testkit.Open(t)
	ident, from, to := spillTable(t, k, 2, nil, 4000)
	r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: k.Live, TempDir: t.TempDir(), PartitionBytes: 2000})
	x, err := r.Changes(context.Background(), changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: from, To: to})
	require.NoError(t, err)
	_, err = tryChanges(x.Batches(context.Background()), 3)
	require.ErrorIs(t, err, changelog.ErrTooLarge)
}
