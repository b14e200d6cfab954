package pgenc

import (
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func roundEven(f float64) float64 { return math.RoundToEven(f) }

// dateError gives a decoding's error PostgreSQL's SQLSTATE and words. Source: DateTimeParseError.
func dateError(err error, typ string, in []byte) error {
	var zone unknownZone
	switch {
	case errors.As(err, &zone):
		return pgerr.Newf(pgerr.InvalidParameterValue, "time zone %q not recognized", string(zone))
	case errors.Is(err, errDateMD):
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", in).
			WithHint("Perhaps you need a different \"datestyle\" setting.")
	case errors.Is(err, errDateOverflow):
		return pgerr.Newf(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", in)
	case errors.Is(err, errDateTZDisp):
		return pgerr.Newf("22009", "time zone displacement out of range: \"%s\"", in)
	}
	return pgerr.Newf(pgerr.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typ, in)
}

// The least and greatest days since 1970-01-01 of a date and of a timestamp: 4714-11-24 BC to 5874897-12-31, and the
// greatest timestamp that microseconds since 1970 can count. Source: DATETIME_MIN_JULIAN, DATE_END_JULIAN.
const (
	minDate = -julianEpoch
	maxDate = 2147483493 - julianEpoch
)

// twoDigitsAt reads two digits, or -1.
func twoDigitsAt(b []byte, i int) int {
	d0, d1 := b[i]-'0', b[i+1]-'0'
	if d0 > 9 || d1 > 9 {
		return -1
	}
	return int(d0)*10 + int(d1)
}

// isoDate reads YYYY-MM-DD at the head of b, the form that nearly all input has.
func isoDate(b []byte) (days int64, rest []byte, ok bool) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return 0, nil, false
	}
	c, y, m, d := twoDigitsAt(b, 0), twoDigitsAt(b, 2), twoDigitsAt(b, 5), twoDigitsAt(b, 8)
	if c < 0 || y < 0 || m < 1 || m > 12 || d < 1 {
		return 0, nil, false
	}
	year := int64(c*100 + y)
	if year == 0 || d > daysIn(year, m) {
		return 0, nil, false
	}
	return daysFromCivil(year, m, d), b[10:], true
}

// isoTime reads HH:MM[:SS[.f{1,6}]] at the head of b.
func isoTime(b []byte) (micros int64, rest []byte, ok bool) {
	if len(b) < 5 || b[2] != ':' {
		return 0, nil, false
	}
	h, m, s := twoDigitsAt(b, 0), twoDigitsAt(b, 3), 0
	b = b[5:]
	if len(b) >= 3 && b[0] == ':' {
		s = twoDigitsAt(b, 1)
		b = b[3:]
	}
	if h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59 {
		return 0, nil, false
	}
	micros = (int64(h)*3600 + int64(m)*60 + int64(s)) * microsPerSec
	if len(b) > 1 && b[0] == '.' && isDigit(b[1]) {
		unit, i := int64(100_000), 1
		for ; i < len(b) && isDigit(b[i]); i++ {
			if unit == 0 {
				return 0, nil, false
			}
			micros += int64(b[i]-'0') * unit
			unit /= 10
		}
		b = b[i:]
	}
	return micros, b, true
}

// isoOffset reads nothing, Z, ±HH, ±HHMM or ±HH:MM to the end of b.
func isoOffset(b []byte) (offset int, given, ok bool) {
	switch {
	case len(b) == 0:
		return 0, false, true
	case len(b) == 1 && b[0]|0x20 == 'z':
		return 0, true, true
	case len(b) < 3 || b[0] != '+' && b[0] != '-':
		return 0, false, false
	}
	h, m := twoDigitsAt(b, 1), 0
	switch {
	case len(b) == 6 && b[3] == ':':
		m = twoDigitsAt(b, 4)
	case len(b) == 5:
		m = twoDigitsAt(b, 3)
	case len(b) != 3:
		return 0, false, false
	}
	if h < 0 || h > 15 || m < 0 || m > 59 {
		return 0, false, false
	}
	offset = (h*60 + m) * 60
	if b[0] == '-' {
		offset = -offset
	}
	return offset, true, true
}

