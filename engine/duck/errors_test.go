package duck

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// TestErrors compares SQLSTATE and wording with PostgreSQL 15's for the same mistake.
func TestErrors(t *testing.T) {
	in, err := os.ReadFile("testdata/errors.txt")
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/errors.golden")
	require.NoError(t, err)
	want := map[string][]string{}
	for line := range strings.Lines(string(golden)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		want[f[0]] = f
	}
	db := openTest(t, Options{})
	c := connTest(t, db)
	for line := range strings.Lines(string(in)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		t.Run(f[0], func(t *testing.T) {
			_, err := rowsOf(c, f[1], request{})
			e := pgerr.As(err)
			require.NotNil(t, e, "%v", err)
			w := want[f[0]]
			require.Len(t, w, 3, "run gen/errors.sh")
			require.Equal(t, w[1], string(e.Code), "%v", err)
			if f[3] == "m" {
				require.Equal(t, strings.ReplaceAll(w[2], `\\`, `\`), e.Message, "%v", err)
			}
			noLeak(t, e)
		})
	}
}

// noLeak holds D6: nothing of the engine's language in what a client sees.
func noLeak(t *testing.T, e *pgerr.Error) {
	t.Helper()
	seen := e.Message + e.Detail + e.Hint
	for _, w := range []string{"Did you mean", "Candidate", "Error:", "DuckDB", "duckdb", "VARCHAR", "INT32", "INT64", "Binder", "Catalog", "skade_", "exception"} {
		require.NotContains(t, seen, w)
	}
}

// TestErrorsOfSQL: SQL of ours raises errors by text.
func TestErrorsOfSQL(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	_, err := rowsOf(c, "SELECT error('skade:22012 division by zero')", request{})
	require.Equal(t, pgerr.DivisionByZero, pgerr.CodeOf(err))
	require.Equal(t, "division by zero", pgerr.As(err).Message)
	_, err = rowsOf(c, "SELECT CASE WHEN i > 3 THEN error('skade:22023 bad: ' || i) ELSE 'x' END FROM range(5) t(i)", request{})
	require.Equal(t, "bad: 4", pgerr.As(err).Message)
}

// TestErrorsUnknown: what no rule knows is still an error without engine text.
func TestErrorsUnknown(t *testing.T) {
	for _, text := range []string{"", "Strange Error: whatever", `{"exception_type":"Fancy","exception_message":"Did you mean"}`, "skade#99999;", "{bad json"} {
		e := MapError(parseEngineError(text))
		require.NotEmpty(t, e.Code)
		noLeak(t, e)
	}
	require.Nil(t, MapError(nil))
	require.Equal(t, pgerr.QueryCanceled, MapError(context.Canceled).Code)
	require.Equal(t, pgerr.QueryCanceled, MapError(context.DeadlineExceeded).Code)
}

// TestOutOfMemory: a statement beyond the limits fails with 54000, and the next one runs.
func TestOutOfMemory(t *testing.T) {
	db := openTest(t, Options{MemoryLimit: 64 << 20, TempDir: t.TempDir(), TempLimit: 4 << 20})
	c := connTest(t, db)
	_, err := rowsOf(c, "SELECT length(string_agg(repeat('x', 1000), '')) FROM range(1000000)", request{})
	require.Equal(t, pgerr.ProgramLimitExceeded, pgerr.CodeOf(err), "%v", err)
	require.NotEmpty(t, pgerr.As(err).Hint)
	noLeak(t, pgerr.As(err))
	require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
	full := MapError(parseEngineError(`{"exception_type":"Out of Memory","exception_message":"failed to offload data block of size 256.0 KiB (1.0 MiB/1.0 MiB used).\nThis limit was set by the 'max_temp_directory_size' setting."}`))
	require.Equal(t, pgerr.ProgramLimitExceeded, full.Code)
	require.Contains(t, full.Message, "temporary file")
}
