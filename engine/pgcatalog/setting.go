package pgcatalog

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// settingFunctions read settings by a name that is not a constant; constants are the engine's.
var settingFunctions = []function{
	{name: "current_setting", args: []kind{kText}, result: kText, run: func(sc *scope, a []any) (any, error) { return sc.setting(a[0].(string), false) }},
	{name: "current_setting", args: []kind{kText, kBool}, result: kText, run: func(sc *scope, a []any) (any, error) { return sc.setting(a[0].(string), a[1].(bool)) }},
}

func (sc *scope) setting(name string, missingOK bool) (any, error) {
	if sc.session != nil {
		for _, g := range sc.session.Settings() {
			if strings.EqualFold(g.Name, name) {
				return withUnit(g.Value, g.Unit, g.VarType), nil
			}
		}
	}
	if missingOK {
		return nil, nil
	}
	return nil, pgerr.Newf(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
}

// units are what SHOW writes a number in, the largest first: the name and how many of the base unit it holds.
// Source: memory_unit_conversion_table and time_unit_conversion_table in PostgreSQL 15, guc.c.
var units = map[string][]struct {
	name string
	n    int64
}{
	"B":   {{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}},
	"kB":  {{"TB", 1 << 30}, {"GB", 1 << 20}, {"MB", 1 << 10}, {"kB", 1}},
	"MB":  {{"TB", 1 << 20}, {"GB", 1 << 10}, {"MB", 1}},
	"8kB": {{"TB", 1 << 27}, {"GB", 1 << 17}, {"MB", 1 << 7}},
	"ms":  {{"d", 86_400_000}, {"h", 3_600_000}, {"min", 60_000}, {"s", 1000}, {"ms", 1}},
	"s":   {{"d", 86_400}, {"h", 3600}, {"min", 60}, {"s", 1}},
	"min": {{"d", 1440}, {"h", 60}, {"min", 1}},
}

// withUnit writes a setting as SHOW does: in the largest unit that divides it; 0 and negative numbers have none.
func withUnit(value, unit, vartype string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || vartype != "integer" {
		return value
	}
	for _, u := range units[unit] {
		if n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	if unit == "8kB" {
		return strconv.FormatInt(n*8, 10) + "kB"
	}
	return value
}
