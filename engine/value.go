package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// value is a parameter's value: null, or v as pgenc decodes the type.
type value struct {
	oid  uint32
	null bool
	v    any
}

func protocolError(msg string) error { return pgerr.New(pgerr.ProtocolViolation, msg) }

func notice(msg string) *pgerr.Error {
	return &pgerr.Error{Severity: pgerr.SevNotice, Code: pgerr.SuccessfulCompletion, Message: msg}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func parseOID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

// decodeParams reads the values of a Bind message.
func (p *prepared) decodeParams(s *session, formats []int16, params [][]byte) ([]value, error) {
	if len(params) != len(p.params) {
		return nil, protocolError(fmt.Sprintf("bind message supplies %d parameters, but prepared statement requires %d", len(params), len(p.params)))
	}
	if len(formats) > 1 && len(formats) != len(params) {
		return nil, protocolError(fmt.Sprintf("bind message has %d parameter formats but %d parameters", len(formats), len(params)))
	}
	out := make([]value, len(params))
	for i, raw := range params {
		out[i] = value{oid: p.params[i], null: raw == nil}
		if raw == nil {
			continue
		}
		var format int16
		switch len(formats) {
		case 0:
		case 1:
			format = formats[0]
		default:
			format = formats[i]
		}
		v, err := s.decode(p.params[i], format, raw)
		if err != nil {
			if e := pgerr.As(err); e != nil && e.Where == "" {
				e = e.WithCause(nil)
				e.Where = fmt.Sprintf("unnamed portal parameter $%d", i+1)
				return nil, e
			}
			return nil, err
		}
		out[i].v = v
	}
	return out, nil
}

// decode reads a value of a type. The text of a reg* type is a name of the catalog.
func (s *session) decode(oid uint32, format int16, raw []byte) (any, error) {
	if isReg(oid) && format == pgenc.Text {
		return s.catalogSnapshot().RegIn(&catalogView{s}, oid, string(raw))
	}
	return pgenc.Decode(oid, format, raw, s.style())
}

// style is how the session writes and reads dates and intervals.
func (s *session) style() pgenc.Style {
	st := s.gucs.now.style
	if s.tx != nil {
		st.Now = s.tx.start
	}
	return st
}

// text is a value in PostgreSQL's text form.
func (v value) text(st pgenc.Style) *sqlfuncs.Value {
	if v.null {
		return &sqlfuncs.Value{OID: v.oid, Null: true}
	}
	b, err := pgenc.Append(nil, v.oid, pgenc.Text, v.v, st)
	if err != nil { // a decoded value always has a text form
		panic(err)
	}
	out := &sqlfuncs.Value{OID: v.oid, Text: string(b), Native: v.v}
	if elem := pgtype.ElemOf(v.oid); elem != 0 {
		out.Array = arrayElements(v, elem, st)
	}
	return out
}

func arrayElements(v value, elem uint32, st pgenc.Style) []*sqlfuncs.Value {
	arr, ok := v.v.(pgenc.Array)
	if !ok {
		return nil
	}
	// One allocation for all values and one for all texts: lookup_many is given very many.
	slab, out := make([]sqlfuncs.Value, len(arr.Elems)), make([]*sqlfuncs.Value, len(arr.Elems))
	ends := make([]int, len(arr.Elems))
	var text []byte
	for i, e := range arr.Elems {
		slab[i] = sqlfuncs.Value{OID: elem, Null: e == nil, Native: e}
		out[i] = &slab[i]
		if e != nil {
			var err error
			if text, err = pgenc.Append(text, elem, pgenc.Text, e, st); err != nil {
				panic(err) // as above
			}
		}
		ends[i] = len(text)
	}
	all, at := string(text), 0
	for i, end := range ends {
		slab[i].Text, at = all[at:end], end
	}
	return out
}

// duckValue is a value as DuckDB's bind takes it.
func duckValue(oid uint32, v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int16, int32, int64, float32, float64, string, []byte:
		return x, nil
	case uint32:
		return int64(x), nil
	case pgenc.UUID:
		return duck.UUID(x), nil
	case pgenc.Date:
		return duck.Date(x), nil
	case pgenc.Time:
		return duck.Time(x), nil
	case pgenc.Timestamp:
		return duck.Timestamp(x), nil
	case pgenc.TimestampTZ:
		return duck.TimestampTZ(x), nil
	case pgenc.IntervalValue:
		return duck.Interval{Months: x.Months, Days: x.Days, Micros: x.Micros}, nil
	case pgenc.Numeric:
		// As text: the expression casts it to the DECIMAL it needs, so no digit is lost here.
		return string(pgenc.AppendNumeric(nil, x)), nil
	case pgenc.Array:
		list := duck.List{Elem: pgtype.DuckName(pgtype.ElemOf(oid), -1), Values: make([]any, len(x.Elems))}
		if len(x.Dims) > 1 {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "parameters of several dimensions are not supported")
		}
		for i, e := range x.Elems {
			d, err := duckValue(pgtype.ElemOf(oid), e)
			if err != nil {
				return nil, err
			}
			list.Values[i] = d
		}
		return list, nil
	}
	return nil, pgerr.Newf(pgerr.FeatureNotSupported, "parameters of type %s are not supported", pgtype.FormatNoTypmod(oid))
}

