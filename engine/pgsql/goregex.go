package pgsql

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// regexCache holds compiled patterns; it is emptied when it grows.
var regexCache struct {
	sync.Mutex
	m map[string]*regexp.Regexp
}

const maxRegexes = 500

// compileRegex compiles a PostgreSQL pattern with function flags (g is the caller's).
func compileRegex(pattern, flags string) (*regexp.Regexp, error) {
	key := flags + "/" + pattern
	regexCache.Lock()
	re := regexCache.m[key]
	regexCache.Unlock()
	if re != nil {
		return re, nil
	}
	mode := "s"
	for _, f := range flags {
		switch f {
		case 'g', 'c', 'e', 's', 't':
		case 'i':
			mode += "i"
		case 'n', 'm':
			mode = strings.Replace(mode, "s", "m", 1)
		case 'q':
			pattern = "***=" + pattern
		case 'x':
			pattern = expandedRegex(pattern)
		case 'p':
			mode = strings.Replace(mode, "s", "", 1)
		case 'w':
			mode += "m"
		default:
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "invalid regular expression option: \"%c\"", f)
		}
	}
	text, err := translateRegex(pattern)
	if err != nil {
		return nil, err
	}
	if mode != "" {
		text = "(?" + mode + ")" + text
	}
	re, err = regexp.Compile(text)
	if err != nil {
		return nil, pgerr.Newf(invalidRegularExpression, "invalid regular expression: %s", regexReason(err))
	}
	regexCache.Lock()
	if regexCache.m == nil || len(regexCache.m) >= maxRegexes {
		regexCache.m = map[string]*regexp.Regexp{}
	}
	regexCache.m[key] = re
	regexCache.Unlock()
	return re, nil
}

// groups are the captured texts of a match, or the whole match when there are no groups.
func groups(s string, m []int) []Value {
	if len(m) == 2 {
		return []Value{{S: s[m[0]:m[1]]}}
	}
	var out []Value
	for i := 2; i < len(m); i += 2 {
		if m[i] < 0 {
			out = append(out, sqlNull)
		} else {
			out = append(out, Value{S: s[m[i]:m[i+1]]})
		}
	}
	return out
}

func regexFn(name string, args []string, ret string, pattern, flags int, f func(re *regexp.Regexp, a []Value) (Value, error)) GoFunc {
	return fn(name, args, ret, func(a []Value) (Value, error) {
		fl := ""
		if flags >= 0 {
			fl = a[flags].S
		}
		re, err := compileRegex(a[pattern].S, fl)
		if err != nil {
			return Value{}, err
		}
		return f(re, a)
	})
}

