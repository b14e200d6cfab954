package engine

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// maxPayload is PostgreSQL's limit: a payload is shorter than 8,000 bytes.
const maxPayload = 7999

// commitNews is a commit as listeners are told of it. It holds no more than they need, so that commits of many tables can be remembered.
type commitNews struct {
	payload string // the same on all channels; "" when nobody listens
	// all is the message on the channel of all commits, nil when it is not told there. It is made once: a thousand sessions may take it.
	all []byte
	// tables are the channels of its tables on which somebody listens.
	tables map[string]struct{}
}

// newNews makes news of a commit for the channels that listened reports.
func newNews(r *catalog.Record, listened func(channel string) bool) *commitNews {
	n := &commitNews{}
	all := !ownTables(r) && listened(sqlfuncs.CommitsChannel)
	for i := range r.Tables {
		key := r.Tables[i].Key
		if key == "" {
			continue
		}
		if channel := sqlfuncs.ChannelOf(key); listened(channel) {
			if n.tables == nil {
				n.tables = map[string]struct{}{}
			}
			n.tables[channel] = struct{}{}
		}
	}
	if all || n.tables != nil {
		n.payload = commitPayload(r)
	}
	if all {
		n.all = pgwire.AppendNotification(nil, 0, sqlfuncs.CommitsChannel, n.payload)
	}
	return n
}

// append appends the message on a channel, if it is told there.
func (n *commitNews) append(dst []byte, channel string) []byte {
	if channel == sqlfuncs.CommitsChannel {
		return append(dst, n.all...)
	}
	if _, ok := n.tables[channel]; ok {
		return pgwire.AppendNotification(dst, 0, channel, n.payload)
	}
	return dst
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

// laggedPayload tells a listener that came too late to read (from, to] with commits_since.
func laggedPayload(from, to uint64) string {
	b, err := json.Marshal(struct {
		V      int    `json:"v"`
		Lagged bool   `json:"lagged"`
		From   string `json:"from"`
		To     string `json:"to"`
	}{1, true, strconv.FormatUint(from, 10), strconv.FormatUint(to, 10)})
	if err != nil { // texts always encode
		panic(err)
	}
	return string(b)
}

type payloadTable struct {
	T    string `json:"t"`
	Snap string `json:"snap,omitempty"`
	Op   string `json:"op"`
	Ins  int64  `json:"ins"`
	Del  int64  `json:"del"`
}

// commitPayload is the JSON of a commit: ids as strings, since a JavaScript number cannot hold them. When it would be too long
// tables are left out ("more": true), never the seq.
func commitPayload(r *catalog.Record) string {
	const tail, more = `]}`, `],"more":true}`
	b := make([]byte, 0, 256)
	b = append(b, `{"v":1,"seq":"`...)
	b = strconv.AppendUint(b, r.Seq, 10)
	b = append(b, `","ts":"`...)
	b = r.Time.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","tables":[`...)
	empty := len(b)
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Key == "" { // a namespace or a view
			continue
		}
		entry := payloadEntry(t)
		if len(b)+1+len(entry)+len(more) > maxPayload {
			return string(append(b, more...))
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(b, entry...)
	}
	return string(append(b, tail...))
}

func payloadEntry(t *catalog.TableRecord) []byte {
	e := payloadTable{T: strings.Join(t.Ident, "."), Op: cmp.Or(t.Operation, t.Kind), Ins: t.RowsAdded, Del: t.RowsDeleted}
	if t.SnapshotID != nil {
		e.Snap = strconv.FormatInt(*t.SnapshotID, 10)
	}
	b, err := json.Marshal(e)
	if err != nil { // texts and numbers always encode
		panic(err)
	}
	return b
}
