package pgsql

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

var textFuncs = []GoFunc{
	fn("skade_chr", types(dI), dV, func(a []Value) (Value, error) {
		switch n := a[0].I; {
		case n == 0:
			return Value{}, pgerr.New(pgerr.ProgramLimitExceeded, "null character not permitted")
		case n < 0:
			return Value{}, pgerr.New(pgerr.InvalidParameterValue, "character number must be positive")
		case n >= 0xD800 && n < 0xE000:
			return Value{}, pgerr.Newf(pgerr.ProgramLimitExceeded, "requested character not valid for encoding: %d", n)
		case n > utf8.MaxRune:
			return Value{}, pgerr.Newf(pgerr.ProgramLimitExceeded, "requested character too large for encoding: %d", n)
		}
		return Value{S: string(rune(a[0].I))}, nil
	}),
	fn("skade_convert_from", types(dX, dV), dV, func(a []Value) (Value, error) {
		if err := utf8Name(a[1].S); err != nil {
			return Value{}, err
		}
		return Value{S: a[0].S}, pgenc.CheckUTF8([]byte(a[0].S))
	}),
	fn("skade_convert_to", types(dV, dV), dX, func(a []Value) (Value, error) { return a[0], utf8Name(a[1].S) }),
	fn("skade_encode", types(dX, dV), dV, func(a []Value) (Value, error) { return encodeBytes(a[0].S, a[1].S) }),
	fn("skade_decode", types(dV, dV), dX, func(a []Value) (Value, error) { return decodeBytes(a[0].S, a[1].S) }),
	fn("skade_bytea_in", types(dV), dX, func(a []Value) (Value, error) {
		v, err := pgenc.ParseBytea(nil, []byte(a[0].S))
		return Value{S: string(v)}, err
	}),
	fn("skade_bytea_substr", types(dX, dI, dI), dX, func(a []Value) (Value, error) {
		if a[2].I < 0 {
			return Value{}, pgerr.New("22011", "negative substring length not allowed")
		}
		lo := max(a[1].I-1, 0)
		hi := min(a[1].I-1+a[2].I, int64(len(a[0].S)))
		if lo >= hi {
			return Value{}, nil
		}
		return Value{S: a[0].S[lo:hi]}, nil
	}),
	fn("skade_get_byte", types(dX, dI), "INTEGER", func(a []Value) (Value, error) {
		if a[1].I < 0 || a[1].I >= int64(len(a[0].S)) {
			return Value{}, pgerr.Newf("2202E", "index %d out of valid range, 0..%d", a[1].I, len(a[0].S)-1)
		}
		return Value{I: int64(a[0].S[a[1].I])}, nil
	}),
	fn("skade_sha", types(dV, dX), dX, func(a []Value) (Value, error) {
		data := []byte(a[1].S)
		switch a[0].S {
		case "224":
			s := sha256.Sum224(data)
			return Value{S: string(s[:])}, nil
		case "256":
			s := sha256.Sum256(data)
			return Value{S: string(s[:])}, nil
		case "384":
			s := sha512.Sum384(data)
			return Value{S: string(s[:])}, nil
		}
		s := sha512.Sum512(data)
		return Value{S: string(s[:])}, nil
	}),
	vfn("skade_initcap", types(dV), func(a []Value) Value {
		var b strings.Builder
		word := false
		for _, r := range a[0].S {
			if word {
				b.WriteRune(unicode.ToLower(r))
			} else {
				b.WriteRune(unicode.ToUpper(r))
			}
			word = unicode.IsLetter(r) || unicode.IsDigit(r)
		}
		return Value{S: b.String()}
	}),
	fn("skade_pad", types(dV, dI, dV, dB), dV, func(a []Value) (Value, error) { return pad(a[0].S, a[1].I, a[2].S, a[3].I != 0) }),
	vfn("skade_translate", types(dV, dV, dV), func(a []Value) Value {
		from, to := []rune(a[1].S), []rune(a[2].S)
		var b strings.Builder
	next:
		for _, r := range a[0].S {
			for i, f := range from {
				if f == r {
					if i < len(to) {
						b.WriteRune(to[i])
					}
					continue next
				}
			}
			b.WriteRune(r)
		}
		return Value{S: b.String()}
	}),
	vfn("skade_quote_ident", types(dV), func(a []Value) Value { return Value{S: QuoteIdent(a[0].S)} }),
	vfn("skade_quote_literal", types(dV), func(a []Value) Value { return Value{S: quoteLiteral(a[0].S)} }),
	{Name: "skade_format", Args: types(dV, dL), Ret: dV, NullIn: true, Fn: func(a []Value) (Value, error) {
		if a[0].Null {
			return sqlNull, nil
		}
		s, err := formatText(a[0].S, a[1].L)
		return Value{S: s}, err
	}},
	fn("skade_array_in", types(dV), dL, func(a []Value) (Value, error) {
		v := Value{L: []Value{}}
		dims, err := pgenc.EachArrayElem([]byte(a[0].S), func(t []byte) error {
			if t == nil {
				v.L = append(v.L, sqlNull)
			} else {
				v.L = append(v.L, Value{S: string(t)})
			}
			return nil
		})
		if err == nil && len(dims) > 1 {
			err = pgerr.New(pgerr.FeatureNotSupported, "a cast to an array of several dimensions is supported for constants only")
		}
		if e := pgenc.BeginAtOne(dims); err == nil && e != nil {
			err = e
		}
		return v, err
	}),
	vfn("skade_array_quote", types(dV), func(a []Value) Value { return Value{S: arrayQuote(a[0].S)} }),
	vfn("skade_record_quote", types(dV), func(a []Value) Value { return Value{S: string(pgenc.AppendRecordField(nil, []byte(a[0].S)))} }),
}

