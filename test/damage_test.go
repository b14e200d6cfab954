package test

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

// files lists the files below the folder whose names contain part, of table name.
func (g *gateway) files(table, part string) []string {
	var out []string
	require.NoError(g.t, filepath.WalkDir(filepath.Join(g.dir, "warehouse"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(p, "/"+table+"-") && strings.Contains(filepath.Base(p), part) {
			out = append(out, p)
		}
		return err
	}))
	return out
}

// problems runs the check on the folder, which must not panic whatever it finds.
func (g *gateway) problems() int {
	n := 0
	if err := catalog.Check(context.Background(), g.dir, func(catalog.Problem) { n++ }); err != nil {
		n++
	}
	return n
}

// TestDamagedFiles is S3: a missing, truncated or overwritten file of the warehouse is 58P01 or XX001 for who reads it; the
// session, the other tables and the process live on, and the check names it.
func TestDamagedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE hurt (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO hurt SELECT n, md5(n::text) FROM generate_series(1, 20000) n")
	run(t, c, "DELETE FROM hurt WHERE id <= 100")
	run(t, c, "CREATE TABLE well (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO well VALUES (1)")
	current := rows(t, c, "SELECT count(*), min(id) FROM hurt")
	require.NoError(t, c.Close(context.Background()))
	kinds := map[string][]string{
		"data":     g.files("hurt", ".parquet"),
		"index":    g.files("hurt", ".keyidx"),
		"manifest": g.files("hurt", ".avro"),
		"metadata": g.files("hurt", ".metadata.json"),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	damage := map[string]func(b []byte) []byte{
		"missing":   func([]byte) []byte { return nil },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"short":     func(b []byte) []byte { return b[:len(b)-1] },
		"zeros":     func(b []byte) []byte { return make([]byte, len(b)) },
		"noise": func(b []byte) []byte {
			for i := range b {
				if rnd.IntN(50) == 0 {
					b[i] = byte(rnd.Uint32())
				}
			}
			return b
		},
	}
	for kind, names := range kinds {
		require.NotEmpty(t, names, kind)
		for how, f := range damage {
			for _, name := range names {
				t.Run(kind+"/"+how+"/"+filepath.Base(name), func(t *testing.T) {
					g.damaged(t, kind, how, name, f)
				})
			}
		}
	}
	g.open()
	require.Equal(t, current, rows(t, g.connect(), "SELECT count(*), min(id) FROM hurt"))
}

// damaged damages one file of a closed warehouse, serves it, and heals it.
func (g *gateway) damaged(t *testing.T, kind, how, name string, f func([]byte) []byte) {
	if g.srv != nil {
		require.NoError(t, g.srv.Close())
		g.srv = nil
	}
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	if b := f(bytes.Clone(whole)); b == nil {
		require.NoError(t, os.Remove(name))
	} else {
		require.NoError(t, os.WriteFile(name, b, 0o644))
	}
	defer func() {
		if g.srv != nil {
			require.NoError(t, g.srv.Close())
			g.srv = nil
		}
		require.NoError(t, os.WriteFile(name, whole, 0o644))
	}()
	g.problems()
	g.open()
	cfg, err := pgx.ParseConfig(g.srv.URL())
	require.NoError(t, err)
	c, err := pgx.ConnectConfig(context.Background(), cfg)
	require.NoError(t, err)
	defer c.Close(context.Background())
	for _, sql := range []string{
		"SELECT count(*), min(id), max(v) FROM hurt",
		"SELECT * FROM hurt WHERE id = 5000",
		"SELECT * FROM lookup('hurt', 777)",
		"SELECT count(*) FROM table_changes('hurt', NULL, NULL)",
		"SELECT count(*), max(v) FROM table_at('hurt', 'earliest')",
		"SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'hurt'",
		"BEGIN; UPDATE hurt SET v = 'x' WHERE id = 300; ROLLBACK",
		"BEGIN; INSERT INTO hurt VALUES (300, 'dup'); ROLLBACK",
		"BEGIN; DELETE FROM hurt WHERE v LIKE 'a%'; ROLLBACK",
	} {
		_, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
		if err != nil {
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe, sql)
			require.Contains(t, []string{"58P01", "XX001", "23505", "58030"}, pe.Code, "%s: %s", sql, pe.Message)
			for _, word := range []string{"Error:", "panic", "runtime error", "DuckDB", "duckdb", "read_parquet"} {
				require.NotContains(t, pe.Message+pe.Detail+pe.Hint, word, sql)
			}
		}
		_, _ = c.Exec(context.Background(), "ROLLBACK")
		require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM well"), sql)
	}
	run(t, c, "INSERT INTO well VALUES (2)")
	run(t, c, "DELETE FROM well WHERE id = 2")
}