// ParseDate reads a date in any of PostgreSQL's forms.
func (s Style) ParseDate(in []byte) (int32, error) {
	b := trimSpace(in)
	if days, rest, ok := isoDate(b); ok && len(rest) == 0 {
		return int32(days), nil
	}
	d, err := s.decodeAll(in, "date")
	if err != nil {
		return 0, err
	}
	switch d.special {
	case valLate:
		return DateInfinity, nil
	case valEarly:
		return DateNegInfinity, nil
	case valEpoch:
		return 0, nil
	}
	days := daysFromCivil(d.year, d.month, d.day)
	if days < minDate || days > maxDate {
		return 0, pgerr.Newf(pgerr.DatetimeFieldOverflow, "date out of range: \"%s\"", in)
	}
	return int32(days), nil
}

func (s Style) decodeAll(in []byte, typ string) (dateTime, error) {
	d := dateTime{style: s}
	fields, ok := scanDateTime(in)
	if !ok {
		return d, dateError(errDateFormat, typ, in)
	}
	if err := d.decode(fields); err != nil {
		return d, dateError(err, typ, in)
	}
	if d.special == 0 && d.have&mDate != mDate || d.special != 0 && d.have&(mDate|mTime) != 0 {
		return d, dateError(errDateFormat, typ, in)
	}
	return d, nil
}

// ParseTimestamp reads a timestamp without time zone; a zone in the text is ignored, as PostgreSQL does.
func (s Style) ParseTimestamp(in []byte) (int64, error) { return s.parseTimestamp(in, false) }

// ParseTimestampTZ reads a timestamp with time zone; without a zone in the text it is in s.Loc.
func (s Style) ParseTimestampTZ(in []byte) (int64, error) { return s.parseTimestamp(in, true) }

