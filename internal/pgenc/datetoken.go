package pgenc

// The words and fields of date/time input. Source: PostgreSQL 15, datetime.c and utils/datetime.h.

// fieldKind is what ParseDateTime's scan took a piece of text for.
type fieldKind uint8

const (
	kindNumber fieldKind = iota
	kindString
	kindDate
	kindTime
	kindTZ
	kindSpecial
)

type dateField struct {
	text string
	kind fieldKind
}

// mask is a set of date/time fields found so far.
type mask uint32

const (
	mYear mask = 1 << iota
	mMonth
	mDay
	mHour
	mMinute
	mSecond
	mMilli
	mMicro
	mTZ
	mDTZMod
	mDTZ
	mDOY
	mDOW
	mAMPM
	mADBC
	mReserv
	mDate   = mYear | mMonth | mDay
	mTime   = mHour | mMinute | mSecond
	mAllSec = mSecond | mMilli | mMicro
	mWeek   = mask(1 << 20)
	mDecade = mask(1 << 21)
	mCent   = mask(1 << 22)
	mMill   = mask(1 << 23)
)

// tokenType is the meaning of a word.
type tokenType uint8

const (
	tokUnknown tokenType = iota
	tokIgnore
	tokMonth
	tokDOW
	tokAMPM
	tokADBC
	tokReserved
	tokUnits
	tokISOTime
	tokDSTMod
	tokAgo
)

// Values of tokReserved and tokUnits.
const (
	valEarly = iota + 1
	valLate
	valEpoch
	valNow
	valToday
	valTomorrow
	valYesterday
	valAllBalls
	unitYear
	unitMonth
	unitDay
	unitHour
	unitMinute
	unitSecond
	unitMilli
	unitMicro
	unitWeek
	unitDecade
	unitCentury
	unitMillennium
	unitQuarter
	unitJulian
	unitTime
	unitOther
)

type token struct {
	typ tokenType
	val int
}

var dateTokens = map[string]token{
	"-infinity": {tokReserved, valEarly}, "infinity": {tokReserved, valLate}, "epoch": {tokReserved, valEpoch}, "now": {tokReserved, valNow},
	"today": {tokReserved, valToday}, "tomorrow": {tokReserved, valTomorrow}, "yesterday": {tokReserved, valYesterday}, "allballs": {tokReserved, valAllBalls},
	"ad": {tokADBC, 0}, "bc": {tokADBC, 1}, "am": {tokAMPM, 1}, "pm": {tokAMPM, 2}, "at": {tokIgnore, 0}, "on": {tokIgnore, 0},
	"jan": {tokMonth, 1}, "january": {tokMonth, 1}, "feb": {tokMonth, 2}, "february": {tokMonth, 2}, "mar": {tokMonth, 3}, "march": {tokMonth, 3},
	"apr": {tokMonth, 4}, "april": {tokMonth, 4}, "may": {tokMonth, 5}, "jun": {tokMonth, 6}, "june": {tokMonth, 6}, "jul": {tokMonth, 7}, "july": {tokMonth, 7},
	"aug": {tokMonth, 8}, "august": {tokMonth, 8}, "sep": {tokMonth, 9}, "sept": {tokMonth, 9}, "september": {tokMonth, 9}, "oct": {tokMonth, 10},
	"october": {tokMonth, 10}, "nov": {tokMonth, 11}, "november": {tokMonth, 11}, "dec": {tokMonth, 12}, "december": {tokMonth, 12},
	"sun": {tokDOW, 0}, "sunday": {tokDOW, 0}, "mon": {tokDOW, 1}, "monday": {tokDOW, 1}, "tue": {tokDOW, 2}, "tues": {tokDOW, 2}, "tuesday": {tokDOW, 2},
	"wed": {tokDOW, 3}, "weds": {tokDOW, 3}, "wednesday": {tokDOW, 3}, "thu": {tokDOW, 4}, "thur": {tokDOW, 4}, "thurs": {tokDOW, 4}, "thursday": {tokDOW, 4},
	"fri": {tokDOW, 5}, "friday": {tokDOW, 5}, "sat": {tokDOW, 6}, "saturday": {tokDOW, 6},
	"d": {tokUnits, unitDay}, "h": {tokUnits, unitHour}, "m": {tokUnits, unitMonth}, "mm": {tokUnits, unitMinute}, "s": {tokUnits, unitSecond}, "y": {tokUnits, unitYear},
	"j": {tokUnits, unitJulian}, "jd": {tokUnits, unitJulian}, "julian": {tokUnits, unitJulian},
	"dow": {tokUnits, unitOther}, "doy": {tokUnits, unitOther}, "isodow": {tokUnits, unitOther}, "isoyear": {tokUnits, unitOther},
	"t": {tokISOTime, unitTime}, "dst": {tokDSTMod, 3600},
}

