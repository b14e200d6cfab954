package duck

import (
	"regexp"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// classify finds SQLSTATE and PostgreSQL's wording for an error of DuckDB, first by its text, then by its class.
func classify(e *engineError) *pgerr.Error {
	switch e.Subtype {
	case "COLUMN_NOT_FOUND":
		return pgerr.Newf(pgerr.UndefinedColumn, "column %s does not exist", quoted(e.Name))
	case "NO_MATCHING_FUNCTION":
		if e.Call != "" {
			return undefinedFunction(e.Call)
		}
		return pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", callText(e.Call, e.Name)).
			WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
	case "MISSING_ENTRY":
		return missingEntry(e)
	}
	for _, r := range errorRules {
		if r.class != "" && r.class != e.Type {
			continue
		}
		if m := r.text.FindStringSubmatch(e.Message); m != nil {
			return r.make(m)
		}
	}
	return classOnly(e)
}

func quoted(name string) string { return `"` + name + `"` }

// callText is a call as PostgreSQL writes it: sum(bigint, integer).
func callText(call, name string) string {
	fn, args, ok := strings.Cut(call, "(")
	if !ok {
		return name + "()"
	}
	args = strings.TrimSuffix(args, ")")
	if args == "" {
		return fn + "()"
	}
	parts := splitTypes(args)
	for i, p := range parts {
		parts[i] = pgTypeName(p)
	}
	return fn + "(" + strings.Join(parts, ", ") + ")"
}

// splitTypes cuts at the commas outside parentheses.
func splitTypes(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(s[start:]))
}

func missingEntry(e *engineError) *pgerr.Error {
	switch strings.ToLower(e.Entry) {
	case "table", "view":
		return pgerr.Newf(pgerr.UndefinedTable, "relation %s does not exist", quoted(e.Name))
	case "type":
		return pgerr.Newf(pgerr.UndefinedObject, "type %s does not exist", quoted(e.Name))
	case "schema":
		return pgerr.Newf(pgerr.InvalidSchemaName, "schema %s does not exist", quoted(e.Name))
	case "collation":
		return pgerr.Newf(pgerr.UndefinedObject, "collation %s does not exist", quoted(e.Name))
	}
	if strings.Contains(strings.ToLower(e.Entry), "function") || strings.Contains(strings.ToLower(e.Entry), "macro") {
		return pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", e.Name)
	}
	return pgerr.Newf(pgerr.UndefinedObject, "%s does not exist", quoted(e.Name))
}

// pgTypeName is PostgreSQL's name of a DuckDB type name.
func pgTypeName(duck string) string {
	base, _, _ := strings.Cut(duck, "(")
	suffix := ""
	for strings.HasSuffix(duck, "[]") {
		duck, suffix = strings.TrimSuffix(duck, "[]"), "[]"
	}
	if suffix != "" {
		base, _, _ = strings.Cut(duck, "(")
	}
	if n, ok := pgTypeNames[strings.Trim(base, "' ")]; ok {
		return n + suffix
	}
	return strings.ToLower(base) + suffix
}

var pgTypeNames = map[string]string{
	"BOOLEAN": "boolean", "BOOL": "boolean",
	"TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint",
	"UTINYINT": "smallint", "USMALLINT": "integer", "UINTEGER": "bigint", "UBIGINT": "numeric", "HUGEINT": "numeric", "UHUGEINT": "numeric",
	"INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "INT128": "numeric",
	"UINT8": "smallint", "UINT16": "integer", "UINT32": "bigint", "UINT64": "numeric", "UINT128": "numeric",
	"INTEGER_LITERAL": "integer", "STRING_LITERAL": "unknown", "NULL": "unknown", `"NULL"`: "unknown",
	"FLOAT": "real", "DOUBLE": "double precision", "DECIMAL": "numeric", "BIGNUM": "numeric",
	"VARCHAR": "text", "BLOB": "bytea", "UUID": "uuid", "JSON": "json", "DATE": "date", "TIME": "time without time zone",
	"TIME WITH TIME ZONE": "time with time zone", "TIMESTAMP": "timestamp without time zone", "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
	"TIMESTAMP_S": "timestamp without time zone", "TIMESTAMP_MS": "timestamp without time zone", "TIMESTAMP_NS": "timestamp without time zone",
	"INTERVAL": "interval", "STRUCT": "record",
}

// rangeName is the name in "… out of range".
func rangeName(duck string) string {
	n := pgTypeName(duck)
	if n == "double precision" || n == "real" {
		return "value"
	}
	return n
}

// An errorRule maps a text of DuckDB, within a class when one is given.
type errorRule struct {
	class string
	text  *regexp.Regexp
	make  func(m []string) *pgerr.Error
}

func rule(class, text string, make func(m []string) *pgerr.Error) errorRule {
	return errorRule{class: class, text: regexp.MustCompile("(?s)" + text), make: make}
}

// fixed is a rule's error without parts of the text.
func fixed(code pgerr.Code, msg string) func([]string) *pgerr.Error {
	return func([]string) *pgerr.Error { return pgerr.New(code, msg) }
}

// classOnly is the last resort: what a class of DuckDB's errors means. Its text is not shown.
func classOnly(e *engineError) *pgerr.Error {
	switch e.Type {
	case "Conversion", "Mismatch Type":
		return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input for the target type")
	case "Out of Range":
		return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range")
	case "Decimal":
		return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow")
	case "Divide by Zero":
		return pgerr.New(pgerr.DivisionByZero, "division by zero")
	case "Out of Memory":
		return outOfMemory()
	case "INTERRUPT", "Interrupt":
		return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	case "Parser", "Syntax":
		return pgerr.New(pgerr.FeatureNotSupported, "the statement cannot be run in this form")
	case "Binder":
		return pgerr.New(pgerr.FeatureNotSupported, "the statement uses a form that is not supported")
	case "Catalog":
		return pgerr.New(pgerr.UndefinedObject, "an object that the statement names does not exist")
	case "Not implemented":
		return pgerr.New(pgerr.FeatureNotSupported, "the statement uses a feature that is not supported")
	case "Invalid Input", "Invalid type", "Expression", "Object Size", "Sequence":
		return pgerr.New(pgerr.InvalidParameterValue, "invalid value")
	case "Permission":
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied")
	case "Parameter Not Resolved", "Parameter Not Allowed":
		return pgerr.New(pgerr.IndeterminateDatatype, "could not determine data type of a parameter")
	case "Constraint":
		return pgerr.New(pgerr.CheckViolation, "a value violates a constraint")
	case "IO":
		return pgerr.New(pgerr.IOError, "could not read a data file")
	}
	return pgerr.New(pgerr.InternalError, "internal error")
}
