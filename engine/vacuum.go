package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// vacuum maintains the named tables, or every table. ANALYZE has nothing to gather: bounds and counts are exact in the manifests.
func (s *session) vacuum(ctx context.Context, w pgwire.Writer, u *pgsql.Vacuum) (string, error) {
	if u.Analyze {
		for _, n := range u.Tables {
			if _, err := s.findTable(ctx, n); err != nil {
				return "", err
			}
		}
		return "ANALYZE", nil
	}
	if s.tx.explicit {
		return "", pgerr.New(pgerr.ActiveSQLTransaction, "VACUUM cannot run inside a transaction block")
	}
	if s.tx.readOnly() {
		return "", pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute VACUUM in a read-only transaction")
	}
	var idents []table.Identifier
	for _, n := range u.Tables {
		t, err := s.findTable(ctx, n)
		if err != nil {
			return "", err
		}
		if t.Private() { // what VACUUM does for others happens at the end of each transaction
			continue
		}
		idents = append(idents, slices.Clone(t.Ident()))
	}
	if len(u.Tables) == 0 {
		for t := range s.gw.catalog.Cut().AllTables() {
			if t.Mounted() {
				continue
			}
			idents = append(idents, t.Ident)
		}
	}
	s.tx.unpin() // the statement reads no table itself: its own cut must not keep what it removes
	for _, id := range idents {
		if err := s.vacuumTable(ctx, w, id, u, len(u.Tables) == 0); err != nil {
			return "", err
		}
	}
	if len(u.Tables) == 0 {
		if err := s.gw.upkeep.purgeDropped(ctx); err != nil {
			return "", err
		}
	}
	return "VACUUM", s.gw.upkeep.removeExpired(ctx)
}

func (s *session) vacuumTable(ctx context.Context, w pgwire.Writer, id table.Identifier, u *pgsql.Vacuum, all bool) error {
	name := s.gw.database + "." + schemaOf(id) + "." + id[len(id)-1]
	info := func(text string) {
		if u.Verbose {
			w.Notice(&pgerr.Error{Severity: pgerr.SevInfo, Code: pgerr.SuccessfulCompletion, Message: text})
		}
	}
	release, err := s.lockForVacuum(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	info(fmt.Sprintf("vacuuming \"%s\"", name))
	m := maintenance{ident: id, full: u.Full, progress: &vacuumProgress{pid: s.startup.PID}}
	report, err := s.gw.upkeep.vacuum(ctx, m)
	switch {
	case err == nil:
		info(fmt.Sprintf("finished vacuuming \"%s\"\n%s", name, report))
		return nil
	case all && ctx.Err() == nil && (errors.Is(err, warehouse.ErrInvalidTable) || notFound(err)):
		if !notFound(err) { // dropped since is no news
			w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.Warning, Message: fmt.Sprintf("skipping \"%s\" --- it cannot be written", id[len(id)-1])})
		}
		return nil
	}
	return err
}

// vacuum is maintain with its report.
func (u *upkeep) vacuum(ctx context.Context, m maintenance) (*maintenanceReport, error) {
	state, err := u.gw.catalog.Cut().Table(m.ident)
	if err != nil {
		return nil, err
	}
	m.gw, m.key = u.gw, state.Key
	if err := u.take(ctx, &m); err != nil {
		return nil, err
	}
	defer u.give(m.key)
	err = m.run(ctx)
	return &m.report, err
}

// vacuums are the rows of skade.stat_progress_vacuum.
func (gw *Gateway) vacuums() []sqlfuncs.VacuumProgress {
	gw.upkeep.mu.Lock()
	var all []*vacuumProgress
	for _, p := range gw.upkeep.mu.busy {
		all = append(all, p)
	}
	gw.upkeep.mu.Unlock()
	out := make([]sqlfuncs.VacuumProgress, len(all))
	for i, p := range all {
		p.mu.Lock()
		st := p.mu.p
		p.mu.Unlock()
		out[i] = sqlfuncs.VacuumProgress{PID: p.pid, Ident: st.ident, Phase: st.phase, Started: st.started, RowsDone: st.done, RowsTotal: st.total}
	}
	slices.SortFunc(out, func(a, b sqlfuncs.VacuumProgress) int { return slices.Compare(a.Ident, b.Ident) })
	return out
}
