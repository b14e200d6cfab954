package test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// EXPLAIN says which statements are answered by the key index, which read a source by it, and which scan.
func TestExplainOfKeyQueries(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE k (id int, line bigint, v text, d date, PRIMARY KEY (id, line))")
	run(t, c, "INSERT INTO k SELECT i / 3, i % 3, 'v' || i, '2026-01-01' FROM generate_series(0, 299) i")
	run(t, c, "INSERT INTO k SELECT i / 3, i % 3, 'v' || i, '2026-01-01' FROM generate_series(300, 599) i")
	run(t, c, "CREATE VIEW kv AS SELECT id AS a, line AS b, upper(v) AS v FROM k")
	plan := func(sql string) string {
		var out []string
		for _, r := range rows(t, c, "EXPLAIN "+sql) {
			if !strings.Contains(r[0], "Bytes: ") {
				out = append(out, strings.TrimSpace(r[0]))
			}
		}
		return strings.Join(out, "|")
	}
	one := "Index Scan using k_pkey on public.k|Index Cond: ((id = 7) AND (line = '1'::bigint))|Files: considered=2 opened=1|Rows: found=1"
	for sql, want := range map[string]string{
		"SELECT v, 1 FROM k WHERE id = 7 AND line = 1::bigint": one,
		"SELECT v FROM k x WHERE line = 1::bigint AND id IN (7, 150, 9999) ORDER BY id DESC LIMIT 1": "Index Scan using k_pkey on public.k x|" +
			"Index Cond: ((line = '1'::bigint) AND (id = ANY (ARRAY[7, 150, 9999])))|Files: considered=2 opened=2|Rows: found=2",
		"SELECT v FROM k WHERE (id, line) IN ((7, 1), (150, 2))":                                            "Index Scan using k_pkey on public.k|Index Cond: ((id, line) IN ((7, 1), (150, 2)))|Files: considered=2 opened=2|Rows: found=2",
		"SELECT v FROM table_at('k', 'seq:3') WHERE id = 7 AND line = 1::bigint":                            strings.Replace(one, "considered=2", "considered=1", 1),
		"SELECT count(*) FROM k WHERE id = 7 AND line = 1::bigint AND v > ''":                               "DuckDB Query|->  " + one,
		"SELECT v FROM kv WHERE a = 7 AND b = 1::bigint":                                                    "DuckDB Query|->  " + one,
		"WITH w AS (SELECT * FROM k) SELECT v FROM w WHERE id = 7 AND line = '1'":                           "DuckDB Query|->  " + one,
		"UPDATE k SET v = '' WHERE id = 7 AND line = 1::bigint":                                             "Update on k|->  " + one,
		"DELETE FROM k WHERE id = 7 AND line = 1::bigint":                                                   "Delete on k|->  " + one,
		"SELECT v FROM k WHERE id = 7 AND line = 1::bigint FOR UPDATE":                                      "DuckDB Query|->  " + one,
		"SELECT v FROM k WHERE id = 7":                                                                      "DuckDB Query|->  Index Scan using k_pkey on public.k|Index Cond: (id = 7)|Files: considered=2 opened=1|Rows: found=3",
		"SELECT v FROM k WHERE id = 7 AND line > 0":                                                         "DuckDB Query|->  Index Scan using k_pkey on public.k|Index Cond: (id = 7)|Files: considered=2 opened=1|Rows: found=3",
		"SELECT v FROM k WHERE line = 1":                                                                    "DuckDB Query|->  Iceberg Scan on public.k|Files: considered=2 opened=2|Rows: live=600 suppressed=0",
		"SELECT v FROM k WHERE id > 120":                                                                    "DuckDB Query|->  Iceberg Scan on public.k|Files: considered=2 opened=1|Rows: live=300 suppressed=0",
		"SELECT v FROM lookup('k', ROW(7, 1))":                                                              "Index Scan using k_pkey on public.k|Key: (id integer, line bigint)|Keys: 1|Files: considered=2 opened=1|Rows: found=1",
		"SELECT v FROM lookup('k', 1, key_columns => ARRAY['line'])":                                        "Index Scan on public.k|Key: (line bigint)|Keys: 1|Files: considered=2 opened=2|Rows: found=200",
		"SELECT count(*) FROM lookup_many('k', ARRAY[ROW(7, 1), ROW(8, 1), NULL])":                          "DuckDB Query|->  Function Scan on lookup_many|Key: (id integer, line bigint)|Keys: 3|Files: considered=2 opened=1|Rows: found=2",
		"SELECT v FROM k WHERE id = 7 AND line = 1::bigint AND random() < 2":                                "DuckDB Query|->  " + one,
		"SELECT v FROM k WHERE id = 3 + 4 AND line = '1'":                                                   strings.Replace(one, "= 7", "= ...", 1),
		"SELECT v FROM k WHERE id = 7 AND line = 1::bigint UNION ALL SELECT 'x'":                            "DuckDB Query|->  " + one,
		"SELECT (SELECT v FROM k WHERE id = 7 AND line = 1::bigint), 1":                                     "DuckDB Query|->  " + one,
		"SELECT x FROM generate_series(1, 2) x WHERE x IN (SELECT line FROM k WHERE id = 7 AND line = '1')": "DuckDB Query|->  " + one,
	} {
		require.Equal(t, want, plan(sql), sql)
	}
	run(t, c, "PREPARE p(int, bigint[]) AS SELECT v FROM k WHERE id = $1 AND line = ANY($2)")
	require.Equal(t, "Index Scan using k_pkey on public.k|Index Cond: ((id = 7) AND (line = ANY (ARRAY['1'::bigint, '2'::bigint])))|Files: considered=2 opened=1|Rows: found=2",
		plan("EXECUTE p(7, '{1,2}')"))

	var out []struct {
		Plan struct {
			Type   string           `json:"Node Type"`
			Index  string           `json:"Index Name"`
			Cond   string           `json:"Index Cond"`
			Rows   int              `json:"Actual Rows"`
			Probes map[string]int64 `json:"Index Probes"`
		}
	}
	analyze := func(sql string) map[string]int64 {
		out = nil
		require.NoError(t, json.Unmarshal([]byte(rows(t, c, "EXPLAIN (ANALYZE, FORMAT JSON) "+sql)[0][0]), &out))
		require.Equal(t, 1, out[0].Plan.Rows)
		return out[0].Plan.Probes
	}
	n := analyze("SELECT v FROM k WHERE id = 7 AND line = 2")
	require.Equal(t, []string{"Index Scan", "k_pkey", "((id = 7) AND (line = 2))"}, []string{out[0].Plan.Type, out[0].Plan.Index, out[0].Plan.Cond})
	require.Equal(t, []int64{1, 0, 1, 0}, []int64{n["Keys"], n["Cached Keys"], n["Index Hits"], n["Needless Reads"]})
	require.Positive(t, n["Decoded Values"])
	n = analyze("SELECT v FROM k WHERE id = 7 AND line = 2")
	require.Equal(t, []int64{0, 1, 0, 0}, []int64{n["Keys"], n["Cached Keys"], n["Index Hits"], n["Decoded Values"]})
	n = analyze("SELECT max(v) FROM k WHERE id = 8 AND line = 2")
	require.Equal(t, []int64{1, 1}, []int64{n["Keys"], n["Index Hits"]})
	require.Positive(t, n["Decoded Values"])
	require.Nil(t, analyze("SELECT count(*) FROM generate_series(1, 2)"))
}
