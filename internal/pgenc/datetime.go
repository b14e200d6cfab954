package pgenc

import (
	"encoding/binary"
	"math"
	"time"
)

// Values beyond any date: what DuckDB uses for 'infinity'.
const (
	DateInfinity         int32 = math.MaxInt32
	DateNegInfinity      int32 = -math.MaxInt32
	TimestampInfinity    int64 = math.MaxInt64
	TimestampNegInfinity int64 = -math.MaxInt64
)

// pgEpochDays is 2000-01-01 in days since 1970-01-01; pgEpochMicros the same in microseconds.
const (
	pgEpochDays   = 10957
	microsPerSec  = 1_000_000
	microsPerDay  = 86400 * microsPerSec
	pgEpochMicros = pgEpochDays * microsPerDay
)

// DateStyle is the output half of the GUC DateStyle.
type DateStyle uint8

// Output styles of DateStyle.
const (
	ISO DateStyle = iota
	SQL
	Postgres
	German
)

// DateOrder is the field order of DateStyle.
type DateOrder uint8

// Field orders.
const (
	MDY DateOrder = iota
	DMY
	YMD
)

// IntervalStyle is the GUC IntervalStyle.
type IntervalStyle uint8

// Interval styles.
const (
	IntervalPostgres IntervalStyle = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)

// Style is the part of a session that changes values' text: DateStyle, IntervalStyle, TimeZone. The zero Style is ISO,
// MDY, postgres, UTC.
type Style struct {
	Date     DateStyle
	Order    DateOrder
	Interval IntervalStyle
	Loc      *time.Location // nil is UTC
	// ByteaEscape is bytea_output = escape.
	ByteaEscape bool
	// FloatDigits is extra_float_digits below one: 0 writes the shortest exact form, n > 0 at most 15 (real: 6) − (n − 1) digits.
	FloatDigits int
	// Now is the transaction's start, for 'now', 'today' … in input. The zero time reads the clock.
	Now time.Time
}

// civil converts days since 1970-01-01 to a proleptic Gregorian date. Year 0 is 1 BC.
// Source: Howard Hinnant, chrono-compatible low-level date algorithms, civil_from_days.
func civil(days int64) (year int64, month, day int) {
	z := days + 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp) + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// daysFromCivil is the inverse of civil.
