package sqlfuncs

import (
	"context"
	"strings"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// CommitsChannel is the channel on which every commit is told.
const CommitsChannel = "skade_commits"

// ChannelOf is the channel of one table's commits. It is made of the table's key, so that a rename keeps its listeners.
func ChannelOf(key catalog.TableKey) string {
	return CommitsChannel + "_" + strings.ReplaceAll(string(key), "-", "")
}

// commitChannel is commit_channel(tbl): the name to LISTEN on for one table's commits.
var commitChannel = &Function{
	Name: "commit_channel", Args: []Arg{{Name: "tbl", OID: pgtype.Text}}, Returns: pgtype.Text, Strict: true, PerRow: true,
	Doc: "The channel on which the commits of one table are notified; it stays when the table is renamed.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		ident, err := tableArg(env, "commit_channel", args)
		if err != nil {
			return nil, err
		}
		key, err := env.key(ctx, ident)
		if err != nil {
			return nil, err
		}
		return &Value{OID: pgtype.Text, Text: ChannelOf(key)}, nil
	},
}
