package pgenc

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// The ways a date can be wrong; each has its SQLSTATE and words in dateError.
var (
	errDateFormat   = errors.New("bad format")
	errDateOverflow = errors.New("field overflow")
	// errDateMD is an overflow of month or day, which a different DateStyle may explain.
	errDateMD     = errors.New("month or day overflow")
	errDateTZDisp = errors.New("time zone displacement out of range")
)

// unknownZone is the name of a time zone that does not exist.
type unknownZone string

func (z unknownZone) Error() string { return "unknown time zone" }

// dateTime is the state of one decoding. Source: struct pg_tm with the local variables of DecodeDateTime.
type dateTime struct {
	style            Style
	year             int64
	month, day, yday int
	hour, min, sec   int
	micros           int64 // fraction of the second
	have             mask
	special          int  // valEarly, valLate, valEpoch or 0
	twoDigitYear     bool // the year was given with one or two digits
	julian, bc       bool
	textMonth        bool
	ampm             int
	hasTZ            bool
	offset           int            // seconds east of UTC
	zone             *time.Location // a named zone, resolved when the date is known
	label            int            // the unit that the next number has (ptype)
}

func atoi(s string) (int, bool) {
	v, err := strconv.ParseInt(s, 10, 32)
	return int(v), err == nil
}

// leadingInt is strtoint: the number at the head of s and the rest.
func leadingInt(s string) (v int, rest string, err error) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == start {
		return 0, s, nil
	}
	n, e := strconv.ParseInt(s[:i], 10, 32)
	if e != nil {
		return 0, s[i:], errDateOverflow
	}
	return int(n), s[i:], nil
}

// fractionMicros reads ".ffffff" rounded to microseconds. Source: ParseFractionalSecond.
func fractionMicros(s string) (int64, error) {
	if s == "." {
		return 0, nil
	}
	f, err := strconv.ParseFloat("0"+s, 64)
	if err != nil || strings.ContainsAny(s, "eExX_") {
		return 0, errDateFormat
	}
	return int64(roundEven(f * microsPerSec)), nil
}

// decodeDateTime reads date and time fields. Source: DecodeDateTime.
func (d *dateTime) decode(fields []dateField) error {
	for i, f := range fields {
		var got mask
		var err error
		switch f.kind {
		case kindDate:
			got, err = d.dateField(f.text)
		case kindTime:
			if d.label != 0 {
				if d.label != unitTime {
					return errDateFormat
				}
				d.label = 0
			}
			got = mTime
			err = d.decodeTime(f.text)
			if err == nil && (d.hour > 24 || d.hour == 24 && (d.min > 0 || d.sec > 0 || d.micros > 0)) {
				err = errDateOverflow
			}
		case kindTZ:
			got = mTZ
			err = d.decodeZone(f.text)
		case kindNumber:
			if d.label != 0 {
				got, err = d.labelled(f.text)
			} else {
				got, err = d.number(f.text)
			}
		default:
			var skip bool
			got, skip, err = d.word(f, i, fields)
			if skip {
				continue
			}
		}
		if err != nil {
			return err
		}
		if got&d.have != 0 {
			return errDateFormat
		}
		d.have |= got
	}
	if err := d.validate(); err != nil {
		return err
	}
	return d.applyAMPM()
}

func (d *dateTime) applyAMPM() error {
	if d.ampm != 0 && d.hour > 12 {
		return errDateOverflow
	}
	if d.ampm == 1 && d.hour == 12 {
		d.hour = 0
	} else if d.ampm == 2 && d.hour != 12 {
		d.hour += 12
	}
	return nil
}

// dateField decodes a field with separators: a date, a zone name, hhmmss-zz or a Julian day with a zone.
func (d *dateTime) dateField(s string) (mask, error) {
	if d.label == unitJulian {
		v, rest, err := leadingInt(s)
		if err != nil || v < 0 {
			return 0, errDateOverflow
		}
		d.setJulian(int64(v))
		d.label = 0
		return mDate | mTime | mTZ, d.decodeZone(rest)
	}
	if d.label == 0 && d.have&(mMonth|mDay) != mMonth|mDay {
		return d.decodeDate(s)
	}
	if !isDigit(s[0]) && d.label == 0 {
		return mTZ, d.namedZone(s)
	}
	if d.label != 0 && d.label != unitTime {
		return 0, errDateFormat
	}
	d.label = 0
	if d.have&mTime == mTime {
		return 0, errDateFormat
	}
	dash := strings.IndexByte(s, '-')
	if dash < 0 {
		return 0, errDateFormat
	}
	if err := d.decodeZone(s[dash:]); err != nil {
		return 0, err
	}
	got, err := d.numberField(s[:dash], d.have)
	return got | mTZ, err
}

