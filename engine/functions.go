package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// sessionFunction is a function of pg_catalog that needs the session: it is called once, before the query runs.
type sessionFunction struct {
	sqlfuncs.Function
	call func(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error)
}

func arg(name string, oid uint32) sqlfuncs.Arg { return sqlfuncs.Arg{Name: name, OID: oid} }

var sessionFunctions []*sessionFunction

func init() {
	sessionFunctions = []*sessionFunction{
		{sqlfuncs.Function{Name: "pg_notify", Args: []sqlfuncs.Arg{arg("channel", pgtype.Text), arg("payload", pgtype.Text)}, Returns: pgtype.Void}, pgNotify},
		{sqlfuncs.Function{Name: "set_config", Args: []sqlfuncs.Arg{arg("name", pgtype.Text), arg("value", pgtype.Text), arg("is_local", pgtype.Bool)}, Returns: pgtype.Text}, setConfig},
		{sqlfuncs.Function{Name: "pg_cancel_backend", Args: []sqlfuncs.Arg{arg("pid", pgtype.Int4)}, Returns: pgtype.Bool, Strict: true}, cancelBackend},
		{sqlfuncs.Function{Name: "pg_terminate_backend", Args: []sqlfuncs.Arg{arg("pid", pgtype.Int4)}, Returns: pgtype.Bool, Strict: true}, terminateBackend},
		{sqlfuncs.Function{Name: "pg_sleep", Args: []sqlfuncs.Arg{arg("seconds", pgtype.Float8)}, Returns: pgtype.Void, Strict: true}, pgSleep},
	}
}

func void() *sqlfuncs.Value { return &sqlfuncs.Value{OID: pgtype.Text, Text: ""} }

func boolValue(b bool) *sqlfuncs.Value {
	if b {
		return &sqlfuncs.Value{OID: pgtype.Bool, Text: "t"}
	}
	return &sqlfuncs.Value{OID: pgtype.Bool, Text: "f"}
}

func pgNotify(_ context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	return void(), s.notify(args[0].Text, args[1].Text)
}

func setConfig(_ context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	name := args[0].Text
	if args[1].Null {
		if err := s.gucs.reset(name); err != nil {
			return nil, err
		}
	} else if err := s.gucs.set(name, args[1].Text, args[2].Text == "t"); err != nil {
		return nil, err
	}
	v, _ := s.gucs.show(name)
	return &sqlfuncs.Value{OID: pgtype.Text, Text: v}, nil
}

// backend finds another session; a warning, as PostgreSQL gives, when there is none.
func (s *session) backend(args []*sqlfuncs.Value) *session {
	pid, err := strconv.ParseInt(args[0].Text, 10, 32)
	if err != nil {
		return nil
	}
	return s.gw.sessionByPID(int32(pid))
}

func cancelBackend(_ context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	o := s.backend(args)
	if o != nil {
		o.Cancel(pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request"))
	}
	return boolValue(o != nil), nil
}

func terminateBackend(_ context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	o := s.backend(args)
	if o != nil {
		cause := &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.AdminShutdown, Message: "terminating connection due to administrator command"}
		o.Cancel(cause)
		o.startup.Wire.Terminate(cause)
	}
	return boolValue(o != nil), nil
}

func pgSleep(ctx context.Context, _ *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	sec, err := strconv.ParseFloat(args[0].Text, 64)
	if err != nil {
		return nil, pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type double precision: \"%s\"", args[0].Text)
	}
	t := time.NewTimer(time.Duration(sec * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
		return void(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
