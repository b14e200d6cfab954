package pgsql

import (
	"math"
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// SequenceOptions are the options of CREATE and ALTER SEQUENCE and of an identity column, as they were given; nil means not given.
type SequenceOptions struct {
	Type                              uint32 // 0: not given
	Start, Increment, Min, Max, Cache *int64
	NoMin, NoMax                      bool
	Cycle                             *bool
	// Restart is RESTART; RestartAt its value, nil for the sequence's start.
	Restart   bool
	RestartAt *int64
	// Owned is OWNED BY; OwnerTable is empty for OWNED BY NONE.
	Owned       bool
	OwnerTable  QName
	OwnerColumn string
	// Name is SEQUENCE NAME of an identity column.
	Name QName
}

// CreateSequence is CREATE SEQUENCE.
type CreateSequence struct {
	Schema, Name string
	IfNotExists  bool
	Temp         bool
	Options      *SequenceOptions
	Loc          int
}

// AlterSequence is ALTER SEQUENCE with options.
type AlterSequence struct {
	Name     QName
	IfExists bool
	Options  *SequenceOptions
}

func (az *analyzer) createSequence(c *pg_query.CreateSeqStmt) *CreateSequence {
	q := az.qname(c.Sequence)
	return &CreateSequence{Schema: q.Schema, Name: q.Name, IfNotExists: c.IfNotExists, Temp: az.persistence(c.Sequence), Options: az.sequenceOptions(c.Options), Loc: q.Loc}
}

// sequenceOptions is the reading half of init_params.
func (az *analyzer) sequenceOptions(nodes []*pg_query.Node) *SequenceOptions {
	o := &SequenceOptions{}
	seen := map[string]bool{}
	for _, n := range nodes {
		d := n.GetDefElem()
		if seen[d.Defname] {
			az.fail(pgerr.SyntaxError, d.Location, "conflicting or redundant options")
		}
		seen[d.Defname] = true
		switch d.Defname {
		case "as":
			o.Type = az.sequenceType(d)
		case "start":
			o.Start = az.sequenceNumber(d)
		case "increment":
			o.Increment = az.sequenceNumber(d)
		case "cache":
			o.Cache = az.sequenceNumber(d)
		case "minvalue":
			o.Min, o.NoMin = az.sequenceNumber(d), d.Arg == nil
		case "maxvalue":
			o.Max, o.NoMax = az.sequenceNumber(d), d.Arg == nil
		case "cycle":
			v := d.Arg.GetBoolean().GetBoolval()
			o.Cycle = &v
		case "restart":
			o.Restart, o.RestartAt = true, az.sequenceNumber(d)
		case "owned_by":
			az.ownedBy(o, d)
		case "sequence_name":
			o.Name = az.nameList(stringList(d.Arg.GetList().GetItems()))
		case "logged", "unlogged":
		default:
			az.unsupported(d.Location, "sequence option %q", d.Defname)
		}
	}
	return o
}

func (az *analyzer) ownedBy(o *SequenceOptions, d *pg_query.DefElem) {
	names := stringList(d.Arg.GetList().GetItems())
	o.Owned = true
	switch {
	case len(names) == 1 && names[0] == "none":
	case len(names) < 2:
		az.failHint(pgerr.SyntaxError, d.Location, "Specify OWNED BY table.column or OWNED BY NONE.", "invalid OWNED BY option")
	default:
		o.OwnerTable, o.OwnerColumn = az.nameList(names[:len(names)-1]), names[len(names)-1]
	}
}

func (az *analyzer) failHint(code pgerr.Code, loc int32, hint, message string) {
	e := az.errorAt(code, loc, "%s", message)
	e.Hint = hint
	panic(e)
}

func (az *analyzer) sequenceType(d *pg_query.DefElem) uint32 {
	oid, _ := az.typeName(d.Arg.GetTypeName())
	switch oid {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		return oid
	}
	az.fail(pgerr.InvalidParameterValue, -1, "sequence type must be smallint, integer, or bigint")
	return 0
}

// sequenceNumber is defGetInt64; nil without an argument.
func (az *analyzer) sequenceNumber(d *pg_query.DefElem) *int64 {
	var v int64
	switch x := d.Arg.GetNode().(type) {
	case nil:
		return nil
	case *pg_query.Node_Integer:
		v = int64(x.Integer.Ival)
	case *pg_query.Node_Float:
		n, err := strconv.ParseInt(x.Float.Fval, 10, 64)
		if err != nil {
			if _, ferr := strconv.ParseFloat(x.Float.Fval, 64); ferr == nil && !isDigits(x.Float.Fval) {
				az.fail(pgerr.InvalidTextRepresentation, -1, "invalid input syntax for type bigint: %q", x.Float.Fval)
			}
			az.fail(pgerr.NumericValueOutOfRange, -1, "value %q is out of range for type bigint", x.Float.Fval)
		}
		v = n
	default:
		az.fail(pgerr.SyntaxError, d.Location, "%s requires a numeric value", d.Defname)
	}
	return &v
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if (s[i] < '0' || s[i] > '9') && !(i == 0 && (s[i] == '-' || s[i] == '+')) {
			return false
		}
	}
	return s != ""
}