// labelled decodes a number whose unit the word before it gave.
func (d *dateTime) labelled(s string) (mask, error) {
	label := d.label
	d.label = 0
	v, rest, err := leadingInt(s)
	if err != nil {
		return 0, err
	}
	if rest != "" && (rest[0] != '.' || label != unitJulian && label != unitTime && label != unitSecond) {
		return 0, errDateFormat
	}
	switch label {
	case unitYear:
		d.year = int64(v)
		return mYear, nil
	case unitMonth:
		if d.have&mMonth != 0 && d.have&mHour != 0 {
			d.min = v
			return mMinute, nil
		}
		d.month = v
		return mMonth, nil
	case unitDay:
		d.day = v
		return mDay, nil
	case unitHour:
		d.hour = v
		return mHour, nil
	case unitMinute:
		d.min = v
		return mMinute, nil
	case unitSecond:
		d.sec = v
		if rest != "" {
			d.micros, err = fractionMicros(rest)
			return mAllSec, err
		}
		return mSecond, nil
	case unitJulian:
		if v < 0 {
			return 0, errDateOverflow
		}
		d.setJulian(int64(v))
		if rest == "" {
			return mDate, nil
		}
		f, err := strconv.ParseFloat("0"+rest, 64)
		if err != nil {
			return 0, errDateFormat
		}
		d.setClock(int64(f * microsPerDay))
		return mDate | mTime, nil
	case unitTime:
		got, err := d.numberField(s, d.have|mDate)
		if err == nil && got != mTime {
			err = errDateFormat
		}
		return got, err
	}
	return 0, errDateFormat
}

func (d *dateTime) setClock(micros int64) {
	d.hour, d.min = int(micros/3600/microsPerSec), int(micros/60/microsPerSec%60)
	d.sec, d.micros = int(micros/microsPerSec%60), micros%microsPerSec
}

// julianEpoch is the Julian day of 1970-01-01.
const julianEpoch = 2440588

func (d *dateTime) setJulian(jd int64) {
	d.julian = true
	d.year, d.month, d.day = civil(jd - julianEpoch)
}

// number decodes a number without a label.
func (d *dateTime) number(s string) (mask, error) {
	dot := strings.IndexByte(s, '.')
	switch {
	case dot >= 0 && d.have&mDate == 0:
		return d.decodeDate(s)
	case dot > 2:
		return d.numberField(s, d.have)
	case len(s) >= 6 && (d.have&mDate == 0 || d.have&mTime == 0):
		return d.numberField(s, d.have)
	}
	return d.decodeNumber(s, d.have, d.textMonth)
}

// decodeDate decodes a date with separators. Source: DecodeDate.
func (d *dateTime) decodeDate(s string) (got mask, err error) {
	var parts []string
	for i := 0; i < len(s) && len(parts) < maxDateFields; {
		for i < len(s) && !isAlnum(s[i]) {
			i++
		}
		if i == len(s) {
			return 0, errDateFormat
		}
		start := i
		if isDigit(s[i]) {
			for i < len(s) && isDigit(s[i]) {
				i++
			}
		} else {
			for i < len(s) && isAlpha(s[i]) {
				i++
			}
		}
		parts = append(parts, s[start:i])
		i++
	}
	have := d.have
	textMonth := false
	for i, p := range parts {
		if !isAlpha(p[0]) {
			continue
		}
		tok := lookupToken(dateTokens, p)
		if tok.typ == tokIgnore {
			continue
		}
		if tok.typ != tokMonth || have&mMonth != 0 {
			return 0, errDateFormat
		}
		d.month, textMonth = tok.val, true
		have |= mMonth
		got |= mMonth
		parts[i] = ""
	}
	for _, p := range parts {
		if p == "" {
			continue
		}
		m, err := d.decodeNumber(p, have, textMonth)
		if err != nil {
			return 0, err
		}
		if have&m != 0 {
			return 0, errDateFormat
		}
		have |= m
		got |= m
	}
	if have&^(mDOY|mTZ) != mDate {
		return 0, errDateFormat
	}
	return got, nil
}

