package catalog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"
)

var (
	// ErrNoSuchFeed is returned for a durable feed, or a shard of one, that does not exist.
	ErrNoSuchFeed = errors.New("feed does not exist")
	// ErrFeedLeased is returned by Feed.Lease while another consumer holds the shard. errors.As finds a *FeedLeasedError.
	ErrFeedLeased = errors.New("feed is leased by another consumer")
	// ErrFeedFenced is returned by Feed.Acknowledge for a window that was acknowledged, or leased again, meanwhile.
	ErrFeedFenced = errors.New("lease of the feed's window is gone")
	// ErrFeedLost is returned for a feed whose position is no longer retained.
	ErrFeedLost = errors.New("feed is lost")
)

// FeedLeasedError says how long a shard is leased.
type FeedLeasedError struct {
	Feed    string
	Shard   int
	Expires time.Time
}

func (e *FeedLeasedError) Error() string {
	return fmt.Sprintf("%v: %s, shard %d, until %s", ErrFeedLeased, e.Feed, e.Shard, e.Expires.UTC().Format(time.RFC3339))
}

func (e *FeedLeasedError) Unwrap() error { return ErrFeedLeased }

// MaxFeedShards bounds the shards of a feed.
const MaxFeedShards = 1024

// maxFeedTables bounds the tables of a feed, so that its value stays a small one.
const maxFeedTables = 4096

// Feed is a durable feed: a name under which consumers acknowledge how far they have come in the commit log. It lives beside the
// commits: a change of it takes no seq and writes no record, but may share the store transaction of a commit (ChangeFeed in its
// request), and then happens with it or not at all. Read it only; its methods return changed copies.
type Feed struct {
	Name string
	ID   uuid.UUID // tells a feed from a later one of its name
	// Tables are what it tells of, nil for every table of the warehouse, also later ones.
	Tables  []TableKey
	Created time.Time
	// Start is the seq that it began behind.
	Start uint64
	// MaxPin is how long what is not acknowledged is held back from expiry; what waits longer makes the feed lost.
	MaxPin time.Duration
	// Lost says that commits behind a position, or snapshots that they brought, are no longer retained.
	Lost bool
	// Windows counts the windows that were leased.
	Windows uint64
	Shards  []FeedShard
}

// FeedShard is the place of one of a feed's consumers.
type FeedShard struct {
	// Position is the seq up to which everything is acknowledged.
	Position uint64
	// Lease is the window that a consumer has in hand, nil without one. It may have expired.
	Lease *FeedLease
}

// FeedLease is a window (Position, To] in the hands of one consumer.
type FeedLease struct {
	Window  uint64
	To      uint64
	Token   string
	Holder  string
	Expires time.Time
}

// NewFeed is a feed that begins behind start.
func NewFeed(name string, tables []TableKey, start uint64, maxPin time.Duration, shards int) (*Feed, error) {
	if err := checkPart(name); err != nil {
		return nil, err
	}
	if shards < 1 || shards > MaxFeedShards {
		return nil, fmt.Errorf("%w: a feed has 1 to %d shards, not %d", ErrInvalidRequest, MaxFeedShards, shards)
	}
	if len(tables) > maxFeedTables {
		return nil, fmt.Errorf("%w: %d tables, at most %d; a feed without tables tells of all", ErrInvalidRequest, len(tables), maxFeedTables)
	}
	if maxPin < 0 {
		return nil, fmt.Errorf("%w: max_pin is negative", ErrInvalidRequest)
	}
	f := &Feed{Name: name, ID: uuid.New(), Tables: slices.Clone(tables), Start: start, MaxPin: maxPin, Shards: make([]FeedShard, shards)}
	for i := range f.Shards {
		f.Shards[i].Position = start
	}
	return f, nil
}

func (f *Feed) clone() *Feed {
	c := *f
	c.Tables, c.Shards = slices.Clone(f.Tables), slices.Clone(f.Shards)
	return &c
}

// Position is the oldest position of its shards.
func (f *Feed) Position() uint64 {
	p := f.Shards[0].Position
	for _, s := range f.Shards[1:] {
		p = min(p, s.Position)
	}
	return p
}

