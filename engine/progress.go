package engine

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// progress is how far a statement that writes, or a COPY, has come. Its session counts; other sessions read it in pg_stat_progress_copy
// and skade.progress.
type progress struct {
	command string // COPY FROM, COPY TO, INSERT, UPDATE, DELETE, MERGE, CREATE TABLE AS, COMMIT
	table   string // "" for COPY (query) TO
	oid     uint32
	started time.Time
	tx      *warehouse.Tx // nil for COPY TO
	// rows are those read from the source: from the client, or from the statement's query. bytes are COPY's data.
	rows, bytes atomic.Int64
}

// track begins a statement's progress; the returned function ends it. A statement inside another counts for that one.
func (s *session) track(command string, rel *pgsql.Relation, tx *warehouse.Tx) (*progress, func()) {
	if p := s.prog.Load(); p != nil {
		return p, func() {}
	}
	p := &progress{command: command, started: time.Now(), tx: tx}
	if rel != nil {
		p.table, p.oid = quoteIdent(rel.Schema)+"."+quoteIdent(rel.Name), rel.OID
	}
	s.prog.Store(p)
	return p, func() { s.prog.Store(nil) }
}

// count adds the rows of a batch to the running statement's.
func (s *session) count(rec arrow.RecordBatch) {
	if p := s.prog.Load(); p != nil {
		p.rows.Add(rec.NumRows())
	}
}

// countingReader counts COPY's bytes.
type countingReader struct {
	io.Reader
	p *progress
}

func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.p.bytes.Add(int64(n))
	return n, err
}

// eachProgress yields the running statements by pid.
func (gw *Gateway) eachProgress(yield func(pid int32, p *progress)) {
	for _, b := range gw.sessionList() {
		if p := b.prog.Load(); p != nil {
			yield(b.startup.PID, p)
		}
	}
}

func (gw *Gateway) sessionList() []*session {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	out := make([]*session, 0, len(gw.mu.sessions))
	for _, s := range gw.mu.sessions {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *session) int { return int(a.startup.PID) - int(b.startup.PID) })
	return out
}

// Copies implements pgcatalog.Session.
func (v *catalogView) Copies() []pgcatalog.CopyProgress {
	var out []pgcatalog.CopyProgress
	v.s.gw.eachProgress(func(pid int32, p *progress) {
		if p.command != "COPY FROM" && p.command != "COPY TO" {
			return
		}
		out = append(out, pgcatalog.CopyProgress{PID: pid, Database: v.s.gw.database, Relation: p.oid, Command: p.command, Type: "PIPE", Bytes: p.bytes.Load(), Tuples: p.rows.Load()})
	})
	return out
}

// progressRows are the rows of skade.progress.
func (s *session) progressRows() []sqlfuncs.Progress {
	var out []sqlfuncs.Progress
	s.gw.eachProgress(func(pid int32, p *progress) {
		r := sqlfuncs.Progress{PID: pid, Table: p.table, Command: p.command, Phase: "reading", Started: p.started, Rows: p.rows.Load()}
		if p.tx != nil {
			w := p.tx.Written()
			r.Files, r.Written, r.Bytes = w.Files, w.Rows, w.Bytes
			switch {
			case p.command == "COMMIT":
				r.Phase = "committing"
			case w.Writing:
				r.Phase = "writing files"
			}
		}
		out = append(out, r)
	})
	return out
}

// slowStatement is how long a statement runs before the server's log has a line about it.
const slowStatement = 5 * time.Second

// logSlow notes a statement that took long, when it is done.
func (s *session) logSlow(ctx context.Context, started time.Time) {
	took := time.Since(started)
	if took < slowStatement {
		return
	}
	s.act.Lock()
	query := s.act.b.Query
	s.act.Unlock()
	s.gw.log.Info().Int32("pid", s.startup.PID).Str("user", s.user()).Dur("took", took).Bool("cancelled", ctx.Err() != nil).Str("statement", query).Msg("long statement")
}