func (s Style) parseTimestamp(in []byte, tz bool) (int64, error) {
	if micros, ok := s.fastTimestamp(trimSpace(in), tz); ok {
		return micros, nil
	}
	typ := "timestamp"
	if tz {
		typ = "timestamp with time zone"
	}
	d, err := s.decodeAll(in, typ)
	if err != nil {
		return 0, err
	}
	switch d.special {
	case valLate:
		return TimestampInfinity, nil
	case valEarly:
		return TimestampNegInfinity, nil
	case valEpoch:
		return 0, nil
	}
	days := daysFromCivil(d.year, d.month, d.day)
	tod := (int64(d.hour)*3600+int64(d.min)*60+int64(d.sec))*microsPerSec + d.micros
	tooFar := days < minDate-2 || days > math.MaxInt64/microsPerDay-2
	var micros int64
	if !tooFar {
		micros = days*microsPerDay + tod
		if tz {
			micros -= int64(s.offsetOf(&d, micros)) * microsPerSec
		}
		tooFar = micros < minDate*microsPerDay
	}
	if tooFar {
		return 0, pgerr.Newf(pgerr.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", in)
	}
	return micros, nil
}

func (s Style) fastTimestamp(b []byte, tz bool) (int64, bool) {
	days, rest, ok := isoDate(b)
	if !ok {
		return 0, false
	}
	var tod int64
	if len(rest) > 0 {
		if rest[0] != ' ' && rest[0] != 'T' {
			return 0, false
		}
		if tod, rest, ok = isoTime(rest[1:]); !ok {
			return 0, false
		}
	}
	offset, given, ok := isoOffset(rest)
	if !ok {
		return 0, false
	}
	micros := days*microsPerDay + tod
	switch {
	case !tz:
		return micros, true
	case !given:
		offset = LocalOffset(s.Loc, micros)
	}
	return micros - int64(offset)*microsPerSec, true
}

func (s Style) offsetOf(d *dateTime, local int64) int {
	switch {
	case d.zone != nil:
		return LocalOffset(d.zone, local)
	case d.hasTZ:
		return d.offset
	}
	return LocalOffset(s.Loc, local)
}

// LocalOffset is the offset from UTC, in seconds, of a local time in loc (nil is UTC). A local time that a transition
// skips or repeats takes the offset of standard time, as PostgreSQL's DetermineTimeZoneOffset does:
// the offset before the gap, and the second of the two.
func LocalOffset(loc *time.Location, local int64) int {
	if loc == nil || loc == time.UTC {
		return 0
	}
	_, before := time.UnixMicro(local - microsPerDay).In(loc).Zone()
	_, after := time.UnixMicro(local + microsPerDay).In(loc).Zone()
	if before == after {
		return before
	}
	at := func(off int) int {
		_, o := time.UnixMicro(local - int64(off)*microsPerSec).In(loc).Zone()
		return o
	}
	okBefore, okAfter := at(before) == before, at(after) == after
	switch {
	case okBefore && okAfter:
		// Repeated: both readings exist.
		return after
	case okBefore:
		return before
	case okAfter:
		return after
	}
	// Skipped: neither exists.
	return before
}

// ParseTime reads a time of day; a zone in the text is ignored. 24:00:00 and a leap second's :60 are accepted. Source: DecodeTimeOnly.
func (s Style) ParseTime(in []byte) (int64, error) {
	if micros, rest, ok := isoTime(trimSpace(in)); ok && len(rest) == 0 {
		return micros, nil
	}
	d := dateTime{style: s}
	fields, ok := scanDateTime(in)
	if !ok {
		return 0, dateError(errDateFormat, "time", in)
	}
	if fields = timeOnly(fields); fields == nil {
		return 0, dateError(errDateFormat, "time", in)
	}
	// A number alone is hhmmss or hhmm, not a date: say that the date is known.
	if len(fields) > 0 && fields[0].kind == kindNumber {
		d.have = mDate
		d.year, d.month, d.day = 2000, 1, 1
	}
	if err := d.decode(fields); err != nil {
		return 0, dateError(err, "time", in)
	}
	if d.special != 0 || d.have&mTime != mTime {
		return 0, dateError(errDateFormat, "time", in)
	}
	micros := (int64(d.hour)*3600+int64(d.min)*60+int64(d.sec))*microsPerSec + d.micros
	if micros > microsPerDay {
		return 0, dateError(errDateOverflow, "time", in)
	}
	return micros, nil
}

// timeOnly drops a leading ISO "t". nil means that it stands alone.
func timeOnly(fields []dateField) []dateField {
	if len(fields) > 0 && fields[0].kind == kindString && fields[0].text == "t" {
		if len(fields) == 1 {
			return nil
		}
		return fields[1:]
	}
	return fields
}

// zones caches LoadZone by the name as given. Bounded: a client may send any name.
var zones struct {
	sync.Mutex
	m map[string]*time.Location
}

// LoadZone finds a time zone by its IANA name; common spellings in another case work ("america/new_york", "utc").
// time.LoadLocation's "" and "Local" are no names.
func LoadZone(name string) (*time.Location, error) {
	zones.Lock()
	defer zones.Unlock()
	if loc, ok := zones.m[name]; ok {
		return loc, nil
	}
	if name == "" || strings.EqualFold(name, "local") || len(name) > 64 {
		return nil, unknownZone(name)
	}
	loc := posixZone(name)
	err := error(unknownZone(name))
	if loc != nil {
		return loc, nil
	}
	for _, try := range []string{name, titleZone(name), strings.ToUpper(name)} {
		if loc, err = time.LoadLocation(try); err == nil {
			break
		}
	}
	if err != nil {
		return nil, unknownZone(name)
	}
	if zones.m == nil || len(zones.m) > 1000 {
		zones.m = map[string]*time.Location{}
	}
	zones.m[name] = loc
	return loc, nil
}

// posixZone reads a fixed POSIX zone, "UTC+3" or "<+05>-5:30": the sign counts west of Greenwich. nil when name is none.
func posixZone(name string) *time.Location {
	i := 0
	if name[0] == '<' {
		i = strings.IndexByte(name, '>') + 1
	} else {
		for i < len(name) && isAlpha(name[i]) {
			i++
		}
	}
	if i < 3 || i == len(name) || name[i] != '+' && name[i] != '-' {
		return nil
	}
	var d dateTime
	if strings.IndexByte(name[i:], ':') < 0 && len(name)-i > 3 || d.decodeZone(name[i:]) != nil {
		return nil
	}
	return time.FixedZone(strings.ToUpper(strings.Trim(name[:i], "<>")), -d.offset)
}

// titleZone capitalises each word: america/new_york is America/New_York.
func titleZone(name string) string {
	b := []byte(strings.ToLower(name))
	for i := range b {
		if (i == 0 || b[i-1] == '/' || b[i-1] == '_' || b[i-1] == '-') && isAlpha(b[i]) {
			b[i] &^= 0x20
		}
	}
	return string(b)
}
