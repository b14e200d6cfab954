package sqlfuncs

import (
	"context"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// changefeedDrop is changefeed_drop(name): the feed, its positions and its pins go, at once. Error: 42704 no such feed.
var changefeedDrop = &Function{
	Name: "changefeed_drop", Args: []Arg{{Name: "name", OID: pgtype.Text}},
	Returns: pgtype.Void, Strict: true, Volatile: true, PerRow: true,
	Doc: "Drops a durable feed.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		if err := env.Writable("changefeed_drop()"); err != nil {
			return nil, err
		}
		err := existingFeed(ctx, env, args[0].Text, func(*catalog.Feed, time.Time) (*catalog.Feed, error) { return nil, nil })
		return &Value{OID: pgtype.Text}, err
	},
}
