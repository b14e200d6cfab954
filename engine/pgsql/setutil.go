package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

func (az *analyzer) transaction(stmt *Stmt, t *pg_query.TransactionStmt) (any, error) {
	out := &Transaction{Savepoint: t.SavepointName, Chain: t.Chain}
	switch t.Kind {
	case pg_query.TransactionStmtKind_TRANS_STMT_BEGIN, pg_query.TransactionStmtKind_TRANS_STMT_START:
		out.Op = "begin"
		out.Modes = az.modes(t.Options)
	case pg_query.TransactionStmtKind_TRANS_STMT_COMMIT:
		out.Op = "commit"
	case pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		out.Op = "rollback"
	case pg_query.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		out.Op = "savepoint"
	case pg_query.TransactionStmtKind_TRANS_STMT_RELEASE:
		out.Op = "release"
	case pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		out.Op = "rollback to"
	default:
		return nil, refusedError(stmt)
	}
	return out, nil
}

func (az *analyzer) modes(opts []*pg_query.Node) TransactionModes {
	var m TransactionModes
	for _, n := range opts {
		d := n.GetDefElem()
		c := d.GetArg().GetAConst()
		on := c.GetIval().GetIval() != 0
		switch d.GetDefname() {
		case "transaction_isolation":
			m.Isolation = strings.ToLower(c.GetSval().GetSval())
		case "transaction_read_only":
			m.ReadOnly = &on
		case "transaction_deferrable":
			m.Deferrable = &on
		}
	}
	return m
}

func (az *analyzer) set(v *pg_query.VariableSetStmt) *Set {
	out := &Set{Name: strings.ToLower(v.Name), Local: v.IsLocal}
	switch v.Kind {
	case pg_query.VariableSetKind_VAR_SET_DEFAULT, pg_query.VariableSetKind_VAR_RESET:
		out.Reset = true
	case pg_query.VariableSetKind_VAR_RESET_ALL:
		out.Reset, out.Name = true, "all"
	case pg_query.VariableSetKind_VAR_SET_VALUE:
		var parts []string
		for _, a := range v.Args {
			arg := az.setValue(a)
			out.Args = append(out.Args, arg)
			if out.Name == "search_path" {
				arg = QuoteIdent(arg)
			}
			parts = append(parts, arg)
		}
		out.Value = strings.Join(parts, ", ")
	case pg_query.VariableSetKind_VAR_SET_MULTI:
		if out.Name != "transaction" && out.Name != "session characteristics" {
			az.unsupported(-1, "SET %s", v.Name)
		}
		m := az.modes(v.Args)
		out.Transaction = &m
	default:
		az.unsupported(-1, "SET … FROM CURRENT")
	}
	return out
}

func (az *analyzer) setValue(n *pg_query.Node) string {
	if tc := n.GetTypeCast(); tc != nil {
		// SET TIME ZONE INTERVAL '…': hours east of Greenwich
		text := tc.Arg.GetAConst().GetSval().GetSval()
		if v, err := (pgenc.Style{}).ParseInterval([]byte(text)); err == nil && v.Months == 0 && v.Days == 0 {
			return strconv.FormatFloat(float64(v.Micros)/3600e6, 'f', -1, 64)
		}
		return text
	}
	c := n.GetAConst()
	if c == nil {
		az.unsupported(nodeLocation(n), "this value of SET")
	}
	return constText(c)
}

func constText(c *pg_query.A_Const) string {
	switch v := c.GetVal().(type) {
	case *pg_query.A_Const_Ival:
		return strconv.Itoa(int(v.Ival.GetIval()))
	case *pg_query.A_Const_Fval:
		return v.Fval.Fval
	case *pg_query.A_Const_Boolval:
		return strconv.FormatBool(v.Boolval.Boolval)
	case *pg_query.A_Const_Sval:
		return v.Sval.Sval
	}
	return ""
}

func (az *analyzer) prepare(stmt *Stmt, p *pg_query.PrepareStmt) *Prepare {
	out := &Prepare{Name: p.Name, Stmt: az.inner(stmt, p.Query)}
	for _, t := range p.Argtypes {
		oid, _ := az.typeName(t.GetTypeName())
		out.Types = append(out.Types, oid)
	}
	out.Stmt.Text = stmt.after("as")
	switch out.Stmt.Kind {
	case Select, InsertStmt, UpdateStmt, DeleteStmt, MergeStmt:
	default:
		panic(refusedError(out.Stmt))
	}
	return out
}

// Arguments analyses EXECUTE's arguments as values of the prepared statement's parameter types.
func (e *Execute) Arguments(types []uint32, r Resolver) (args []*Arg, err error) {
	az := newAnalyzer(e.stmt.src, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	x := e.stmt.Node.GetExecuteStmt()
	if len(x.Params) != len(types) {
		er := pgerr.Newf(pgerr.SyntaxError, "wrong number of parameters for prepared statement %q", e.Name)
		er.Detail = "Expected " + strconv.Itoa(len(types)) + " parameters but got " + strconv.Itoa(len(x.Params)) + "."
		return nil, er
	}
	s := &scope{az: az, clause: "EXECUTE"}
	for i, p := range x.Params {
		v := s.expr(p)
		c, ok := s.coerce(v, types[i], -1, assignmentCoercion)
		if !ok {
			er := az.errorAt(pgerr.DatatypeMismatch, v.loc, "parameter $%d of type %s cannot be coerced to the expected type %s", i+1, typeName(v.typ), typeName(types[i]))
			er.Hint = "You will need to rewrite or cast the expression."
			return nil, er
		}
		if !c.isConstantLike() {
			az.unsupported(v.loc, "a subquery as an argument of EXECUTE")
		}
		a := az.arg(c)
		az.settleArg(a)
		args = append(args, a)
	}
	return args, nil
}

func (az *analyzer) declare(stmt *Stmt, d *pg_query.DeclareCursorStmt) *Declare {
	// Source: CURSOR_OPT_* in nodes/parsenodes.h.
	o := d.Options
	out := &Declare{Name: d.Portalname, Binary: o&1 != 0, Scroll: o&2 != 0, NoScroll: o&4 != 0, Insensitive: o&8 != 0, Hold: o&0x20 != 0}
	if out.Scroll && out.NoScroll {
		panic(pgerr.New("42P11", "cannot specify both SCROLL and NO SCROLL"))
	}
	out.Query = az.inner(stmt, d.Query)
	if out.Query.Kind != Select {
		panic(refusedError(out.Query))
	}
	if _, changes := az.needsSpool(out.Query.Node); changes {
		panic(pgerr.New(pgerr.FeatureNotSupported, "DECLARE CURSOR must not contain data-modifying statements in WITH"))
	}
	out.Query.Text = stmt.after("for")
	return out
}

func (az *analyzer) fetch(f *pg_query.FetchStmt) *Fetch {
	out := &Fetch{Name: f.Portalname, Move: f.Ismove, Count: f.HowMany}
	out.Direction = strings.ToLower(strings.TrimPrefix(f.Direction.String(), "FETCH_"))
	return out
}
