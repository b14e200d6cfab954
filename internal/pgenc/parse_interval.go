package pgenc

import (
	"math"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// intervalAcc collects an interval's parts. Source: struct pg_itm_in.
type intervalAcc struct {
	months, days, micros int64
	overflow             bool
	fromYears            bool // a part was given in years or longer
}

func (a *intervalAcc) add(dst *int64, v int64) {
	s := *dst + v
	if (s > *dst) != (v > 0) && v != 0 {
		a.overflow = true
	}
	*dst = s
}

// scaled adds v×unit plus the fraction's part.
func (a *intervalAcc) scaled(dst *int64, v, unit int64) {
	p := v * unit
	if unit != 0 && p/unit != v {
		a.overflow = true
	}
	a.add(dst, p)
}

// fractMicros adds frac × scale microseconds, rounded. Source: AdjustFractMicroseconds.
func (a *intervalAcc) fractMicros(frac float64, scale int64) {
	f := frac * float64(scale)
	us := int64(f)
	switch f -= float64(us); {
	case f > 0.5:
		us++
	case f < -0.5:
		us--
	}
	a.add(&a.micros, us)
}

// fractDays adds frac × scale days, the rest as microseconds. Source: AdjustFractDays.
func (a *intervalAcc) fractDays(frac float64, scale int64) {
	f := frac * float64(scale)
	d := int64(f)
	a.add(&a.days, d)
	a.fractMicros(f-float64(d), microsPerDay)
}

// unit adds v and frac of a unit. ok is false for a unit that no interval has.
func (a *intervalAcc) unit(u int, v int64, frac float64) (got mask, ok bool) {
	switch u {
	case unitMicro:
		a.add(&a.micros, v+int64(roundEven(frac)))
		return mMicro, true
	case unitMilli:
		a.scaled(&a.micros, v, 1000)
		a.fractMicros(frac, 1000)
		return mMilli, true
	case unitSecond:
		a.scaled(&a.micros, v, microsPerSec)
		a.fractMicros(frac, microsPerSec)
		if frac == 0 {
			return mSecond, true
		}
		return mAllSec, true
	case unitMinute:
		a.scaled(&a.micros, v, 60*microsPerSec)
		a.fractMicros(frac, 60*microsPerSec)
		return mMinute, true
	case unitHour:
		a.scaled(&a.micros, v, 3600*microsPerSec)
		a.fractMicros(frac, 3600*microsPerSec)
		return mHour, true
	case unitDay:
		a.add(&a.days, v)
		a.fractMicros(frac, microsPerDay)
		return mDay, true
	case unitWeek:
		a.scaled(&a.days, v, 7)
		a.fractDays(frac, 7)
		return mWeek, true
	case unitMonth:
		a.add(&a.months, v)
		a.fractDays(frac, 30)
		return mMonth, true
	case unitYear:
		return mYear, a.years(v, frac, 1)
	case unitDecade:
		return mDecade, a.years(v, frac, 10)
	case unitCentury:
		return mCent, a.years(v, frac, 100)
	case unitMillennium:
		return mMill, a.years(v, frac, 1000)
	}
	return 0, false
}

func (a *intervalAcc) years(v int64, frac float64, each int64) bool {
	a.fromYears = true
	a.scaled(&a.months, v, 12*each)
	a.add(&a.months, int64(roundEven(frac*float64(each)*12)))
	return true
}

// yearsFit tells months beyond int32 whose years alone fit: PostgreSQL keeps the two apart until the end and words the error differently.
func (a *intervalAcc) yearsFit() bool {
	return a.months/12 <= math.MaxInt32 && a.months/12 >= math.MinInt32 && a.fromYears
}

// errIntervalRange is months out of range after years and months are added.
var errIntervalRange = pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")

func (a *intervalAcc) value() (IntervalValue, error) {
	if !a.overflow && (a.months > math.MaxInt32 || a.months < math.MinInt32) && a.yearsFit() {
		return IntervalValue{}, errIntervalRange
	}
	if a.overflow || a.months > math.MaxInt32 || a.months < math.MinInt32 || a.days > math.MaxInt32 || a.days < math.MinInt32 {
		return IntervalValue{}, errDateOverflow
	}
	return IntervalValue{Months: int32(a.months), Days: int32(a.days), Micros: a.micros}, nil
}

// ParseInterval reads an interval in PostgreSQL's verbose, SQL standard or ISO 8601 form. Source: interval_in.
func (s Style) ParseInterval(in []byte) (IntervalValue, error) {
	fields, ok := scanDateTime(in)
	err := error(errDateFormat)
	var v IntervalValue
	if ok {
		v, err = s.decodeInterval(fields)
	}
	if err == errDateFormat {
		if b := trimSpace(in); len(b) > 0 && b[0] == 'P' {
			v, err = decodeISOInterval(view(b))
		}
	}
	if err == errIntervalRange {
		return v, err
	}
	if err == errDateOverflow {
		return v, pgerr.Newf("22015", "interval field value out of range: \"%s\"", in)
	}
	if err != nil {
		return v, dateError(err, "interval", in)
	}
	return v, nil
}

// decodeInterval reads the fields from the last to the first, so that a unit is known before its number. Source: DecodeInterval.
func (s Style) decodeInterval(fields []dateField) (IntervalValue, error) {
	var a intervalAcc
	var have mask
	unit, ago := 0, false
	for i := len(fields) - 1; i >= 0; i-- {
		f := fields[i]
		var got mask
		switch f.kind {
		case kindTime:
			if err := a.clock(f.text, 1); err != nil {
				return IntervalValue{}, err
			}
			got, unit = mTime, unitDay
		case kindTZ, kindDate, kindNumber:
			if f.kind == kindTZ && strings.IndexByte(f.text[1:], ':') >= 0 {
				sign := int64(1)
				if f.text[0] == '-' {
					sign = -1
				}
				if err := a.clock(f.text[1:], sign); err == nil {
					got, unit = mTime, unitDay
					break
				}
			}
			if unit == 0 {
				unit = unitSecond
			}
			var err error
			if got, unit, err = a.quantity(f.text, unit); err != nil {
				return IntervalValue{}, err
			}
		default:
			tok := lookupToken(intervalTokens, f.text)
			switch tok.typ {
			case tokIgnore:
				continue
			case tokUnits:
				unit = tok.val
			case tokAgo:
				ago, unit = true, 0
			default:
				return IntervalValue{}, errDateFormat
			}
		}
		if got&have != 0 {
			return IntervalValue{}, errDateFormat
		}
		have |= got
	}
	if have == 0 {
		return IntervalValue{}, errDateFormat
	}
	if s.Interval == IntervalSQLStandard {
		a.sqlSign(fields)
	}
	if ago {
		a.months, a.days, a.micros = -a.months, -a.days, -a.micros
	}
	return a.value()
}

// sqlSign makes a leading minus apply to all fields when no other sign is there. Source: DecodeInterval's INTSTYLE_SQL_STANDARD.
func (a *intervalAcc) sqlSign(fields []dateField) {
	if len(fields) == 0 || fields[0].text[0] != '-' {
		return
	}
	for _, f := range fields[1:] {
		if f.text[0] == '-' || f.text[0] == '+' {
			return
		}
	}
	a.months, a.days, a.micros = -abs64(a.months), -abs64(a.days), -abs64(a.micros)
}

// clock adds a time hh:mm[:ss[.ffffff]].
func (a *intervalAcc) clock(s string, sign int64) error {
	h, m, sec, micros, err := splitTime(s)
	if err != nil {
		return err
	}
	if h < 0 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return errDateOverflow
	}
	var t intervalAcc
	t.scaled(&t.micros, h, 3600*microsPerSec)
	t.add(&t.micros, (int64(m)*60+int64(sec))*microsPerSec+micros)
	if t.overflow {
		return errDateOverflow
	}
	a.add(&a.micros, sign*t.micros)
	return nil
}

