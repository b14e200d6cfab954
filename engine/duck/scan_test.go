package duck

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func scanItem(t testing.TB, db *DB, sc Scan) string {
	t.Helper()
	item, release, err := db.ScanSQL(sc)
	require.NoError(t, err)
	t.Cleanup(release)
	return item
}

// TestScanEvolution: rename, promotion, default, missing and dropped columns, reorder, hostile names, all by field id.
func TestScanEvolution(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a[1]*.parquet"), filepath.Join(dir, "b?'.parquet")
	writeParquet(t, a, "SELECT 7::INTEGER AS old_name, 'gone' AS dropped, 1.5::FLOAT AS f, 12.34::DECIMAL(6,2) AS d", "FIELD_IDS {old_name: 1, dropped: 2, f: 3, d: 4}")
	writeParquet(t, b, "SELECT 2.5::DOUBLE AS f2, 8::BIGINT AS id, 99.99::DECIMAL(12,2) AS d, [1,2] AS l", "FIELD_IDS {f2: 3, id: 1, d: 4, l: {__duckdb_field_id: 6, element: 7}}")
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	def := "it's"
	sc := Scan{
		Files: []ScanFile{{Path: a, Rows: 1}, {Path: b, Rows: 1}},
		Columns: []ScanColumn{
			{FieldID: 3, Name: "f", DuckType: "DOUBLE"},
			{FieldID: 1, Name: `file_row_number`, DuckType: "BIGINT"},
			{FieldID: 5, Name: `we"ird`, DuckType: "VARCHAR", Default: &def},
			{FieldID: 4, Name: "d", DuckType: "DECIMAL(12,2)"},
			{FieldID: 6, Name: "l", DuckType: "INTEGER[]"},
		},
	}
	item := scanItem(t, db, sc)
	require.Equal(t, [][]string{{"1.5", "7", "it's", "12.34", "∅"}, {"2.5", "8", "it's", "99.99", "{1,2}"}}, textOf(t, c, "SELECT * FROM "+item+" ORDER BY file_row_number"))
	require.Equal(t, [][]string{{"2"}}, textOf(t, c, "SELECT count(*) FROM "+item))
	sc.WithPosition = true
	require.Equal(t, [][]string{{"7", "0", "0"}, {"8", "1", "0"}},
		textOf(t, c, "SELECT x.file_row_number, _skade_file, _skade_pos FROM "+scanItem(t, db, sc)+" x ORDER BY 1"))
	// No column at all still counts.
	require.Equal(t, [][]string{{"2"}}, textOf(t, c, "SELECT count(*) FROM "+scanItem(t, db, Scan{Files: sc.Files})))
}

func TestScanEmpty(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	item := scanItem(t, db, Scan{Columns: []ScanColumn{{FieldID: 1, Name: "a", DuckType: "BIGINT"}, {FieldID: 2, Name: "b", DuckType: "VARCHAR", Cast: "INTERVAL"}}, WithPosition: true, WithRowID: true})
	s, err := c.Prepare(context.Background(), "SELECT * FROM "+item)
	require.NoError(t, err)
	defer s.Close()
	var names []string
	for _, col := range s.Columns() {
		names = append(names, col.Name+" "+col.DuckType)
	}
	require.Equal(t, []string{"a BIGINT", "b INTERVAL", "_skade_file BIGINT", "_skade_pos BIGINT", "_row_id BIGINT"}, names)
	require.Empty(t, textOf(t, c, "SELECT * FROM "+item))
}

// manyFiles writes n files of rows rows: id runs on from file to file.
func manyFiles(t testing.TB, dir string, n, rows int) []ScanFile {
	t.Helper()
	var files []ScanFile
	for i := range n {
		p := filepath.Join(dir, fmt.Sprintf("f%d.parquet", i))
		writeParquet(t, p, fmt.Sprintf("SELECT i + %d AS id, 'n' || (i %% 7) AS s FROM range(%d) t(i)", i*rows, rows), "FIELD_IDS {id: 1, s: 2}, ROW_GROUP_SIZE 2048")
		files = append(files, ScanFile{Path: p, Rows: int64(rows)})
	}
	return files
}

