package pgtype

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormat compares every type's name with format_type of PostgreSQL 15 (gen/format_type.sh).
func TestFormat(t *testing.T) {
	data, err := os.ReadFile("testdata/format_type.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Greater(t, len(lines), 200)
	for _, line := range lines {
		f := strings.Split(line, "\t")
		oid, err := strconv.ParseUint(f[0], 10, 32)
		require.NoError(t, err)
		typmod, err := strconv.ParseInt(f[1], 10, 32)
		require.NoError(t, err)
		require.Equal(t, f[2], Format(uint32(oid), int32(typmod)), line)
		require.Equal(t, f[3], FormatNoTypmod(uint32(oid)), line)
		if _, known := ByName(f[2]); !known && typmod < 0 && !strings.HasPrefix(f[2], `"`) {
			t.Errorf("ByName(%q) does not find what Format wrote", f[2])
		}
	}
}

func TestByName(t *testing.T) {
	for name, want := range map[string]uint32{
		"int": Int4, "bigint": Int8, "varchar": Varchar, "timestamptz": TimestampTZ, "timestamp with time zone": TimestampTZ,
		"character varying": Varchar, "int4[]": Int4Array, "_text": TextArray, "pg_catalog.bool": Bool, "double precision": Float8, "regclass": RegClass,
	} {
		got, ok := ByName(name)
		require.True(t, ok, name)
		require.Equal(t, want, got.OID, name)
	}
	for _, name := range []string{"", "[]", "nosuch", "int4[][]", "void[]"} {
		_, ok := ByName(name)
		require.False(t, ok, name)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string][2]int64{
		"varchar(20)":                    {int64(Varchar), 24},
		"numeric(10,2)":                  {int64(Numeric), 655366},
		"numeric(10)":                    {int64(Numeric), 655364},
		"numeric":                        {int64(Numeric), -1},
		"timestamp(3) without time zone": {int64(Timestamp), 3},
		"int2[]":                         {int64(Int2Array), -1},
		"bpchar(5)":                      {int64(BPChar), 9},
	} {
		oid, typmod, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]int64{int64(oid), int64(typmod)}, text)
	}
	for _, text := range []string{"varchar(", "varchar(x)", "nosuch(1)", "varchar(0)", "numeric(0)", "numeric(1,2,3)", "int4(3)", ")", "(", "[]"} {
		_, _, err := Parse(text)
		require.Error(t, err, text)
	}
}
