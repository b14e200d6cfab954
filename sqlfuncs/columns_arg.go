package sqlfuncs

import (
	"slices"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// columnsArg reads an argument that names columns, in place of the identifier fields; nil for NULL.
func columnsArg(arg string, args []*Value, i int) ([]string, error) {
	if !given(args, i) {
		return nil, nil
	}
	var names []string
	for _, v := range args[i].Array {
		switch {
		case v.Null:
			return nil, pgerr.Newf(pgerr.NullValueNotAllowed, "%s must not hold null", arg)
		case v.Array != nil:
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "%s must be an array of one dimension", arg)
		case slices.Contains(names, v.Text):
			return nil, pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" appears twice in %s", v.Text, arg)
		}
		names = append(names, v.Text)
	}
	if names == nil {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "%s names no column", arg).WithHint("Leave it out, or give NULL, for the identifier fields of the table.")
	}
	return names, nil
}