var idColumns = []ScanColumn{{FieldID: 1, Name: "id", DuckType: "BIGINT"}, {FieldID: 2, Name: "s", DuckType: "VARCHAR"}}

// TestScanSuppressed holds D5 against a model, with and without filters that reach the reader, over clean and dirty files.
func TestScanSuppressed(t *testing.T) {
	const n, rows = 4, 70_000
	dir := t.TempDir()
	files := manyFiles(t, dir, n, rows)
	live := map[int]bool{}
	for i := range n * rows {
		live[i] = true
	}
	suppress := func(f int, every int, from, to int) {
		b := roaring.New()
		for p := from; p < to; p += every {
			b.Add(uint32(p))
			delete(live, f*rows+p)
		}
		files[f].Suppressed = b
	}
	suppress(1, 3, 0, rows)             // scattered
	suppress(2, 1, 60_000, rows)        // a run across a 65,536 border
	files[3].Suppressed = roaring.New() // empty is clean
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	for _, pos := range []bool{false, true} {
		item := scanItem(t, db, Scan{Files: files, Columns: idColumns, WithPosition: pos})
		count, sum := 0, 0
		for id := range live {
			count++
			sum += id
		}
		require.Equal(t, [][]string{{fmt.Sprint(count), fmt.Sprint(sum)}}, textOf(t, c, "SELECT count(*), sum(id) FROM "+item))
		for _, id := range []int{0, rows, rows + 1, rows + 2, 2*rows + 59_999, 2*rows + 60_000, 2*rows + 65_536, 3*rows - 1, 3 * rows} {
			want := 0
			if live[id] {
				want = 1
			}
			require.Len(t, textOf(t, c, fmt.Sprintf("SELECT * FROM %s WHERE id = %d", item, id)), want, "id %d", id)
			require.Len(t, textOf(t, c, fmt.Sprintf("SELECT id FROM %s WHERE id = $1", item), int64(id)), want, "id %d", id)
		}
		got := textOf(t, c, "SELECT count(*) FROM "+item+" WHERE id BETWEEN 69000 AND 71000 AND s = 'n3'")
		want := 0
		for id := 69_000; id <= 71_000; id++ {
			if live[id] && id%rows%7 == 3 {
				want++
			}
		}
		require.Equal(t, [][]string{{fmt.Sprint(want)}}, got)
	}
	// The positions that DML gets point at the rows themselves.
	item := scanItem(t, db, Scan{Files: files, Columns: idColumns, WithPosition: true})
	require.Equal(t, [][]string{{"0"}}, textOf(t, c, fmt.Sprintf("SELECT count(*) FROM %s WHERE id <> _skade_file * %d + _skade_pos", item, rows)))
}

// TestScanStreamOutlivesRelease: a running stream keeps its bitmaps; the text alone is dead.
func TestScanStreamOutlivesRelease(t *testing.T) {
	dir := t.TempDir()
	files := manyFiles(t, dir, 1, 30_000)
	files[0].Suppressed = roaring.BitmapOf(1, 2, 29_999)
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	item, release, err := db.ScanSQL(Scan{Files: files, Columns: idColumns})
	require.NoError(t, err)
	s, err := c.Prepare(context.Background(), "SELECT id FROM "+item)
	require.NoError(t, err)
	r, err := s.Query(context.Background(), nil)
	require.NoError(t, err)
	release()
	release()
	total := 0
	for done := false; !done; {
		var n int
		_, n, done, err = r.AppendDataRows(nil, nil, nil, nil, 100)
		require.NoError(t, err)
		total += n
	}
	require.Equal(t, 29_997, total)
	s.Close()
	_, err = c.Prepare(context.Background(), "SELECT count(*) FROM "+item)
	require.Error(t, err, "the set is gone")
}