var intervalTokens = map[string]token{
	"@": {tokIgnore, 0}, "ago": {tokAgo, 0},
	"c": {tokUnits, unitCentury}, "cent": {tokUnits, unitCentury}, "centuries": {tokUnits, unitCentury}, "century": {tokUnits, unitCentury},
	"d": {tokUnits, unitDay}, "day": {tokUnits, unitDay}, "days": {tokUnits, unitDay},
	"dec": {tokUnits, unitDecade}, "decade": {tokUnits, unitDecade}, "decades": {tokUnits, unitDecade}, "decs": {tokUnits, unitDecade},
	"h": {tokUnits, unitHour}, "hour": {tokUnits, unitHour}, "hours": {tokUnits, unitHour}, "hr": {tokUnits, unitHour}, "hrs": {tokUnits, unitHour},
	"m": {tokUnits, unitMinute}, "min": {tokUnits, unitMinute}, "mins": {tokUnits, unitMinute}, "minute": {tokUnits, unitMinute}, "minutes": {tokUnits, unitMinute},
	"microsecon": {tokUnits, unitMicro}, "us": {tokUnits, unitMicro}, "usec": {tokUnits, unitMicro}, "usecond": {tokUnits, unitMicro}, "useconds": {tokUnits, unitMicro}, "usecs": {tokUnits, unitMicro},
	"mil": {tokUnits, unitMillennium}, "millennia": {tokUnits, unitMillennium}, "millennium": {tokUnits, unitMillennium}, "mils": {tokUnits, unitMillennium},
	"millisecon": {tokUnits, unitMilli}, "ms": {tokUnits, unitMilli}, "msec": {tokUnits, unitMilli}, "msecond": {tokUnits, unitMilli}, "mseconds": {tokUnits, unitMilli}, "msecs": {tokUnits, unitMilli},
	"mon": {tokUnits, unitMonth}, "mons": {tokUnits, unitMonth}, "month": {tokUnits, unitMonth}, "months": {tokUnits, unitMonth},
	"qtr": {tokUnits, unitQuarter}, "quarter": {tokUnits, unitQuarter},
	"s": {tokUnits, unitSecond}, "sec": {tokUnits, unitSecond}, "second": {tokUnits, unitSecond}, "seconds": {tokUnits, unitSecond}, "secs": {tokUnits, unitSecond},
	"w": {tokUnits, unitWeek}, "week": {tokUnits, unitWeek}, "weeks": {tokUnits, unitWeek},
	"y": {tokUnits, unitYear}, "year": {tokUnits, unitYear}, "years": {tokUnits, unitYear}, "yr": {tokUnits, unitYear}, "yrs": {tokUnits, unitYear},
}

// tokenMaxLen is how many letters of a word are compared. Source: TOKMAXLEN.
const tokenMaxLen = 10

func lookupToken(table map[string]token, word string) token {
	if len(word) > tokenMaxLen {
		word = word[:tokenMaxLen]
	}
	return table[word]
}

func isDigit(c byte) bool { return c-'0' <= 9 }
func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isAlnum(c byte) bool { return isDigit(c) || isAlpha(c) }
func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// maxDateFields and maxDateLen bound the scan. Source: MAXDATEFIELDS, MAXDATELEN.
const (
	maxDateFields = 25
	maxDateLen    = 128
)

// scanDateTime cuts date/time text into fields. ok is false for text that no field starts with. Source: ParseDateTime.
func scanDateTime(in []byte) (fields []dateField, ok bool) {
	if len(in) > maxDateLen+maxDateFields {
		return nil, false
	}
	i := 0
	var buf []byte
	take := func(while func(byte) bool) {
		for i < len(in) && while(in[i]) {
			buf = append(buf, lowerByte(in[i]))
			i++
		}
	}
	one := func() { buf = append(buf, lowerByte(in[i])); i++ }
	at := func() byte {
		if i < len(in) {
			return in[i]
		}
		return 0
	}
	for i < len(in) {
		c := in[i]
		if isSpace(c) {
			i++
			continue
		}
		if len(fields) >= maxDateFields {
			return nil, false
		}
		buf = buf[:0]
		kind := kindNumber
		switch {
		case isDigit(c):
			kind = scanDigits(take, one, at)
		case c == '.':
			one()
			take(isDigit)
		case isAlpha(c):
			kind = kindString
			take(isAlpha)
			p := at()
			isDate := p == '-' || p == '/' || p == '.'
			if (p == '+' || isDigit(p)) && lookupToken(dateTokens, string(buf)).typ == tokUnknown {
				isDate = true
			}
			if isDate {
				kind = kindDate
				take(func(c byte) bool {
					return c == '+' || c == '-' || c == '/' || c == '_' || c == '.' || c == ':' || isAlnum(c)
				})
			}
		case c == '+' || c == '-':
			one()
			for isSpace(at()) {
				i++
			}
			switch {
			case isDigit(at()):
				kind = kindTZ
				take(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' || c == '-' })
			case isAlpha(at()):
				kind = kindSpecial
				take(isAlpha)
			default:
				return nil, false
			}
		case c > ' ' && c < 0x7f:
			// Other punctuation only separates.
			i++
			continue
		default:
			return nil, false
		}
		fields = append(fields, dateField{string(buf), kind})
	}
	return fields, true
}

// scanDigits reads a field that starts with a digit: a time, a date or a number.
func scanDigits(take func(func(byte) bool), one func(), at func() byte) fieldKind {
	take(isDigit)
	switch delim := at(); delim {
	case ':':
		one()
		take(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
		return kindTime
	case '-', '/', '.':
		one()
		if !isDigit(at()) {
			take(func(c byte) bool { return isAlnum(c) || c == delim })
			return kindDate
		}
		kind := kindDate
		if delim == '.' {
			kind = kindNumber
		}
		take(isDigit)
		if at() == delim {
			kind = kindDate
			one()
			take(func(c byte) bool { return isDigit(c) || c == delim })
		}
		return kind
	}
	return kindNumber
}
