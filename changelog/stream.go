package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// StreamOptions tunes a Stream.
type StreamOptions struct {
	// ReloadExpired asks for a FullReload batch, R(now) as INSERTs, instead of ErrExpired when what the stream goes on from is no longer
	// retained.
	ReloadExpired bool
	// Identifier and Shard are a Request's.
	Identifier []string
	Shard      Shard
}

// Stream yields one Batch a commit of the table that changed rows, in order, pushed by the catalog: nothing polls. It subscribes before it
// reads the current state, so that no commit falls between. With from, a catch-up window (from, now] comes first when it has rows; with Null
// only commits to come are told. A subscriber that fell more than catalog.RingSize commits behind gets one window up to the current state and
// goes on from there: it never makes a writer wait, and nothing but its own Batch grows with what it missed.
//
// The table is followed through renames (Batch.Table is its name at the time of reading); another table that takes its name is another
// table. The stream ends with iceberg-go's catalog.ErrNoSuchTable when the table is dropped, with catalog.ErrClosed when the catalog is, with
// ctx's error when ctx ends, with an error of reading, and when the caller breaks off. After ErrExpired a stream from Null, or with ReloadExpired, is
// a new beginning. A Batch keeps no files open and is the caller's.
func (r *Reader) Stream(ctx context.Context, ident table.Identifier, from Bound, o StreamOptions) iter.Seq2[*Batch, error] {
	return r.stream(ctx, ident, "", fixed(from), o)
}

// stream is Stream for a table that is named by its key when key is not empty.
func (r *Reader) stream(ctx context.Context, ident table.Identifier, key catalog.TableKey, from bounds, o StreamOptions) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		sub := r.opts.Catalog.SubscribeCommits()
		defer sub.Close()
		if r.hooks.subscribed != nil {
			r.hooks.subscribed()
		}
		s := &streamer{r: r, o: o, ident: ident, key: key, yield: yield}
		if !s.begin(ctx, from) {
			return
		}
		for {
			ev, err := sub.Next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if r.hooks.woken != nil {
				r.hooks.woken()
			}
			if !s.event(ctx, ev) {
				return
			}
		}
	}
}

// DefaultPollInterval is the interval of StreamPolling when none is given.
const DefaultPollInterval = time.Second

// StreamPolling is Stream for a process that gets no broadcast: it looks at the current state every interval and yields one window when the
// table's rows changed, however many commits that took. An interval of 0 or less is DefaultPollInterval.
func (r *Reader) StreamPolling(ctx context.Context, ident table.Identifier, from Bound, interval time.Duration, o StreamOptions) iter.Seq2[*Batch, error] {
	if interval <= 0 {
		interval = DefaultPollInterval
	}
	return func(yield func(*Batch, error) bool) {
		s := &streamer{r: r, o: o, ident: ident, yield: yield}
		if !s.begin(ctx, fixed(from)) {
			return
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-tick.C:
			}
			if r.opts.Catalog.CommitSeq() != s.seq && !s.catchUp(ctx) {
				return
			}
		}
	}
}

// bounds chooses where a stream begins, once its table is known.
type bounds func(ctx context.Context, q Request) (Bound, error)

func fixed(b Bound) bounds { return func(context.Context, Request) (Bound, error) { return b, nil } }

// streamer follows one table. Its methods that deliver return false when the stream has ended.
type streamer struct {
	r     *Reader
	o     StreamOptions
	ident table.Identifier
	key   catalog.TableKey
	seq   uint64 // what happened to the table up to this commit is delivered
	yield func(*Batch, error) bool
}

// begin binds the table and delivers the catch-up window.
func (s *streamer) begin(ctx context.Context, from bounds) bool {
	cut := s.r.opts.Catalog.Cut()
	if s.key == "" {
		st, err := cut.Table(s.ident)
		if err != nil {
			s.yield(nil, err)
			return false
		}
		s.key = st.Key
	}
	q, ok := s.request(cut)
	if !ok {
		return false
	}
	var err error
	if q.From, err = from(ctx, q); err != nil {
		return s.settle(ctx, q, nil, err)
	}
	if q.From.Kind == BoundNull {
		s.seq = cut.Seq()
		return true
	}
	return s.deliver(ctx, q)
}

