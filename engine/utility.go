package engine

import (
	"context"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// utilityPortal makes the portal of a statement that is neither SELECT nor DML.
func (s *session) utilityPortal(ctx context.Context, b binding) (pgwire.Portal, error) {
	if b.p.stmt.Kind == pgsql.TransactionStmt {
		u, err := pgsql.Utility(b.p.stmt)
		if err != nil {
			return nil, err
		}
		return s.command(func(ctx context.Context, w pgwire.Writer) (string, error) {
			tag, err := s.transaction(ctx, w, u.(*pgsql.Transaction))
			if tag == "BEGIN" {
				tag = b.p.stmt.Tag
			}
			return tag, err
		}), nil
	}
	switch u := b.p.util.(type) {
	case *pgsql.Show:
		return s.show(b, u), nil
	case *pgsql.Explain:
		return s.explain(b, u), nil
	case *pgsql.Fetch:
		return s.fetch(b, u)
	case *pgsql.Execute:
		return s.execute(ctx, b, u)
	case *pgsql.Copy:
		return s.copyPortal(b, u), nil
	}
	run, err := s.simpleCommand(b)
	if err != nil {
		return nil, err
	}
	return s.command(run), nil
}

func (s *session) command(run func(ctx context.Context, w pgwire.Writer) (string, error)) pgwire.Portal {
	return &commandPortal{s: s, run: run}
}

type commandFunc = func(ctx context.Context, w pgwire.Writer) (string, error)

// simpleCommand is the statements that run in one go and return a tag.
func (s *session) simpleCommand(b binding) (commandFunc, error) {
	tag := func(t string, f func() error) commandFunc {
		return func(context.Context, pgwire.Writer) (string, error) { return t, f() }
	}
	switch u := b.p.util.(type) {
	case *pgsql.Set:
		return func(_ context.Context, w pgwire.Writer) (string, error) { return s.set(w, u, b.p.stmt.Tag) }, nil
	case *pgsql.Discard:
		return func(ctx context.Context, _ pgwire.Writer) (string, error) { return s.discard(ctx, u) }, nil
	case *pgsql.Prepare:
		return func(ctx context.Context, _ pgwire.Writer) (string, error) { return "PREPARE", s.prepareSQL(ctx, b, u) }, nil
	case *pgsql.Deallocate:
		return func(context.Context, pgwire.Writer) (string, error) { return s.deallocate(u) }, nil
	case *pgsql.Declare:
		return func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "DECLARE CURSOR", s.declare(ctx, w, b, u)
		}, nil
	case *pgsql.CloseCursor:
		return func(context.Context, pgwire.Writer) (string, error) { return s.closeCursor(u) }, nil
	case *pgsql.Listen:
		return tag("LISTEN", func() error { s.tx.listens = append(s.tx.listens, listenOp{u.Channel, true}); return nil }), nil
	case *pgsql.Unlisten:
		ch := u.Channel
		if ch == "" {
			ch = "*"
		}
		return tag("UNLISTEN", func() error { s.tx.listens = append(s.tx.listens, listenOp{ch, false}); return nil }), nil
	case *pgsql.Notify:
		return tag("NOTIFY", func() error { return s.notify(u.Channel, u.Payload) }), nil
	case *pgsql.Lock:
		return func(ctx context.Context, _ pgwire.Writer) (string, error) { return "LOCK TABLE", s.lockTables(ctx, u) }, nil
	case *pgsql.Vacuum:
		return func(ctx context.Context, w pgwire.Writer) (string, error) { return s.vacuum(ctx, w, u) }, nil
	}
	if b.p.stmt.Kind == pgsql.CheckpointStmt {
		return tag("CHECKPOINT", func() error { return nil }), nil
	}
	return s.ddlCommand(b)
}