// quantity adds a number, possibly years-months, of the unit; next is the unit of a number before it.
func (a *intervalAcc) quantity(s string, unit int) (got mask, next int, err error) {
	i := 0
	if s[0] == '-' || s[0] == '+' {
		i++
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	neg := s[0] == '-'
	var v int64
	if digits := strings.TrimPrefix(s[:i], "+"); digits != "" && digits != "-" {
		if v, err = strconv.ParseInt(digits, 10, 64); err != nil {
			return 0, 0, errDateOverflow
		}
	}
	var frac float64
	switch rest := s[i:]; {
	case rest == "":
	case rest[0] == '-':
		mon, tail, err := leadingInt(rest[1:])
		if err != nil || mon < 0 || mon >= 12 {
			return 0, 0, errDateOverflow
		}
		if tail != "" {
			return 0, 0, errDateFormat
		}
		if neg {
			mon = -mon
		}
		unit = unitMonth
		if v > math.MaxInt64/12 || v < math.MinInt64/12 {
			return 0, 0, errDateOverflow
		}
		v = v*12 + int64(mon)
	case rest[0] == '.':
		if rest != "." {
			if frac, err = strconv.ParseFloat("0"+rest, 64); err != nil {
				return 0, 0, errDateFormat
			}
		}
		if neg {
			frac = -frac
		}
	default:
		return 0, 0, errDateFormat
	}
	got, ok := a.unit(unit, v, frac)
	if !ok {
		return 0, 0, errDateFormat
	}
	next = unit
	if unit == unitHour {
		next = unitDay
	}
	return got, next, nil
}

// decodeISOInterval reads P1Y2M3DT4H5M6S, P0001-02-03T04:05:06 and P00010203T040506. Source: DecodeISO8601Interval.
func decodeISOInterval(s string) (IntervalValue, error) {
	var a intervalAcc
	s = s[1:]
	inDate, haveField := true, false
	if s == "" {
		return IntervalValue{}, errDateFormat
	}
	for s != "" {
		if s[0] == 'T' {
			inDate, haveField = false, false
			s = s[1:]
			continue
		}
		v, frac, width, rest, err := isoNumber(s)
		if err != nil {
			return IntervalValue{}, err
		}
		unit := byte(0)
		if rest != "" {
			unit = rest[0]
			s = rest[1:]
		} else {
			s = ""
		}
		var ok, done bool
		if inDate {
			ok, done, s = a.isoDatePart(unit, v, frac, width, haveField, s)
		} else {
			ok, done, s = a.isoTimePart(unit, v, frac, width, haveField, s)
		}
		if !ok {
			return IntervalValue{}, errDateFormat
		}
		if done && s != "" && s[0] != 'T' {
			return IntervalValue{}, errDateFormat
		}
		haveField = true
	}
	return a.value()
}

// isoNumber reads a signed decimal; width counts the digits before the point.
func isoNumber(s string) (v int64, frac float64, width int, rest string, err error) {
	i := 0
	if s[0] == '-' || s[0] == '+' {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	width = i - start
	if width > 0 {
		if v, err = strconv.ParseInt(strings.TrimPrefix(s[:i], "+"), 10, 64); err != nil {
			return 0, 0, 0, "", errDateOverflow
		}
	}
	if i < len(s) && s[i] == '.' {
		end := i + 1
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		if end > i+1 {
			if frac, err = strconv.ParseFloat("0"+s[i:end], 64); err != nil {
				return 0, 0, 0, "", errDateFormat
			}
		}
		if s[0] == '-' {
			frac = -frac
		}
		i = end
	} else if width == 0 {
		return 0, 0, 0, "", errDateFormat
	}
	return v, frac, width, s[i:], nil
}

// isoDatePart adds one part before T. done means that only a T may follow.
func (a *intervalAcc) isoDatePart(unit byte, v int64, frac float64, width int, haveField bool, s string) (ok, done bool, rest string) {
	switch unit {
	case 'Y':
		_, ok = a.unit(unitYear, v, frac)
	case 'M':
		_, ok = a.unit(unitMonth, v, frac)
	case 'W':
		_, ok = a.unit(unitWeek, v, frac)
	case 'D':
		_, ok = a.unit(unitDay, v, frac)
	case 'T', 0:
		if unit == 'T' {
			s = "T" + s
		}
		if width == 8 && !haveField {
			// YYYYMMDD
			a.scaled(&a.months, v/10000, 12)
			a.add(&a.months, v/100%100)
			a.add(&a.days, v%100)
			return true, true, s
		}
		if haveField {
			return false, false, s
		}
		return a.years(v, frac, 1), true, s
	case '-':
		if haveField {
			return false, false, s
		}
		return a.isoDashes(v, frac, s)
	}
	return ok, false, s
}

// isoDashes reads the rest of YYYY-MM-DD.
func (a *intervalAcc) isoDashes(year int64, frac float64, s string) (ok, done bool, rest string) {
	a.years(year, frac, 1)
	for i, unit := range [2]int{unitMonth, unitDay} {
		if s == "" {
			return i > 0, true, s
		}
		v, frac, _, tail, err := isoNumber(s)
		if err != nil {
			return false, false, s
		}
		a.unit(unit, v, frac)
		if tail == "" || tail[0] == 'T' {
			return true, true, tail
		}
		if tail[0] != '-' || i == 1 {
			return false, false, tail
		}
		s = tail[1:]
	}
	return true, true, s
}

// isoTimePart adds one part after T.
func (a *intervalAcc) isoTimePart(unit byte, v int64, frac float64, width int, haveField bool, s string) (ok, done bool, rest string) {
	switch unit {
	case 'H':
		_, ok = a.unit(unitHour, v, frac)
	case 'M':
		_, ok = a.unit(unitMinute, v, frac)
	case 'S':
		_, ok = a.unit(unitSecond, v, frac)
	case 0:
		if width == 6 && !haveField {
			// HHMMSS
			a.scaled(&a.micros, v/10000, 3600*microsPerSec)
			a.scaled(&a.micros, v/100%100, 60*microsPerSec)
			_, ok = a.unit(unitSecond, v%100, frac)
			return ok, true, s
		}
		if haveField {
			return false, false, s
		}
		_, ok = a.unit(unitHour, v, frac)
		return ok, true, s
	case ':':
		if haveField {
			return false, false, s
		}
		return a.isoColons(v, frac, s)
	}
	return ok, false, s
}

// isoColons reads the rest of HH:MM:SS.
func (a *intervalAcc) isoColons(hour int64, frac float64, s string) (ok, done bool, rest string) {
	a.unit(unitHour, hour, frac)
	for i, unit := range [2]int{unitMinute, unitSecond} {
		if s == "" {
			return i > 0, true, s
		}
		v, frac, _, tail, err := isoNumber(s)
		if err != nil {
			return false, false, s
		}
		a.unit(unit, v, frac)
		if tail == "" {
			return true, true, tail
		}
		if tail[0] != ':' || i == 1 {
			return false, false, tail
		}
		s = tail[1:]
	}
	return true, true, s
}
