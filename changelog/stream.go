package changelog

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// StreamOptions tunes a Stream.
type StreamOptions struct {
	// ReloadExpired asks for a FullReload batch instead of ErrExpired when From is no longer retained.
	ReloadExpired bool
	Identifier    []string
	Shard         Shard
}

// Stream yields one Batch a commit of the table that changed rows, pushed by the catalog: nothing polls. It subscribes
// before it reads the current state (no gap). With from, a catch-up window comes first when it holds anything; with from
// NULL only future commits come. A subscriber that lagged gets one window up to the current state. The table is followed
// through renames; the stream ends with iceberg-go's catalog.ErrNoSuchTable when it is dropped, with ctx's error when ctx
// ends, and when the caller breaks off.
func (r *Reader) Stream(ctx context.Context, ident table.Identifier, from Bound, o StreamOptions) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		sub := r.opts.Catalog.SubscribeCommits()
		defer sub.Close()
		s := &streamer{r: r, o: o, ident: ident}
		cut := r.opts.Catalog.Cut()
		if err := s.start(cut); err != nil {
			yield(nil, err)
			return
		}
		if from.Kind != BoundNull && !s.deliver(ctx, cut, from, yield) {
			return
		}
		s.seq = cut.Seq()
		for {
			ev, err := sub.Next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if !s.wants(ev) {
				continue
			}
			cut := r.opts.Catalog.Cut()
			if !ev.Lagged {
				// One window a commit: the statement's cut is the commit itself.
				if cut, err = r.opts.Catalog.CutAt(ctx, ev.Record.Seq); err != nil {
					cut = r.opts.Catalog.Cut()
				}
			}
			if !s.deliver(ctx, cut, Seq(s.seq), yield) {
				return
			}
			s.seq = cut.Seq()
		}
	}
}

// StreamPolling is Stream for a process that gets no broadcast: it looks at the current state every interval and yields
// one window when it moved.
func (r *Reader) StreamPolling(ctx context.Context, ident table.Identifier, from Bound, interval time.Duration, o StreamOptions) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		s := &streamer{r: r, o: o, ident: ident}
		cut := r.opts.Catalog.Cut()
		if err := s.start(cut); err != nil {
			yield(nil, err)
			return
		}
		if from.Kind != BoundNull && !s.deliver(ctx, cut, from, yield) {
			return
		}
		s.seq = cut.Seq()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-tick.C:
			}
			cut := r.opts.Catalog.Cut()
			if cut.Seq() == s.seq {
				continue
			}
			if !s.deliver(ctx, cut, Seq(s.seq), yield) {
				return
			}
			s.seq = cut.Seq()
		}
	}
}

// streamer follows one table.
type streamer struct {
	r     *Reader
	o     StreamOptions
	ident table.Identifier
	key   catalog.TableKey
	seq   uint64 // delivered through
}

func (s *streamer) start(cut *catalog.Cut) error {
	st, err := cut.Table(s.ident)
	if err != nil {
		return err
	}
	s.key = st.Key
	return nil
}

// wants reports whether an event can hold rows of the table that were not delivered yet.
func (s *streamer) wants(ev catalog.Event) bool {
	if ev.Lagged {
		return ev.To > s.seq
	}
	if ev.Record.Seq <= s.seq {
		return false
	}
	for i := range ev.Record.Tables {
		if ev.Record.Tables[i].Key == s.key {
			return true
		}
	}
	return false
}

// deliver yields the window (from, cut] when it has rows. false ends the stream.
func (s *streamer) deliver(ctx context.Context, cut *catalog.Cut, from Bound, yield func(*Batch, error) bool) bool {
	if st, ok := cut.TableByKey(s.key); ok {
		s.ident = st.Ident
	}
	q := Request{Cut: cut, Ident: s.ident, From: from, Identifier: s.o.Identifier, Shard: s.o.Shard}
	b, err := s.r.Read(ctx, q)
	if errors.Is(err, ErrExpired) && s.o.ReloadExpired {
		q.From = Null
		if b, err = s.r.ReadNet(ctx, q); err == nil {
			b.FullReload = true
			return yield(b, nil)
		}
	}
	if err != nil {
		yield(nil, err)
		return false
	}
	return b.Rows() == 0 || yield(b, nil)
}

// ConsumerCursor is how far a consumer has come with a table. It is a value to store next to what was consumed.
type ConsumerCursor struct {
	Table      table.Identifier
	SnapshotID *int64
	CommitSeq  uint64
}

// After returns the cursor behind a batch.
func (c ConsumerCursor) After(b *Batch) ConsumerCursor {
	return ConsumerCursor{Table: b.Table, SnapshotID: b.To.Snapshot, CommitSeq: b.To.Seq}
}

// Bound returns where reading goes on: the commit seq when there is one, else the snapshot, else the beginning.
func (c ConsumerCursor) Bound() Bound {
	switch {
	case c.CommitSeq > 0:
		return Seq(c.CommitSeq)
	case c.SnapshotID != nil:
		return SnapshotID(*c.SnapshotID)
	}
	return Null
}