// Tells reports whether a feed tells of a table. The gateway's own tables only when they are named, so that a feed does not feed itself.
func (f *Feed) Tells(t *TableRecord) bool {
	if f.Tables == nil {
		return t.Key != "" && t.Ident[0] != "skade"
	}
	return t.Key != "" && slices.Contains(f.Tables, t.Key)
}

// Shard returns a shard. ErrNoSuchFeed.
func (f *Feed) Shard(i int) (*FeedShard, error) {
	if i < 0 || i >= len(f.Shards) {
		return nil, fmt.Errorf("shard %d of \"%s\", which has %d: %w", i, f.Name, len(f.Shards), ErrNoSuchFeed)
	}
	return &f.Shards[i], nil
}

// Lease gives a window of a shard, from its position to the seq to, to a consumer. A window that the consumer has in hand already is
// given again, for longer; one whose lease has expired is fenced. Errors: ErrFeedLost, *FeedLeasedError, ErrNoSuchFeed.
func (f *Feed) Lease(shard int, to uint64, holder string, now time.Time, length time.Duration) (*Feed, *FeedLease, error) {
	s, err := f.Shard(shard)
	if err != nil {
		return nil, nil, err
	}
	if f.Lost {
		return nil, nil, fmt.Errorf("%w: %s", ErrFeedLost, f.Name)
	}
	lease := &FeedLease{Holder: holder, Expires: now.Add(length).UTC().Truncate(time.Microsecond)}
	g := f.clone()
	switch old := s.Lease; {
	case old != nil && now.Before(old.Expires) && old.Holder != holder:
		return nil, nil, &FeedLeasedError{Feed: f.Name, Shard: shard, Expires: old.Expires}
	case old != nil && old.Holder == holder && now.Before(old.Expires):
		lease.Window, lease.To, lease.Token = old.Window, old.To, old.Token
	case to <= s.Position:
		return nil, nil, fmt.Errorf("%w: nothing between %d and %d", ErrInvalidRequest, s.Position, to)
	default:
		var token [8]byte
		_, _ = rand.Read(token[:]) // never fails
		g.Windows++
		lease.Window, lease.To, lease.Token = g.Windows, to, hex.EncodeToString(token[:])
	}
	g.Shards[shard].Lease = lease
	return g, lease, nil
}

// Acknowledge moves a shard behind the window that was leased under the token. An expired lease that nobody took over is good. Error:
// ErrFeedFenced.
func (f *Feed) Acknowledge(window uint64, token string) (*Feed, error) {
	for i, s := range f.Shards {
		if s.Lease != nil && s.Lease.Window == window && s.Lease.Token == token {
			g := f.clone()
			g.Shards[i] = FeedShard{Position: s.Lease.To}
			return g, nil
		}
	}
	return nil, fmt.Errorf("%w: %s, window %d", ErrFeedFenced, f.Name, window)
}

// Seek puts every shard at a position, takes their leases back and finds a lost feed again.
func (f *Feed) Seek(position uint64) *Feed {
	g := f.clone()
	for i := range g.Shards {
		g.Shards[i] = FeedShard{Position: position}
	}
	g.Lost = false
	return g
}

// Skip moves a shard that nobody has in hand over commits that do not concern it.
func (f *Feed) Skip(shard int, to uint64) *Feed {
	g := f.clone()
	if s := &g.Shards[shard]; s.Lease == nil && to > s.Position {
		s.Position = to
	}
	return g
}

// Release ends the leases for which gone is true: others may lease their windows, but until one does they can be acknowledged. f itself
// when there are none.
func (f *Feed) Release(now time.Time, gone func(holder string) bool) *Feed {
	g := f
	for i, s := range f.Shards {
		if s.Lease == nil || !s.Lease.Expires.After(now) || !gone(s.Lease.Holder) {
			continue
		}
		if g == f {
			g = f.clone()
		}
		ended := *s.Lease
		ended.Expires = now
		g.Shards[i].Lease = &ended
	}
	return g
}

// Lose marks the feed as lost and takes its leases back.
func (f *Feed) Lose() *Feed {
	g := f.clone()
	for i := range g.Shards {
		g.Shards[i].Lease = nil
	}
	g.Lost = true
	return g
}

