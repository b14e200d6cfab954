package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// TestEverySentinelHasASQLState: an exported sentinel of a core that MapError does not know would reach the client as XX000.
func TestEverySentinelHasASQLState(t *testing.T) {
	table, err := os.ReadFile("errors.go")
	require.NoError(t, err)
	decl := regexp.MustCompile(`(?m)^\t(Err[A-Z]\w*)\s+=\s*(.*)$`)
	// Not errors of a statement: what a library's caller does wrong, or what never leaves its package.
	internal := map[string]string{
		"parquetio.ErrPosition":       "a caller's mistake",
		"parquetio.ErrClosed":         "a caller's mistake",
		"keyindex.ErrNullKey":         "NOT NULL is checked before",
		"keyindex.ErrUnsupportedType": "refused at CREATE TABLE",
		"keyindex.ErrTooManyRows":     "files are cut before",
		"keyindex.ErrVersion":         "the index is built again",
	}
	n := 0
	for _, pkg := range []string{"catalog", "warehouse", "liveset", "changelog", "lookup", "internal/parquetio", "internal/keyindex"} {
		src, err := os.ReadFile(filepath.Join("..", pkg, "errors.go"))
		require.NoError(t, err)
		for _, m := range decl.FindAllStringSubmatch(string(src), -1) {
			n++
			name := filepath.Base(pkg) + "." + m[1]
			if internal[name] != "" || strings.HasPrefix(m[2], "parquetio.") && strings.Contains(string(table), m[2]) {
				continue
			}
			if !strings.Contains(string(table), "{"+name+",") {
				t.Errorf("%s has no SQLSTATE in sqlstates", name)
			}
		}
	}
	require.Greater(t, n, 30)
}

func TestMapError(t *testing.T) {
	for _, c := range []struct {
		err  error
		code pgerr.Code
	}{
		{fmt.Errorf("commit: %w", catalog.ErrConflict), "40001"},
		{fmt.Errorf("commit: %w", catalog.ErrUnknownOutcome), "40003"},
		{&warehouse.DuplicateKeyError{Table: "t", Constraint: "t_pkey", Columns: []string{"id"}, Values: []string{"1"}}, "23505"},
		{&warehouse.NotNullError{Table: "t", Column: "c"}, "23502"},
		{fmt.Errorf("read: %w", &parquetio.TypeError{Path: "/w/warehouse/s/t/data/f.parquet", FieldID: 2, To: "int"}), "XX001"},
		{&changelog.Error{Err: changelog.ErrExpired, Message: "m", Hint: "h"}, "72000"},
		{pgerr.New("42P01", "x"), "42P01"},
		{errors.New("anything"), "XX000"},
	} {
		require.Equal(t, c.code, pgerr.CodeOf(MapError(c.err)), "%v", c.err)
	}
}
