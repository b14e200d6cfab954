package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// mountFunc is mount(name, source, kind, poll, options): follows another catalog's tables, read-only, as schemas below name. It commits by
// itself and gives the number of tables.
var mountFunc = &sessionFunction{schema: "skade", Function: sqlfuncs.Function{
	Name: "mount",
	Args: []sqlfuncs.Arg{arg("name", pgtype.Text), arg("source", pgtype.Text),
		{Name: "kind", OID: pgtype.Text, Default: "NULL"}, {Name: "poll", OID: pgtype.Interval, Default: "NULL"},
		{Name: "options", OID: pgtype.JSONB, Default: "NULL"}},
	Returns: pgtype.Int4,
	Doc:     "Follows the tables of a folder or of another catalog, read-only: the number of tables found.",
}, call: callMount}

// unmountFunc is unmount(name): forgets a mount and its tables.
var unmountFunc = &sessionFunction{schema: "skade", Function: sqlfuncs.Function{
	Name: "unmount", Args: []sqlfuncs.Arg{arg("name", pgtype.Text)}, Returns: pgtype.Void,
	Doc: "Forgets a mount and its tables; nothing of its source changes.",
}, call: callUnmount}

// refreshMount is refresh_mount(name): polls a mount now, and gives the number of tables that changed.
var refreshMount = &sessionFunction{schema: "skade", Function: sqlfuncs.Function{
	Name: "refresh_mount", Args: []sqlfuncs.Arg{arg("name", pgtype.Text)}, Returns: pgtype.Int4,
	Doc: "Polls a mount now: the number of tables that changed.",
}, call: callRefreshMount}

// mountCall checks what the three share and gives the name.
func (s *session) mountCall(fn string, args []*sqlfuncs.Value, alone bool) (string, error) {
	if err := s.superuserOnly(fn); err != nil {
		return "", err
	}
	if args[0] == nil || args[0].Null {
		return "", pgerr.Newf(pgerr.NullValueNotAllowed, "argument name of %s must not be null", fn)
	}
	if alone && s.tx.explicit {
		return "", pgerr.Newf(pgerr.ActiveSQLTransaction, "%s cannot run inside a transaction block", fn)
	}
	if err := s.tx.writable(fn); err != nil {
		return "", err
	}
	if s.gw.mounts == nil {
		return "", pgerr.Newf(pgerr.FeatureNotSupported, "this server has no mounts")
	}
	return args[0].Text, nil
}

func isGiven(args []*sqlfuncs.Value, i int) bool {
	return i < len(args) && args[i] != nil && !args[i].Null
}

func callMount(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	name, err := s.mountCall("mount", args, true)
	if err != nil {
		return nil, err
	}
	if !isGiven(args, 1) {
		return nil, pgerr.New(pgerr.NullValueNotAllowed, "argument source of mount must not be null")
	}
	if reservedSchema(name) {
		return nil, pgerr.Newf(pgerr.ReservedName, "unacceptable schema name \"%s\"", name)
	}
	def := mount.Definition{Name: name, Source: args[1].Text}
	if isGiven(args, 2) {
		def.Kind = args[2].Text
	}
	if isGiven(args, 3) {
		v, err := s.style().ParseInterval([]byte(args[3].Text))
		if err != nil {
			return nil, err
		}
		if def.Interval = intervalDuration(v); def.Interval <= 0 {
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "argument poll of mount must be a positive time of days or less")
		}
	}
	if isGiven(args, 4) {
		if err := json.Unmarshal([]byte(args[4].Text), &def.Options); err != nil {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "argument options of mount must be an object of strings")
		}
	}
	st, err := s.gw.mounts.Mount(ctx, def, s.user())
	if err != nil {
		return nil, err
	}
	return &sqlfuncs.Value{OID: pgtype.Int4, Text: strconv.Itoa(st.Tables)}, nil
}

// intervalDuration is an interval of days and less, 0 for one of months.
func intervalDuration(v pgenc.IntervalValue) time.Duration {
	if v.Months != 0 || v.Days < 0 || v.Days > 365 || v.Micros < 0 || v.Micros > 365*24*3600*1e6 {
		return 0
	}
	return time.Duration(v.Days)*24*time.Hour + time.Duration(v.Micros)*time.Microsecond
}

func callUnmount(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	name, err := s.mountCall("unmount", args, true)
	if err != nil {
		return nil, err
	}
	return void(), s.gw.mounts.Unmount(ctx, name, s.user())
}

func callRefreshMount(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	name, err := s.mountCall("refresh_mount", args, false)
	if err != nil {
		return nil, err
	}
	n, err := s.gw.mounts.Refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	return &sqlfuncs.Value{OID: pgtype.Int4, Text: strconv.Itoa(n)}, nil
}