// expandReplacement writes \1, \& and \\ of regexp_replace.
func expandReplacement(b *strings.Builder, repl, s string, m []int) {
	for i := 0; i < len(repl); i++ {
		if repl[i] != '\\' || i+1 >= len(repl) {
			b.WriteByte(repl[i])
			continue
		}
		i++
		switch c := repl[i]; {
		case c == '&':
			b.WriteString(s[m[0]:m[1]])
		case c >= '1' && c <= '9':
			if g := 2 * int(c-'0'); g+1 < len(m) && m[g] >= 0 {
				b.WriteString(s[m[g]:m[g+1]])
			}
		case c == '\\':
			b.WriteByte('\\')
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
}

func replaceRegex(re *regexp.Regexp, s, repl string, all bool) string {
	n := 1
	if all {
		n = -1
	}
	ms := re.FindAllStringSubmatchIndex(s, n)
	var b strings.Builder
	last := 0
	for _, m := range ms {
		b.WriteString(s[last:m[0]])
		expandReplacement(&b, repl, s, m)
		last = m[1]
	}
	b.WriteString(s[last:])
	return b.String()
}

func noGlobal(flags, name string) error {
	if strings.Contains(flags, "g") {
		return pgerr.Newf(pgerr.InvalidParameterValue, "%s does not support the \"global\" option", name)
	}
	return nil
}

var regexFuncs = []GoFunc{
	fn("skade_regex", types(dV), dV, func(a []Value) (Value, error) {
		s, err := translateRegex(a[0].S)
		return Value{S: s}, err
	}),
	fn("skade_similar", types(dV, dV), dV, func(a []Value) (Value, error) {
		s, err := similarRegex(a[0].S, a[1].S)
		return Value{S: s}, err
	}),
	regexFn("skade_regexp_match", types(dV, dV, dV), dL, 1, 2, func(re *regexp.Regexp, a []Value) (Value, error) {
		if err := noGlobal(a[2].S, "regexp_match()"); err != nil {
			return Value{}, err.(*pgerr.Error).WithHint("Use the regexp_matches function instead.")
		}
		m := re.FindStringSubmatchIndex(a[0].S)
		if m == nil {
			return sqlNull, nil
		}
		return Value{L: groups(a[0].S, m)}, nil
	}),
	// Each match as an array's text, for the set-returning regexp_matches.
	regexFn("skade_regexp_matches", types(dV, dV, dV), dL, 1, 2, func(re *regexp.Regexp, a []Value) (Value, error) {
		v := Value{L: []Value{}}
		n := 1
		if strings.Contains(a[2].S, "g") {
			n = -1
		}
		for _, m := range re.FindAllStringSubmatchIndex(a[0].S, n) {
			v.L = append(v.L, Value{S: arrayLiteralText(groups(a[0].S, m))})
		}
		return v, nil
	}),
	regexFn("skade_regexp_replace", types(dV, dV, dV, dV), dV, 1, 3, func(re *regexp.Regexp, a []Value) (Value, error) {
		return Value{S: replaceRegex(re, a[0].S, a[2].S, strings.Contains(a[3].S, "g"))}, nil
	}),
	regexFn("skade_regexp_split", types(dV, dV, dV), dL, 1, 2, func(re *regexp.Regexp, a []Value) (Value, error) {
		if err := noGlobal(a[2].S, "regexp_split_to_array()"); err != nil {
			return Value{}, err
		}
		return textList(splitRegex(re, a[0].S)), nil
	}),
	regexFn("skade_regexp_like", types(dV, dV, dV), dB, 1, 2, func(re *regexp.Regexp, a []Value) (Value, error) {
		return boolValue(re.MatchString(a[0].S)), noGlobal(a[2].S, "regexp_like()")
	}),
	regexFn("skade_regexp_count", types(dV, dV, dI, dV), "INTEGER", 1, 3, func(re *regexp.Regexp, a []Value) (Value, error) {
		if a[2].I <= 0 {
			return Value{}, pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for parameter %q: %s", "start", strconv.FormatInt(a[2].I, 10))
		}
		r := []rune(a[0].S)
		if int(a[2].I) > len(r)+1 {
			return Value{}, nil
		}
		return Value{I: int64(len(re.FindAllStringIndex(string(r[a[2].I-1:]), -1)))}, nil
	}),
	regexFn("skade_regexp_substr", types(dV, dV, dV), dV, 1, 2, func(re *regexp.Regexp, a []Value) (Value, error) {
		m := re.FindStringIndex(a[0].S)
		if m == nil {
			return sqlNull, nil
		}
		return Value{S: a[0].S[m[0]:m[1]]}, nil
	}),
	fn("skade_substring_similar", types(dV, dV, dV), dV, func(a []Value) (Value, error) { return substringSimilar(a[0].S, a[1].S, a[2].S) }),
	// substring(text from pattern): the first group, or the match.
	regexFn("skade_regexp_substring", types(dV, dV), dV, 1, -1, func(re *regexp.Regexp, a []Value) (Value, error) {
		m := re.FindStringSubmatchIndex(a[0].S)
		if m == nil {
			return sqlNull, nil
		}
		return groups(a[0].S, m)[0], nil
	}),
}

// substringSimilar is substring(text similar pattern escape e): the part of the pattern between the two e".
func substringSimilar(s, pattern, escape string) (Value, error) {
	parts := strings.Split(pattern, escape+`"`)
	if escape == "" || len(parts) != 3 {
		return Value{}, pgerr.New(pgerr.FeatureNotSupported, "substring with an SQL pattern without two separators is not supported")
	}
	var re [3]string
	for i, p := range parts {
		text, err := similarRegex(p, escape)
		if err != nil {
			return Value{}, err
		}
		re[i] = strings.TrimSuffix(strings.TrimPrefix(text, "^(?:"), ")$")
	}
	c, err := regexp.Compile("(?s)^(?:" + re[0] + ")((?:" + re[1] + "))(?:" + re[2] + ")$")
	if err != nil {
		return Value{}, pgerr.Newf(invalidRegularExpression, "invalid regular expression: %s", regexReason(err))
	}
	m := c.FindStringSubmatch(s)
	if m == nil {
		return sqlNull, nil
	}
	return Value{S: m[1]}, nil
}

func arrayLiteralText(items []Value) string {
	parts := make([]string, len(items))
	for i, v := range items {
		if v.Null {
			parts[i] = "NULL"
		} else {
			parts[i] = arrayQuote(v.S)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// splitRegex is regexp_split: empty matches at the ends do not count.
func splitRegex(re *regexp.Regexp, s string) []string {
	var out []string
	last := 0
	for _, m := range re.FindAllStringIndex(s, -1) {
		if m[0] == m[1] && (m[0] == 0 || m[0] == len(s) || m[0] == last) {
			continue
		}
		out = append(out, s[last:m[0]])
		last = m[1]
	}
	return append(out, s[last:])
}
