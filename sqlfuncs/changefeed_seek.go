package sqlfuncs

import (
	"context"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// changefeedSeek is changefeed_seek(name, position): all shards of a feed go to a place of the commit log ('now', 'earliest', 'seq:N', a
// timestamp), back or forth; windows in hand are fenced, and a lost feed lives again. It takes effect at once and returns the seq. Errors: 42704 no
// such feed, 72000 the position is no longer retained.
var changefeedSeek = &Function{
	Name: "changefeed_seek",
	Args: []Arg{
		{Name: "name", OID: pgtype.Text},
		{Name: "position", OID: pgtype.Any},
	},
	Returns: pgtype.Int8, Strict: true, Volatile: true, PerRow: true,
	Doc: "Moves a durable feed to a place of the commit log.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		if err := env.Writable("changefeed_seek()"); err != nil {
			return nil, err
		}
		f, err := feedNamed(env, args[0].Text)
		if err != nil {
			return nil, err
		}
		to, err := feedStart(ctx, env, f.Tables, args, 1)
		if err != nil {
			return nil, err
		}
		err = existingFeed(ctx, env, f.Name, func(f *catalog.Feed, _ time.Time) (*catalog.Feed, error) { return f.Seek(to), nil })
		if err != nil {
			return nil, err
		}
		return &Value{OID: pgtype.Int8, Text: strconv.FormatUint(to, 10)}, nil
	},
}
