package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
)

// optionDetail says in a sentence, for a DETAIL line, why an option's value is none.
type optionDetail string

func (d optionDetail) Error() string { return string(d) }

func detail(format string, args ...any) error { return optionDetail(fmt.Sprintf(format, args...)) }

// layoutField is one element of partitioning or sort_order: transform(n, column) direction.
type layoutField struct {
	transform iceberg.Transform
	column    string
	desc      bool
	nullsLast bool
}

// parseLayout reads "day(ts), bucket(16, id), truncate(4, name), region", and for a sort order "a DESC NULLS LAST, b".
func parseLayout(value string, sort bool) ([]layoutField, error) {
	name := optionPartitioning
	if sort {
		name = optionSortOrder
	}
	parts, err := splitLayout(value)
	if err != nil {
		return nil, badOption(name, value, err.Error())
	}
	out := []layoutField{}
	for _, p := range parts {
		f, err := parseLayoutField(p, sort)
		if err != nil {
			return nil, badOption(name, value, err.Error()).WithHint("%s", layoutHint(sort))
		}
		out = append(out, f)
	}
	return out, nil
}

func layoutHint(sort bool) string {
	if sort {
		return "For example: 'created_at DESC NULLS LAST, id'."
	}
	return "For example: 'day(created_at), bucket(16, id), truncate(4, name), region'."
}

// splitLayout splits at commas outside of parentheses and quotes. An empty text has no parts.
func splitLayout(s string) ([]string, error) {
	var out []string
	depth, from, quoted := 0, 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
		if depth < 0 {
			return nil, detail("There is a closing parenthesis too many.")
		}
	}
	if depth > 0 || quoted {
		return nil, detail("A parenthesis or a quote is not closed.")
	}
	if rest := strings.TrimSpace(s[from:]); rest != "" || len(out) > 0 {
		out = append(out, rest)
	}
	return out, nil
}

func parseLayoutField(p string, sort bool) (layoutField, error) {
	var f layoutField
	if sort {
		var err error
		if p, err = f.parseDirection(p); err != nil {
			return f, err
		}
	}
	open := strings.IndexByte(p, '(')
	if open < 0 || strings.HasPrefix(p, `"`) {
		f.transform = iceberg.IdentityTransform{}
		return f, f.parseColumn(p)
	}
	if sort {
		return f, detail("Rows are sorted by columns only, not by \"%s\".", p)
	}
	if !strings.HasSuffix(p, ")") {
		return f, detail("\"%s\" is no transform of a column.", p)
	}
	args, err := splitLayout(p[open+1 : len(p)-1])
	if err != nil {
		return f, err
	}
	return f, f.parseTransform(strings.ToLower(strings.TrimSpace(p[:open])), args)
}

// parseDirection takes ASC, DESC, NULLS FIRST and NULLS LAST off the end; NULLs are last in an ascending order, as in PostgreSQL.
func (f *layoutField) parseDirection(p string) (string, error) {
	nulls := ""
	words := strings.Fields(p)
	if n := len(words); n > 2 && strings.EqualFold(words[n-2], "nulls") {
		nulls = strings.ToLower(words[n-1])
		if nulls != "first" && nulls != "last" {
			return p, detail("NULLS %s is not NULLS FIRST or NULLS LAST.", words[n-1])
		}
		words = words[:n-2]
	}
	if n := len(words); n > 1 {
		switch strings.ToLower(words[n-1]) {
		case "asc":
			words = words[:n-1]
		case "desc":
			f.desc, words = true, words[:n-1]
		}
	}
	f.nullsLast = nulls == "last" || nulls == "" && !f.desc
	return strings.Join(words, " "), nil
}

// parseColumn reads a column's name as SQL would.
func (f *layoutField) parseColumn(p string) error {
	schema, name, err := pgsql.ParseQualifiedName(p)
	if err != nil || schema != "" || name == "" {
		return detail("\"%s\" is no column's name.", p)
	}
	f.column = name
	return nil
}

func (f *layoutField) parseTransform(name string, args []string) error {
	time := map[string]iceberg.Transform{
		"year": iceberg.YearTransform{}, "years": iceberg.YearTransform{}, "month": iceberg.MonthTransform{}, "months": iceberg.MonthTransform{},
		"day": iceberg.DayTransform{}, "days": iceberg.DayTransform{}, "hour": iceberg.HourTransform{}, "hours": iceberg.HourTransform{},
		"identity": iceberg.IdentityTransform{},
	}
	if t, ok := time[name]; ok {
		if len(args) != 1 {
			return detail("%s takes one column.", name)
		}
		f.transform = t
		return f.parseColumn(args[0])
	}
	if name != "bucket" && name != "truncate" {
		return detail("Transform \"%s\" does not exist: there are year, month, day, hour, bucket, truncate and identity.", name)
	}
	if len(args) != 2 {
		return detail("%s takes a number and a column.", name)
	}
	number, column := args[0], args[1]
	if _, err := strconv.Atoi(number); err != nil { // Spark takes truncate(column, n), too
		number, column = column, number
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		return detail("%s takes a positive number and a column.", name)
	}
	if name == "bucket" {
		f.transform = iceberg.BucketTransform{NumBuckets: int(n)}
	} else {
		f.transform = iceberg.TruncateTransform{Width: int(n)}
	}
	return f.parseColumn(column)
}

// suffix is what Iceberg's writers add to a column's name for its partition field.
func (f layoutField) suffix(numbered bool) string {
	number := func(n int) string {
		if numbered {
			return "_" + strconv.Itoa(n)
		}
		return ""
	}
	switch t := f.transform.(type) {
	case iceberg.BucketTransform:
		return "_bucket" + number(t.NumBuckets)
	case iceberg.TruncateTransform:
		return "_trunc" + number(t.Width)
	case iceberg.IdentityTransform:
		return ""
	}
	return "_" + f.transform.String()
}

// text is a field as the option has it.
func (f layoutField) text() string {
	col := pgsql.QuoteIdent(f.column)
	switch t := f.transform.(type) {
	case iceberg.IdentityTransform:
		return col
	case iceberg.BucketTransform:
		return fmt.Sprintf("bucket(%d, %s)", t.NumBuckets, col)
	case iceberg.TruncateTransform:
		return fmt.Sprintf("truncate(%d, %s)", t.Width, col)
	}
	return f.transform.String() + "(" + col + ")"
}
