package sqlfuncs

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// changefeedsView is skade.changefeeds: one row for each shard of each durable feed. pending_since is the time of the oldest commit that is
// not acknowledged: what it brought is pinned for max_pin from then on.
var changefeedsView = &View{
	Name: "changefeeds",
	Doc:  "The durable feeds and how far their consumers have come.",
	Columns: []Column{
		{"name", pgtype.Text, -1},
		{"shard", pgtype.Int4, -1},
		{"shards", pgtype.Int4, -1},
		{"state", pgtype.Text, -1},
		{"tables", pgtype.TextArray, -1},
		{"position", pgtype.Int8, -1},
		{"lag_commits", pgtype.Int8, -1},
		{"pending_since", pgtype.TimestampTZ, -1},
		{"window_id", pgtype.Int8, -1},
		{"to_seq", pgtype.Int8, -1},
		{"leased_until", pgtype.TimestampTZ, -1},
		{"start_seq", pgtype.Int8, -1},
		{"max_pin", pgtype.Interval, -1},
		{"created_at", pgtype.TimestampTZ, -1},
	},
}

func init() { changefeedsView.Open = openChangefeeds }

func openChangefeeds(_ context.Context, env *Env) (*Rows, error) {
	return oneBatch(arrowSchema(changefeedsView.Columns), func(ctx context.Context, b *array.RecordBuilder) error {
		now, head := time.Now(), env.Catalog.CommitSeq()
		for f := range env.Catalog.Feeds() {
			for i := range f.Shards {
				if err := appendFeed(ctx, env, b, f, i, now, head); err != nil {
					return err
				}
			}
		}
		return nil
	}), nil
}

func appendFeed(ctx context.Context, env *Env, b *array.RecordBuilder, f *catalog.Feed, shard int, now time.Time, head uint64) error {
	row, s := rowBuilder{b: b}, f.Shards[shard]
	row.text(f.Name)
	row.int4(int32(shard))
	row.int4(int32(len(f.Shards)))
	switch {
	case f.Lost:
		row.text("lost")
	case s.Lease != nil && now.Before(s.Lease.Expires):
		row.text("leased")
	default:
		row.text("idle")
	}
	if f.Tables == nil {
		row.nulls(1)
	} else {
		row.texts(feedTables(env, f.Tables))
	}
	row.int8(int64(s.Position))
	row.int8(int64(head - min(head, s.Position)))
	if since, _, err := PendingSince(ctx, env.Catalog, f, s.Position); err != nil || since.IsZero() {
		row.nulls(1) // an error: the log does not reach back to it
	} else {
		row.time(since.UnixMicro())
	}
	if s.Lease == nil {
		row.nulls(3)
	} else {
		row.int8(int64(s.Lease.Window))
		row.int8(int64(s.Lease.To))
		row.time(s.Lease.Expires.UnixMicro())
	}
	row.int8(int64(f.Start))
	const day = 24 * time.Hour
	row.text(string(pgenc.AppendIntervalISO(nil, pgenc.IntervalValue{Days: int32(f.MaxPin / day), Micros: (f.MaxPin % day).Microseconds()})))
	row.time(f.Created.UnixMicro())
	return nil
}

// PendingSince is the time of the oldest commit behind a seq that a feed tells of; zero when there is none up to the seq that it returns.
func PendingSince(ctx context.Context, c *catalog.Catalog, f *catalog.Feed, after uint64) (since time.Time, upTo uint64, err error) {
	for {
		records, err := c.CommitsSince(ctx, after, logWindow)
		if err != nil || len(records) == 0 {
			return time.Time{}, after, err
		}
		for _, r := range records {
			for i := range r.Tables {
				if f.Tells(&r.Tables[i]) {
					return r.Time, after, nil
				}
			}
			after = r.Seq
		}
	}
}
