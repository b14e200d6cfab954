package engine

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// isCommitChannel reports whether the gateway itself speaks on a channel.
func isCommitChannel(channel string) bool { return strings.HasPrefix(channel, sqlfuncs.CommitsChannel) }

// commitChannel is a channel of commits that a session listens on.
type commitChannel struct {
	name  string
	after uint64 // commits up to this seq were before LISTEN
}

// feedSize is how many of the newest commits the feed remembers for its listeners. Who comes later is told once what it missed.
const feedSize = catalog.RingSize

// commitFeed tells commits to the sessions that LISTEN. It subscribes to the catalog when the first session does and unsubscribes after the
// last: without listeners a commit costs nothing here.
//
// Nothing is queued for a session. The feed remembers the newest commits, marks the sessions that are to be told of one and wakes them; a
// session that can be told takes what there is behind its place. So a commit costs the same whether a session reads or never does.
type commitFeed struct {
	cat *catalog.Catalog
	log zerolog.Logger
	hub *hub
	mu  struct {
		sync.Mutex
		joined int
		cancel context.CancelFunc
		closed bool
	}
	wg   sync.WaitGroup
	news struct {
		sync.RWMutex
		ring        [feedSize]*commitNews // by seq
		first, next uint64                // those in the ring: [first, next)
	}
	// Of the feed's goroutine alone: the sessions to be woken, oldest first.
	queue []*listener
	allow allowance
}

func newCommitFeed(cat *catalog.Catalog, log zerolog.Logger) *commitFeed {
	return &commitFeed{cat: cat, log: log}
}

// join counts a registration on a commit channel. Commits after the seq current now will be told.
func (f *commitFeed) join(l *listener, channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return
	}
	f.mu.joined++
	if f.mu.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f.mu.cancel = cancel
		sub := f.cat.SubscribeCommits()
		f.forget(sub.Cursor() + 1)
		f.queue, f.allow = nil, newAllowance(time.Now())
		f.wg.Add(1)
		go func() {
			defer f.wg.Done()
			defer sub.Close()
			f.run(ctx, sub)
		}()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.commits = append(l.mu.commits, commitChannel{channel, f.cat.CommitSeq()})
	slices.SortFunc(l.mu.commits, func(a, b commitChannel) int { return cmp.Compare(a.name, b.name) })
}

// leave takes back one join.
func (f *commitFeed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.joined--; f.mu.joined == 0 {
		f.stopLocked()
	}
}

// stopLocked ends the feed's goroutine, which takes no lock of the feed's, and waits for it.
func (f *commitFeed) stopLocked() {
	if f.mu.cancel != nil {
		f.mu.cancel()
		f.mu.cancel = nil
		f.wg.Wait()
	}
}

// close stops the feed and waits for it.
func (f *commitFeed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.stopLocked()
}

