package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// vacuumOption reads one option of VACUUM or ANALYZE. Those about PostgreSQL's heap and indexes are accepted and mean nothing here.
func (az *analyzer) vacuumOption(v *Vacuum, o *pg_query.DefElem) {
	switch name := o.GetDefname(); name {
	case "verbose":
		v.Verbose = az.optionBool(o)
	case "full":
		v.Full = az.optionBool(o)
	case "analyze", "freeze", "disable_page_skipping", "skip_locked", "index_cleanup", "process_toast", "truncate", "parallel":
	default:
		command := "VACUUM"
		if v.Analyze {
			command = "ANALYZE"
		}
		az.fail(pgerr.SyntaxError, o.GetLocation(), "unrecognized %s option \"%s\"", command, name)
	}
}

// optionBool is an option's value as defGetBoolean reads it: true when there is none.
func (az *analyzer) optionBool(o *pg_query.DefElem) bool {
	arg := o.GetArg()
	if arg == nil {
		return true
	}
	text := arg.GetString_().GetSval()
	if i := arg.GetInteger(); i != nil {
		text = map[int32]string{0: "off", 1: "on"}[i.GetIval()]
	} else if b := arg.GetBoolean(); b != nil {
		return b.GetBoolval()
	}
	switch strings.ToLower(text) {
	case "true", "on":
		return true
	case "false", "off":
		return false
	}
	az.fail(pgerr.SyntaxError, o.GetLocation(), "%s requires a Boolean value", o.GetDefname())
	return false
}