// notify queues a notification for commit.
func (s *session) notify(channel, payload string) error {
	switch {
	case channel == "":
		return pgerr.New(pgerr.InvalidParameterValue, "channel name cannot be empty")
	case len(channel) > 63:
		return pgerr.New(pgerr.InvalidParameterValue, "channel name too long")
	case len(payload) >= 8000:
		return pgerr.New(pgerr.InvalidParameterValue, "payload string too long")
	case isCommitChannel(channel):
		return pgerr.Newf(pgerr.InsufficientPrivilege, "channel \"%s\" carries commits only", channel).WithHint("Channels whose names begin with skade_commits are the gateway's own.")
	}
	s.tx.notifies = append(s.tx.notifies, notification{channel, payload})
	return nil
}

// set runs SET, RESET and SET TRANSACTION.
func (s *session) set(w pgwire.Writer, u *pgsql.Set, tag string) (string, error) {
	switch {
	case u.Transaction != nil && u.Name == "transaction":
		if !s.tx.explicit {
			w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.NoActiveSQLTransaction, Message: "SET TRANSACTION can only be used in transaction blocks"})
		}
		return "SET", s.setModes(u.Transaction)
	case u.Transaction != nil:
		if m := u.Transaction; m.Isolation != "" {
			if err := s.gucs.set("default_transaction_isolation", m.Isolation, false); err != nil {
				return "", err
			}
		}
		if m := u.Transaction; m.ReadOnly != nil {
			return "SET", s.gucs.set("default_transaction_read_only", onOff(*m.ReadOnly), false)
		}
		return "SET", nil
	case u.Reset:
		if err := s.mayChangeBranch(u.Name, ""); err != nil {
			return "", err
		}
		return tag, s.gucs.reset(u.Name)
	}
	if u.Local && !s.tx.explicit {
		w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.NoActiveSQLTransaction, Message: "SET LOCAL can only be used in transaction blocks"})
	}
	switch u.Name {
	case "transaction_isolation":
		return "SET", s.setModes(&pgsql.TransactionModes{Isolation: strings.ToLower(u.Value)})
	case "role", "session_authorization":
		if v := strings.ToLower(u.Value); v == "none" || u.Value == s.user() || v == "default" {
			return "SET", nil
		}
		return "", pgerr.Newf(pgerr.FeatureNotSupported, "SET %s to another role is not supported", strings.ToUpper(strings.ReplaceAll(u.Name, "_", " ")))
	case "skade.as_of":
		if s.tx.wrote {
			return "", pgerr.New(pgerr.ActiveSQLTransaction, "skade.as_of cannot be set in a transaction that has written")
		}
	case "skade.branch":
		if err := s.mayChangeBranch(u.Name, u.Value); err != nil {
			return "", err
		}
	}
	return "SET", s.gucs.set(u.Name, u.Value, u.Local)
}

// show makes SHOW's rows.
func (s *session) show(b binding, u *pgsql.Show) pgwire.Portal {
	var rows [][]string
	if u.Name == "all" {
		for _, st := range settings {
			v, _ := s.gucs.show(st.name)
			rows = append(rows, []string{st.name, v, st.desc})
		}
	} else {
		v, _ := s.gucs.show(u.Name)
		if u.Name == "transaction_isolation" && s.tx != nil {
			v = s.tx.isolation()
		}
		if u.Name == "transaction_read_only" && s.tx != nil {
			v = onOff(s.tx.readOnly())
		}
		rows = [][]string{{v}}
	}
	return s.textRows(b.cols, rows, func(int64) string { return "SHOW" })
}

// textRows streams rows of text columns.
func (s *session) textRows(cols []pgwire.Column, rows [][]string, tag func(int64) string) pgwire.Portal {
	return &streamPortal{s: s, cols: cols, tag: tag, open: func(context.Context, pgwire.Writer) (rowSource, error) {
		return &textSource{rows: rows}, nil
	}}
}

// textSource is a rowSource of text fields: the binary form of text is the same bytes.
type textSource struct{ rows [][]string }

func (t *textSource) appendRows(_ context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	n := len(t.rows)
	if limit > 0 && limit < n {
		n = limit
	}
	for _, row := range t.rows[:n] {
		dst = appendTextRow(dst, row)
	}
	t.rows = t.rows[n:]
	return dst, n, len(t.rows) == 0, nil
}

func (t *textSource) close() {}

