package pgenc

import (
	"strconv"
)

// IntervalValue is a PostgreSQL interval.
type IntervalValue struct {
	Months int32
	Days   int32
	Micros int64
}

// AppendInterval appends an interval's text in s.Interval's style. Source: EncodeInterval.
func (s Style) AppendInterval(dst []byte, v IntervalValue) []byte {
	switch s.Interval {
	case IntervalISO8601:
		return AppendIntervalISO(dst, v)
	case IntervalSQLStandard:
		return appendIntervalSQL(dst, v)
	case IntervalPostgresVerbose:
		return appendIntervalVerbose(dst, v)
	}
	year, mon := int64(v.Months/12), int64(v.Months%12)
	start, before := len(dst), false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		if before && n > 0 {
			dst = append(dst, '+')
		}
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		before = n < 0
	}
	part(year, "year")
	part(mon, "mon")
	part(int64(v.Days), "day")
	if len(dst) == start || v.Micros != 0 {
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		if v.Micros < 0 {
			dst = append(dst, '-')
		} else if before {
			dst = append(dst, '+')
		}
		dst = appendHMS(dst, absMicros(v.Micros))
	}
	return dst
}

func absMicros(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// appendHMS appends HH:MM:SS[.ffffff] with hours of any width.
func appendHMS(dst []byte, micros uint64) []byte {
	sec := micros / microsPerSec
	if h := sec / 3600; h < 100 {
		dst = append2(dst, int(h))
	} else {
		dst = appendUint64(dst, h)
	}
	dst = append2(append(dst, ':'), int(sec/60%60))
	dst = append2(append(dst, ':'), int(sec%60))
	return appendFraction(dst, int(micros%microsPerSec))
}

// AppendIntervalISO appends an interval in ISO 8601, "P1Y2M3DT4H5M6.7S": IntervalStyle iso_8601, and how interval columns
// are stored. Source: EncodeInterval, INTSTYLE_ISO_8601.
func AppendIntervalISO(dst []byte, v IntervalValue) []byte {
	if v == (IntervalValue{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(int64(v.Months/12), 'Y')
	part(int64(v.Months%12), 'M')
	part(int64(v.Days), 'D')
	if v.Micros == 0 {
		return dst
	}
	dst = append(dst, 'T')
	part(v.Micros/(3600*microsPerSec), 'H')
	part(v.Micros/(60*microsPerSec)%60, 'M')
	if rest := v.Micros % (60 * microsPerSec); rest != 0 {
		if rest < 0 {
			dst = append(dst, '-')
			rest = -rest
		}
		dst = appendFraction(strconv.AppendInt(dst, rest/microsPerSec, 10), int(rest%microsPerSec))
		dst = append(dst, 'S')
	}
	return dst
}

// appendIntervalSQL is the SQL standard's style, which needs explicit signs when parts differ in sign.
func appendIntervalSQL(dst []byte, v IntervalValue) []byte {
	year, mon := int64(v.Months/12), int64(v.Months%12)
	neg := v.Months < 0 || v.Days < 0 || v.Micros < 0
	pos := v.Months > 0 || v.Days > 0 || v.Micros > 0
	yearMonth, day, clock := v.Months != 0, v.Days != 0, v.Micros != 0
	switch {
	case !neg && !pos:
		return append(dst, '0')
	case neg && pos || yearMonth && (day || clock):
		dst = appendSign(dst, v.Months < 0)
		dst = strconv.AppendInt(dst, abs64(year), 10)
		dst = strconv.AppendInt(append(dst, '-'), abs64(mon), 10)
		dst = appendSign(append(dst, ' '), v.Days < 0)
		dst = strconv.AppendInt(dst, abs64(int64(v.Days)), 10)
		dst = appendSign(append(dst, ' '), v.Micros < 0)
		return appendHMSShort(dst, absMicros(v.Micros))
	}
	if neg {
		dst = append(dst, '-')
	}
	switch {
	case yearMonth:
		dst = strconv.AppendInt(dst, abs64(year), 10)
		return strconv.AppendInt(append(dst, '-'), abs64(mon), 10)
	case day:
		dst = append(strconv.AppendInt(dst, abs64(int64(v.Days)), 10), ' ')
	}
	return appendHMSShort(dst, absMicros(v.Micros))
}

func appendSign(dst []byte, neg bool) []byte {
	if neg {
		return append(dst, '-')
	}
	return append(dst, '+')
}

func abs64(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// appendHMSShort is appendHMS with hours not padded.
func appendHMSShort(dst []byte, micros uint64) []byte {
	sec := micros / microsPerSec
	dst = appendUint64(dst, sec/3600)
	dst = append2(append(dst, ':'), int(sec/60%60))
	dst = append2(append(dst, ':'), int(sec%60))
	return appendFraction(dst, int(micros%microsPerSec))
}

// appendIntervalVerbose is "@ 1 year 2 mons -3 days"; the first part's sign becomes "ago". Source: AddVerboseIntPart.
func appendIntervalVerbose(dst []byte, v IntervalValue) []byte {
	dst = append(dst, '@')
	start, before := len(dst), false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) == start {
			before = n < 0
			n = abs64(n)
		} else if before {
			n = -n
		}
		dst = append(strconv.AppendInt(append(dst, ' '), n, 10), ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
	}
	part(int64(v.Months/12), "year")
	part(int64(v.Months%12), "mon")
	part(int64(v.Days), "day")
	part(v.Micros/(3600*microsPerSec), "hour")
	part(v.Micros/(60*microsPerSec)%60, "min")
	if rest := v.Micros % (60 * microsPerSec); rest != 0 {
		dst = append(dst, ' ')
		if len(dst) == start+1 {
			before = rest < 0
		} else if (rest < 0) != before {
			dst = append(dst, '-')
		}
		rest = abs64(rest)
		dst = appendFraction(strconv.AppendInt(dst, rest/microsPerSec, 10), int(rest%microsPerSec))
		dst = append(dst, " sec"...)
		if rest != microsPerSec {
			dst = append(dst, 's')
		}
	}
	if len(dst) == start {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}

// AppendIntervalBinary appends microseconds, days, months. Source: interval_send.
func AppendIntervalBinary(dst []byte, v IntervalValue) []byte {
	return AppendInt4Binary(AppendInt4Binary(AppendInt8Binary(dst, v.Micros), v.Days), v.Months)
}
