package pgenc

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// value is one line of testdata/values.tsv.gz, written by PostgreSQL 15 (gen/values.sh).
type value struct {
	zone, ds, ivs, typ, in          string
	text, bin, code, msg, det, hint string
	null                            bool // the cast failed
}

func (v value) String() string {
	return strings.Join([]string{v.typ, v.in, v.zone, v.ds, v.ivs}, " | ")
}

func (v value) style(t testing.TB) Style {
	loc, err := LoadZone(v.zone)
	require.NoError(t, err)
	s := Style{Loc: loc}
	style, order, _ := strings.Cut(v.ds, ", ")
	s.Date = map[string]DateStyle{"ISO": ISO, "SQL": SQL, "Postgres": Postgres, "German": German}[style]
	s.Order = map[string]DateOrder{"MDY": MDY, "DMY": DMY, "YMD": YMD}[order]
	s.Interval = map[string]IntervalStyle{
		"postgres": IntervalPostgres, "postgres_verbose": IntervalPostgresVerbose, "sql_standard": IntervalSQLStandard, "iso_8601": IntervalISO8601,
	}[v.ivs]
	return s
}

var unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b", `\f`, "\f", `\v`, "\v")

func readValues(t testing.TB) []value {
	f, err := os.Open("testdata/values.tsv.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var out []value
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		c := strings.Split(sc.Text(), "\t")
		require.Len(t, c, 11)
		null := c[5] == `\N`
		for i := range c {
			if c[i] == `\N` {
				c[i] = ""
			} else {
				c[i] = unescape.Replace(c[i])
			}
		}
		out = append(out, value{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], null})
	}
	require.Greater(t, len(out), 8000)
	return out
}

// TestValues is E1 and E3: text and binary output equal PostgreSQL's, errors have its words, and decoding reads both back.
func TestValues(t *testing.T) {
	failures := 0
	for _, v := range readValues(t) {
		if failures > 60 {
			t.Fatal("too many failures")
		}
		if msg := checkValue(t, v); msg != "" {
			failures++
			t.Errorf("%s: %s", v, msg)
		}
	}
}

func checkValue(t *testing.T, v value) string {
	s := v.style(t)
	typ, ok := pgtype.ByName(v.typ)
	require.True(t, ok, v.typ)
	got, err := Decode(typ.OID, Text, []byte(v.in), s)
	if v.null {
		return checkError(v, got, err)
	}
	if err != nil {
		return "want " + v.text + ", error " + err.Error()
	}
	text, err := Append(nil, typ.OID, Text, got, s)
	if err != nil {
		return err.Error()
	}
	if string(text) != v.text {
		return "text " + string(text) + ", want " + v.text
	}
	bin, err := Append(nil, typ.OID, Binary, got, s)
	if err != nil {
		return err.Error()
	}
	if hex.EncodeToString(bin) != v.bin {
		return "binary " + hex.EncodeToString(bin) + ", want " + v.bin
	}
	back, err := Decode(typ.OID, Binary, bin, s)
	if err != nil {
		return "decode binary: " + err.Error()
	}
	if text, _ = Append(nil, typ.OID, Text, back, s); string(text) != v.text {
		return "text after binary " + string(text) + ", want " + v.text
	}
	return ""
}

func checkError(v value, got any, err error) string {
	if err == nil {
		text, _ := Append(nil, pgtype.Text, Text, got, Style{})
		return "got " + string(text) + ", want error " + v.code + " " + v.msg
	}
	e := pgerr.As(err)
	if e == nil {
		return "no SQLSTATE: " + err.Error()
	}
	if string(e.Code) != v.code || e.Message != v.msg {
		return "error " + err.Error() + ", want " + v.code + " " + v.msg
	}
	if e.Detail != v.det || e.Hint != v.hint {
		return "detail/hint " + e.Detail + " / " + e.Hint + ", want " + v.det + " / " + v.hint
	}
	return ""
}