// binds computes DuckDB's parameters of a query.
func (s *session) binds(ctx context.Context, bs []pgsql.Bind, args []value) ([]any, error) {
	if len(bs) == 0 {
		return nil, nil
	}
	out := make([]any, len(bs))
	for i, b := range bs {
		v, err := s.bind(ctx, b, args)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s *session) bind(ctx context.Context, b pgsql.Bind, args []value) (any, error) {
	switch {
	case b.Param > 0:
		if b.Param > len(args) {
			return nil, pgerr.Newf(pgerr.UndefinedParameter, "there is no parameter $%d", b.Param)
		}
		a := args[b.Param-1]
		if a.null {
			return nil, nil
		}
		return duckValue(a.oid, a.v)
	case b.Session != "":
		return s.sessionValue(b.Session), nil
	case b.Setting != "":
		v, ok := s.gucs.show(b.Setting)
		if !ok && !b.MissingOK {
			return nil, unrecognizedParameter(b.Setting)
		}
		if !ok {
			return nil, nil
		}
		return v, nil
	case b.Call != nil:
		v, err := s.call(ctx, b.Call, args)
		if err != nil || v.Null {
			return nil, err
		}
		native, err := s.decode(v.OID, pgenc.Text, []byte(v.Text))
		if err != nil {
			return nil, err
		}
		return duckValue(v.OID, native)
	}
	return nil, pgerr.New(pgerr.InternalError, "bind without a source")
}

// sessionValue is what now(), current_user and their like give.
func (s *session) sessionValue(v pgsql.SessionValue) any {
	stamp := func(t time.Time) any { return duck.TimestampTZ(t.UnixMicro()) }
	list := func(ss []string) any {
		l := duck.List{Elem: "VARCHAR"}
		for _, x := range ss {
			l.Values = append(l.Values, x)
		}
		return l
	}
	start, stmt := s.started, s.started
	if s.tx != nil {
		start, stmt = s.tx.start, s.tx.stmtStart
	}
	switch v {
	case pgsql.TransactionTimestamp:
		return stamp(start)
	case pgsql.StatementTimestamp:
		return stamp(stmt)
	case pgsql.CurrentUser, pgsql.SessionUser:
		return s.user()
	case pgsql.CurrentSchema:
		if p := s.existingPath(); len(p) > 0 {
			return p[0]
		}
		return nil
	case pgsql.CurrentSchemas:
		return list(s.existingPath())
	case pgsql.CurrentSchemasAll:
		path := append([]string{"pg_catalog", "skade"}, s.existingPath()...)
		if s.temp() != nil && !slices.Contains(path, s.temp().name) {
			path = append([]string{s.temp().name}, path...)
		}
		return list(path)
	case pgsql.CurrentDatabase:
		return s.gw.database
	case pgsql.SequenceSession:
		return int64(s.startup.PID)
	case pgsql.BackendPID:
		return s.startup.PID
	case pgsql.ServerVersion:
		return s.gw.versionText
	case pgsql.ClientAddr:
		return nullable(hostOf(s.startup.Identity.RemoteAddr))
	case pgsql.ClientPort:
		return portOf(s.startup.Identity.RemoteAddr)
	case pgsql.ServerAddr:
		return nullable(hostOf(s.gw.address))
	case pgsql.ServerPort:
		return portOf(s.gw.address)
	case pgsql.PostmasterStart, pgsql.ConfLoadTime:
		return stamp(s.gw.started)
	}
	return nil
}

func nullable(v string) any {
	if v == "" {
		return nil
	}
	return v
}

func hostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 {
		return strings.Trim(addr[:i], "[]")
	}
	return addr
}

func portOf(addr string) int32 {
	n, _ := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	return int32(n)
}

// existingPath is the search path's schemas that exist.
func (s *session) existingPath() []string {
	var out []string
	tx := s.readTx()
	for _, sch := range s.namedPath() {
		if sch == "information_schema" || tx.NamespaceExists(strings.Split(sch, ".")) {
			out = append(out, sch)
		}
	}
	return out
}