// Sequence is a sequence's definition.
type Sequence struct {
	Type                       uint32
	Start, Increment, Min, Max int64
	Cache                      int64
	Cycle                      bool
}

// sequenceLimits are the bounds of the types.
func sequenceLimits(typ uint32) (low, high int64) {
	switch typ {
	case pgtype.Int2:
		return math.MinInt16, math.MaxInt16
	case pgtype.Int4:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// Apply is init_params: the definition that options make of was (nil when the sequence is new). Errors are PostgreSQL's.
func (o *SequenceOptions) Apply(was *Sequence) (Sequence, error) {
	def := Sequence{Type: pgtype.Int8, Increment: 1, Cache: 1}
	fresh := was == nil
	if !fresh {
		def = *was
	}
	resetMax, resetMin := false, false
	if o.Type != 0 && o.Type != def.Type {
		low, high := sequenceLimits(def.Type)
		resetMax = def.Increment > 0 && def.Max == high || def.Increment < 0 && def.Max == -1
		resetMin = def.Increment < 0 && def.Min == low || def.Increment > 0 && def.Min == 1
		def.Type = o.Type
	}
	if o.Increment != nil {
		if def.Increment = *o.Increment; def.Increment == 0 {
			return def, pgerr.New(pgerr.InvalidParameterValue, "INCREMENT must not be zero")
		}
	}
	if o.Cycle != nil {
		def.Cycle = *o.Cycle
	}
	low, high := sequenceLimits(def.Type)
	switch {
	case o.Max != nil:
		def.Max = *o.Max
	case fresh || o.NoMax || resetMax:
		if def.Max = high; def.Increment < 0 {
			def.Max = -1
		}
	}
	switch {
	case o.Min != nil:
		def.Min = *o.Min
	case fresh || o.NoMin || resetMin:
		if def.Min = 1; def.Increment < 0 {
			def.Min = low
		}
	}
	switch {
	case o.Start != nil:
		def.Start = *o.Start
	case fresh && def.Increment > 0:
		def.Start = def.Min
	case fresh:
		def.Start = def.Max
	}
	if o.Cache != nil {
		def.Cache = *o.Cache
	}
	return def, def.check(o)
}

func (def Sequence) check(o *SequenceOptions) error {
	bad := func(format string, args ...any) error {
		return pgerr.Newf(pgerr.InvalidParameterValue, format, args...)
	}
	low, high := sequenceLimits(def.Type)
	name := typeName(def.Type)
	switch {
	case def.Max < low || def.Max > high:
		return bad("MAXVALUE (%d) is out of range for sequence data type %s", def.Max, name)
	case def.Min < low || def.Min > high:
		return bad("MINVALUE (%d) is out of range for sequence data type %s", def.Min, name)
	case def.Min >= def.Max:
		return bad("MINVALUE (%d) must be less than MAXVALUE (%d)", def.Min, def.Max)
	case def.Start < def.Min:
		return bad("START value (%d) cannot be less than MINVALUE (%d)", def.Start, def.Min)
	case def.Start > def.Max:
		return bad("START value (%d) cannot be greater than MAXVALUE (%d)", def.Start, def.Max)
	case o.RestartAt != nil && *o.RestartAt < def.Min:
		return bad("RESTART value (%d) cannot be less than MINVALUE (%d)", *o.RestartAt, def.Min)
	case o.RestartAt != nil && *o.RestartAt > def.Max:
		return bad("RESTART value (%d) cannot be greater than MAXVALUE (%d)", *o.RestartAt, def.Max)
	case def.Cache <= 0:
		return bad("CACHE (%d) must be greater than zero", def.Cache)
	}
	return nil
}

// sequenceCall is nextval and its kin: the engine's function takes the session in front of the arguments.
func sequenceCall(name string) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		args := append([]*expr{s.az.sessionValue(SequenceSession, pgtype.Int8)}, c.args...)
		if name == "skade_setval" && len(c.args) == 2 {
			args = append(args, constant(pgtype.Bool, "true", -1))
		}
		e := call(pgtype.Int8, name+"($*)", args...)
		if name == "skade_nextval" && c.args[0].kind == kConst && !c.args[0].null {
			if oid, err := strconv.ParseUint(c.args[0].lit, 10, 32); err == nil {
				e.draws = uint32(oid)
			}
		}
		return e
	}
}
