package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// feedPin is what one durable feed still needs of a table.
type feedPin struct {
	feed      *catalog.Feed
	snapshots map[int64]bool
	// late says that it waits longer than the feed's max_pin: it is not held back any more, but the feed is told that it is lost.
	late bool
}

// feedPins are the snapshots of a table that durable feeds have not acknowledged, with the state that each begins from.
func (gw *Gateway) feedPins(ctx context.Context, key catalog.TableKey) ([]feedPin, error) {
	var pins []feedPin
	for f := range gw.catalog.Feeds() {
		if f.Lost || !f.Tells(&catalog.TableRecord{Key: key, Ident: gw.identOf(key)}) {
			continue
		}
		p := feedPin{feed: f, snapshots: map[int64]bool{}}
		var since time.Time
		after, now := f.Position(), gw.catalog.CommitSeq()
		head, err := gw.catalog.SnapshotAtSeq(ctx, key, after)
		if errors.Is(err, catalog.ErrExpired) {
			continue // the log has lost it already, and says so to its consumer
		}
		if err != nil {
			return nil, fmt.Errorf("what feed %s needs: %w", f.Name, err)
		}
		if head.SnapshotID != nil {
			p.snapshots[*head.SnapshotID] = true
		}
		for after < now {
			records, err := gw.catalog.CommitsOf(ctx, key, after, now, 1000)
			if err != nil {
				return nil, fmt.Errorf("what feed %s needs: %w", f.Name, err)
			}
			if len(records) == 0 {
				break
			}
			if since.IsZero() {
				since = records[0].Time
			}
			for _, r := range records {
				for i := range r.Tables {
					if t := &r.Tables[i]; t.Key == key {
						p.add(t.SnapshotID)
						p.add(t.ParentID)
					}
				}
			}
			after = records[len(records)-1].Seq
		}
		p.late = !since.IsZero() && gw.catalog.Now().Sub(since) > f.MaxPin
		pins = append(pins, p)
	}
	return pins, nil
}

func (p *feedPin) add(id *int64) {
	if id != nil {
		p.snapshots[*id] = true
	}
}

// identOf is a table's name now, something that is not the gateway's own for one that is gone.
func (gw *Gateway) identOf(key catalog.TableKey) []string {
	if t, ok := gw.catalog.Cut().TableByKey(key); ok {
		return t.Ident
	}
	return []string{""}
}

// loseFeeds tells the feeds that snapshots are about to go which they need and may not hold back any longer.
func (gw *Gateway) loseFeeds(ctx context.Context, pins []feedPin, gone []int64) error {
	for _, p := range pins {
		if !p.late || !p.needs(gone) {
			continue
		}
		gw.log.Warn().Str("feed", p.feed.Name).Dur("max_pin", p.feed.MaxPin).Msg("feed is lost: it has not acknowledged what expires now")
		if err := gw.loseFeed(ctx, p.feed); err != nil {
			return err
		}
	}
	return nil
}

// loseFeed marks a feed as lost, unless it moved since it was looked at.
func (gw *Gateway) loseFeed(ctx context.Context, f *catalog.Feed) error {
	return gw.changeFeed(ctx, f, func(now *catalog.Feed) *catalog.Feed {
		if now.Position() != f.Position() {
			return now
		}
		return now.Lose()
	})
}

// skipFeed moves a feed over commits of which none concerns it.
func (gw *Gateway) skipFeed(ctx context.Context, f *catalog.Feed, to uint64) error {
	return gw.changeFeed(ctx, f, func(now *catalog.Feed) *catalog.Feed {
		for i := range now.Shards {
			if f.Position() <= now.Shards[i].Position { // not one that was put back meanwhile
				now = now.Skip(i, to)
			}
		}
		return now
	})
}

// changeFeed changes a feed that may be gone, or another one of its name, by now.
func (gw *Gateway) changeFeed(ctx context.Context, f *catalog.Feed, change func(now *catalog.Feed) *catalog.Feed) error {
	_, err := gw.catalog.Commit(ctx, &catalog.Request{Changes: []catalog.Change{catalog.ChangeFeed{
		Name: f.Name,
		Change: func(old *catalog.Feed, _ time.Time) (*catalog.Feed, error) {
			if old == nil || old.ID != f.ID {
				return old, nil
			}
			return change(old), nil
		},
	}}})
	if err != nil {
		return fmt.Errorf("feed %s: %w", f.Name, err)
	}
	return nil
}

func (p *feedPin) needs(ids []int64) bool {
	for _, id := range ids {
		if p.snapshots[id] {
			return true
		}
	}
	return false
}

// trimLog lets go of the commits that are older than the retention and that neither an open transaction nor a durable feed needs.
func (u *upkeep) trimLog(ctx context.Context) error {
	gw := u.gw
	if gw.retention.Log <= 0 {
		return nil
	}
	before, err := gw.catalog.SeqAt(ctx, gw.catalog.Now().Add(-gw.retention.Log))
	if err != nil || before == 0 { // older commits are gone already
		return ignoreExpired(err)
	}
	before = min(before, gw.oldestPinned())
	for d := range gw.catalog.Cut().DroppedTables() {
		before = min(before, d.Seq-1) // undrop reads what belonged to it as it was
	}
	var late []*catalog.Feed
	for f := range gw.catalog.Feeds() {
		at := f.Position()
		if f.Lost || at >= before {
			continue
		}
		since, upTo, err := sqlfuncs.PendingSince(ctx, gw.catalog, f, at)
		switch {
		case err != nil && !errors.Is(err, catalog.ErrExpired):
			return err
		case err != nil, !since.IsZero() && gw.catalog.Now().Sub(since) > f.MaxPin:
			late = append(late, f)
		case since.IsZero(): // nothing of all that concerns it
			if err := gw.skipFeed(ctx, f, upTo); err != nil {
				return err
			}
		default:
			before = min(before, at)
		}
	}
	for _, f := range late {
		if f.Position() >= before {
			continue
		}
		gw.log.Warn().Str("feed", f.Name).Dur("max_pin", f.MaxPin).Msg("feed is lost: the log goes on without it")
		if err := gw.loseFeed(ctx, f); err != nil {
			return err
		}
	}
	_, err = gw.catalog.TrimLog(ctx, before)
	return err
}

func ignoreExpired(err error) error {
	if errors.Is(err, catalog.ErrExpired) {
		return nil
	}
	return err
}