// decodeNumber decides what one number of a date is, by what is known already and DateOrder. Source: DecodeNumber.
func (d *dateTime) decodeNumber(s string, have mask, textMonth bool) (got mask, err error) {
	v, rest, err := leadingInt(s)
	if err != nil {
		return 0, err
	}
	if rest != "" && rest[0] == '.' {
		if len(s)-len(rest) > 2 {
			return d.numberField(s, have|mDate)
		}
		if d.micros, err = fractionMicros(rest); err != nil {
			return 0, err
		}
	} else if rest != "" || s == "" {
		return 0, errDateFormat
	}
	if len(s) == 3 && have&mDate == mYear && v >= 1 && v <= 366 {
		d.yday = v
		return mDOY | mMonth | mDay, nil
	}
	order := d.style.Order
	switch have & mDate {
	case 0:
		switch {
		case len(s) >= 3 || order == YMD:
			got = mYear
		case order == DMY:
			got = mDay
		default:
			got = mMonth
		}
	case mYear, mDay:
		got = mMonth
	case mMonth:
		got = mDay
		if textMonth && (len(s) >= 3 || order == YMD) {
			got = mYear
		}
	case mYear | mMonth:
		got = mDay
		if textMonth && len(s) >= 3 && d.twoDigitYear {
			// The first number was the day after all.
			d.day, d.year, d.twoDigitYear = int(d.year), int64(v), false
			return mDay, nil
		}
	case mMonth | mDay:
		got = mYear
	case mDate:
		return d.numberField(s, have)
	default:
		return 0, errDateFormat
	}
	switch got {
	case mYear:
		d.year = int64(v)
		d.twoDigitYear = len(s) <= 2
	case mMonth:
		d.month = v
	case mDay:
		d.day = v
	}
	return got, nil
}

// numberField decodes run-together digits: yyyymmdd, yymmdd, hhmmss, hhmm. Source: DecodeNumberField.
func (d *dateTime) numberField(s string, have mask) (mask, error) {
	if dot := strings.IndexByte(s, '.'); dot >= 0 {
		f, err := fractionMicros(s[dot:])
		if err != nil {
			return 0, err
		}
		d.micros = f
		s = s[:dot]
	} else if have&mDate != mDate && len(s) >= 6 {
		n := len(s)
		y, ok := atoi(s[:n-4])
		if !ok {
			return 0, errDateFormat
		}
		d.month, _ = atoi(s[n-4 : n-2])
		d.day, _ = atoi(s[n-2:])
		d.year = int64(y)
		if n == 6 {
			d.twoDigitYear = true
		}
		return mDate, nil
	}
	if have&mTime == mTime || len(s) != 6 && len(s) != 4 {
		return 0, errDateFormat
	}
	d.hour, _ = atoi(s[:2])
	d.min, _ = atoi(s[2:4])
	d.sec = 0
	if len(s) == 6 {
		d.sec, _ = atoi(s[4:])
	}
	return mTime, nil
}

// decodeTime decodes hh:mm[:ss[.ffffff]] or mm:ss.ffffff. Source: DecodeTime.
func (d *dateTime) decodeTime(s string) error {
	h, m, sec, micros, err := splitTime(s)
	if err != nil {
		return err
	}
	if h < 0 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return errDateOverflow
	}
	d.hour, d.min, d.sec, d.micros = int(h), m, sec, micros
	return nil
}

func splitTime(s string) (h int64, m, sec int, micros int64, err error) {
	hour, rest, found := strings.Cut(s, ":")
	h, e := strconv.ParseInt(hour, 10, 64)
	if !found || e != nil {
		if errors.Is(e, strconv.ErrRange) {
			return 0, 0, 0, 0, errDateOverflow
		}
		return 0, 0, 0, 0, errDateFormat
	}
	if m, rest, err = leadingInt(rest); err != nil {
		return 0, 0, 0, 0, err
	}
	switch {
	case rest == "":
		return h, m, 0, 0, nil
	case rest[0] == '.':
		micros, err = fractionMicros(rest)
		return 0, int(h), m, micros, err
	case rest[0] != ':':
		return 0, 0, 0, 0, errDateFormat
	}
	if sec, rest, err = leadingInt(rest[1:]); err != nil {
		return 0, 0, 0, 0, err
	}
	if rest != "" {
		if rest[0] != '.' {
			return 0, 0, 0, 0, errDateFormat
		}
		micros, err = fractionMicros(rest)
	}
	return h, m, sec, micros, err
}

// decodeZone decodes a numeric offset. Source: DecodeTimezone.
func (d *dateTime) decodeZone(s string) error {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return errDateFormat
	}
	h, rest, err := leadingInt(s[1:])
	if err != nil {
		return errDateTZDisp
	}
	m, sec := 0, 0
	if rest != "" && rest[0] == ':' {
		if m, rest, err = leadingInt(rest[1:]); err != nil {
			return errDateTZDisp
		}
		if rest != "" && rest[0] == ':' {
			if sec, rest, err = leadingInt(rest[1:]); err != nil {
				return errDateTZDisp
			}
		}
	} else if rest == "" && len(s) > 3 {
		h, m = h/100, h%100
	}
	if h < 0 || h > 15 || m < 0 || m > 59 || sec < 0 || sec > 59 {
		return errDateTZDisp
	}
	if rest != "" {
		return errDateFormat
	}
	d.offset = (h*60+m)*60 + sec
	if s[0] == '-' {
		d.offset = -d.offset
	}
	d.hasTZ = true
	return nil
}

