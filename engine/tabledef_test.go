package engine

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

func TestTableDefRoundTrip(t *testing.T) {
	d := readTableDef(nil)
	d.setColumn(1, columnDef{Identity: "always", Sequence: "public.t_id_seq"})
	d.setColumn(2, columnDef{Default: "now()"})
	d.setColumn(3, columnDef{Generated: "a * 2"})
	d.addCheck(checkDef{Name: "z", Expr: "a > 0", NotValid: true})
	d.addCheck(checkDef{Name: "b.c", Expr: "a < 9", NoInherit: true})
	d.unique = true
	again := readTableDef(d.properties())
	require.Equal(t, d, again)
	require.Equal(t, "b.c", again.checks[0].Name, "by name")
	require.Nil(t, d.updates(d.properties()), "nothing changed")

	was := d.properties()
	was[propVersion] = "4"
	require.True(t, d.dropCheck("z"))
	require.False(t, d.dropCheck("z"))
	d.setColumn(2, columnDef{})
	up := d.updates(was)
	require.Len(t, up, 2)
	require.Equal(t, table.NewSetPropertiesUpdate(iceberg.Properties{propVersion: "5"}), up[0])
	require.Equal(t, table.NewRemovePropertiesUpdate([]string{"skade.check-flags.z", "skade.check.z", "skade.default.2"}), up[1])
	require.Empty(t, readTableDef(iceberg.Properties{"skade.default.x": "1", "skade.other": "2"}).columns, "what is not ours is left alone")
}

// TestObjectNames are PostgreSQL's makeObjectName.
func TestObjectNames(t *testing.T) {
	taken := map[string]bool{"t_c_check": true, "t_c_check1": true}
	require.Equal(t, "t_c_check2", chooseName("t", "c", "check", func(n string) bool { return taken[n] }))
	require.Equal(t, "t_check", chooseName("t", "", "check", func(n string) bool { return taken[n] }))
	long := strings.Repeat("x", 60)
	require.Equal(t, strings.Repeat("x", 29)+"_"+strings.Repeat("x", 29)+"_seq", objectName(long, long, "seq"))
	require.Equal(t, strings.Repeat("x", 58)+"_pkey", objectName(strings.Repeat("x", 63), "", "pkey"))
	require.LessOrEqual(t, len(objectName(strings.Repeat("ä", 31), "b", "check")), 63)
}