// event delivers what one event of the subscription brought.
func (s *streamer) event(ctx context.Context, ev catalog.Event) bool {
	if ev.Lagged {
		return ev.To <= s.seq || s.catchUp(ctx)
	}
	rec := ev.Record
	if rec.Seq <= s.seq {
		return true
	}
	if !touches(rec, s.key) {
		s.seq = rec.Seq
		return true
	}
	// The window ends at this commit, in the newest cut there is: it knows what has expired meanwhile.
	cut := s.r.opts.Catalog.Cut()
	if _, ok := cut.TableByKey(s.key); !ok {
		var err error
		if cut, err = s.r.opts.Catalog.CutAt(ctx, rec.Seq); err != nil { // dropped since, perhaps by this very commit
			cut = s.r.opts.Catalog.Cut()
		}
	}
	q, ok := s.request(cut)
	if !ok {
		return false
	}
	q.From, q.To = Seq(s.seq), Seq(rec.Seq)
	return s.deliver(ctx, q)
}

// catchUp delivers everything up to the current state in one window.
func (s *streamer) catchUp(ctx context.Context) bool {
	q, ok := s.request(s.r.opts.Catalog.Cut())
	if !ok {
		return false
	}
	q.From = Seq(s.seq)
	return s.deliver(ctx, q)
}

// request is a request for the table in a cut; there is none when it is not in there.
func (s *streamer) request(cut *catalog.Cut) (Request, bool) {
	st, ok := cut.TableByKey(s.key)
	if !ok {
		s.yield(nil, fmt.Errorf("%w: the table that was %v", icecat.ErrNoSuchTable, s.ident))
		return Request{}, false
	}
	s.ident = st.Ident
	return Request{Cut: cut, Ident: s.ident, Identifier: s.o.Identifier, Shard: s.o.Shard}, true
}

// deliver reads a window and yields it when it has rows.
func (s *streamer) deliver(ctx context.Context, q Request) bool {
	b, err := s.read(ctx, q)
	return s.settle(ctx, q, b, err)
}

// settle yields what became of a window.
func (s *streamer) settle(ctx context.Context, q Request, b *Batch, err error) bool {
	if errors.Is(err, ErrExpired) && s.o.ReloadExpired {
		var ok bool
		if q, ok = s.request(s.r.opts.Catalog.Cut()); !ok {
			return false
		}
		b, err = s.reload(ctx, q)
	}
	if err != nil {
		s.yield(nil, err)
		return false
	}
	s.seq = q.Cut.Seq()
	if q.To.Kind == BoundSeq {
		s.seq = q.To.Seq
	}
	return b.Rows() == 0 && !b.FullReload || s.yield(b, nil)
}

func (s *streamer) read(ctx context.Context, q Request) (*Batch, error) {
	b, err := s.r.collect(ctx, q)
	if errors.Is(err, liveset.ErrMissingFile) {
		// Expiry may have taken the file between the look at the history and the reading.
		q.Cut = s.r.opts.Catalog.Cut()
		if st, ok := q.Cut.TableByKey(s.key); ok {
			q.Ident = st.Ident
			if _, again := s.r.Changes(ctx, q); errors.Is(again, ErrExpired) {
				return nil, again
			}
		}
	}
	return b, err
}

func (r *Reader) collect(ctx context.Context, q Request) (*Batch, error) {
	x, err := r.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	return x.Collect(ctx)
}

// reload reads R(now) as INSERTs.
func (s *streamer) reload(ctx context.Context, q Request) (*Batch, error) {
	q.From, q.To = Null, Now
	x, err := s.r.Net(ctx, q)
	if err != nil {
		return nil, err
	}
	b, err := x.Collect(ctx)
	if err != nil {
		return nil, err
	}
	b.FullReload = true
	return b, nil
}

func touches(rec *catalog.Record, key catalog.TableKey) bool {
	for i := range rec.Tables {
		if rec.Tables[i].Key == key {
			return true
		}
	}
	return false
}
