package pgcopy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// parseOptions reads the WITH (…) lines of testdata.
func parseOptions(t *testing.T, line string, names []string) Options {
	t.Helper()
	o := Text()
	if strings.Contains(line, "FORMAT csv") {
		o = CSV()
	}
	value := func(name string) (string, bool) {
		m := regexp.MustCompile(name + ` '((?:[^']|'')*)'`).FindStringSubmatch(line)
		if m == nil {
			return "", false
		}
		return strings.ReplaceAll(m[1], "''", "'"), true
	}
	if v, ok := value("DELIMITER"); ok {
		o.Delimiter = v[0]
	}
	if v, ok := value("NULL"); ok {
		o.Null = v
	}
	if v, ok := value("QUOTE"); ok {
		o.Quote, o.Escape = v[0], v[0]
	}
	if v, ok := value("ESCAPE"); ok {
		o.Escape = v[0]
	}
	o.Header, o.Match = strings.Contains(line, "HEADER"), strings.Contains(line, "HEADER match")
	column := func(name string) []bool {
		m := regexp.MustCompile(name + ` \((\w+)\)`).FindStringSubmatch(line)
		if m == nil {
			return nil
		}
		out := make([]bool, len(names))
		for i, n := range names {
			out[i] = n == m[1]
		}
		return out
	}
	o.ForceQuote, o.ForceNotNull, o.ForceNull = column("FORCE_QUOTE"), column("FORCE_NOT_NULL"), column("FORCE_NULL")
	return o
}

// outRows are the rows of copy_out in gen/copy.sh; nil is NULL.
func outRows() [][]any {
	return [][]any{
		{"1", "plain", ""}, {"2", nil, "x"}, {"3", "tab\there", "new\nline"}, {"4", `back\slash`, "cr\rhere"},
		{"5", `comma, quote"`, "NULL"}, {"6", "\b\fv", `\N`}, {"7", `\.`, "é漢"}, {"8", " space ", "|pipe|"}, {"9", `"`, `""`},
	}
}

func dataRow(vals []any) []byte {
	msg, start := pgenc.BeginDataRow(nil, len(vals))
	for _, v := range vals {
		if v == nil {
			msg = pgenc.AppendNull(msg)
		} else {
			msg = pgenc.AppendStringField(msg, v.(string))
		}
	}
	return pgenc.EndDataRow(msg, start)
}

// TestWriterIsPostgreSQL: byte for byte what PostgreSQL 15 wrote, and it reads back as the same values.
func TestWriterIsPostgreSQL(t *testing.T) {
	files, err := filepath.Glob("testdata/out-*.txt")
	require.NoError(t, err)
	require.Len(t, files, 6)
	names := []string{"n", "a", "b"}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		line, want, _ := strings.Cut(string(data), "\n")
		o := parseOptions(t, line, names)
		w := NewWriter(o, names)
		got := w.AppendHeader(nil)
		for _, r := range outRows() {
			got = w.AppendDataRows(got, dataRow(r))
		}
		require.Equal(t, want, string(got), line)

		rd := NewReader(strings.NewReader(want), o, "t", names)
		for _, r := range outRows() {
			fields, err := rd.Next()
			require.NoError(t, err, line)
			for i, v := range r {
				require.Equal(t, v == nil, fields[i].Null, "%s: %v", line, r)
				if v != nil {
					require.Equal(t, v, string(fields[i].Data), line)
				}
			}
		}
		_, err = rd.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}

// readAll reads rows of (id int, v text), as the table of gen/copy.sh has.
func readAll(src io.Reader, o Options) ([][]any, error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	app, err := NewAppender("copy_in", []Column{{Name: "id", OID: pgtype.Int4, Mod: -1}, {Name: "v", OID: pgtype.Text, Mod: -1, Source: 1}}, schema, pgenc.Style{})
	if err != nil {
		return nil, err
	}
	defer app.Release()
	rd := NewReader(src, o, "copy_in", []string{"id", "v"})
	for {
		fields, err := rd.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := app.Append(fields, rd.Line()); err != nil {
			return nil, err
		}
	}
	rec := app.Take()
	defer rec.Release()
	out := [][]any{}
	for i := range int(rec.NumRows()) {
		row := []any{float64(rec.Column(0).(*array.Int32).Value(i)), nil}
		if v := rec.Column(1).(*array.String); v.IsValid(i) {
			row[1] = v.Value(i)
		}
		out = append(out, row)
	}
	return out, nil
}

// TestReaderIsPostgreSQL: the rows PostgreSQL 15 read from the same bytes, or its error with context, whatever the pieces they come in.
func TestReaderIsPostgreSQL(t *testing.T) {
	files, err := filepath.Glob("testdata/in-*.data")
	require.NoError(t, err)
	require.Len(t, files, 22)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		answer, err := os.ReadFile(strings.TrimSuffix(f, "data") + "txt")
		require.NoError(t, err)
		line, want, _ := strings.Cut(strings.TrimSuffix(string(answer), "\n"), "\n")
		if strings.Contains(line, `ESCAPE '\\'`) { // refused when the options are read
			continue
		}
		o := parseOptions(t, line, []string{"id", "v"})
		for name, src := range map[string]io.Reader{"whole": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
			got, err := readAll(src, o)
			if !strings.HasPrefix(want, "[") {
				code, rest, _ := strings.Cut(want, ": ")
				message, context, _ := strings.Cut(rest, "\n")
				e := pgerr.As(err)
				require.NotNil(t, e, "%s %s: %v", f, name, err)
				where, _, _ := strings.Cut(e.Where, "\n") // testdata keeps the context's first line
				require.Equal(t, []string{code, message, context}, []string{string(e.Code), e.Message, where}, "%s %s", f, name)
				continue
			}
			require.NoError(t, err, "%s %s", f, name)
			var rows [][]any
			require.NoError(t, json.Unmarshal([]byte(want), &rows))
			require.Equal(t, rows, got, "%s %s", f, name)
		}
	}
}

// FuzzReader: no bytes make the reader panic or loop, and fields stay inside the row.
func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("testdata/in-*.data")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, csv bool) {
		o := Text()
		if csv {
			o = CSV()
		}
		rows, err := readAll(iotest.HalfReader(bytes.NewReader(data)), o)
		if err == nil && len(rows) > len(data) {
			t.Fatalf("%d rows from %d bytes", len(rows), len(data))
		}
	})
}
