package test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
)

// A manifest whose entry names another data file than its deletion vector was written for lets deleted rows live: nothing
// else notices one wrong byte of a path, so the check compares it with what the vector says of itself (spec, "Deletion
// Vectors": property referenced-data-file).
func TestCheckComparesVectors(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE d (id int PRIMARY KEY, v text) WITH (format_version = 3)")
	run(t, c, "INSERT INTO d SELECT n, md5(n::text) FROM generate_series(1, 1000) n")
	run(t, c, "DELETE FROM d WHERE id <= 100")
	vectors := g.files("d", ".puffin")
	require.Len(t, vectors, 1)
	data := g.files("d", ".parquet")
	require.Len(t, data, 1)
	require.NoError(t, c.Close(context.Background()))
	g.close()
	checkFolder(t, g.dir)

	hurt := 0
	for _, name := range g.files("d", ".avro") {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		at := bytes.LastIndex(b, []byte(filepath.Base(data[0])))
		if at < 0 || !bytes.Contains(b, []byte(filepath.Base(vectors[0]))) {
			continue
		}
		hurt++
		b[at] ^= 1
		require.NoError(t, os.WriteFile(name, b, 0o600))
	}
	require.Equal(t, 1, hurt, "the delete manifest is written plain")
	var problems []string
	require.NoError(t, catalog.Check(context.Background(), g.dir, func(p catalog.Problem) { problems = append(problems, p.String()) }))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "deletion vector at 4 of "+vectors[0])
	require.Contains(t, problems[0], "says itself: 100 rows of file:"+data[0])
}
