package pgsql

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// formatKeywords are to_char's and to_date's date/time patterns, longest first. Source: DCH_keywords in formatting.c.
var formatKeywords = []string{
	"SSSSS", "SSSS", "Y,YYY", "YYYY", "IYYY", "MONTH", "Month", "month", "A.D.", "a.d.", "B.C.", "b.c.", "A.M.", "a.m.", "P.M.", "p.m.", "HH24", "HH12",
	"FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "YYY", "IYY", "DAY", "Day", "day", "DDD", "IDDD", "MON", "Mon", "mon", "TZH", "TZM",
	"AD", "ad", "BC", "bc", "AM", "am", "PM", "pm", "HH", "MI", "SS", "MS", "US", "CC", "YY", "IY", "MM", "WW", "IW", "DD", "DY", "Dy", "dy", "ID", "TZ", "tz", "OF", "RM", "rm",
	"Y", "I", "Q", "W", "D", "J", "FX", "FM",
}

// dateToken is one element of a format: a pattern or literal text.
type dateToken struct {
	key    string
	fm     bool
	suffix string // TH, th, SP
	lit    string
}

// dateFormat splits a format string.
func dateFormat(f string) []dateToken {
	var out []dateToken
	fm := false
	for len(f) > 0 {
		if f[0] == '"' {
			end := 1
			var b strings.Builder
			for end < len(f) && f[end] != '"' {
				if f[end] == '\\' && end+1 < len(f) {
					end++
				}
				b.WriteByte(f[end])
				end++
			}
			out = append(out, dateToken{lit: b.String()})
			f = f[min(end+1, len(f)):]
			continue
		}
		if len(f) >= 2 && (f[:2] == "FM" || f[:2] == "fm") {
			fm, f = true, f[2:]
			continue
		}
		key := matchKeyword(f)
		if key == "" {
			out = append(out, dateToken{lit: string([]rune(f)[:1])})
			f = f[len(string([]rune(f)[:1])):]
			continue
		}
		t := dateToken{key: key, fm: fm}
		fm = false
		f = f[len(key):]
		if len(f) >= 2 && (f[:2] == "TH" || f[:2] == "th") {
			t.suffix, f = f[:2], f[2:]
		}
		if key != "FX" {
			out = append(out, t)
		}
	}
	return out
}

func matchKeyword(f string) string {
	for _, k := range formatKeywords {
		if len(f) >= len(k) && f[:len(k)] == k {
			return k
		}
	}
	// patterns that have no case of their own
	for _, k := range formatKeywords {
		if len(f) >= len(k) && strings.EqualFold(f[:len(k)], k) && strings.ToUpper(k) == k && !strings.ContainsAny(k, ".") {
			switch k {
			case "MONTH", "MON", "DAY", "DY", "AD", "BC", "AM", "PM", "TZ", "RM", "FM":
				continue
			}
			return f[:len(k)]
		}
	}
	return ""
}

// ordinal is the English ending of a number.
func ordinal(n string, upper bool) string {
	th := "th"
	last := n[len(n)-1]
	if !(len(n) >= 2 && n[len(n)-2] == '1') {
		switch last {
		case '1':
			th = "st"
		case '2':
			th = "nd"
		case '3':
			th = "rd"
		}
	}
	if upper {
		return strings.ToUpper(th)
	}
	return th
}

// clockValue is what a date/time pattern shows.
type clockValue struct {
	year             int
	month            time.Month
	day              int
	hour, min, sec   int
	us               int
	yday, wday       int
	isoYear, isoWeek int
	julian           int64
	zone             string
	offset           int64
	interval         bool
}

func clockOf(us int64, zone string, offset int64) clockValue {
	t := time.UnixMicro(us).UTC()
	v := clockValue{month: t.Month(), day: t.Day(), hour: t.Hour(), min: t.Minute(), sec: t.Second(), us: t.Nanosecond() / 1000, yday: t.YearDay(), wday: int(t.Weekday()), zone: zone, offset: offset}
	v.year = t.Year()
	v.isoYear, v.isoWeek = t.ISOWeek()
	days := us / usPerDay
	if us%usPerDay < 0 {
		days--
	}
	v.julian = days + 2440588
	return v
}

