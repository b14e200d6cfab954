package pgenc

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

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
