package pgsql

import (
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

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