// toCharTime is to_char for date/time values.
func toCharTime(v clockValue, format string) string {
	var b strings.Builder
	for _, t := range dateFormat(format) {
		if t.key == "" {
			b.WriteString(t.lit)
			continue
		}
		s := v.pattern(t)
		b.WriteString(s)
		if t.suffix != "" && s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
			b.WriteString(ordinal(s, t.suffix == "TH"))
		}
	}
	return b.String()
}

func casing(like, s string) string {
	switch {
	case strings.ToUpper(like) == like:
		return strings.ToUpper(s)
	case strings.ToLower(like) == like:
		return strings.ToLower(s)
	}
	return s
}

func (v clockValue) pattern(t dateToken) string {
	num := func(n, width int) string {
		s := strconv.Itoa(abs(n))
		if !t.fm {
			s = strings.Repeat("0", max(0, width-len(s))) + s
		}
		if n < 0 {
			s = "-" + s
		}
		return s
	}
	blank := func(s string, width int) string {
		if t.fm {
			return s
		}
		return s + strings.Repeat(" ", max(0, width-len(s)))
	}
	year := v.year
	if year <= 0 && !v.interval {
		year = 1 - year
	}
	h12 := v.hour % 12
	if h12 == 0 {
		h12 = 12
	}
	half := "AM"
	if v.hour%24 >= 12 {
		half = "PM"
	}
	switch k := strings.ToUpper(t.key); k {
	case "HH24":
		return num(v.hour, 2)
	case "HH", "HH12":
		return num(h12, 2)
	case "MI":
		return num(v.min, 2)
	case "SS":
		return num(v.sec, 2)
	case "MS", "FF3":
		return num(v.us/1000, 3)
	case "US", "FF6":
		return num(v.us, 6)
	case "FF1":
		return num(v.us/100000, 1)
	case "FF2":
		return num(v.us/10000, 2)
	case "FF4":
		return num(v.us/100, 4)
	case "FF5":
		return num(v.us/10, 5)
	case "SSSS", "SSSSS":
		return strconv.Itoa(v.hour*3600 + v.min*60 + v.sec)
	case "AM", "PM":
		return casing(t.key, half)
	case "A.M.", "P.M.":
		return casing(t.key, half[:1]+".M.")
	case "AD", "BC":
		return casing(t.key, map[bool]string{true: "BC", false: "AD"}[v.year <= 0])
	case "A.D.", "B.C.":
		return casing(t.key, map[bool]string{true: "B.C.", false: "A.D."}[v.year <= 0])
	case "YYYY":
		return num(year, 4)
	case "Y,YYY":
		return strconv.Itoa(year/1000) + "," + (strconv.Itoa(year%1000 + 1000))[1:]
	case "YYY":
		return num(year%1000, 3)
	case "YY":
		return num(year%100, 2)
	case "Y":
		return num(year%10, 1)
	case "IYYY":
		return num(v.isoYear, 4)
	case "IYY":
		return num(v.isoYear%1000, 3)
	case "IY":
		return num(v.isoYear%100, 2)
	case "I":
		return num(v.isoYear%10, 1)
	case "CC":
		return num((year+99)/100, 2)
	case "MONTH":
		return blank(casing(t.key, v.month.String()), 9)
	case "MON":
		return casing(t.key, v.month.String()[:3])
	case "MM":
		return num(int(v.month), 2)
	case "RM":
		return blank(casing(t.key, romanMonths[(v.month+11)%12]), 4)
	case "DAY":
		return blank(casing(t.key, time.Weekday(v.wday).String()), 9)
	case "DY":
		return casing(t.key, time.Weekday(v.wday).String()[:3])
	case "DDD":
		return num(v.yday, 3)
	case "IDDD":
		wd := (v.wday + 6) % 7
		return num((v.isoWeek-1)*7+wd+1, 3)
	case "DD":
		return num(v.day, 2)
	case "D":
		return strconv.Itoa(v.wday + 1)
	case "ID":
		return strconv.Itoa((v.wday+6)%7 + 1)
	case "WW":
		return num((v.yday-1)/7+1, 2)
	case "IW":
		return num(v.isoWeek, 2)
	case "W":
		return strconv.Itoa((v.day-1)/7 + 1)
	case "Q":
		return strconv.Itoa((int(v.month)-1)/3 + 1)
	case "J":
		return strconv.FormatInt(v.julian, 10)
	case "TZ":
		return casing(t.key, v.abbreviation())
	case "TZH":
		return signed(v.offset/3600, v.offset < 0)
	case "TZM":
		return (strconv.Itoa(int(abs64(v.offset)%3600/60) + 100))[1:]
	case "OF":
		s := signed(v.offset/3600, v.offset < 0)
		if m := abs64(v.offset) % 3600 / 60; m != 0 {
			s += ":" + (strconv.Itoa(int(m) + 100))[1:]
		}
		return s
	}
	return t.key
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func signed(n int64, neg bool) string {
	s := "+"
	if neg {
		s = "-"
	}
	return s + (strconv.FormatInt(abs64(n)+100, 10))[1:]
}

var romanMonths = []string{"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}

// abbreviation is the zone's name at the value.
func (v clockValue) abbreviation() string {
	loc, err := time.LoadLocation(v.zone)
	if err != nil {
		return v.zone
	}
	t := time.Date(v.year, v.month, v.day, v.hour, v.min, v.sec, 0, loc)
	name, _ := t.Zone()
	return name
}

// dateFields2 collects what to_timestamp and to_date read.
type dateInput struct {
	year, month, day, yday, hour, min, sec, us int
	pm, am, bc, h12                            bool
	isoYear, isoWeek, isoDay                   int
	j                                          int
	tz                                         int
	hasTZ, hasYear                             bool
	ssss                                       int
}

// toTimestamp is to_timestamp(text, format) as a local time in microseconds.
func toTimestamp(in, format string) (int64, error) {
	d := dateInput{ssss: -1}
	toks := dateFormat(format)
	pos := 0
	bad := func(key, why string) error {
		return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid value %q for %q", in[min(pos, len(in)):], key).WithDetail("%s", why)
	}
	for i, t := range toks {
		if t.key == "" {
			// A separator in the format skips separators and blanks in the input; a letter skips one character.
			if t.lit != "" && !isLetterOrDigit(t.lit[0]) {
				if pos < len(in) && !isLetterOrDigit(in[pos]) && !(in[pos] == '-' || in[pos] == '+') || pos < len(in) && in[pos] == t.lit[0] {
					pos++
				}
				for pos < len(in) && in[pos] == ' ' {
					pos++
				}
			} else if pos < len(in) {
				pos += min(len(t.lit), len(in)-pos)
			}
			continue
		}
		for pos < len(in) && in[pos] == ' ' {
			pos++
		}
		if pos >= len(in) {
			break
		}
		next := i+1 < len(toks) && toks[i+1].key != "" && isDigitPattern(toks[i+1].key)
		n, err := d.read(t, in[pos:], next)
		if err != "" {
			return 0, bad(t.key, err)
		}
		pos += n
		if t.suffix != "" {
			pos = min(len(in), pos+2)
		}
	}
	return d.micros()
}

func isLetterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func isDigitPattern(k string) bool {
	switch strings.ToUpper(k) {
	case "MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "TZ", "RM", "OF":
		return false
	}
	return true
}

var patternWidths = map[string]int{"YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "IYYY": 4, "IYY": 3, "IY": 2, "I": 1, "MM": 2, "DD": 2, "DDD": 3, "HH24": 2, "HH": 2, "HH12": 2, "MI": 2, "SS": 2,
	"MS": 3, "US": 6, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6, "SSSS": 5, "SSSSS": 5, "Q": 1, "WW": 2, "IW": 2, "W": 1, "D": 1, "ID": 1, "J": 7, "CC": 2, "TZH": 3, "TZM": 2, "IDDD": 3}

// read takes one pattern's value from the input; why is a reason for failing.
func (d *dateInput) read(t dateToken, in string, nextDigits bool) (used int, why string) {
	k := strings.ToUpper(t.key)
	word := func(names []string, short bool) (int, int) {
		for i, n := range names {
			if short {
				n = n[:3]
			}
			if len(in) >= len(n) && strings.EqualFold(in[:len(n)], n) {
				return i, len(n)
			}
		}
		return -1, 0
	}
	switch k {
	case "MONTH", "MON":
		i, n := word(monthNames, k == "MON")
		if i < 0 && k == "MONTH" {
			i, n = word(monthNames, true)
		}
		if i < 0 {
			return 0, "The given value did not match any of the allowed values for this field."
		}
		d.month = i + 1
		return n, ""
	case "DAY", "DY":
		i, n := word(dayNames, k == "DY")
		if i < 0 {
			return 0, "The given value did not match any of the allowed values for this field."
		}
		return n, ""
	case "AM", "PM":
		if len(in) >= 2 {
			d.pm = in[0]|0x20 == 'p'
			d.am = !d.pm
			return 2, ""
		}
		return len(in), ""
	case "A.M.", "P.M.":
		if len(in) >= 4 {
			d.pm = in[0]|0x20 == 'p'
			d.am = !d.pm
			return 4, ""
		}
		return len(in), ""
	case "AD", "BC", "A.D.", "B.C.":
		n := min(len(k), len(in))
		d.bc = len(in) > 0 && in[0]|0x20 == 'b'
		return n, ""
	case "TZ", "OF", "RM", "Y,YYY":
		return 0, "The format pattern is not supported."
	}
	width := patternWidths[k]
	if width == 0 {
		return 0, ""
	}
	i := 0
	neg := false
	if i < len(in) && (in[i] == '-' || in[i] == '+') {
		neg = in[i] == '-'
		i++
	}
	start := i
	limit := width
	if !nextDigits || t.fm {
		limit = 1 << 10
	}
	for i < len(in) && i-start < limit && in[i] >= '0' && in[i] <= '9' {
		i++
	}
	if i == start {
		return 0, "Value must be an integer."
	}
	n, err := strconv.Atoi(in[start:i])
	if err != nil || n > 1<<30 {
		return 0, "Value must be in the range -2147483648 to 2147483647."
	}
	digits := i - start
	if neg {
		n = -n
	}
	d.set(k, n, digits)
	return i, ""
}

func (d *dateInput) set(k string, n, digits int) {
	frac := func(width int) int {
		for ; digits < 6; digits++ {
			n *= 10
		}
		for ; digits > 6; digits-- {
			n /= 10
		}
		_ = width
		return n
	}
	switch k {
	case "YYYY":
		d.year, d.hasYear = n, true
	case "YYY", "YY", "Y":
		d.year, d.hasYear = n, true
		if digits < 4 && n >= 0 {
			// adjust_partial_year_to_2020
			switch {
			case n < 70:
				d.year = n + 2000
			case n < 100:
				d.year = n + 1900
			case n < 520:
				d.year = n + 2000
			default:
				d.year = n + 1000
			}
		}
	case "IYYY", "IYY", "IY", "I":
		d.isoYear = n
	case "MM":
		d.month = n
	case "DD":
		d.day = n
	case "DDD":
		d.yday = n
	case "HH24":
		d.hour = n
	case "HH", "HH12":
		d.hour, d.h12 = n, true
	case "MI":
		d.min = n
	case "SS":
		d.sec = n
	case "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
		d.us = frac(patternWidths[k])
	case "SSSS", "SSSSS":
		d.ssss = n
	case "IW":
		d.isoWeek = n
	case "ID":
		d.isoDay = n
	case "J":
		d.j = n
	case "TZH":
		d.tz, d.hasTZ = n*3600, true
	case "TZM":
		if d.tz < 0 {
			n = -n
		}
		d.tz += n * 60
	}
}

func (d *dateInput) micros() (int64, error) {
	rangeErr := func() error {
		return pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range")
	}
	if d.h12 {
		if d.hour < 1 || d.hour > 12 {
			return 0, pgerr.Newf(pgerr.InvalidDatetimeFormat, "hour \"%d\" is invalid for the 12-hour clock", d.hour).WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if d.pm && d.hour < 12 {
			d.hour += 12
		} else if d.am && d.hour == 12 {
			d.hour = 0
		}
	}
	if d.ssss >= 0 {
		d.hour, d.min, d.sec = d.ssss/3600, d.ssss%3600/60, d.ssss%60
	}
	year := d.year
	if !d.hasYear {
		year = 0
	}
	if d.bc && year > 0 {
		year = 1 - year
	} else if !d.hasYear {
		year = 0
	} else if year < 0 {
		year++
	}
	if d.hour > 23 && !(d.hour == 24 && d.min == 0 && d.sec == 0) || d.min > 59 || d.sec > 60 || d.month > 12 || d.month < 0 || d.day < 0 {
		return 0, rangeErr()
	}
	month, day := max(d.month, 1), max(d.day, 1)
	var date time.Time
	switch {
	case d.j > 0:
		date = time.Unix((int64(d.j)-2440588)*86400, 0).UTC()
	case d.isoYear > 0 && d.isoWeek > 0:
		jan4 := time.Date(d.isoYear, 1, 4, 0, 0, 0, 0, time.UTC)
		monday := jan4.AddDate(0, 0, -int(jan4.Weekday()+6)%7)
		date = monday.AddDate(0, 0, (d.isoWeek-1)*7+max(d.isoDay, 1)-1)
	case d.yday > 0 && d.month == 0:
		date = time.Date(year, 1, d.yday, 0, 0, 0, 0, time.UTC)
	default:
		date = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if date.Day() != day {
			return 0, rangeErr()
		}
	}
	us := date.Unix()*usPerSecond + int64(d.hour)*usPerHour + int64(d.min)*usPerMinute + int64(d.sec)*usPerSecond + int64(d.us)
	if d.hasTZ {
		us -= int64(d.tz) * usPerSecond
	}
	return us, nil
}

var (
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

var formatFuncs = []GoFunc{
	fn("skade_to_char_ts", types("TIMESTAMP", dV, dV, dI), dV, func(a []Value) (Value, error) {
		if a[1].S == "" {
			return sqlNull, nil
		}
		return Value{S: toCharTime(clockOf(a[0].I, a[2].S, a[3].I), a[1].S)}, nil
	}),
	fn("skade_to_char_interval", types("INTERVAL", dV), dV, func(a []Value) (Value, error) {
		v := a[0]
		c := clockValue{interval: true, year: int(v.Months / 12), month: time.Month(v.Months % 12), day: int(v.Days),
			hour: int(v.I / usPerHour), min: int(v.I % usPerHour / usPerMinute), sec: int(v.I % usPerMinute / usPerSecond), us: int(v.I % usPerSecond)}
		c.yday = int(v.Months)*30 + int(v.Days)
		return Value{S: toCharTime(c, a[1].S)}, nil
	}),
	fn("skade_to_timestamp", types(dV, dV), "TIMESTAMP", func(a []Value) (Value, error) {
		us, err := toTimestamp(a[0].S, a[1].S)
		return Value{I: us}, err
	}),
	textFn("skade_to_char_num", 2, func(a []Value) (string, error) { return toCharNumber(a[0].S, a[1].S) }),
	textFn("skade_to_number", 2, func(a []Value) (string, error) { return toNumber(a[0].S, a[1].S) }),
}

// numberFormat is a parsed numeric format.
type numberFormat struct {
	toks           []string
	pre, post      int
	zeroAt         int // digits before the point from the first 0 on
	zeroEnd        int
	fm, sFirst     bool
	s, pr, mi, pl  bool
	sAtEnd, eeee   bool
	roman, romanLo bool
	v              int
	hasPoint       bool
	th             string
}

func parseNumberFormat(f string) (*numberFormat, error) {
	n := &numberFormat{zeroAt: -1}
	inV := false
	for len(f) > 0 {
		up := strings.ToUpper(f)
		take := func(k string) {
			n.toks = append(n.toks, k)
			f = f[len(k):]
		}
		switch {
		case f[0] == '"':
			end := strings.IndexByte(f[1:], '"')
			if end < 0 {
				end = len(f) - 1
			}
			n.toks = append(n.toks, "\""+f[1:end+1])
			f = f[min(len(f), end+2):]
		case strings.HasPrefix(up, "EEEE"):
			n.eeee = true
			take("EEEE")
		case strings.HasPrefix(up, "FM"):
			n.fm = true
			f = f[2:]
		case strings.HasPrefix(up, "TH"):
			n.th = f[:2]
			n.toks = append(n.toks, "TH")
			f = f[2:]
		case strings.HasPrefix(up, "RN"):
			n.roman, n.romanLo = true, f[:2] == "rn"
			take("RN")
		case strings.HasPrefix(up, "PR"):
			n.pr = true
			take("PR")
		case strings.HasPrefix(up, "MI"):
			n.mi = true
			take("MI")
		case strings.HasPrefix(up, "PL"):
			n.pl = true
			take("PL")
		case strings.HasPrefix(up, "SG"):
			take("SG")
		case up[0] == 'S':
			n.s = true
			if n.pre+n.post == 0 {
				n.sFirst = true
			} else {
				n.sAtEnd = true
			}
			take("S")
		case up[0] == 'V':
			inV = true
			take("V")
		case f[0] == '.' || up[0] == 'D':
			if n.hasPoint {
				return nil, pgerr.New(pgerr.SyntaxError, "multiple decimal points")
			}
			n.hasPoint = true
			n.toks = append(n.toks, ".")
			f = f[1:]
		case f[0] == ',' || up[0] == 'G':
			n.toks = append(n.toks, ",")
			f = f[1:]
		case up[0] == 'L':
			n.toks = append(n.toks, "L")
			f = f[1:]
		case f[0] == '9' || f[0] == '0':
			switch {
			case inV:
				n.v++
			case n.hasPoint:
				n.post++
				if f[0] == '0' {
					n.zeroEnd = n.post
				}
			default:
				if f[0] == '0' && n.zeroAt < 0 {
					n.zeroAt = n.pre
				}
				n.pre++
			}
			n.toks = append(n.toks, f[:1])
			f = f[1:]
		default:
			r := string([]rune(f)[:1])
			n.toks = append(n.toks, "\""+r)
			f = f[len(r):]
		}
	}
	return n, nil
}

// toCharNumber is to_char for numbers.
func toCharNumber(value, format string) (string, error) {
	n, err := parseNumberFormat(format)
	if err != nil {
		return "", err
	}
	d, err := parseDecimal(value)
	if err != nil {
		return "", err
	}
	if n.roman {
		return roman(d, n), nil
	}
	if n.eeee {
		return scientific(d, n), nil
	}
	if n.v > 0 {
		d.c = new(big.Int).Mul(d.c, pow10(n.v))
		n.pre += n.v
	}
	r := d.rescale(n.post)
	neg := r.c.Sign() < 0
	text := strings.TrimPrefix(r.String(), "-")
	whole, frac, _ := strings.Cut(text, ".")
	if whole == "0" && n.post > 0 {
		whole = ""
	}
	return n.fill(whole, frac, neg), nil
}

// fill places digits into the format, as NUM_processor does.
func (n *numberFormat) fill(whole, frac string, neg bool) string {
	overflow := len(whole) > n.pre
	if overflow {
		whole = strings.Repeat("#", n.pre)
		frac = strings.Repeat("#", n.post)
	}
	digits := strings.Repeat(" ", n.pre-len(whole)) + whole
	first := n.pre - len(whole)
	if n.zeroAt >= 0 && n.zeroAt < first {
		first = n.zeroAt
		digits = strings.Repeat(" ", first) + strings.Repeat("0", n.pre-len(whole)-first) + whole
	}
	if n.pre > 0 && whole == "" && first == n.pre && n.post == 0 {
		digits = digits[:n.pre-1] + "0"
		first = n.pre - 1
	}
	sign := " "
	switch {
	case n.s || n.pl:
		sign = "+"
		if n.pl {
			sign = " "
		}
		if neg {
			sign = "-"
		}
	case neg && !n.mi:
		sign = "-"
	}
	if n.pr {
		sign = " "
		if neg {
			sign = "<"
		}
	}
	fracOut := frac
	if n.fm && !overflow {
		fracOut = frac[:max(n.zeroEnd, len(strings.TrimRight(frac, "0")))]
	}
	var b strings.Builder
	signDone := n.sAtEnd || n.mi && !n.s && !n.pr
	pos, post, started := 0, 0, false
	putSign := func() {
		if signDone {
			return
		}
		signDone = true
		if sign != " " || !n.fm {
			b.WriteString(sign)
		}
	}
	point := false
	for _, t := range n.toks {
		switch t {
		case "9", "0":
			if point {
				if post < len(fracOut) {
					b.WriteByte(fracOut[post])
				} else if !n.fm {
					b.WriteByte(' ')
				}
				post++
				continue
			}
			if pos == first {
				putSign()
				started = true
			}
			if digits[pos] == ' ' {
				if !n.fm {
					b.WriteByte(' ')
				}
			} else {
				b.WriteByte(digits[pos])
			}
			pos++
		case ",":
			if started && pos > first {
				b.WriteByte(',')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case ".":
			putSign()
			point = true
			started = true
			b.WriteByte('.')
		case "S":
			if n.sAtEnd {
				b.WriteString(sign)
			}
		case "MI":
			if neg {
				b.WriteByte('-')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "PL":
			if !neg {
				b.WriteByte('+')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "SG":
			if neg {
				b.WriteByte('-')
			} else {
				b.WriteByte('+')
			}
			signDone = true
		case "PR":
			if neg {
				b.WriteByte('>')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "TH":
			if !neg && len(strings.TrimSpace(digits)) > 0 {
				b.WriteString(ordinal(digits, n.th == "TH"))
			}
		case "L":
			b.WriteByte(' ')
		case "V":
		default:
			b.WriteString(strings.TrimPrefix(t, "\""))
		}
	}
	out := b.String()
	if !signDone {
		out = sign + out
	}
	// A sign in front of blanks moves to the digits; blanks come first.
	return out
}

func roman(d decimal, n *numberFormat) string {
	v := d.rescale(0).c
	out := strings.Repeat("#", 15)
	if v.IsInt64() && v.Int64() > 0 && v.Int64() < 4000 {
		x := int(v.Int64())
		var b strings.Builder
		for i, val := range []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1} {
			for x >= val {
				b.WriteString([]string{"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"}[i])
				x -= val
			}
		}
		out = b.String()
	}
	if n.romanLo {
		out = strings.ToLower(out)
	}
	if n.fm {
		return out
	}
	return strings.Repeat(" ", max(0, 15-len(out))) + out
}

func scientific(d decimal, n *numberFormat) string {
	f := d.bigFloat(300)
	s := f.Text('e', n.post)
	if !strings.HasPrefix(s, "-") {
		s = " " + s
	}
	return s
}

// toNumber is to_number: the digits that the format picks from the text.
func toNumber(in, format string) (string, error) {
	n, err := parseNumberFormat(format)
	if err != nil {
		return "", err
	}
	var digits strings.Builder
	neg, point := false, false
	count, post := 0, 0
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c >= '0' && c <= '9':
			if point {
				if post < n.post {
					digits.WriteByte(c)
					post++
				}
			} else if count < n.pre {
				digits.WriteByte(c)
				count++
			}
		case c == '.' && !point && n.hasPoint:
			point = true
			digits.WriteByte('.')
		case c == '-' || c == '<':
			neg = true
		}
	}
	s := strings.TrimSuffix(digits.String(), ".")
	if s == "" || s == "." {
		return "", pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type numeric: %q", in)
	}
	if strings.HasPrefix(s, ".") {
		s = "0" + s
	}
	if neg {
		s = "-" + s
	}
	d, err := parseDecimal(s)
	if err != nil {
		return "", err
	}
	if n.v > 0 {
		d.scale += n.v
	}
	return d.String(), nil
}
