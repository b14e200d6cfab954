package pgsql

import (
	"strconv"
	"strings"
	"time"
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
