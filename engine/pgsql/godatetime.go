package pgsql

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

const (
	usPerSecond = int64(1_000_000)
	usPerMinute = 60 * usPerSecond
	usPerHour   = 60 * usPerMinute
	usPerDay    = 24 * usPerHour
)

var datetimeFuncs = []GoFunc{
	{Name: "skade_clock", Args: types(), Ret: "TIMESTAMPTZ", Volatile: true, Fn: func([]Value) (Value, error) { return Value{I: time.Now().UnixMicro()}, nil }},
	{Name: "skade_sleep", Args: types(dD), Ret: dV, Volatile: true, Fn: func(a []Value) (Value, error) {
		// Short enough that a cancelled statement ends soon; longer sleeps are the engine's.
		time.Sleep(time.Duration(math.Min(math.Max(a[0].F, 0), 1) * float64(time.Second)))
		return Value{S: ""}, nil
	}},
	fn("skade_interval_in", types(dV), "INTERVAL", func(a []Value) (Value, error) {
		v, err := pgenc.Style{}.ParseInterval([]byte(a[0].S))
		return Value{Months: v.Months, Days: v.Days, I: v.Micros}, err
	}),
	fn("skade_interval_out", types("INTERVAL"), dV, func(a []Value) (Value, error) {
		return Value{S: string(pgenc.Style{}.AppendInterval(nil, intervalOf(a[0])))}, nil
	}),
	fn("skade_interval_part", types("INTERVAL", dV), dI, func(a []Value) (Value, error) { return Value{I: a[0].I}, nil }),
	fn("skade_interval_mul", types("INTERVAL", dD), "INTERVAL", func(a []Value) (Value, error) { return intervalScale(a[0], a[1].F, false) }),
	fn("skade_interval_div", types("INTERVAL", dD), "INTERVAL", func(a []Value) (Value, error) {
		if a[1].F == 0 {
			return Value{}, pgerr.New(pgerr.DivisionByZero, "division by zero")
		}
		return intervalScale(a[0], a[1].F, true)
	}),
	// A month counts as 30 days, a year as 365.25, as in interval_part_common.
	fn("skade_interval_epoch_us", types("INTERVAL"), dI, func(a []Value) (Value, error) {
		years, months := int64(a[0].Months/12), int64(a[0].Months%12)
		return Value{I: years*(36525*usPerDay/100) + months*30*usPerDay + int64(a[0].Days)*usPerDay + a[0].I}, nil
	}),
	fn("skade_justify", types("INTERVAL", dV), "INTERVAL", func(a []Value) (Value, error) { return justify(a[0], a[1].S), nil }),
	fn("skade_utc_offset", types("INTERVAL"), dV, func(a []Value) (Value, error) {
		us := a[0].I + int64(a[0].Days)*usPerDay
		sign := "-" // Etc/GMT counts the other way
		if us < 0 {
			sign, us = "+", -us
		}
		h := us / usPerHour
		if us%usPerHour != 0 || h > 14 {
			return Value{}, pgerr.New(pgerr.FeatureNotSupported, "time zone offsets of parts of an hour are not supported")
		}
		return Value{S: "Etc/GMT" + sign + itoa(h)}, nil
	}),
	fn("skade_timestamp_out", types("TIMESTAMP"), dV, func(a []Value) (Value, error) {
		return Value{S: string(pgenc.Style{}.AppendTimestamp(nil, a[0].I))}, nil
	}),
	fn("skade_timestamptz_out", types("TIMESTAMP", dI), dV, func(a []Value) (Value, error) {
		return Value{S: zonedText(a[0].I, a[1].I, ' ')}, nil
	}),
	fn("skade_timestamptz_json", types("TIMESTAMP", dI), dV, func(a []Value) (Value, error) {
		return Value{S: zonedText(a[0].I, a[1].I, 'T')}, nil
	}),
	fn("skade_date_out", types("DATE"), dV, func(a []Value) (Value, error) {
		return Value{S: string(pgenc.Style{}.AppendDate(nil, int32(a[0].I)))}, nil
	}),
	fn("skade_date_in", types(dV), "DATE", func(a []Value) (Value, error) {
		v, err := pgenc.Style{}.ParseDate([]byte(a[0].S))
		return Value{I: int64(v)}, err
	}),
	fn("skade_timestamp_in", types(dV), "TIMESTAMP", func(a []Value) (Value, error) {
		v, err := pgenc.Style{}.ParseTimestamp([]byte(a[0].S))
		return Value{I: v}, err
	}),
	fn("skade_timestamptz_in", types(dV, dV), "TIMESTAMPTZ", func(a []Value) (Value, error) {
		loc, err := pgenc.LoadZone(a[1].S)
		if err != nil {
			loc = time.UTC
		}
		v, err := pgenc.Style{Loc: loc}.ParseTimestampTZ([]byte(a[0].S))
		return Value{I: v}, err
	}),
	fn("skade_date_in_order", types(dV, dV), "DATE", func(a []Value) (Value, error) {
		v, err := pgenc.Style{Order: orderOf(a[1])}.ParseDate([]byte(a[0].S))
		return Value{I: int64(v)}, err
	}),
	fn("skade_timestamp_in_order", types(dV, dV), "TIMESTAMP", func(a []Value) (Value, error) {
		v, err := pgenc.Style{Order: orderOf(a[1])}.ParseTimestamp([]byte(a[0].S))
		return Value{I: v}, err
	}),
	fn("skade_timestamptz_in_order", types(dV, dV, dV), "TIMESTAMPTZ", func(a []Value) (Value, error) {
		loc, err := pgenc.LoadZone(a[1].S)
		if err != nil {
			loc = time.UTC
		}
		v, err := pgenc.Style{Loc: loc, Order: orderOf(a[2])}.ParseTimestampTZ([]byte(a[0].S))
		return Value{I: v}, err
	}),
	fn("skade_make_date", types(dI, dI, dI), "DATE", func(a []Value) (Value, error) {
		y, m, d := a[0].I, a[1].I, a[2].I
		t := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC)
		if y == 0 || m < 1 || m > 12 || d < 1 || d > 31 || t.Day() != int(d) {
			return Value{}, pgerr.Newf(pgerr.DatetimeFieldOverflow, "date field value out of range: %d-%02d-%02d", y, m, d)
		}
		return Value{I: t.Unix() / 86400}, nil
	}),
}

