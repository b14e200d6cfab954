package duck

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// errorRules are tried in order.
var errorRules = []errorRule{
	// Conversions.
	rule("Conversion", `Could not convert string '(.*)' to (\w+)`, func(m []string) *pgerr.Error { return badText(m[1], m[2]) }),
	rule("Conversion", `Could not convert string "(.*)" to (\w+)`, func(m []string) *pgerr.Error { return badText(m[1], m[2]) }),
	rule("Conversion", `Malformed JSON`, func([]string) *pgerr.Error {
		return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json")
	}),
	rule("", `Malformed JSON`, func([]string) *pgerr.Error {
		return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json")
	}),
	rule("Conversion", `[Cc]ould not convert string .* to UUID`, fixed(pgerr.InvalidTextRepresentation, "invalid input syntax for type uuid")),
	rule("Conversion", `out of range for the destination type (\w+)`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "%s out of range", rangeName(m[1]))
	}),
	rule("Conversion", `(?:Could not cast value|Casting value) .* to (?:type )?DECIMAL\((\d+),(\d+)\)`, func(m []string) *pgerr.Error {
		return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %s, scale %s must round to an absolute value less than 10^%s.", m[1], m[2], difference(m[1], m[2]))
	}),
	rule("Conversion", `date field value out of range: "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "date/time field value out of range: %s", quoted(m[1]))
	}),
	rule("Conversion", `(timestamp|time) field value out of range: "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "date/time field value out of range: %s", quoted(m[2]))
	}),
	rule("Conversion", `invalid (date|timestamp|time) field format: "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid input syntax for type %s: %s", m[1], quoted(m[2]))
	}),
	rule("Conversion", `Date out of range: (.*)`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "date field value out of range: %s", m[1])
	}),
	rule("Conversion", `not in timestamp range|[Tt]imestamp .*range`, fixed(pgerr.DatetimeFieldOverflow, "timestamp out of range")),
	rule("Conversion", `[Dd]ate .*range`, fixed(pgerr.DatetimeFieldOverflow, "date out of range")),
	rule("Conversion", `(?i)interval.*range`, fixed(pgerr.DatetimeFieldOverflow, "interval out of range")),
	rule("Conversion", `blob conversion`, fixed(pgerr.InvalidParameterValue, "invalid hexadecimal data")),
	rule("Conversion", `Unimplemented type for cast \((\S+) -> (\S+)\)`, func(m []string) *pgerr.Error { return cannotCast(m[1], m[2]) }),
	rule("", `Unknown TimeZone '(.*?)'`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.InvalidParameterValue, "time zone %s not recognized", quoted(m[1]))
	}),
	// Arithmetic.
	rule("", `Overflow in \w+ of (?:\w+ )?(INT\d+|UINT\d+|TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "%s out of range", rangeName(m[1]))
	}),
	rule("", `Overflow in .* of DECIMAL`, func([]string) *pgerr.Error { return numericTooWide() }),
	rule("", `Overflow in negation of (?:integer|numeric)|Overflow on abs`, fixed(pgerr.NumericValueOutOfRange, "integer out of range")),
	rule("", `(?i)\b(?:acos|asin|atan|atanh|acosh|sin|cos|tan|cot) is undefined|input value .* is out of range for numeric function`, fixed(pgerr.NumericValueOutOfRange, "input is out of range")),
	rule("Out of Range", `(?:STDDEV|VAR|AVG|SUM|CORR|COVAR|REGR)\w* is out of range`, fixed(pgerr.NumericValueOutOfRange, "value out of range: overflow")),
	rule("Out of Range", `logarithm of zero`, fixed("2201E", "cannot take logarithm of zero")),
	rule("Out of Range", `logarithm of a negative`, fixed("2201E", "cannot take logarithm of a negative number")),
	rule("Out of Range", `square root of a negative`, fixed("2201F", "cannot take square root of a negative number")),
	rule("Out of Range", `(?i)timestamp.*range|range.*timestamp`, fixed(pgerr.DatetimeFieldOverflow, "timestamp out of range")),
	rule("Out of Range", `(?i)date.*range|range.*date`, fixed(pgerr.DatetimeFieldOverflow, "date out of range")),
	rule("Out of Range", `(?i)interval`, fixed(pgerr.DatetimeFieldOverflow, "interval out of range")),
	rule("Out of Range", `string of size`, fixed(pgerr.ProgramLimitExceeded, "requested length too large")),
	rule("Out of Range", `factorial`, fixed(pgerr.NumericValueOutOfRange, "value overflows numeric format")),
	// Resources.
	rule("", `max_temp_directory_size|failed to offload`, func([]string) *pgerr.Error { return tempLimit() }),
	rule("Out of Memory", `.`, func([]string) *pgerr.Error { return outOfMemory() }),
	rule("", `(?i)max_expression_depth|expression.*depth|Maximum .*depth`, func([]string) *pgerr.Error {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}),
	// Names.
	rule("Binder", `Referenced column "(.*?)" not found`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.UndefinedColumn, "column %s does not exist", quoted(m[1]))
	}),
	rule("Binder", `Referenced table "(.*?)" not found`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.UndefinedTable, "missing FROM-clause entry for table %s", quoted(m[1]))
	}),
	rule("Binder", `(?:Table|Values list) "(.*?)" does not have a column named "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.UndefinedColumn, "column %s.%s does not exist", m[1], m[2])
	}),
	rule("Binder", `Ambiguous reference to column name "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.AmbiguousColumn, "column reference %s is ambiguous", quoted(m[1]))
	}),
	rule("Binder", `Ambiguous reference to table "(.*?)"|[Dd]uplicate alias "(.*?)"`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.DuplicateAlias, "table name %s specified more than once", quoted(m[1]+m[2]))
	}),
	rule("Binder", `Column "(.*?)" does not exist on (left|right) side of join`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.UndefinedColumn, "column %s specified in USING clause does not exist in %s table", quoted(m[1]), m[2])
	}),
	rule("Binder", `Cannot extract field`, fixed(pgerr.WrongObjectType, "column notation applied to a type that is not composite")),
	// Grouping and windows.
	rule("Binder", `column "?(.*?)"? must appear in the GROUP BY clause`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.GroupingError, "column %s must appear in the GROUP BY clause or be used in an aggregate function", quoted(m[1]))
	}),
	rule("Binder", `aggregate function calls cannot be nested`, fixed(pgerr.GroupingError, "aggregate function calls cannot be nested")),
	rule("Binder", `(\w[\w ]*) clause cannot contain aggregates`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.GroupingError, "aggregate functions are not allowed in %s", strings.ToUpper(m[1]))
	}),
	rule("Binder", `(\w[\w ]*) clause cannot contain window`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.WindowingError, "window functions are not allowed in %s", strings.ToUpper(m[1]))
	}),
	rule("Binder", `window functions? .*nested|nested window`, fixed(pgerr.WindowingError, "window function calls cannot be nested")),
	// Types.
	rule("Binder", `No function matches the given name and argument types '(.*?)'`, func(m []string) *pgerr.Error {
		return undefinedFunction(m[1])
	}),
	rule("Binder", `Could not choose a best candidate function for the function call "(.*?)"\.`, func(m []string) *pgerr.Error {
		return ambiguousFunction(m[1])
	}),
	rule("Binder", `Cannot compare values of type (\S+) and (?:type )?(\S+)`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.UndefinedFunction, "operator does not exist: %s = %s", pgTypeName(m[1]), pgTypeName(strings.TrimRight(m[2], ".-"))).
			WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
	}),
	rule("Binder", `Cannot (?:mix|combine) (?:values|types?) of type (\S+) and (\S+)`, func(m []string) *pgerr.Error {
		return pgerr.Newf(pgerr.DatatypeMismatch, "types %s and %s cannot be matched", pgTypeName(m[1]), pgTypeName(m[2]))
	}),
	rule("Binder", `[Cc]annot deduce template type`, fixed(pgerr.DatatypeMismatch, "array elements must have one type")),
	rule("", `Unimplemented type for cast \((\S+) -> (\S+)\)`, func(m []string) *pgerr.Error { return cannotCast(m[1], m[2]) }),
	// Shapes.
	rule("Binder", `Set operations can only apply to expressions with the same number`, fixed(pgerr.SyntaxError, "each set operation query must have the same number of columns")),
	rule("Binder", `ORDER (?:BY )?term out of range`, fixed(pgerr.InvalidColumnReference, "ORDER BY position is not in select list")),
	rule("Binder", `GROUP BY term out of range`, fixed(pgerr.InvalidColumnReference, "GROUP BY position is not in select list")),
	rule("", `LIMIT.* cannot be negative|LIMIT must not be negative`, fixed("2201W", "LIMIT must not be negative")),
	rule("", `OFFSET.* cannot be negative`, fixed("2201X", "OFFSET must not be negative")),
	rule("Binder", `[Ss]ubquery returns (\d+) columns|[Ss]ubquery.*one column`, fixed(pgerr.SyntaxError, "subquery must return only one column")),
	rule("Binder", `SELECT DISTINCT ON|ORDER BY .*DISTINCT`, fixed(pgerr.InvalidColumnReference, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")),
	rule("", `More than one row returned by a subquery`, fixed(pgerr.CardinalityViolation, "more than one row returned by a subquery used as an expression")),
	rule("", `[Cc]ould not determine type of parameters?|parameter.*not (?:resolved|determined)`, fixed(pgerr.IndeterminateDatatype, "could not determine data type of a parameter")),
	// Values.
	rule("Invalid Input", `Invalid UTF8 Codepoint`, fixed(pgerr.ProgramLimitExceeded, "requested character too large for encoding")),
	rule("", `[Ee]scape string must be`, fixed(pgerr.InvalidEscapeSequence, "invalid escape string")),
	rule("", `escape character|[Ll]ike pattern must not end`, fixed(pgerr.InvalidEscapeSequence, "LIKE pattern must not end with escape character")),
	rule("Invalid Input", `^(missing|invalid|unexpected|no argument|bad|trailing).*: `, fixed("2201B", "invalid regular expression")),
	rule("", `Can only unnest|UNNEST`, fixed(pgerr.FeatureNotSupported, "this use of unnest is not supported")),
	// Files. The gate lets nobody name a file, so a missing one is a damaged warehouse.
	rule("", `No space left on device|Disk quota exceeded|File too large`, func([]string) *pgerr.Error {
		return pgerr.New(pgerr.DiskFull, "could not write: no space left on device").WithHint("Queries spill into the folder's tmp.")
	}),
	rule("IO", `No files found|[Cc]annot open file|No such file`, fixed(pgerr.UndefinedFile, "a data file of the table is missing")),
	rule("", `Parquet|parquet|TProtocol|[Tt]hrift|don't know what type|magic bytes|[Cc]orrupt|[Dd]ecompress|[Ss]nappy|ZSTD|Invalid repetition|Out of buffer`, fixed(pgerr.DataCorrupted, "a data file of the table is damaged")),
	rule("Permission", `.`, fixed(pgerr.InsufficientPrivilege, "permission denied")),
	rule("Invalid Input", `configuration has been locked|[Cc]annot change configuration`, fixed(pgerr.InsufficientPrivilege, "permission denied to set parameter")),
}

// badText is the error of an input function.
func badText(value, duck string) *pgerr.Error {
	switch t := pgTypeName(duck); {
	case duck == "INT128" && looksLikeUUID(value):
		return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type uuid: %s", quoted(value))
	case isNumber(value) && (t == "smallint" || t == "integer" || t == "bigint") && !strings.ContainsAny(value, ".eE"):
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "value %s is out of range for type %s", quoted(value), t)
	case isNumber(value) && (t == "real" || t == "double precision"):
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "%s is out of range for type %s", quoted(value), t)
	case t == "interval" || t == "date" || strings.HasPrefix(t, "time"):
		return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid input syntax for type %s: %s", t, quoted(value))
	default:
		return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: %s", t, quoted(value))
	}
}