func daysFromCivil(year int64, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yoe := year - era*400
	m := int64(month)
	if m > 2 {
		m -= 3
	} else {
		m += 9
	}
	doy := (153*m+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func append2(dst []byte, v int) []byte {
	return append(dst, twoDigits[v*2], twoDigits[v*2+1])
}

// appendYear appends a year of the era (1 or more) with at least four digits.
func appendYear(dst []byte, y int64) []byte {
	if y < 10000 {
		return append2(append2(dst, int(y/100)), int(y%100))
	}
	return appendUint64(dst, uint64(y))
}

// eraYear turns an astronomical year into a year of the era.
func eraYear(y int64) (year int64, bc bool) {
	if y > 0 {
		return y, false
	}
	return 1 - y, true
}

func (s Style) appendDatePart(dst []byte, year int64, month, day int) []byte {
	switch s.Date {
	case SQL, Postgres:
		sep := byte('/')
		if s.Date == Postgres {
			sep = '-'
		}
		a, b := month, day
		if s.Order == DMY {
			a, b = day, month
		}
		dst = append2(append(append2(dst, a), sep), b)
		return appendYear(append(dst, sep), year)
	case German:
		dst = append2(append(append2(dst, day), '.'), month)
		return appendYear(append(dst, '.'), year)
	}
	dst = append(appendYear(dst, year), '-')
	return append2(append(append2(dst, month), '-'), day)
}

// AppendDate appends a date's text.
func (s Style) AppendDate(dst []byte, days int32) []byte {
	switch days {
	case DateInfinity:
		return append(dst, "infinity"...)
	case DateNegInfinity, math.MinInt32:
		return append(dst, "-infinity"...)
	}
	y, m, d := civil(int64(days))
	year, bc := eraYear(y)
	dst = s.appendDatePart(dst, year, m, d)
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

// AppendDateBinary appends days since 2000-01-01.
func AppendDateBinary(dst []byte, days int32) []byte {
	switch {
	case days == DateInfinity:
		days = math.MaxInt32
	case days <= DateNegInfinity+pgEpochDays:
		days = math.MinInt32
	default:
		days -= pgEpochDays
	}
	return binary.BigEndian.AppendUint32(dst, uint32(days))
}

// AppendTime appends a time of day: "HH:MM:SS[.ffffff]" without trailing zeros; 24:00:00 is a time.
func AppendTime(dst []byte, micros int64) []byte {
	sec := micros / microsPerSec
	dst = append2(append(append2(dst, int(sec/3600)), ':'), int(sec/60%60))
	dst = append2(append(dst, ':'), int(sec%60))
	return appendFraction(dst, int(micros%microsPerSec))
}

// appendFraction appends ".ffffff" without trailing zeros, nothing for 0.
func appendFraction(dst []byte, micros int) []byte {
	if micros == 0 {
		return dst
	}
	dst = append(dst, '.')
	dst = append2(append2(append2(dst, micros/10000), micros/100%100), micros%100)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// AppendTimeBinary appends microseconds since midnight.
func AppendTimeBinary(dst []byte, micros int64) []byte { return AppendInt8Binary(dst, micros) }

// AppendTimeTZ appends a time with an offset in seconds east of UTC.
func AppendTimeTZ(dst []byte, micros int64, offset int) []byte {
	return appendOffset(AppendTime(dst, micros), offset)
}

// AppendTimeTZBinary appends microseconds and seconds west of UTC. Source: timetz_send.
func AppendTimeTZBinary(dst []byte, micros int64, offset int) []byte {
	return AppendInt4Binary(AppendInt8Binary(dst, micros), int32(-offset))
}

// appendOffset appends "+02", "-03:30" or "+00:53:28".
func appendOffset(dst []byte, offset int) []byte {
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = append2(append(dst, sign), offset/3600)
	if offset%3600 != 0 {
		dst = append2(append(dst, ':'), offset/60%60)
	}
	if offset%60 != 0 {
		dst = append2(append(dst, ':'), offset%60)
	}
	return dst
}

// AppendTimestamp appends the text of a timestamp without time zone.
func (s Style) AppendTimestamp(dst []byte, micros int64) []byte {
	switch micros {
	case TimestampInfinity:
		return append(dst, "infinity"...)
	case TimestampNegInfinity, math.MinInt64:
		return append(dst, "-infinity"...)
	}
	return s.appendTimestamp(dst, micros, 0, "", false)
}

// AppendTimestampTZ appends the text of a timestamp with time zone, shown in s.Loc.
func (s Style) AppendTimestampTZ(dst []byte, micros int64) []byte {
	switch micros {
	case TimestampInfinity:
		return append(dst, "infinity"...)
	case TimestampNegInfinity, math.MinInt64:
		return append(dst, "-infinity"...)
	}
	name, offset := "UTC", 0
	if s.Loc != nil && s.Loc != time.UTC {
		name, offset = time.UnixMicro(micros).In(s.Loc).Zone()
	}
	// PostgreSQL's range keeps this sum far from overflow; beyond it, saturate.
	local := micros + int64(offset)*microsPerSec
	if (offset > 0) != (local > micros) && offset != 0 {
		local = micros
	}
	return s.appendTimestamp(dst, local, offset, name, true)
}

func (s Style) appendTimestamp(dst []byte, local int64, offset int, zone string, withZone bool) []byte {
	days := local / microsPerDay
	tod := local % microsPerDay
	if tod < 0 {
		tod += microsPerDay
		days--
	}
	y, m, d := civil(days)
	year, bc := eraYear(y)
	if s.Date == Postgres {
		dst = s.appendPostgresDay(dst, days, m, d)
		dst = AppendTime(append(dst, ' '), tod)
		dst = appendYear(append(dst, ' '), year)
	} else {
		dst = s.appendDatePart(dst, year, m, d)
		dst = AppendTime(append(dst, ' '), tod)
	}
	if withZone {
		if s.Date == ISO || !isAbbreviation(zone) {
			if s.Date == Postgres || s.Date == SQL {
				// "a space so that strtol does not read the offset as part of the year"; the SQL style has none.
				if s.Date == Postgres {
					dst = append(dst, ' ')
				}
			}
			dst = appendOffset(dst, offset)
		} else {
			dst = append(append(dst, ' '), zone...)
		}
	}
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

// isAbbreviation tells a zone's name ("CET") from the offset that Go gives zones without one ("+03").
func isAbbreviation(zone string) bool {
	return zone != "" && zone[0] != '+' && zone[0] != '-'
}

var (
	weekdays = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	months   = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

func (s Style) appendPostgresDay(dst []byte, days int64, m, d int) []byte {
	wd := (days + 4) % 7
	if wd < 0 {
		wd += 7
	}
	dst = append(append(dst, weekdays[wd]...), ' ')
	if s.Order == DMY {
		return append(append(append2(dst, d), ' '), months[m-1]...)
	}
	return append2(append(append(dst, months[m-1]...), ' '), d)
}

// AppendTimestampBinary appends microseconds since 2000-01-01, for timestamp and timestamptz.
func AppendTimestampBinary(dst []byte, micros int64) []byte {
	switch {
	case micros == TimestampInfinity:
		micros = math.MaxInt64
	case micros <= TimestampNegInfinity+pgEpochMicros:
		micros = math.MinInt64
	default:
		micros -= pgEpochMicros
	}
	return binary.BigEndian.AppendUint64(dst, uint64(micros))
}