// ChangeFeed changes a durable feed in the serial point. Change gets the feed as it is, nil without one, and the commit's time, and
// returns what the feed is from then on, nil for none. Its error is the request's. A request of nothing but ChangeFeeds takes no seq: Commit
// returns a nil record for it.
type ChangeFeed struct {
	Name   string
	Change func(old *Feed, now time.Time) (*Feed, error)
	// Once, when not empty, names the change: one transaction makes it once, however often it is asked to.
	Once string
}

func (ch ChangeFeed) apply(_ context.Context, a *attempt) error {
	old, _ := a.state.feeds.Get(ch.Name)
	f, err := ch.Change(old, a.time)
	if err != nil || f == old {
		return err
	}
	if err := checkPart(ch.Name); err != nil {
		return err
	}
	w := write{seq: a.seq, key: feedKey(ch.Name), latest: true}
	if f == nil {
		a.state.feeds.Delete(ch.Name)
	} else {
		if old == nil {
			f.Created = a.time
		}
		a.state.feeds.Set(ch.Name, f)
		w.encode = f.encode
		a.size += 64 + 36*len(f.Tables) + 128*len(f.Shards)
	}
	a.writes, a.quiet = append(a.writes, w), true
	return nil
}

// Feed returns the durable feed of that name as it is at this moment, whatever the cut's seq: feeds move between commits. ErrNoSuchFeed.
func (c *Catalog) Feed(name string) (*Feed, error) {
	if f, ok := c.Cut().s.feeds.Get(name); ok {
		return f, nil
	}
	return nil, fmt.Errorf("%w: \"%s\"", ErrNoSuchFeed, name)
}

// Feeds yields the durable feeds by name.
func (c *Catalog) Feeds() iter.Seq[*Feed] {
	return func(yield func(*Feed) bool) {
		c.Cut().s.feeds.Scan(func(_ string, f *Feed) bool { return yield(f) })
	}
}

func (f *Feed) encode() []byte {
	w := newWriter(kindFeed)
	w.string(f.Name)
	w.uuid(f.ID)
	w.fixed64(uint64(f.Created.UnixMicro()))
	w.uvarint(f.Start)
	w.varint(int64(f.MaxPin))
	flags := uint64(0)
	if f.Lost {
		flags |= 1
	}
	if f.Tables != nil {
		flags |= 2
	}
	w.uvarint(flags)
	w.uvarint(f.Windows)
	w.uvarint(uint64(len(f.Tables)))
	for _, k := range f.Tables {
		w.string(string(k))
	}
	w.uvarint(uint64(len(f.Shards)))
	for _, s := range f.Shards {
		w.uvarint(s.Position)
		if s.Lease == nil {
			w.uvarint(0)
			continue
		}
		w.uvarint(s.Lease.Window)
		w.uvarint(s.Lease.To)
		w.string(s.Lease.Token)
		w.string(s.Lease.Holder)
		w.fixed64(uint64(s.Lease.Expires.UnixMicro()))
	}
	return w.seal()
}

func decodeFeed(value []byte) (*Feed, error) {
	r := newReader(kindFeed, value)
	f := &Feed{Name: r.string(), ID: r.uuid(), Created: time.UnixMicro(int64(r.fixed64())).UTC(), Start: r.uvarint(), MaxPin: time.Duration(r.varint())}
	flags := r.uvarint()
	f.Lost, f.Windows = flags&1 != 0, r.uvarint()
	n := r.count()
	if flags&2 != 0 {
		f.Tables = make([]TableKey, 0, n)
	}
	for range n {
		f.Tables = append(f.Tables, TableKey(r.string()))
	}
	f.Shards = make([]FeedShard, r.count())
	for i := range f.Shards {
		s := &f.Shards[i]
		s.Position = r.uvarint()
		if window := r.uvarint(); window != 0 {
			s.Lease = &FeedLease{Window: window, To: r.uvarint(), Token: r.string(), Holder: r.string(), Expires: time.UnixMicro(int64(r.fixed64())).UTC()}
		}
	}
	if len(f.Shards) == 0 {
		r.fail("feed without shards")
	}
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return f, nil
}
