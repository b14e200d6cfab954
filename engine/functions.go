package engine

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// sessionFunction is a function of pg_catalog, or of the named schema, that needs the session: it is called once, before the query runs, or
// with each row's values when perRow.
type sessionFunction struct {
	sqlfuncs.Function
	call   func(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error)
	schema string
	// perRow functions touch nothing that the session uses while a query runs: DuckDB's threads call them, one at a time.
	perRow bool
}

func (f *sessionFunction) namespace() string { return cmp.Or(f.schema, "pg_catalog") }

func arg(name string, oid uint32) sqlfuncs.Arg { return sqlfuncs.Arg{Name: name, OID: oid} }

var sessionFunctions []*sessionFunction

func init() {
	sessionFunctions = []*sessionFunction{
		{Function: sqlfuncs.Function{Name: "pg_notify", Args: []sqlfuncs.Arg{arg("channel", pgtype.Text), arg("payload", pgtype.Text)}, Returns: pgtype.Void}, call: pgNotify, perRow: true},
		{Function: sqlfuncs.Function{Name: "pg_notification_queue_usage", Returns: pgtype.Float8, Volatile: true}, call: notifyUsage},
		{Function: sqlfuncs.Function{Name: "set_config", Args: []sqlfuncs.Arg{arg("name", pgtype.Text), arg("value", pgtype.Text), arg("is_local", pgtype.Bool)}, Returns: pgtype.Text}, call: setConfig},
		{Function: sqlfuncs.Function{Name: "pg_cancel_backend", Args: []sqlfuncs.Arg{arg("pid", pgtype.Int4)}, Returns: pgtype.Bool, Strict: true}, call: cancelBackend, perRow: true},
		{Function: sqlfuncs.Function{Name: "pg_terminate_backend", Args: []sqlfuncs.Arg{arg("pid", pgtype.Int4)}, Returns: pgtype.Bool, Strict: true}, call: terminateBackend, perRow: true},
		{Function: sqlfuncs.Function{Name: "pg_sleep", Args: []sqlfuncs.Arg{arg("seconds", pgtype.Float8)}, Returns: pgtype.Void, Strict: true}, call: pgSleep, perRow: true},
		registerTable, unregisterTable, mountFunc, unmountFunc, refreshMount,
	}
	sessionFunctions = append(sessionFunctions, advisoryFunctions()...)
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

func notifyUsage(_ context.Context, s *session, _ []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	return &sqlfuncs.Value{OID: pgtype.Float8, Text: strconv.FormatFloat(s.gw.hub.usage(), 'g', -1, 64)}, nil
}

func setConfig(_ context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	name := args[0].Text
	if err := s.mayChangeBranch(name, args[1].Text); err != nil {
		return nil, err
	}
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
		o.startup.Wire.Cancel(pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request"))
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

// rowCall is the DuckDB scalar behind perRow functions.
func rowCall(gw *Gateway) duck.Scalar {
	return duck.Scalar{
		Name: pgsql.RowCall, Args: []string{"INTEGER", "VARCHAR", "VARCHAR[]"}, Result: "VARCHAR", Volatile: true,
		Eval: func(args []arrow.Array, rows int) (arrow.Array, error) {
			pids, ok1 := args[0].(*array.Int32)
			names, ok2 := args[1].(*array.String)
			lists, ok3 := args[2].(*array.List)
			if !ok1 || !ok2 || !ok3 {
				return nil, pgerr.Newf(pgerr.InternalError, "%s: unexpected argument types", pgsql.RowCall)
			}
			texts, ok := lists.ListValues().(*array.String)
			if !ok {
				return nil, pgerr.Newf(pgerr.InternalError, "%s: unexpected argument types", pgsql.RowCall)
			}
			out := array.NewStringBuilder(memory.DefaultAllocator)
			defer out.Release()
			for i := range rows {
				s := gw.sessionByPID(pids.Value(i))
				if s == nil {
					return nil, pgerr.New(pgerr.InternalError, "the session is gone")
				}
				from, to := lists.ValueOffsets(i)
				vals := make([]*sqlfuncs.Value, 0, to-from)
				for j := int(from); j < int(to); j++ {
					vals = append(vals, &sqlfuncs.Value{OID: pgtype.Text, Null: texts.IsNull(j)})
					if !texts.IsNull(j) {
						vals[len(vals)-1].Text = texts.Value(j)
					}
				}
				v, err := s.callForRow(names.Value(i), vals)
				switch {
				case err != nil:
					return nil, err
				case v == nil || v.Null:
					out.AppendNull()
				default:
					out.Append(v.Text)
				}
			}
			return out.NewArray(), nil
		},
	}
}

// callForRow runs a perRow function on a thread of DuckDB.
func (s *session) callForRow(name string, vals []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	s.run.Lock()
	ctx := s.run.ctx
	s.run.Unlock()
	if ctx == nil {
		return nil, pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	}
	s.rowCalls.Lock()
	defer s.rowCalls.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, f := range sessionFunctions {
		if f.Name != name || len(f.Args) != len(vals) || !f.perRow {
			continue
		}
		if null := typeCall(&f.Function, vals); null {
			return &sqlfuncs.Value{OID: f.Returns, Null: true}, nil
		}
		return f.call(ctx, s, vals)
	}
	for _, f := range sqlfuncs.Functions() {
		if f.Name != name || len(f.Args) != len(vals) || !f.PerRow {
			continue
		}
		if null := typeCall(f, vals); null {
			return &sqlfuncs.Value{OID: f.Returns, Null: true}, nil
		}
		v, err := f.Call(ctx, s.env(ctx), vals)
		if err != nil {
			return nil, s.sqlError(ctx, err)
		}
		return v, nil
	}
	return nil, pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", name)
}

// typeCall gives the arguments of a call, which come as text, the types they are declared with; null says that the call is NULL.
func typeCall(f *sqlfuncs.Function, vals []*sqlfuncs.Value) (null bool) {
	for i, v := range vals {
		null = null || v.Null && f.Strict
		if v.OID = f.Args[i].OID; v.OID == pgtype.Any {
			v.OID = pgtype.Text
		}
	}
	return null
}