// orderOf reads a date order that the analyser wrote as a digit.
func orderOf(v Value) pgenc.DateOrder { return pgenc.DateOrder(v.S[0] - '0') }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func intervalOf(v Value) pgenc.IntervalValue {
	return pgenc.IntervalValue{Months: v.Months, Days: v.Days, Micros: v.I}
}

// zonedText is a timestamptz's text from its local time and offset.
func zonedText(local, offset int64, sep byte) string {
	if local == pgenc.TimestampInfinity || local == pgenc.TimestampNegInfinity {
		return string(pgenc.Style{}.AppendTimestamp(nil, local))
	}
	style := pgenc.Style{Loc: time.FixedZone("", int(offset))}
	b := style.AppendTimestampTZ(nil, local-offset*usPerSecond)
	if sep == 'T' {
		s := strings.Replace(string(b), " ", "T", 1)
		// JSON always has minutes in the offset.
		if i := strings.LastIndexAny(s, "+-"); i > 10 && len(s)-i == 3 {
			s += ":00"
		}
		return s
	}
	return string(b)
}

// tsRound is TSROUND: microseconds.
func tsRound(x float64) float64 { return math.RoundToEven(x*1e6) / 1e6 }

// intervalScale is interval_mul and interval_div.
func intervalScale(v Value, f float64, div bool) (Value, error) {
	apply := func(x float64) float64 {
		if div {
			return x / f
		}
		return x * f
	}
	m := apply(float64(v.Months))
	d := apply(float64(v.Days))
	if math.IsNaN(m) || math.Abs(m) > math.MaxInt32 || math.IsNaN(d) || math.Abs(d) > math.MaxInt32 {
		return Value{}, pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	}
	out := Value{Months: int32(m), Days: int32(d)}
	monthRemainder := tsRound((m - float64(out.Months)) * 30)
	secRemainder := tsRound((d - float64(out.Days) + monthRemainder - math.Trunc(monthRemainder)) * 86400)
	if math.Abs(secRemainder) >= 86400 {
		out.Days += int32(secRemainder / 86400)
		secRemainder -= float64(int64(secRemainder/86400)) * 86400
	}
	out.Days += int32(monthRemainder)
	us := math.RoundToEven(apply(float64(v.I)) + secRemainder*1e6)
	if math.IsNaN(us) || math.Abs(us) > math.MaxInt64/2 {
		return Value{}, pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
	}
	out.I = int64(us)
	return out, nil
}

// justify is interval_justify_hours, _days and _interval.
func justify(v Value, what string) Value {
	hours := func() {
		d := v.I / usPerDay
		v.I -= d * usPerDay
		v.Days += int32(d)
		if v.Days > 0 && v.I < 0 {
			v.I += usPerDay
			v.Days--
		} else if v.Days < 0 && v.I > 0 {
			v.I -= usPerDay
			v.Days++
		}
	}
	days := func() {
		m := v.Days / 30
		v.Days -= m * 30
		v.Months += m
		if v.Months > 0 && v.Days < 0 {
			v.Days += 30
			v.Months--
		} else if v.Months < 0 && v.Days > 0 {
			v.Days -= 30
			v.Months++
		}
	}
	switch what {
	case "hours":
		hours()
	case "days":
		days()
	default:
		if v.Days > 0 && v.I > 0 || v.Days < 0 && v.I < 0 {
			m := v.Days / 30
			v.Days -= m * 30
			v.Months += m
		}
		d := v.I / usPerDay
		v.I -= d * usPerDay
		v.Days += int32(d)
		m := v.Days / 30
		v.Days -= m * 30
		v.Months += m
		if v.Months > 0 && (v.Days < 0 || v.Days == 0 && v.I < 0) {
			v.Days += 30
			v.Months--
		} else if v.Months < 0 && (v.Days > 0 || v.Days == 0 && v.I > 0) {
			v.Days -= 30
			v.Months++
		}
		if v.Days > 0 && v.I < 0 {
			v.I += usPerDay
			v.Days--
		} else if v.Days < 0 && v.I > 0 {
			v.I -= usPerDay
			v.Days++
		}
	}
	return v
}
