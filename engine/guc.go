package engine

import (
	"fmt"
	_ "time/tzdata" // the machine may have no zone database

	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

const serverVersionNum = "150018"

// gucs are a session's settings. Values that a transaction set go back when it rolls back; SET LOCAL goes back at its end.
type gucs struct {
	base map[string]string // session start values, what RESET returns to
	cur  map[string]string // overrides of base; copied on write
	// saved holds cur as it was at BEGIN and at each savepoint; local names what SET LOCAL changed since BEGIN, with the value to restore.
	saved []map[string]string
	local map[string]*string
	// loc caches the TimeZone, whose value was zone.
	loc  *time.Location
	zone string
	// version counts changes, so that an unchanged session looks at nothing at the end of a statement.
	version int
	// now is what the settings say; refresh replaces it: DuckDB's threads read it, too, and set_config may run on one of them.
	now *gucView
}

func newGUCs() *gucs {
	g := &gucs{base: map[string]string{}, cur: map[string]string{}, loc: time.UTC}
	g.refresh()
	return g
}

// get returns a setting's value and whether it exists. Names are case-insensitive.
func (g *gucs) get(name string) (string, bool) {
	key := strings.ToLower(name)
	if v, ok := g.cur[key]; ok {
		return v, true
	}
	if v, ok := g.base[key]; ok {
		return v, true
	}
	if s, ok := settingByName[key]; ok {
		return s.value, true
	}
	return "", false
}

func (g *gucs) value(name string) string {
	v, _ := g.get(name)
	return v
}

// show is get with the unit as SHOW prints it.
func (g *gucs) show(name string) (string, bool) {
	v, ok := g.get(name)
	s := settingByName[strings.ToLower(name)]
	if !ok || s == nil || s.vartype != "integer" || s.unit == "" || v == "0" {
		return v, ok
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return v, true
	}
	return withUnit(n, s.unit), true
}

func withUnit(n int64, unit string) string {
	steps := map[string][]struct {
		name string
		size int64
	}{
		"ms": {{"d", 86_400_000}, {"h", 3_600_000}, {"min", 60_000}, {"s", 1000}, {"ms", 1}},
		"s":  {{"d", 86_400}, {"h", 3600}, {"min", 60}, {"s", 1}},
		"kB": {{"TB", 1 << 30}, {"GB", 1 << 20}, {"MB", 1 << 10}, {"kB", 1}},
	}
	if unit == "8kB" {
		n, unit = n*8, "kB"
	}
	for _, st := range steps[unit] {
		if n%st.size == 0 {
			return strconv.FormatInt(n/st.size, 10) + st.name
		}
	}
	return strconv.FormatInt(n, 10) + unit
}

// set changes a setting. Errors: 42704 unknown name, 55P02 not settable, 22023 bad value.
func (g *gucs) set(name, value string, local bool) error {
	key := strings.ToLower(name)
	canonical, err := g.check(name, value)
	if err != nil {
		return err
	}
	next := maps.Clone(g.cur)
	if local && len(g.saved) > 0 {
		if g.local == nil {
			g.local = map[string]*string{}
		}
		if _, done := g.local[key]; !done {
			if old, ok := g.cur[key]; ok {
				g.local[key] = &old
			} else {
				g.local[key] = nil
			}
		}
	}
	next[key] = canonical
	g.cur = next
	g.refresh()
	return nil
}

// reset returns a setting, or all when name is "all", to its value at session start.
func (g *gucs) reset(name string) error {
	key := strings.ToLower(name)
	if key == "all" {
		next := map[string]string{}
		for _, keep := range []string{"transaction_isolation", "transaction_read_only", "transaction_deferrable", "session_authorization", "is_superuser"} {
			if v, ok := g.cur[keep]; ok {
				next[keep] = v
			}
		}
		g.cur = next
		g.refresh()
		return nil
	}
	s, ok := settingByName[key]
	if !ok && !strings.Contains(key, ".") {
		return unrecognizedParameter(name)
	}
	if ok && s.context != "user" {
		return cannotChange(s)
	}
	next := maps.Clone(g.cur)
	delete(next, key)
	g.cur = next
	g.refresh()
	return nil
}

func unrecognizedParameter(name string) error {
	return pgerr.Newf(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
}

func cannotChange(s *setting) error {
	return pgerr.Newf(pgerr.CantChangeRuntimeParam, "parameter \"%s\" cannot be changed", s.name)
}

// check validates a value and returns its canonical text.
func (g *gucs) check(name, value string) (string, error) {
	s, ok := settingByName[strings.ToLower(name)]
	if !ok {
		if strings.Contains(name, ".") { // a custom parameter, as PostgreSQL takes any class.name
			return value, nil
		}
		return "", unrecognizedParameter(name)
	}
	if s.context != "user" {
		return "", cannotChange(s)
	}
	bad := pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", s.name, value)
	switch s.vartype {
	case "bool":
		b, ok := parseBool(value)
		if !ok {
			return "", pgerr.Newf(pgerr.InvalidParameterValue, "parameter \"%s\" requires a Boolean value", s.name)
		}
		return onOff(b), nil
	case "enum":
		for _, e := range s.enum {
			if strings.EqualFold(e, value) {
				return e, nil
			}
		}
		if b, ok := parseBool(value); ok && slices.Contains(s.enum, onOff(b)) {
			return onOff(b), nil
		}
		return "", bad.WithHint("Available values: %s.", strings.Join(s.enum, ", "))
	case "integer":
		return checkInteger(s, value, bad)
	case "real":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "", bad
		}
		return value, nil
	}
	switch s.name {
	case "TimeZone":
		loc, canonical, err := loadZone(value)
		if err != nil {
			return "", bad
		}
		_ = loc
		return canonical, nil
	case "DateStyle":
		return checkDateStyle(g.value("DateStyle"), value, bad)
	case "client_encoding":
		// As clean_encoding_name: letters and digits alone count. asyncpg quotes the name.
		letters := func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}
		switch strings.ToUpper(strings.Map(letters, value)) {
		case "UTF8", "UNICODE":
			return "UTF8", nil
		case "SQLASCII":
			return "SQL_ASCII", nil
		}
		return "", bad.WithDetail("This server speaks UTF8 only.")
	}
	return value, nil
}

