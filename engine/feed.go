package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// isCommitChannel reports whether the gateway itself speaks on a channel.
func isCommitChannel(channel string) bool { return strings.HasPrefix(channel, sqlfuncs.CommitsChannel) }

// maxPayload is PostgreSQL's limit: a payload is shorter than 8,000 bytes.
const maxPayload = 7999

// commitFeed turns commits into notifications for the sessions that LISTEN. It subscribes to the catalog when the first
// session does and unsubscribes after the last: without listeners a commit costs nothing here.
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
	wg sync.WaitGroup
}

func newCommitFeed(cat *catalog.Catalog, log zerolog.Logger) *commitFeed {
	return &commitFeed{cat: cat, log: log}
}

// join counts a registration on a commit channel. Commits after the seq current now will be told.
func (f *commitFeed) join(l *listener) {
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
		f.wg.Add(1)
		go func() {
			defer f.wg.Done()
			defer sub.Close()
			f.run(ctx, sub)
		}()
	}
	l.mu.Lock()
	if l.mu.after == 0 {
		l.mu.after = f.cat.CommitSeq()
	}
	l.mu.Unlock()
}

// leave takes back one join.
func (f *commitFeed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.joined--; f.mu.joined == 0 && f.mu.cancel != nil {
		f.mu.cancel()
		f.mu.cancel = nil
	}
}

// close stops the feed and waits for it.
func (f *commitFeed) close() {
	f.mu.Lock()
	f.mu.closed = true
	if f.mu.cancel != nil {
		f.mu.cancel()
		f.mu.cancel = nil
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *commitFeed) run(ctx context.Context, sub *catalog.Subscription) {
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				f.log.Error().Err(err).Msg("commit feed")
			}
			return
		}
		if !ev.Lagged {
			f.tell(ev.Record)
			continue
		}
		// The ring was overrun: the log has what it lost.
		for after := ev.From; after < ev.To; {
			records, err := f.cat.CommitsSince(ctx, after, 256)
			if err != nil || len(records) == 0 {
				if err != nil && ctx.Err() == nil {
					f.log.Error().Err(err).Msg("commit feed: read the log")
				}
				break
			}
			for _, r := range records {
				if r.Seq > ev.To {
					break
				}
				f.tell(r)
			}
			after = records[len(records)-1].Seq
		}
	}
}

// tell sends one commit to the listeners of its channels.
func (f *commitFeed) tell(r *catalog.Record) {
	all := f.hub.listenersOf(sqlfuncs.CommitsChannel)
	var payload string
	send := func(ls []*listener, channel string) {
		for _, l := range ls {
			if payload == "" {
				payload = commitPayload(r)
			}
			f.deliver(l, channel, payload, r.Seq)
		}
	}
	if !ownTables(r) {
		send(all, sqlfuncs.CommitsChannel)
	}
	for i := range r.Tables {
		if key := r.Tables[i].Key; key != "" {
			channel := sqlfuncs.ChannelOf(key)
			send(f.hub.listenersOf(channel), channel)
		}
	}
}

// ownTables reports a commit to the gateway's own tables only: told on their own channels, not to everyone.
func ownTables(r *catalog.Record) bool {
	for i := range r.Tables {
		if len(r.Tables[i].Ident) == 0 || r.Tables[i].Ident[0] != "skade" {
			return false
		}
	}
	return len(r.Tables) > 0
}

// deliver queues one notification. A client whose queue is full gets one lagged notice later, in place of what it lost.
func (f *commitFeed) deliver(l *listener, channel, payload string, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.mu.after {
		return
	}
	if l.mu.lostFrom != 0 && !l.tellLaggedLocked() {
		l.mu.lostTo = seq
		return
	}
	if !l.wire.Notify(l.pid, channel, payload) {
		l.mu.lostFrom, l.mu.lostTo, l.mu.lostOn = seq, seq, channel
	}
}

// NotifyDrained implements pgwire.Drained: a client that only listens runs no statement after which it could be told.
func (s *session) NotifyDrained() { s.gw.feed.retry(s.listener) }

// retry tells a client that is idle again what it lost.
func (f *commitFeed) retry(l *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.lostFrom != 0 {
		l.tellLaggedLocked()
	}
}

// tellLaggedLocked sends the lagged notice; false: the queue is still full.
func (l *listener) tellLaggedLocked() bool {
	b, err := json.Marshal(struct {
		V      int    `json:"v"`
		Lagged bool   `json:"lagged"`
		From   string `json:"from"`
		To     string `json:"to"`
	}{1, true, strconv.FormatUint(l.mu.lostFrom-1, 10), strconv.FormatUint(l.mu.lostTo, 10)})
	if err != nil || !l.wire.Notify(l.pid, l.mu.lostOn, string(b)) {
		return false
	}
	l.mu.lostFrom, l.mu.lostTo = 0, 0
	return true
}

type payloadTable struct {
	T    string `json:"t"`
	Snap string `json:"snap,omitempty"`
	Op   string `json:"op"`
	Ins  int64  `json:"ins"`
	Del  int64  `json:"del"`
}

// commitPayload is the JSON of a commit: ids as strings, since a JavaScript number cannot hold them. When it would be too long
// tables are cut ("more": true), never the seq.
func commitPayload(r *catalog.Record) string {
	p := struct {
		V      int            `json:"v"`
		Seq    string         `json:"seq"`
		TS     string         `json:"ts"`
		Tables []payloadTable `json:"tables"`
		More   bool           `json:"more,omitempty"`
	}{V: 1, Seq: strconv.FormatUint(r.Seq, 10), TS: r.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), Tables: []payloadTable{}}
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Key == "" { // a namespace or a view
			continue
		}
		e := payloadTable{T: strings.Join(t.Ident, "."), Op: t.Operation, Ins: t.RowsAdded, Del: t.RowsDeleted}
		if e.Op == "" {
			e.Op = t.Kind
		}
		if t.SnapshotID != nil {
			e.Snap = strconv.FormatInt(*t.SnapshotID, 10)
		}
		p.Tables = append(p.Tables, e)
	}
	for {
		b, err := json.Marshal(p)
		if err != nil { // strings and numbers always encode
			panic(err)
		}
		if len(b) <= maxPayload {
			return string(b)
		}
		p.More = true
		p.Tables = p.Tables[:len(p.Tables)/2]
	}
}
