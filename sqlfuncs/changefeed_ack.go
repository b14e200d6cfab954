package sqlfuncs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// changefeedAck is changefeed_ack(name, window_id, lease_token): the window is done with. It happens with the transaction: in one
// BEGIN … COMMIT with the consumer's writes to tables here both happen or neither, which is exactly-once; outside it is at-least-once. It
// returns the seq up to which the shard is acknowledged. Error: 40001 when the window was acknowledged, or leased again, meanwhile.
var changefeedAck = &Function{
	Name: "changefeed_ack",
	Args: []Arg{
		{Name: "name", OID: pgtype.Text},
		{Name: "window_id", OID: pgtype.Int8},
		{Name: "lease_token", OID: pgtype.Text},
	},
	Returns: pgtype.Int8, Strict: true, Volatile: true, PerRow: true,
	Doc:  "Acknowledges a window of a durable feed, atomically with the transaction's writes.",
	Call: ackFeed,
}

func ackFeed(_ context.Context, env *Env, args []*Value) (*Value, error) {
	name := args[0].Text
	window, err := strconv.ParseUint(args[1].Text, 10, 64)
	if err != nil {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "malformed window_id: \"%s\"", args[1].Text)
	}
	ack := func(f *catalog.Feed, _ time.Time) (*catalog.Feed, error) {
		if f == nil {
			return nil, noFeed(name)
		}
		g, err := f.Acknowledge(window, args[2].Text)
		if errors.Is(err, catalog.ErrFeedFenced) {
			return nil, pgerr.Newf(pgerr.SerializationFailure, "window %d of feed \"%s\" is not yours any more", window, name).
				WithDetail("It was acknowledged, or its lease ended and it was leased again.").
				WithHint("Roll back what you did for it and call changefeed_window again.")
		}
		return g, err
	}
	now, err := feedNamed(env, name)
	if err != nil {
		return nil, err
	}
	then, err := ack(now, time.Time{}) // a stale window is told here, not only at COMMIT
	if err != nil {
		return nil, err
	}
	tx, err := env.Write("changefeed_ack")
	if err != nil {
		return nil, err
	}
	// A query over the window's changes may ask for each of its rows.
	tx.Also(catalog.ChangeFeed{Name: name, Change: ack, Once: args[1].Text + " " + args[2].Text})
	for i, s := range now.Shards {
		if s.Position != then.Shards[i].Position {
			return &Value{OID: pgtype.Int8, Text: strconv.FormatUint(then.Shards[i].Position, 10)}, nil
		}
	}
	return &Value{OID: pgtype.Int8, Null: true}, nil
}