// namedZone finds a zone by name, in any case for its usual spellings.
func (d *dateTime) namedZone(name string) error {
	loc, err := LoadZone(name)
	if err != nil {
		return unknownZone(name)
	}
	d.zone, d.hasTZ = loc, true
	return nil
}

// word decodes a word: month, weekday, zone, AM, BC, now … Source: DecodeDateTime's DTK_STRING case.
func (d *dateTime) word(f dateField, i int, fields []dateField) (got mask, skip bool, err error) {
	if off, ok := tzAbbrevs[f.text]; ok {
		d.offset, d.hasTZ = off, true
		return mTZ, false, nil
	}
	tok := lookupToken(dateTokens, f.text)
	switch tok.typ {
	case tokIgnore:
		return 0, true, nil
	case tokReserved:
		return d.reserved(tok.val), false, nil
	case tokMonth:
		got = mMonth
		if d.have&mMonth != 0 && !d.textMonth && d.have&mDay == 0 && d.month >= 1 && d.month <= 31 {
			// What was taken for a month is the day.
			d.day = d.month
			got = mDay
		}
		d.textMonth = true
		d.month = tok.val
		return got, false, nil
	case tokDSTMod:
		d.offset += tok.val
		return mDTZMod, false, nil
	case tokAMPM:
		d.ampm = tok.val
		return mAMPM, false, nil
	case tokADBC:
		d.bc = tok.val == 1
		return mADBC, false, nil
	case tokDOW:
		return mDOW, false, nil
	case tokUnits:
		d.label = tok.val
		return 0, false, nil
	case tokISOTime:
		if d.have&mDate != mDate || i+1 >= len(fields) || fields[i+1].kind == kindString || fields[i+1].kind == kindSpecial || fields[i+1].kind == kindTZ {
			return 0, false, errDateFormat
		}
		d.label = unitTime
		return 0, false, nil
	}
	if d.namedZone(f.text) != nil {
		return 0, false, errDateFormat
	}
	return mTZ, false, nil
}

func (d *dateTime) reserved(val int) mask {
	now := d.style.Now
	if now.IsZero() {
		now = time.Now()
	}
	loc := d.style.Loc
	if loc == nil {
		loc = time.UTC
	}
	now = now.In(loc)
	day := func(delta int) mask {
		t := now.AddDate(0, 0, delta)
		d.year, d.month, d.day = int64(t.Year()), int(t.Month()), t.Day()
		d.julian = true
		return mDate
	}
	switch val {
	case valNow:
		day(0)
		d.hour, d.min, d.sec, d.micros = now.Hour(), now.Minute(), now.Second(), int64(now.Nanosecond()/1000)
		_, d.offset = now.Zone()
		d.hasTZ = true
		return mDate | mTime | mTZ
	case valToday:
		return day(0)
	case valTomorrow:
		return day(1)
	case valYesterday:
		return day(-1)
	case valAllBalls:
		d.hasTZ = true
		return mTime | mTZ
	}
	d.special = val
	return mReserv
}

// validate finishes year, month and day. Source: ValidateDate.
func (d *dateTime) validate() error {
	if d.have&mYear != 0 {
		switch {
		case d.julian:
		case d.bc:
			if d.year <= 0 {
				return errDateOverflow
			}
			d.year = 1 - d.year
		case d.twoDigitYear:
			if d.year < 0 {
				return errDateOverflow
			}
			if d.year < 70 {
				d.year += 2000
			} else if d.year < 100 {
				d.year += 1900
			}
		case d.year <= 0:
			return errDateOverflow
		}
	}
	if d.have&mDOY != 0 {
		d.year, d.month, d.day = civil(daysFromCivil(d.year, 1, 1) + int64(d.yday) - 1)
	}
	if d.have&mMonth != 0 && (d.month < 1 || d.month > 12) {
		return errDateMD
	}
	if d.have&mDay != 0 && (d.day < 1 || d.day > 31) {
		return errDateMD
	}
	if d.have&mDate == mDate && d.day > daysIn(d.year, d.month) {
		return errDateOverflow
	}
	return nil
}

func daysIn(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
