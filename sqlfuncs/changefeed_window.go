package sqlfuncs

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// defaultLease is how long a window is its consumer's.
const defaultLease = time.Minute

// skipAfter is the number of commits without interest after which a shard's position follows them, so that an idle feed pins nothing.
const skipAfter = 1000

var windowColumns = []Column{
	{"window_id", pgtype.Int8, -1},
	{"from_seq", pgtype.Int8, -1},
	{"to_seq", pgtype.Int8, -1},
	{"lease_token", pgtype.Text, -1},
	{"tables", pgtype.TextArray, -1},
	{"leased_until", pgtype.TimestampTZ, -1},
}

var windowSchema = arrowSchema(windowColumns)

// changefeedWindow is changefeed_window(name [, max_commits int8, max_wait interval, shard int4, lease interval]): leases the next window
// (from_seq, to_seq] of a feed's shard, with the names of the tables that changed in it. Each one's rows are
// table_changes(tbl, 'seq:from_seq', 'seq:to_seq'), with shard => 'shard/shards' when the feed has several. No row when there was no commit
// within max_wait.
//
// A session that asks again before it has acknowledged gets the same window. The lease ends by changefeed_ack, when its time is over, or
// with the session. It takes effect at once. Errors: 42704 no such feed, 55006 another session holds the lease, 55000 the feed is lost.
var changefeedWindow = &Function{
	Name: "changefeed_window",
	Args: []Arg{
		{Name: "name", OID: pgtype.Text},
		{Name: "max_commits", OID: pgtype.Int8, Default: "100"},
		{Name: "max_wait", OID: pgtype.Interval, Default: "'0'"},
		{Name: "shard", OID: pgtype.Int4, Default: "0"},
		{Name: "lease", OID: pgtype.Interval, Default: "'1 min'"},
	},
	Returns: pgtype.Record, SetOf: true, Volatile: true,
	Doc: "Leases the next window of commits of a durable feed.",
	Describe: func(context.Context, *Env, []*Value) (*Shape, error) {
		return &Shape{Columns: windowColumns}, nil
	},
	Open: openWindow,
}

// windowRequest are the arguments of a call.
type windowRequest struct {
	env   *Env
	name  string
	most  int64
	wait  time.Duration
	shard int
	lease time.Duration
}

func readWindowRequest(env *Env, args []*Value) (q windowRequest, err error) {
	q.env = env
	if q.name, err = feedNameArg(args, "changefeed_window"); err != nil {
		return q, err
	}
	if q.most, err = intArg(args, 1, "max_commits", 1, math.MaxInt64, 100); err != nil {
		return q, err
	}
	if q.wait, err = intervalArg(args, 2, "max_wait", 0); err != nil {
		return q, err
	}
	shard, err := intArg(args, 3, "shard", 0, catalog.MaxFeedShards-1, 0)
	if err != nil {
		return q, err
	}
	q.shard = int(shard)
	if q.lease, err = intervalArg(args, 4, "lease", defaultLease); err == nil && q.lease < time.Second {
		err = pgerr.New(pgerr.InvalidParameterValue, "lease must be at least one second")
	}
	return q, err
}

func openWindow(ctx context.Context, env *Env, _ *Shape, args []*Value) (*Rows, error) {
	q, err := readWindowRequest(env, args)
	if err != nil {
		return nil, err
	}
	if err := env.Writable("changefeed_window()"); err != nil {
		return nil, err
	}
	w, err := q.next(ctx)
	if err != nil {
		return nil, err
	}
	return oneBatch(windowSchema, func(_ context.Context, b *array.RecordBuilder) error {
		if w != nil {
			w.append(b)
		}
		return nil
	}), nil
}

// leasedWindow is a row.
type leasedWindow struct {
	from   uint64
	lease  *catalog.FeedLease
	tables []string
}

func (w *leasedWindow) append(b *array.RecordBuilder) {
	row := rowBuilder{b: b}
	row.int8(int64(w.lease.Window))
	row.int8(int64(w.from))
	row.int8(int64(w.lease.To))
	row.text(w.lease.Token)
	row.texts(w.tables)
	row.time(w.lease.Expires.UnixMicro())
}

// errMoved says that a feed moved between the look at it and the lease.
var errMoved = errors.New("the feed moved")

// next waits for commits and leases a window; nil when there were none in time.
func (q windowRequest) next(ctx context.Context) (*leasedWindow, error) {
	sub := q.env.Catalog.SubscribeCommits() // before the first look, so that no commit comes between
	defer sub.Close()
	wait, cancel := context.WithTimeoutCause(ctx, q.wait, errLate)
	defer cancel()
	for {
		w, err := q.look(ctx)
		if errors.Is(err, errMoved) {
			continue
		}
		if w != nil || err != nil {
			return w, err
		}
		if _, err := sub.Next(wait); err != nil {
			if errors.Is(context.Cause(wait), errLate) {
				return nil, nil
			}
			return nil, err
		}
	}
}

// look leases what is there now; nil when there is nothing.
func (q windowRequest) look(ctx context.Context) (*leasedWindow, error) {
	f, err := feedNamed(q.env, q.name)
	if err != nil {
		return nil, err
	}
	s, err := f.Shard(q.shard)
	if err != nil {
		return nil, err
	}
	if f.Lost {
		return nil, lostFeed(q.name)
	}
	newest := q.env.Catalog.CommitSeq()
	if q.env.Pinned {
		newest = q.env.Cut.Seq() // the transaction could not read the changes behind it
	}
	to, keys, err := touched(ctx, q.env, f, s.Position, newest, q.most)
	if errors.Is(err, catalog.ErrExpired) {
		if err := existingFeed(ctx, q.env, q.name, func(f *catalog.Feed, _ time.Time) (*catalog.Feed, error) { return f.Lose(), nil }); err != nil {
			return nil, err
		}
		return nil, lostFeed(q.name)
	}
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 && s.Lease == nil {
		return nil, q.skip(ctx, s.Position, to)
	}
	w := &leasedWindow{from: s.Position}
	err = existingFeed(ctx, q.env, q.name, func(now *catalog.Feed, at time.Time) (*catalog.Feed, error) {
		if now.ID != f.ID || q.shard >= len(now.Shards) || now.Shards[q.shard].Position != s.Position {
			return nil, errMoved
		}
		if l := now.Shards[q.shard].Lease; len(keys) == 0 && (l == nil || l.Holder != q.env.Session) {
			return nil, errMoved
		}
		next, lease, err := now.Lease(q.shard, to, q.env.Session, at, q.lease)
		w.lease = lease
		return next, err
	})
	if err != nil {
		return nil, err
	}
	if w.lease.To != to { // it was leased before
		if _, keys, err = touched(ctx, q.env, f, s.Position, w.lease.To, -1); err != nil {
			return nil, err
		}
	}
	w.tables = feedTables(q.env, keys)
	return w, nil
}

// skip moves the position over many commits of other tables.
func (q windowRequest) skip(ctx context.Context, from, to uint64) error {
	if to-from < skipAfter {
		return nil
	}
	return existingFeed(ctx, q.env, q.name, func(f *catalog.Feed, _ time.Time) (*catalog.Feed, error) {
		if q.shard >= len(f.Shards) || f.Shards[q.shard].Position != from {
			return f, nil
		}
		return f.Skip(q.shard, to), nil
	})
}