// run is the feed's goroutine, until ctx or the catalog ends.
func (f *commitFeed) run(ctx context.Context, sub *catalog.Subscription) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for {
			ev, ok, err := sub.TryNext()
			if err != nil {
				return // the catalog is closed
			}
			if !ok {
				break
			}
			f.take(ctx, ev)
		}
		var later <-chan time.Time
		if wait := f.wake(time.Now()); wait > 0 {
			timer.Reset(wait)
			later = timer.C
		}
		select {
		case <-sub.C():
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

// take remembers what an event brought and marks who is to be told.
func (f *commitFeed) take(ctx context.Context, ev catalog.Event) {
	if !ev.Lagged {
		f.tell(ev.Record)
		return
	}
	// The subscription was overrun: the log has what it lost, of which the newest are remembered.
	after := ev.To - min(ev.To, feedSize)
	if after <= ev.From {
		after = ev.From
	} else {
		f.forget(after + 1)
		f.hub.all(func(l *listener) { f.markLost(l, ev.From+1, after) })
	}
	for after < ev.To {
		records, err := f.cat.CommitsSince(ctx, after, 256)
		if err != nil && ctx.Err() == nil {
			f.log.Error().Err(err).Msg("commit feed: read the log")
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			f.tell(r)
		}
		after = records[len(records)-1].Seq
	}
}

// forget makes the feed begin with the commit next.
func (f *commitFeed) forget(next uint64) {
	f.news.Lock()
	defer f.news.Unlock()
	clear(f.news.ring[:])
	f.news.first, f.news.next = next, next
}

// tell remembers a commit and marks the sessions on its channels.
func (f *commitFeed) tell(r *catalog.Record) {
	f.allow.committed(time.Now())
	n := newNews(r, f.hub.listened)
	f.news.Lock()
	if r.Seq < f.news.next { // told when the log was read
		f.news.Unlock()
		return
	}
	if r.Seq > f.news.next {
		f.news.first = r.Seq
	}
	f.news.ring[r.Seq%feedSize], f.news.next = n, r.Seq+1
	f.news.first = max(f.news.first, f.news.next-min(f.news.next, feedSize))
	f.news.Unlock()
	if n.all != nil {
		f.hub.stir(sqlfuncs.CommitsChannel, func(l *listener) bool { return f.mark(l, r.Seq, sqlfuncs.CommitsChannel) })
	}
	for channel := range n.tables {
		f.hub.stir(channel, func(l *listener) bool { return f.mark(l, r.Seq, channel) })
	}
}

// mark notes that a session is to be told of a commit on a channel, and that it has to be woken. It reports whether the session is marked.
func (f *commitFeed) mark(l *listener, seq uint64, channel string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.pending != 0 {
		return true
	}
	if seq <= l.mu.told {
		return false
	}
	for _, c := range l.mu.commits {
		if c.name == channel && seq > c.after {
			l.mu.pending = seq
			f.queue = append(f.queue, l)
			return true
		}
	}
	return false
}

// markLost is mark for commits in [from, to] of which nobody knows whether they are the session's.
func (f *commitFeed) markLost(l *listener, from, to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.pending != 0 || len(l.mu.commits) == 0 {
		return
	}
	seq := max(from, l.mu.told+1)
	first := l.mu.commits[0].after
	for _, c := range l.mu.commits {
		first = min(first, c.after)
	}
	if seq = max(seq, first+1); seq <= to {
		l.mu.pending = seq
		f.queue = append(f.queue, l)
	}
}

// wake wakes as many sessions as it is allowed, and returns when there will be more to do: 0 for never.
func (f *commitFeed) wake(now time.Time) time.Duration {
	n := f.allow.take(now, len(f.queue))
	for _, l := range f.queue[:n] {
		l.wire.Wake()
	}
	f.queue = f.queue[:copy(f.queue, f.queue[n:])]
	clear(f.queue[len(f.queue) : len(f.queue)+n])
	if len(f.queue) == 0 {
		return 0
	}
	return f.allow.wait(now, len(f.queue))
}

// feedChunk is about how many bytes a session takes at once.
const feedChunk = 64 << 10

// append appends what a session is to be told, in the order of the commits, and reports whether there is more. A session that comes too
// late for all of it gets one lagged notice a channel in place of everything.
func (f *commitFeed) append(l *listener, dst []byte) (_ []byte, more bool) {
	l.mu.Lock()
	from, channels := l.mu.pending, slices.Clone(l.mu.commits)
	l.mu.pending = 0
	l.mu.Unlock()
	if from == 0 {
		return dst, false
	}
	// Before the newest commit is looked for: one that comes now is found, or marks the session again, or both.
	f.hub.calm(l, channels)
	dst, told, more := f.since(dst, from, channels)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.told = told
	if more {
		l.mu.pending = told + 1
	}
	return dst, more
}

// since appends the remembered commits from a seq on, and returns the last it has told.
func (f *commitFeed) since(dst []byte, from uint64, channels []commitChannel) (_ []byte, told uint64, more bool) {
	f.news.RLock()
	defer f.news.RUnlock()
	last := f.news.next - 1
	if from < f.news.first {
		payload := laggedPayload(from-1, last)
		for _, c := range channels {
			if c.after < last {
				dst = pgwire.AppendNotification(dst, 0, c.name, payload)
			}
		}
		return dst, last, false
	}
	full := len(dst) + feedChunk
	for seq := from; seq <= last; seq++ {
		if len(dst) >= full {
			return dst, seq - 1, true
		}
		n := f.news.ring[seq%feedSize]
		for _, c := range channels {
			if seq > c.after {
				dst = n.append(dst, c.name)
			}
		}
	}
	return dst, last, false
}

// AppendNotifications implements pgwire.Notifier.
func (s *session) AppendNotifications(dst []byte) ([]byte, bool) {
	return s.gw.feed.append(s.listener, dst)
}

// allowance bounds how often sessions are woken. To wake one, and its client, takes 50 to 150 µs of processor time: a thousand listeners would
// take all of it from the commits that they are told of. A few are always woken at once. More of them take turns while commits come, and
// hear with their turn what came since the last one; when no commit came for a moment, the rest is woken fast.
type allowance struct {
	left   float64 // sessions that may be woken
	filled time.Time
	commit time.Time // when the last one came
}

const (
	fewWakes        = 16   // sessions that are woken whatever is left
	mostWakes       = 1000 // what is left after quiet
	wakesPerCommit  = 2
	wakesPerSecond  = 100  // while commits come
	quietWakes      = 2000 // a second and processor, while none come
	quietAfter      = 25 * time.Millisecond
	worthTheWaiting = 32 // sessions
)

func newAllowance(now time.Time) allowance { return allowance{left: mostWakes, filled: now} }

func (a *allowance) committed(now time.Time) {
	a.left += wakesPerCommit
	a.commit = now
}

// rate is how many may be woken a second.
func (a *allowance) rate(now time.Time) float64 {
	if now.Sub(a.commit) < quietAfter {
		return wakesPerSecond
	}
	return quietWakes * float64(runtime.GOMAXPROCS(0))
}

// take returns how many of n may be woken now.
func (a *allowance) take(now time.Time, n int) int {
	a.left = min(mostWakes, a.left+now.Sub(a.filled).Seconds()*a.rate(now))
	a.filled = now
	if n > fewWakes {
		n = min(n, int(a.left))
	}
	a.left = max(0, a.left-float64(n))
	return n
}

// wait is how long it takes until some of n may be woken.
func (a *allowance) wait(now time.Time, n int) time.Duration {
	missing := max(0, float64(min(n, worthTheWaiting))-a.left)
	wait := time.Duration(missing / a.rate(now) * float64(time.Second))
	if quiet := a.commit.Add(quietAfter).Sub(now); quiet > 0 {
		wait = min(wait, quiet)
	}
	return wait + time.Millisecond
}