// evaluate computes arguments that do not depend on rows.
func (s *session) evaluate(ctx context.Context, as []*pgsql.Arg, args []value) ([]*sqlfuncs.Value, error) {
	out := make([]*sqlfuncs.Value, len(as))
	for i, a := range as {
		v, err := s.evaluateArg(ctx, a, args)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s *session) evaluateArg(ctx context.Context, a *pgsql.Arg, args []value) (*sqlfuncs.Value, error) {
	if a == nil {
		return nil, nil
	}
	var err error
	v := &sqlfuncs.Value{OID: a.Type, Null: a.Null, Text: a.Text}
	switch {
	case a.Row != nil:
		v.Row, err = s.evaluate(ctx, a.Row, args)
		return v, err
	case a.Array != nil:
		v.Array, err = s.evaluate(ctx, a.Array, args)
		return v, err
	case a.Param > 0:
		if a.Param > len(args) {
			return nil, pgerr.Newf(pgerr.UndefinedParameter, "there is no parameter $%d", a.Param)
		}
		return args[a.Param-1].text(s.argStyle()), nil
	case a.Const:
		if elem := pgtype.ElemOf(a.Type); elem != 0 && !a.Null {
			native, err := pgenc.Decode(a.Type, pgenc.Text, []byte(a.Text), s.style())
			if err != nil {
				return nil, err
			}
			v.Array = arrayElements(value{oid: a.Type, v: native}, elem, s.argStyle())
		}
		return v, nil
	}
	return s.evaluateExpr(ctx, a, args)
}

// evaluateExpr runs SELECT expr.
func (s *session) evaluateExpr(ctx context.Context, a *pgsql.Arg, args []value) (*sqlfuncs.Value, error) {
	binds, err := s.binds(ctx, a.Binds, args)
	if err != nil {
		return nil, err
	}
	raw, null, err := s.scalar(ctx, a.Expr, binds, a.Type)
	if err != nil {
		return nil, err
	}
	v := value{oid: a.Type, null: null}
	if !null {
		if v.v, err = s.decode(a.Type, pgenc.Text, raw); err != nil {
			return nil, err
		}
	}
	return v.text(s.argStyle()), nil
}

// argStyle writes values for functions: in forms that mean the same in every session.
func (s *session) argStyle() pgenc.Style { return pgenc.Style{Loc: s.gucs.loc} }

// scalar runs a DuckDB query of one row and one column and returns its text form.
func (s *session) scalar(ctx context.Context, sql string, binds []any, oid uint32) (raw []byte, null bool, err error) {
	conn, err := s.conns.take(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.conns.give(conn)
	st, err := conn.Prepare(ctx, sql)
	if err != nil {
		return nil, false, err
	}
	defer st.Close()
	rows, err := st.Query(ctx, binds)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	msg, n, _, err := rows.AppendDataRows(nil, nil, []uint32{oid}, s.gucs.loc, 1)
	if err != nil {
		return nil, false, err
	}
	if n != 1 {
		return nil, true, nil
	}
	return dataRowField(msg)
}

// dataRowField reads the only field of a DataRow message.
func dataRowField(msg []byte) (raw []byte, null bool, err error) {
	const head = 1 + 4 + 2
	if len(msg) < head+4 {
		return nil, false, pgerr.New(pgerr.InternalError, "short row")
	}
	n := int32(uint32(msg[head])<<24 | uint32(msg[head+1])<<16 | uint32(msg[head+2])<<8 | uint32(msg[head+3]))
	if n < 0 {
		return nil, true, nil
	}
	return msg[head+4 : head+4+int(n)], false, nil
}

// call runs a scalar function of schema skade or of the session.
func (s *session) call(ctx context.Context, c *pgsql.Call, args []value) (*sqlfuncs.Value, error) {
	vals, err := s.evaluate(ctx, c.Args, args)
	if err != nil {
		return nil, err
	}
	if c.Func.Strict {
		for _, v := range vals {
			if v != nil && v.Null {
				return &sqlfuncs.Value{OID: c.Func.Ret, Null: true}, nil
			}
		}
	}
	for _, f := range sqlfuncs.Functions() {
		if f.Name == c.Func.Name && f.Call != nil && c.Func.Schema == "skade" {
			return f.Call(ctx, s.env(ctx), vals)
		}
	}
	for _, f := range sessionFunctions {
		if f.Name == c.Func.Name && f.namespace() == c.Func.Schema && len(f.Args) == len(c.Func.Args) {
			return f.call(ctx, s, vals)
		}
	}
	return nil, pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", c.Func.Name)
}

// evaluateNative is evaluate for values that become parameters.
func (s *session) evaluateNative(ctx context.Context, as []*pgsql.Arg, args []value) ([]value, error) {
	out := make([]value, len(as))
	for i, a := range as {
		if a.Param > 0 && a.Param <= len(args) {
			out[i] = args[a.Param-1]
			continue
		}
		v, err := s.evaluateArg(ctx, a, args)
		if err != nil {
			return nil, err
		}
		out[i] = value{oid: v.OID, null: v.Null}
		if v.Null {
			continue
		}
		text := v.Text
		if a.Array != nil {
			text = arrayText(v.Array)
		}
		if out[i].v, err = s.decode(v.OID, pgenc.Text, []byte(text)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arrayText is ARRAY[…] as an array literal.
func arrayText(elems []*sqlfuncs.Value) string {
	parts := make([]string, len(elems))
	for i, e := range elems {
		switch {
		case e.Null:
			parts[i] = "NULL"
		case e.Array != nil:
			parts[i] = arrayText(e.Array)
		default:
			parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.Text) + `"`
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