// discard runs DISCARD.
func (s *session) discard(ctx context.Context, u *pgsql.Discard) (string, error) {
	if u.What != "all" {
		if u.What == "plans" {
			for _, st := range s.startup.Prepared.All() {
				if p, ok := st.Statement.(*prepared); ok {
					p.dropPlan()
				}
			}
		}
		if u.What == "sequences" {
			s.sequences.forget()
		}
		if u.What == "temp" {
			if err := s.discardTemp(ctx); err != nil {
				return "", err
			}
		}
		return "DISCARD " + strings.ToUpper(u.What), nil
	}
	if s.tx.explicit {
		return "", pgerr.New(pgerr.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
	}
	for name := range s.cursors {
		s.dropCursor(name)
	}
	s.sequences.forget()
	s.startup.Prepared.DeleteAll()
	if err := s.discardTemp(ctx); err != nil {
		return "", err
	}
	s.tx.listens = append(s.tx.listens, listenOp{"*", false})
	return "DISCARD ALL", s.gucs.reset("all")
}

// prepareSQL runs PREPARE.
func (s *session) prepareSQL(ctx context.Context, b binding, u *pgsql.Prepare) error {
	if s.startup.Prepared.Has(u.Name) {
		return pgerr.Newf(pgerr.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", u.Name)
	}
	p := &prepared{s: s, stmt: u.Stmt, text: b.p.text, given: u.Types}
	if err := s.analyze(ctx, p); err != nil {
		return err
	}
	return s.startup.Prepared.Put(&pgwire.PreparedStatement{Name: u.Name, Statement: p, SQL: b.p.stmt.Text, Time: time.Now(), FromSQL: true})
}

// executed is the statement that an EXECUTE inside another statement means, with its arguments.
func (s *session) executed(ctx context.Context, b binding, st *pgsql.Stmt) (binding, error) {
	u, err := pgsql.Utility(st)
	if err != nil {
		return binding{}, err
	}
	return s.bindPrepared(ctx, b, u.(*pgsql.Execute))
}

// execute binds a statement of PREPARE.
func (s *session) execute(ctx context.Context, b binding, u *pgsql.Execute) (pgwire.Portal, error) {
	ctx, done := s.watch(ctx)
	defer done()
	ex, err := s.bindPrepared(ctx, b, u)
	if err != nil {
		return nil, s.sqlError(ctx, err)
	}
	return s.portal(ctx, ex.p, ex.args, formatsOf(b.cols))
}

func (s *session) bindPrepared(ctx context.Context, b binding, u *pgsql.Execute) (binding, error) {
	p, err := s.sqlPrepared(u.Name)
	if err != nil {
		return binding{}, err
	}
	if err := s.refresh(ctx, p); err != nil {
		return binding{}, err
	}
	if u.N != len(p.params) {
		return binding{}, pgerr.Newf(pgerr.SyntaxError, "wrong number of parameters for prepared statement \"%s\"", u.Name).
			WithDetail("Expected %d parameters but got %d.", len(p.params), u.N)
	}
	as, err := u.Arguments(p.params, &resolver{ctx: ctx, s: s})
	if err != nil {
		return binding{}, err
	}
	vals, err := s.evaluateNative(ctx, as, b.args)
	return binding{p: p, args: vals, cols: p.cols}, err
}

func (s *session) deallocate(u *pgsql.Deallocate) (string, error) {
	if u.All {
		s.startup.Prepared.DeleteAll()
		return "DEALLOCATE ALL", nil
	}
	if !s.startup.Prepared.Delete(u.Name) {
		return "", pgerr.Newf(pgerr.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", u.Name)
	}
	return "DEALLOCATE", nil
}

// sqlPrepared finds a statement that PREPARE or Parse named.
func (s *session) sqlPrepared(name string) (*prepared, error) {
	st, err := s.startup.Prepared.Get(name)
	if err != nil {
		return nil, err
	}
	p, ok := st.Statement.(*prepared)
	if !ok || p.stmt == nil {
		return nil, pgerr.Newf(pgerr.InvalidSQLStatementName, "prepared statement \"%s\" cannot be executed", name)
	}
	return p, nil
}