func TestScanRowIDs(t *testing.T) {
	dir := t.TempDir()
	stored, plain := filepath.Join(dir, "stored.parquet"), filepath.Join(dir, "plain.parquet")
	writeParquet(t, stored, "SELECT i AS id, CASE WHEN i = 1 THEN 77 END AS r FROM range(3) t(i)", fmt.Sprintf("FIELD_IDS {id: 1, r: %d}", RowIDFieldID))
	writeParquet(t, plain, "SELECT i + 10 AS id FROM range(2) t(i)", "FIELD_IDS {id: 1}")
	first, second := int64(100), int64(200)
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	item := scanItem(t, db, Scan{Files: []ScanFile{{Path: stored, Rows: 3, FirstRowID: &first}, {Path: plain, Rows: 2, FirstRowID: &second}, {Path: plain, Rows: 2}}, Columns: idColumns[:1], WithRowID: true})
	require.Equal(t, [][]string{{"0", "100"}, {"1", "77"}, {"2", "102"}, {"10", "200"}, {"11", "201"}, {"10", "∅"}, {"11", "∅"}},
		textOf(t, c, "SELECT id, _row_id FROM "+item))
}

// TestScanPrunes: a filter on a column reaches read_parquet through the suppression and the UNION, so that row groups are
// skipped by their bounds: the other row groups' pages are damaged, and nobody notices.
func TestScanPrunes(t *testing.T) {
	dir := t.TempDir()
	files := manyFiles(t, dir, 2, 40_960)
	for _, f := range files {
		damageRowGroups(t, f.Path, 3)
	}
	files[1].Suppressed = roaring.BitmapOf(5)
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	item := scanItem(t, db, Scan{Files: files, Columns: idColumns})
	for _, id := range []int64{7000, 40_960 + 7000} {
		want := [][]string{{fmt.Sprintf("n%d", id%40_960%7)}}
		require.Equal(t, want, textOf(t, c, fmt.Sprintf("SELECT s FROM %s WHERE id = %d", item, id)))
		require.Equal(t, want, textOf(t, c, "SELECT s FROM "+item+" WHERE id = $1", id))
	}
	_, err := rowsOf(c, "SELECT sum(length(s)) FROM "+item, request{})
	require.Equal(t, pgerr.DataCorrupted, pgerr.CodeOf(err), "%v", err)
}

// damageRowGroups overwrites the data pages of all row groups but one.
func damageRowGroups(t *testing.T, path string, keep int) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	for g := range r.NumRowGroups() {
		if g == keep {
			continue
		}
		for i := range r.MetaData().NumColumns() {
			c, err := r.MetaData().RowGroup(g).ColumnChunk(i)
			require.NoError(t, err)
			at := c.DataPageOffset()
			if c.HasDictionaryPage() {
				at = min(at, c.DictionaryPageOffset())
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(c.TotalCompressedSize())), at)
			require.NoError(t, err)
		}
	}
	require.NoError(t, f.Close())
	require.NoError(t, r.Close())
}

// TestSuppressedRowsAreNotEvaluated: a user's expression must not fail on a row that is not there.
func TestSuppressedRowsAreNotEvaluated(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f.parquet")
	writeParquet(t, p, "SELECT i AS id, CASE WHEN i = 3 THEN 'bad' ELSE i::VARCHAR END AS s FROM range(10) t(i)", "FIELD_IDS {id: 1, s: 2}")
	db := openTest(t, Options{AllowedDirs: []string{dir}})
	c := connTest(t, db)
	item := scanItem(t, db, Scan{Files: []ScanFile{{Path: p, Rows: 10, Suppressed: roaring.BitmapOf(3)}}, Columns: idColumns})
	require.Equal(t, [][]string{{"8"}}, textOf(t, c, "SELECT id FROM "+item+" WHERE s::INTEGER = 8"))
	require.Equal(t, [][]string{{"42"}}, textOf(t, c, "SELECT sum(s::INTEGER) FROM "+item))
}