// TestDamagedCatalog: flipped bytes of catalog.db are a clear error at the start or cost nothing; never a panic or a hang.
func TestDamagedCatalog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE d (id int PRIMARY KEY)")
	for i := range 20 {
		run(t, c, "INSERT INTO d VALUES ($1)", i)
	}
	require.NoError(t, c.Close(context.Background()))
	require.NoError(t, g.srv.Close())
	g.srv = nil
	name := filepath.Join(g.dir, "catalog.db")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 45 {
		b := bytes.Clone(whole)
		switch {
		case i == 0:
			b = b[:len(b)/2]
		case i == 1:
			b = nil
		case i == 2:
			b = make([]byte, len(b))
		case i < 20: // somewhere
			for range 1 + rnd.IntN(30) {
				b[rnd.IntN(len(b))] ^= byte(1 << rnd.IntN(8))
			}
		case i < 40: // a page is lost
			p := rnd.IntN(len(b)/4096) * 4096
			for j := range 4096 {
				b[p+j] = byte(rnd.Uint32())
			}
		default: // page headers
			p := rnd.IntN(len(b)/4096) * 4096
			for range 4 {
				b[p+rnd.IntN(64)] ^= byte(rnd.Uint32())
			}
		}
		require.NoError(t, os.WriteFile(name, b, 0o644))
		g.problems()
		srv, err := cli.Start(context.Background(), &cli.Config{Data: g.dir, Listen: "127.0.0.1:0", Database: "skade", MaxConnections: 10, DrainSeconds: 1}, zerolog.Nop())
		if err != nil {
			refused++
			continue
		}
		cfg, err := pgx.ParseConfig(srv.URL())
		require.NoError(t, err)
		if c, err := pgx.ConnectConfig(context.Background(), cfg); err == nil {
			for _, sql := range []string{"SELECT count(*) FROM d", "INSERT INTO d VALUES (1000)", "SELECT count(*) FROM skade.commits"} {
				_, err := c.Exec(context.Background(), sql)
				var pe *pgconn.PgError
				if err != nil {
					require.ErrorAs(t, err, &pe, sql)
				}
			}
			_ = c.Close(context.Background())
		}
		_ = srv.Close()
	}
	require.GreaterOrEqual(t, refused, 2) // at least the halved file and the zeroed one
	require.NoError(t, os.WriteFile(name, whole, 0o644))
}

// TestMovedFolder: both paths are named.
func TestMovedFolder(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE m (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO m VALUES (1)")
	require.NoError(t, c.Close(context.Background()))
	require.NoError(t, g.srv.Close())
	g.srv = nil
	moved := g.dir + "-moved"
	require.NoError(t, os.Rename(g.dir, moved))
	_, err := cli.Start(context.Background(), &cli.Config{Data: moved, Listen: "127.0.0.1:0", Database: "skade", MaxConnections: 10}, zerolog.Nop())
	require.ErrorIs(t, err, catalog.ErrMoved)
	require.ErrorContains(t, err, g.dir)
	require.ErrorContains(t, err, moved)
	require.NoError(t, os.Rename(moved, g.dir))
}

// TestSecondServer: a second process on the folder is told so, at once.
func TestSecondServer(t *testing.T) {
	g := start(t)
	_, err := cli.Start(context.Background(), &cli.Config{Data: g.dir, Listen: "127.0.0.1:0", Database: "skade", MaxConnections: 10}, zerolog.Nop())
	require.ErrorIs(t, err, catalog.ErrLocked)
	require.Equal(t, [][]string{{"1"}}, rows(t, g.connect(), "SELECT 1"))
}
