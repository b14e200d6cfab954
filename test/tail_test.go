package test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

// skade-pg tail prints what was there and what comes, once and in order, follows renames and new columns, and ends with the table.
func TestTail(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE tl (id int PRIMARY KEY, v text, n numeric(8,2), j jsonb, b bool, f float8) WITH (format_version = 3)")
	run(t, c, `INSERT INTO tl VALUES (1, 'a <b> "q"', 1.50, '{"a": [1]}', true, 'NaN'), (2, NULL, NULL, NULL, NULL, 0.1)`)
	for format, flags := range map[string][]string{"json": {"--json"}, "text": {"--color", "never"}, "color": {"--color", "always"}} {
		var out, errs bytes.Buffer
		require.Zero(t, cli.Main(append([]string{"tail", "tl", "--url", g.srv.URL(), "--from", "earliest", "--follow=false"}, flags...), &out, &errs), errs.String())
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		require.Len(t, lines, 2, format)
		switch format {
		case "json":
			require.Regexp(t, `^\{"seq":"\d+","ordinal":0,"row":0,"ts":"20[^"]+","snapshot":"\d+","op":"INSERT","after":\{"id":1,"v":"a <b> \\"q\\"","n":1.50,"j":\{"a":\[1\]\},"b":true,"f":"NaN"\}\}$`, lines[0])
			require.Contains(t, lines[1], `"after":{"id":2,"v":null,"n":null,"j":null,"b":null,"f":0.1}`)
		case "text":
			require.Regexp(t, `^20\S+ \S+  \d+  INSERT  id=2  v=NULL  n=NULL  j=NULL  b=NULL  f=0.1$`, lines[1])
		case "color":
			require.Contains(t, lines[1], "\x1b[32mINSERT\x1b[0m")
		}
	}

	from := one(t, c, "SELECT 'seq:' || current_commit_seq()")
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- cli.Main([]string{"tail", "public.tl", "--url", g.srv.URL(), "--from", from, "--json"}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return one(t, c, "SELECT count(*) FROM pg_stat_activity") == "2" }, 30*time.Second, 10*time.Millisecond)
	run(t, c, "UPDATE tl SET v = 'z' WHERE id = 1")
	run(t, c, "ALTER TABLE tl ADD COLUMN more int DEFAULT 7")
	run(t, c, "ALTER TABLE tl RENAME TO renamed")
	run(t, c, "DELETE FROM renamed WHERE id = 2")
	run(t, c, "VACUUM FULL renamed")
	run(t, c, "INSERT INTO renamed (id) VALUES (3)")
	seq := one(t, c, "SELECT current_commit_seq()")
	// Its last window is read once its session has nothing to do.
	require.Eventually(t, func() bool {
		return one(t, c, "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND state_change < now() - interval '300 ms'") == "1"
	}, 30*time.Second, 10*time.Millisecond)
	run(t, c, "DROP TABLE renamed")
	require.Equal(t, 1, <-code)
	require.Contains(t, errs.String(), "42P01")
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var ch struct {
			Seq, Op       string
			Before, After map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &ch), line)
		if ch.Op != "INSERT" {
			delete(ch.After, "more") // it is there when the window that shows the update ends behind ALTER TABLE
		}
		text, err := json.Marshal([]any{ch.Op, ch.Before["id"], ch.Before["v"], ch.After["id"], ch.After["v"], ch.After["more"]})
		require.NoError(t, err)
		got = append(got, string(text))
		require.LessOrEqual(t, len(ch.Seq), len(seq))
	}
	require.Equal(t, []string{
		`["UPDATE",1,"a \u003cb\u003e \"q\"",1,"z",null]`,
		`["DELETE",2,null,null,null,null]`,
		`["INSERT",null,null,3,null,7]`,
	}, got)

	for _, args := range [][]string{{"tail"}, {"tail", "a", "b"}, {"tail", "x", "--color", "red"}} {
		require.Equal(t, 2, cli.Main(args, &out, &errs), args)
	}
	errs.Reset()
	require.Equal(t, 1, cli.Main([]string{"tail", "none", "--url", g.srv.URL()}, &out, &errs))
	require.Contains(t, errs.String(), "42P01")
}
