package pgcatalog

import (
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

const (
	inetType uint32 = 869
	xid8Type uint32 = 5069
)

// info gives one field of the session's identity.
func info(name string, result kind, field func(SessionInfo) any) function {
	return function{name: name, result: result, run: func(sc *scope, _ []any) (any, error) {
		if sc.session == nil {
			return nil, nil
		}
		return field(sc.session.Info()), nil
	}}
}

func (f function) as(typeOID uint32) function {
	f.returns = typeOID
	return f
}

// sessionFunctions tell a session about itself and the server.
var sessionFunctions = []function{
	info("version", kText, func(i SessionInfo) any { return i.Version }),
	info("pg_backend_pid", kInt4, func(i SessionInfo) any { return i.PID }),
	info("current_database", kName, func(i SessionInfo) any { return i.Database }),
	info("current_user", kName, func(i SessionInfo) any { return i.User }),
	info("session_user", kName, func(i SessionInfo) any { return i.SessionUser }),
	info("inet_server_addr", kText, func(i SessionInfo) any { return null(i.ServerAddr) }).as(inetType),
	info("inet_client_addr", kText, func(i SessionInfo) any { return null(i.ClientAddr) }).as(inetType),
	info("inet_server_port", kInt4, func(i SessionInfo) any { return nonZeroPort(i.ServerPort) }),
	info("inet_client_port", kInt4, func(i SessionInfo) any { return nonZeroPort(i.ClientPort) }),
	info("pg_postmaster_start_time", kTime, func(i SessionInfo) any { return i.ServerStarted }),
	info("pg_conf_load_time", kTime, func(i SessionInfo) any { return i.ServerStarted }),
	info("txid_current", kInt8, func(i SessionInfo) any { return i.TransactionID }),
	info("pg_current_xact_id", kInt8, func(i SessionInfo) any { return i.TransactionID }).as(xid8Type),
	info("pg_client_encoding", kName, func(SessionInfo) any { return "UTF8" }),
	info("getdatabaseencoding", kName, func(SessionInfo) any { return "UTF8" }),
	{name: "blocking_pids_of", args: []kind{kInt4}, result: kTexts, run: func(sc *scope, a []any) (any, error) {
		out := []string{}
		if sc.session != nil {
			for _, pid := range sc.session.Blockers(a[0].(int32)) {
				out = append(out, strconv.Itoa(int(pid)))
			}
		}
		return out, nil
	}},
	{name: "pg_my_temp_schema", result: kOID, returns: pgtype.OID, run: func(sc *scope, _ []any) (any, error) {
		if sc.session == nil {
			return uint32(0), nil
		}
		_, oid := sc.session.TempSchema()
		return oid, nil
	}},
	{name: "current_schema", result: kName, run: func(sc *scope, _ []any) (any, error) {
		if sc.session == nil {
			return nil, nil
		}
		for _, name := range sc.session.SearchPath() {
			return name, nil
		}
		return nil, nil
	}},
	{name: "current_schemas", args: []kind{kBool}, result: kTexts, returns: pgtype.NameArray, run: func(sc *scope, a []any) (any, error) {
		out := []string{}
		if a[0].(bool) {
			return append(out, sc.path...), nil
		}
		if sc.session != nil {
			out = append(out, sc.session.SearchPath()...)
		}
		return out, nil
	}},
}

func nonZeroPort(p int32) any {
	if p == 0 {
		return nil
	}
	return p
}

// regFunctions are the casts of the reg* types, <type>_in and <type>_out, and to_<type>.
func regFunctions() []function {
	var out []function
	for i := range regTypes {
		r := &regTypes[i]
		out = append(out,
			function{name: r.name + "_in", args: []kind{kText}, result: kOID, returns: r.oid, run: func(sc *scope, a []any) (any, error) {
				return sc.regIn(r, a[0].(string), true)
			}},
			function{name: r.name + "_out", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return sc.regOut(r, oidArg(a[0])), nil }})
		switch r.name {
		case "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator", "regcollation":
			out = append(out, function{name: "to_" + r.name, args: []kind{kText}, result: kOID, returns: r.oid, run: func(sc *scope, a []any) (any, error) {
				if oid, ok := numericOID(a[0].(string)); ok {
					return oid, nil
				}
				oid, err := r.in(sc, a[0].(string))
				if err != nil || oid == 0 {
					return nil, nil // a name that cannot be found, or read, is NULL
				}
				return oid, nil
			}})
		}
	}
	return out
}