// looksLikeUUID: DuckDB names UUID's storage in its message; a numeric cast never goes through INT128's string parser with
// letters or dashes in the middle, and PostgreSQL has no 128-bit integer.
func looksLikeUUID(value string) bool { return !isNumber(value) }

func isNumber(s string) bool {
	s = strings.TrimSpace(s)
	s = strings.TrimLeft(s, "+-")
	if s == "" {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+' {
			return false
		}
	}
	return s[0] >= '0' && s[0] <= '9' || s[0] == '.'
}

func cannotCast(from, to string) *pgerr.Error {
	return pgerr.Newf(pgerr.CannotCoerce, "cannot cast type %s to %s", pgTypeName(from), pgTypeName(to))
}

func undefinedFunction(call string) *pgerr.Error {
	if op, ok := operatorText(call); ok {
		return pgerr.Newf(pgerr.UndefinedFunction, "operator does not exist: %s", op).
			WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
	}
	return pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", callText(call, call)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

func ambiguousFunction(call string) *pgerr.Error {
	if op, ok := operatorText(call); ok {
		return pgerr.Newf(pgerr.AmbiguousFunction, "operator is not unique: %s", op).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.")
	}
	return pgerr.Newf(pgerr.AmbiguousFunction, "function %s is not unique", callText(call, call)).
		WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

// operatorText is a call of an operator as PostgreSQL writes it: date * integer. false: a function's.
func operatorText(call string) (string, bool) {
	name, _, _ := strings.Cut(call, "(")
	if isWord(name) {
		return "", false
	}
	parts := splitTypes(strings.TrimSuffix(strings.TrimPrefix(call, name+"("), ")"))
	for i, p := range parts {
		parts[i] = pgTypeName(p)
	}
	if len(parts) == 2 {
		return parts[0] + " " + name + " " + parts[1], true
	}
	return name + " " + strings.Join(parts, ", "), true
}

func isWord(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

func difference(width, scale string) string {
	w, s := 0, 0
	for _, c := range width {
		w = w*10 + int(c-'0')
	}
	for _, c := range scale {
		s = s*10 + int(c-'0')
	}
	d := w - s
	if d >= 10 {
		return string(rune('0'+d/10)) + string(rune('0'+d%10))
	}
	return string(rune('0' + d))
}
