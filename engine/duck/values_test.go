package duck

import (
	"context"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type valueCase struct {
	name, expr string
	override   uint32
	oid        uint32
	text       *string
	binary     []byte
}

func unquoteCopy(s string) *string {
	if s == `\N` {
		return nil
	}
	s = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
	return &s
}

func valueCases(t *testing.T) []valueCase {
	t.Helper()
	in, err := os.ReadFile("testdata/values.txt")
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/values.golden")
	require.NoError(t, err)
	want := map[string][]string{}
	for line := range strings.Lines(string(golden)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		want[f[0]] = f
	}
	var cases []valueCase
	for line := range strings.Lines(string(in)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 4, line)
		w := want[f[0]]
		require.Len(t, w, 4, "run gen/values.sh: %s", f[0])
		o, err := strconv.ParseUint(f[3], 10, 32)
		require.NoError(t, err)
		oid, err := strconv.ParseUint(w[1], 10, 32)
		require.NoError(t, err)
		c := valueCase{name: f[0], expr: f[1], override: uint32(o), oid: uint32(oid), text: unquoteCopy(w[2])}
		if w[3] != `\N` {
			c.binary, err = hex.DecodeString(w[3])
			require.NoError(t, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// TestValues compares every type's text and binary form with what PostgreSQL 15 sends.
func TestValues(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	oslo, err := time.LoadLocation("Europe/Oslo")
	require.NoError(t, err)
	for _, v := range valueCases(t) {
		t.Run(v.name, func(t *testing.T) {
			s, err := c.Prepare(context.Background(), "SELECT "+v.expr)
			require.NoError(t, err)
			oid := s.Columns()[0].TypeOID
			s.Close()
			override := v.override
			if strings.HasPrefix(v.name, "o_") {
				override = v.oid
			} else {
				require.Equal(t, v.oid, oid, "type OID")
			}
			// As a constant and as a vector of rows, of which some are NULL: both validity paths.
			sqls := []string{"SELECT " + v.expr, "SELECT CASE WHEN i % 3 = 1 THEN NULL ELSE " + v.expr + " END FROM range(5000) t(i)"}
			if v.name == "arr_fixed" {
				sqls = sqls[:1] // CASE does not take fixed-size arrays
			}
			for _, sql := range sqls {
				for format := range int16(2) {
					rows, err := rowsOf(c, sql, request{formats: []int16{format}, types: []uint32{override}, tz: oslo})
					require.NoError(t, err)
					for i, r := range rows {
						switch {
						case v.text == nil || len(rows) > 1 && i%3 == 1:
							require.Nil(t, r[0])
						case format == 0:
							require.Equal(t, *v.text, string(r[0]))
						default:
							require.Equal(t, hex.EncodeToString(v.binary), hex.EncodeToString(r[0]), "row %d", i)
						}
					}
				}
			}
		})
	}
}
