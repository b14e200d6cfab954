package engine

import (
	"sync"
	"time"

	"github.com/nordisk/skade-pg/engine/pgcatalog"
)

// activity is a session's row of pg_stat_activity. Other sessions read it.
type activity struct {
	sync.Mutex
	b pgcatalog.Backend
}

func (a *activity) begin(s *session) {
	a.b = pgcatalog.Backend{
		PID: s.startup.PID, Database: s.gw.database, User: s.user(), ApplicationName: s.gucs.now.application,
		ClientAddr: hostOf(s.startup.Identity.RemoteAddr), ClientPort: portOf(s.startup.Identity.RemoteAddr),
		BackendStart: s.started, StateSince: s.started, State: "idle", BackendType: "client backend", WaitEventType: "Client", WaitEvent: "ClientRead",
	}
}

// query notes the statement that runs now.
func (a *activity) query(text string) {
	a.Lock()
	defer a.Unlock()
	now := time.Now()
	if len(text) > 1024 {
		text = text[:1024]
	}
	a.b.Query, a.b.QueryStart, a.b.State, a.b.StateSince = text, now, "active", now
	a.b.WaitEventType, a.b.WaitEvent = "", ""
}

// transaction notes the start of a transaction; the zero time its end.
func (a *activity) transaction(start time.Time) {
	a.Lock()
	defer a.Unlock()
	a.b.XactStart = start
}

// idle notes that the session waits for its client, or does not.
func (a *activity) idle(s *session, idle bool) {
	a.Lock()
	defer a.Unlock()
	a.b.ApplicationName = s.gucs.now.application
	if !idle {
		return
	}
	a.b.State = "idle"
	switch s.TxStatus() {
	case 'T':
		a.b.State = "idle in transaction"
	case 'E':
		a.b.State = "idle in transaction (aborted)"
	}
	a.b.StateSince = time.Now()
	a.b.WaitEventType, a.b.WaitEvent = "Client", "ClientRead"
}

// activity lists the sessions by pid.
func (gw *Gateway) activity() []pgcatalog.Backend {
	sessions := gw.sessionList()
	out := make([]pgcatalog.Backend, len(sessions))
	for i, s := range sessions {
		s.act.Lock()
		out[i] = s.act.b
		s.act.Unlock()
	}
	return out
}
