package test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesOfOtherKinds: files that grew to gigabytes, pipes, endless devices and directories in the place of a table's files are damage that is said at
// once: nothing of them is read. In the place of a key index they are not even that.
func TestFilesOfOtherKinds(t *testing.T) {
	kinds := map[string]func(p string) error{
		"huge":      func(p string) error { return os.Truncate(p, 3<<30) },
		"pipe":      func(p string) error { return replaced(p, syscall.Mkfifo(p+"x", 0o600)) },
		"device":    func(p string) error { return replaced(p, os.Symlink("/dev/zero", p+"x")) },
		"directory": func(p string) error { return replaced(p, os.Mkdir(p+"x", 0o755)) },
	}
	for _, suffix := range []string{".keyidx", ".parquet", ".metadata.json", "-m0.avro"} {
		for kind, put := range kinds {
			if testing.Short() && kind != "huge" && kind != "pipe" {
				continue
			}
			t.Run(kind+suffix, func(t *testing.T) {
				g := start(t)
				c := g.connect()
				run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY)")
				run(t, c, "INSERT INTO t SELECT generate_series(1, 10000)")
				g.close()
				files := slices.DeleteFunc(g.allFiles(), func(p string) bool { return !strings.HasSuffix(p, suffix) })
				require.NotEmpty(t, files)
				for _, p := range files {
					require.NoError(t, put(p))
				}
				g.open()
				c = g.connect()
				for _, sql := range []string{"SELECT id FROM lookup('t', 77)", "SELECT id FROM t WHERE id = 77"} {
					if suffix == ".keyidx" {
						require.Equal(t, [][]string{{"77"}}, rows(t, c, sql))
					} else {
						require.Equal(t, "XX001", sqlstate(t, c, sql).Code)
					}
				}
				if suffix == ".keyidx" {
					run(t, c, "VACUUM (FULL) t")
				}
				c.Close(t.Context())
				require.NoError(t, g.srv.Close())
				g.srv = nil
				require.Equal(t, suffix != ".keyidx", g.problems() > 0, "the check says so")
			})
		}
	}
}

// replaced puts p+"x" in the place of p.
func replaced(p string, err error) error {
	if err == nil {
		err = os.Remove(p)
	}
	if err == nil {
		err = os.Rename(p+"x", p)
	}
	return err
}
