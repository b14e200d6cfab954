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
