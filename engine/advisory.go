package engine

import (
	"context"
	"strconv"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// advisoryCall is one of the functions pg_advisory_…: what it does, in which mode, for how long.
type advisoryCall struct {
	name    string
	mode    lockmgr.Mode
	session bool
	try     bool
	unlock  bool
}

var advisoryCalls = []advisoryCall{
	{name: "pg_advisory_lock", mode: lockmgr.Exclusive, session: true},
	{name: "pg_advisory_lock_shared", mode: lockmgr.Share, session: true},
	{name: "pg_try_advisory_lock", mode: lockmgr.Exclusive, session: true, try: true},
	{name: "pg_try_advisory_lock_shared", mode: lockmgr.Share, session: true, try: true},
	{name: "pg_advisory_xact_lock", mode: lockmgr.Exclusive},
	{name: "pg_advisory_xact_lock_shared", mode: lockmgr.Share},
	{name: "pg_try_advisory_xact_lock", mode: lockmgr.Exclusive, try: true},
	{name: "pg_try_advisory_xact_lock_shared", mode: lockmgr.Share, try: true},
	{name: "pg_advisory_unlock", mode: lockmgr.Exclusive, unlock: true},
	{name: "pg_advisory_unlock_shared", mode: lockmgr.Share, unlock: true},
}

// advisoryFunctions are all of them, each with a bigint and with two integers.
func advisoryFunctions() []*sessionFunction {
	out := []*sessionFunction{{Function: sqlfuncs.Function{Name: "pg_advisory_unlock_all", Returns: pgtype.Void}, call: func(_ context.Context, s *session, _ []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
		s.owner.ReleaseSession()
		return void(), nil
	}}}
	for _, c := range advisoryCalls {
		returns := uint32(pgtype.Void)
		if c.try || c.unlock {
			returns = pgtype.Bool
		}
		for _, args := range [][]sqlfuncs.Arg{{arg("", pgtype.Int8)}, {arg("", pgtype.Int4), arg("", pgtype.Int4)}} {
			out = append(out, &sessionFunction{Function: sqlfuncs.Function{Name: c.name, Args: args, Returns: returns, Strict: true}, call: c.call, perRow: c.try || c.unlock})
		}
	}
	return out
}

func (c advisoryCall) call(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	tag, err := advisoryTag(args)
	if err != nil {
		return nil, err
	}
	if c.unlock {
		ok := s.owner.Release(tag, c.mode)
		if !ok {
			if w, ok := s.startup.Wire.(pgwire.Noticer); ok {
				w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.Warning, Message: "you don't own a lock of type " + c.mode.String()})
			}
		}
		return boolValue(ok), nil
	}
	opt := s.lockOptions()
	opt.Session, opt.NoWait = c.session, c.try
	_, err = s.owner.Acquire(ctx, tag, c.mode, opt)
	if c.try {
		return boolValue(err == nil), nil
	}
	return void(), s.lockError(err, "")
}

func advisoryTag(args []*sqlfuncs.Value) (lockmgr.Tag, error) {
	var n [2]int64
	for i, a := range args {
		v, err := strconv.ParseInt(a.Text, 10, 64)
		if err != nil {
			return lockmgr.Tag{}, pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type bigint: \"%s\"", a.Text)
		}
		n[i] = v
	}
	if len(args) == 1 {
		return lockmgr.AdvisoryTag(n[0]), nil
	}
	return lockmgr.AdvisoryPairTag(int32(n[0]), int32(n[1])), nil
}