func checkInteger(s *setting, value string, bad *pgerr.Error) (string, error) {
	text := strings.TrimSpace(value)
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '-' || text[i] == '+' || text[i] == '.') {
		i++
	}
	f, err := strconv.ParseFloat(text[:i], 64)
	if err != nil {
		return "", bad
	}
	if unit := strings.TrimSpace(text[i:]); unit != "" {
		factor, ok := unitFactor(s.unit, unit)
		if !ok {
			return "", bad.WithHint("Valid units for this parameter are %s.", unitHint(s.unit))
		}
		f *= factor
	}
	n := int64(f)
	if n < s.min || n > s.max {
		return "", pgerr.Newf(pgerr.InvalidParameterValue, "%d%s is outside the valid range for parameter \"%s\" (%d .. %d)", n, spaced(s.unit), s.name, s.min, s.max)
	}
	return strconv.FormatInt(n, 10), nil
}

func spaced(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

func unitHint(base string) string {
	if base == "ms" || base == "s" {
		return `"us", "ms", "s", "min", "h", and "d"`
	}
	return `"B", "kB", "MB", "GB", and "TB"`
}

func unitFactor(base, unit string) (float64, bool) {
	ms := map[string]float64{"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
	kb := map[string]float64{"B": 1.0 / 1024, "kB": 1, "MB": 1 << 10, "GB": 1 << 20, "TB": 1 << 30}
	switch base {
	case "ms":
		f, ok := ms[unit]
		return f, ok
	case "s":
		f, ok := ms[unit]
		return f / 1000, ok
	case "kB":
		f, ok := kb[unit]
		return f, ok
	case "8kB":
		f, ok := kb[unit]
		return f / 8, ok
	}
	return 0, false
}

func parseBool(v string) (bool, bool) {
	v = strings.ToLower(strings.TrimSpace(v))
	if v == "" {
		return false, false
	}
	switch {
	case v == "1", v == "on", strings.HasPrefix("true", v), strings.HasPrefix("yes", v):
		return true, true
	case v == "0", len(v) >= 2 && strings.HasPrefix("off", v), strings.HasPrefix("false", v), strings.HasPrefix("no", v):
		return false, true
	}
	return false, false
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func checkDateStyle(current, value string, bad *pgerr.Error) (string, error) {
	style, order, _ := strings.Cut(current, ", ")
	for part := range strings.SplitSeq(value, ",") {
		switch p := strings.ToUpper(strings.TrimSpace(part)); {
		case p == "ISO":
			style = "ISO"
		case p == "SQL":
			style = "SQL"
		case strings.HasPrefix(p, "POSTGRES"):
			style = "Postgres"
		case p == "GERMAN":
			style = "German"
			if !strings.ContainsAny(strings.ToUpper(value), ",") {
				order = "DMY"
			}
		case p == "MDY" || p == "US" || strings.HasPrefix(p, "NONEURO"):
			order = "MDY"
		case p == "DMY" || strings.HasPrefix(p, "EURO"):
			order = "DMY"
		case p == "YMD":
			order = "YMD"
		case p == "DEFAULT":
			style, order = "ISO", "MDY"
		default:
			return "", bad.WithDetail("Unrecognized key word: \"%s\".", strings.ToLower(p))
		}
	}
	return style + ", " + order, nil
}

// loadZone resolves a TimeZone value: a name, an abbreviation, or an offset as PostgreSQL reads it.
func loadZone(value string) (*time.Location, string, error) {
	v := strings.TrimSpace(value)
	switch strings.ToUpper(v) {
	case "UTC", "Z", "ZULU", "GMT", "DEFAULT", "LOCAL":
		if strings.EqualFold(v, "GMT") {
			return time.FixedZone("GMT", 0), "GMT", nil
		}
		return time.UTC, "UTC", nil
	}
	if h, err := strconv.ParseFloat(v, 64); err == nil && h >= -168 && h <= 168 {
		// SET TIME ZONE -7: hours east of Greenwich; POSIX text has the sign the other way round.
		off := int(h * 3600)
		name := time.Unix(0, 0).In(time.FixedZone("", off)).Format("-07")
		return time.FixedZone("<"+name+">", off), "<" + name + ">" + posixOffset(-off), nil
	}
	if strings.HasPrefix(v, "<") { // our own canonical text of an offset
		if end := strings.IndexByte(v, '>'); end > 0 {
			if h, err := strconv.Atoi(v[end+1:]); err == nil {
				return time.FixedZone(v[:end+1], -h*3600), v, nil
			}
		}
	}
	if loc, err := time.LoadLocation(v); err == nil && v != "" {
		return loc, loc.String(), nil
	}
	if name := zoneCase(v); name != v {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, loc.String(), nil
		}
	}
	return nil, "", pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for parameter \"TimeZone\": \"%s\"", value)
}

// posixOffset is the offset of a POSIX zone: hours west of Greenwich.
func posixOffset(sec int) string {
	out := fmt.Sprintf("%+03d", sec/3600)
	if m := sec % 3600 / 60; m != 0 {
		out += fmt.Sprintf(":%02d", max(m, -m))
	}
	return strings.TrimPrefix(out, "+")
}

// zoneCase spells a zone name as the database does: PostgreSQL's lookup ignores case, Go's does not.
func zoneCase(v string) string {
	b := []byte(strings.ToLower(v))
	up := true
	for i, c := range b {
		if up && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		up = c == '/' || c == '_' || c == '-'
	}
	return string(b)
}

// refresh follows every change of cur.
func (g *gucs) refresh() {
	g.version++
	if value := g.value("TimeZone"); value != g.zone || g.loc == nil {
		if loc, _, err := loadZone(value); err == nil {
			g.loc, g.zone = loc, value
		}
	}
	g.now = g.derive()
}

// begin opens a level: a transaction or a savepoint.
func (g *gucs) begin() {
	g.saved = append(g.saved, g.cur)
}

// rollbackTo takes back every change since level n was opened and keeps level n open.
func (g *gucs) rollbackTo(n int) {
	if n < len(g.saved) {
		g.cur = g.saved[n]
		g.saved = g.saved[:n+1]
		g.refresh()
	}
}

// release closes level n and those above it, keeping their changes.
func (g *gucs) release(n int) {
	if n < len(g.saved) {
		g.saved = g.saved[:n]
	}
}

// end closes the transaction.
func (g *gucs) end(commit bool) {
	if len(g.saved) == 0 {
		return
	}
	changed := false
	switch {
	case !commit:
		g.cur, changed = g.saved[0], true
	case len(g.local) > 0:
		next := maps.Clone(g.cur)
		for k, old := range g.local {
			if old == nil {
				delete(next, k)
			} else {
				next[k] = *old
			}
		}
		g.cur, changed = next, true
	}
	clear(g.saved)
	g.saved, g.local = g.saved[:0], nil
	for _, k := range []string{"transaction_isolation", "transaction_read_only", "transaction_deferrable"} {
		if _, ok := g.cur[k]; ok {
			next := maps.Clone(g.cur)
			delete(next, k)
			g.cur, changed = next, true
		}
	}
	if changed {
		g.refresh()
	}
}

// reports returns the GUC_REPORT values, in PostgreSQL's order.
func (g *gucs) reports() []pgwire.Param {
	var out []pgwire.Param
	for i := range settings {
		if settings[i].report {
			out = append(out, pgwire.Param{Name: settings[i].name, Value: g.value(settings[i].name)})
		}
	}
	return out
}

// duration reads a millisecond setting; 0 means none.
func (g *gucs) duration(name string) time.Duration {
	n, err := strconv.ParseInt(g.value(name), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
