package sqlfuncs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// defaultMaxPin is how long a feed holds back what it has not acknowledged, unless it says otherwise.
const defaultMaxPin = 7 * 24 * time.Hour

// changefeedCreate is changefeed_create(name [, tables text[], start text, max_pin interval, shards int4]): a durable feed that begins behind
// start, a bound of the commit log ('now', 'earliest', 'seq:N', a timestamp). It returns that seq, so that table_at(t, 'seq:N') is what the feed
// goes on from. It takes effect at once. Errors: 42710 the name is taken, 72000 start is no longer retained.
var changefeedCreate = &Function{
	Name: "changefeed_create",
	Args: []Arg{
		{Name: "name", OID: pgtype.Text},
		{Name: "tables", OID: pgtype.TextArray, Default: "NULL"},
		{Name: "start", OID: pgtype.Any, Default: "'now'"},
		{Name: "max_pin", OID: pgtype.Interval, Default: "'7 days'"},
		{Name: "shards", OID: pgtype.Int4, Default: "1"},
	},
	Returns: pgtype.Int8, Volatile: true, PerRow: true,
	Doc:  "Creates a durable feed of some tables' commits, or of all; returns the seq behind which it begins.",
	Call: createFeed,
}

func createFeed(ctx context.Context, env *Env, args []*Value) (*Value, error) {
	name, err := feedNameArg(args, "changefeed_create")
	if err != nil {
		return nil, err
	}
	if err := env.Writable("changefeed_create()"); err != nil {
		return nil, err
	}
	tables, err := tablesArg(ctx, env, args, 1)
	if err != nil {
		return nil, err
	}
	start, err := feedStart(ctx, env, tables, args, 2)
	if err != nil {
		return nil, err
	}
	maxPin, err := intervalArg(args, 3, "max_pin", defaultMaxPin)
	if err != nil {
		return nil, err
	}
	shards, err := intArg(args, 4, "shards", 1, catalog.MaxFeedShards, 1)
	if err != nil {
		return nil, err
	}
	f, err := catalog.NewFeed(name, tables, start, maxPin, int(shards))
	if err != nil {
		return nil, err
	}
	err = changeFeed(ctx, env, name, func(old *catalog.Feed, _ time.Time) (*catalog.Feed, error) {
		if old != nil {
			return nil, pgerr.Newf(pgerr.DuplicateObject, "feed \"%s\" already exists", name)
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	return &Value{OID: pgtype.Int8, Text: strconv.FormatUint(start, 10)}, nil
}

// feedStart reads the bound behind which a feed begins: a place between two commits.
func feedStart(ctx context.Context, env *Env, tables []catalog.TableKey, args []*Value, i int) (uint64, error) {
	b, err := boundArg(env, args, i)
	if err != nil {
		return 0, err
	}
	now := env.Catalog.Cut()
	switch b.Kind {
	case changelog.BoundNull, changelog.BoundNow:
		return now.Seq(), nil
	case changelog.BoundEarliest:
		return earliestStart(ctx, env, now, tables)
	case changelog.BoundTime:
		seq, err := env.Catalog.SeqAt(ctx, b.Time)
		if err != nil {
			return 0, err
		}
		return seq, readable(ctx, env, now, tables, seq)
	case changelog.BoundSeq:
		if b.HasRow {
			return 0, pgerr.Newf(pgerr.InvalidParameterValue, "a feed cannot begin inside a commit: \"%s\"", b)
		}
		if b.Seq > now.Seq() {
			return 0, pgerr.Newf(pgerr.UndefinedObject, "commit seq %d does not exist", b.Seq).WithHint("The newest is %d.", now.Seq())
		}
		return b.Seq, readable(ctx, env, now, tables, b.Seq)
	}
	return 0, pgerr.Newf(pgerr.InvalidParameterValue, "a feed begins at a place of the commit log, not at \"%s\"", b).
		WithHint("Give 'now', 'earliest', 'seq:N' or a timestamp.")
}

// readable reports whether the changes of the feed's tables behind a seq can still be read. Error: 72000.
func readable(ctx context.Context, env *Env, cut *catalog.Cut, tables []catalog.TableKey, seq uint64) error {
	if seq+1 < env.Catalog.OldestSeq() {
		return pgerr.Newf(pgerr.SnapshotTooOld, "commits behind seq %d are no longer retained", seq).
			WithDetail("The oldest commit is seq %d.", env.Catalog.OldestSeq()).WithHint("Begin at 'earliest'.")
	}
	for t := range feedStates(cut, tables) {
		_, err := env.Changes.Changes(ctx, changelog.Request{Cut: cut, Ident: t.Ident, From: changelog.Seq(seq), To: changelog.Now})
		if err != nil && !errors.Is(err, changelog.ErrReservedColumn) {
			return err
		}
	}
	return nil
}

// earliestStart is the oldest seq behind which the changes of all the feed's tables can be read.
func earliestStart(ctx context.Context, env *Env, cut *catalog.Cut, tables []catalog.TableKey) (uint64, error) {
	var start uint64
	if oldest := env.Catalog.OldestSeq(); oldest > 0 {
		start = oldest - 1
	}
	for t := range feedStates(cut, tables) {
		one := []catalog.TableKey{t.Key}
		err := readable(ctx, env, cut, one, start)
		if !errors.Is(err, changelog.ErrExpired) {
			if err != nil {
				return 0, err
			}
			continue
		}
		st, err := env.Changes.StateAt(ctx, cut, t.Ident, changelog.Earliest)
		if err != nil {
			return 0, err
		}
		start = max(start, st.Seq)
	}
	return start, nil
}

// feedStates yields the tables of a feed.
func feedStates(cut *catalog.Cut, tables []catalog.TableKey) func(yield func(*catalog.TableState) bool) {
	return func(yield func(*catalog.TableState) bool) {
		if tables == nil {
			cut.AllTables()(yield)
			return
		}
		for _, k := range tables {
			if t, ok := cut.TableByKey(k); ok && !yield(t) {
				return
			}
		}
	}
}