func utf8Name(name string) error {
	switch strings.ToUpper(strings.ReplaceAll(name, "-", "")) {
	case "UTF8", "UNICODE", "SQL_ASCII":
		return nil
	}
	return pgerr.Newf(pgerr.FeatureNotSupported, "conversion between %s and UTF8 is not supported", strings.ToUpper(name))
}

func encodeBytes(data, format string) (Value, error) {
	switch strings.ToLower(format) {
	case "hex":
		return Value{S: hex.EncodeToString([]byte(data))}, nil
	case "base64":
		s := base64.StdEncoding.EncodeToString([]byte(data))
		var b strings.Builder
		for len(s) > 76 {
			b.WriteString(s[:76] + "\n")
			s = s[76:]
		}
		b.WriteString(s)
		return Value{S: b.String()}, nil
	case "escape":
		var b strings.Builder
		for i := 0; i < len(data); i++ {
			switch c := data[i]; {
			case c == 0 || c >= 0x80:
				o := strconv.FormatUint(uint64(c), 8)
				b.WriteString(`\` + strings.Repeat("0", 3-len(o)) + o)
			case c == '\\':
				b.WriteString(`\\`)
			default:
				b.WriteByte(c)
			}
		}
		return Value{S: b.String()}, nil
	}
	return Value{}, pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized encoding: %q", format)
}

func decodeBytes(text, format string) (Value, error) {
	switch strings.ToLower(format) {
	case "hex":
		clean := strings.Join(strings.Fields(text), "")
		b, err := hex.DecodeString(clean)
		if err != nil {
			if len(clean)%2 == 1 {
				return Value{}, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
			}
			for i := 0; i < len(clean); i++ {
				if !strings.ContainsRune("0123456789abcdefABCDEF", rune(clean[i])) {
					return Value{}, pgerr.Newf(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%c\"", clean[i])
				}
			}
		}
		return Value{S: string(b)}, nil
	case "base64":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return Value{}, pgerr.New(pgerr.InvalidParameterValue, "invalid base64 end sequence").WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
		}
		return Value{S: string(b)}, nil
	case "escape":
		b, err := pgenc.ParseBytea(nil, []byte(text))
		return Value{S: string(b)}, err
	}
	return Value{}, pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized encoding: %q", format)
}

// maxPad is PostgreSQL's limit of a field.
const maxPad = 1 << 30

func pad(s string, n int64, fill string, left bool) (Value, error) {
	if n > maxPad/4 {
		return Value{}, pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
	}
	r := []rune(s)
	if n < 0 {
		n = 0
	}
	if int64(len(r)) >= n {
		return Value{S: string(r[:n])}, nil
	}
	f := []rune(fill)
	if len(f) == 0 {
		return Value{S: s}, nil
	}
	var p []rune
	for int64(len(p)+len(r)) < n {
		p = append(p, f[len(p)%len(f)])
	}
	if left {
		return Value{S: string(p) + s}, nil
	}
	return Value{S: s + string(p)}, nil
}

// quoteLiteral is quote_literal.
func quoteLiteral(s string) string {
	q := "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + q
	}
	return q
}

// formatText is format(): %s, %I, %L with positions and widths.
func formatText(f string, args []Value) (string, error) {
	var b strings.Builder
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		i++
		if i >= len(f) {
			return "", pgerr.New(pgerr.InvalidParameterValue, "unterminated format() type specifier").WithHint(`For a single "%%" use "%%%%".`)
		}
		if f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		num := func() (int, bool) {
			j := i
			for i < len(f) && f[i] >= '0' && f[i] <= '9' {
				i++
			}
			n, err := strconv.Atoi(f[j:i])
			return n, err == nil
		}
		width, minus := 0, false
		if n, ok := num(); ok {
			if i < len(f) && f[i] == '$' {
				if n == 0 {
					return "", pgerr.New(pgerr.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
				}
				next = n - 1
				i++
				n = 0
			} else {
				width = n
			}
		}
		if i < len(f) && f[i] == '-' {
			minus = true
			i++
		}
		if n, ok := num(); ok {
			width = n
		}
		if i >= len(f) {
			return "", pgerr.New(pgerr.InvalidParameterValue, "unterminated format() type specifier").WithHint(`For a single "%%" use "%%%%".`)
		}
		conv := f[i]
		if conv != 's' && conv != 'I' && conv != 'L' {
			return "", pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized format() type specifier \"%c\"", conv).WithHint(`For a single "%%" use "%%%%".`)
		}
		if next >= len(args) {
			return "", pgerr.New(pgerr.InvalidParameterValue, "too few arguments for format()")
		}
		arg := args[next]
		next++
		text := arg.S
		switch {
		case arg.Null && conv == 'I':
			return "", pgerr.New("22004", "null values cannot be formatted as an SQL identifier")
		case arg.Null && conv == 'L':
			text = "NULL"
		case arg.Null:
			text = ""
		case conv == 'I':
			text = QuoteIdent(text)
		case conv == 'L':
			text = quoteLiteral(text)
		}
		fill := strings.Repeat(" ", max(0, min(width, 1<<20)-utf8.RuneCountInString(text)))
		if minus {
			b.WriteString(text + fill)
		} else {
			b.WriteString(fill + text)
		}
	}
	return b.String(), nil
}

// arrayQuote is an element of an array's text.
func arrayQuote(s string) string { return string(pgenc.AppendArrayElem(nil, []byte(s), ',')) }
