package pgcatalog

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// The functions that turn OIDs, sizes and codes into text.

var formatFunctions = []function{
	{name: "format_type", args: []kind{kOID, kInt4}, result: kText, nullIn: true, run: func(sc *scope, a []any) (any, error) {
		if a[0] == nil {
			return nil, nil
		}
		mod, given := a[1].(int32)
		return sc.formatType(oidArg(a[0]), mod, given), nil
	}},
	{name: "pg_get_userbyid", args: []kind{kOID}, result: kName, run: func(sc *scope, a []any) (any, error) {
		if name := sc.roleName(oidArg(a[0])); name != "" {
			return name, nil
		}
		return "unknown (OID=" + number(oidArg(a[0])) + ")", nil
	}},
	{name: "quote_ident", args: []kind{kText}, result: kText, run: func(_ *scope, a []any) (any, error) { return quoteIdent(a[0].(string)), nil }},
	{name: "pg_size_pretty", args: []kind{kInt8}, result: kText, run: func(_ *scope, a []any) (any, error) { return sizePretty(a[0].(int64)), nil }},
	{name: "pg_size_bytes", args: []kind{kText}, result: kInt8, run: func(_ *scope, a []any) (any, error) { return sizeBytes(a[0].(string)) }},
	{name: "pg_encoding_to_char", args: []kind{kInt4}, result: kName, run: func(_ *scope, a []any) (any, error) {
		if n := a[0].(int32); n >= 0 && int(n) < len(encodings) {
			return encodings[n], nil
		}
		return "", nil
	}},
	{name: "pg_char_to_encoding", args: []kind{kText}, result: kInt4, run: func(_ *scope, a []any) (any, error) {
		want := foldEncoding(a[0].(string))
		for i, e := range encodings {
			if foldEncoding(e) == want {
				return i, nil
			}
		}
		return -1, nil
	}},
}

// encodings are PostgreSQL's, by number. Source: PostgreSQL 15, pg_wchar.h and encnames.c.
var encodings = strings.Fields("SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 " +
	"WIN1256 WIN1258 WIN866 WIN874 KOI8R WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 WIN1253 WIN1254 WIN1255 WIN1257 KOI8U SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004")

const encodingUTF8 = 6

// foldEncoding drops what PostgreSQL ignores in an encoding's name; UNICODE is another name of UTF8.
func foldEncoding(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	if name == "unicode" {
		return "utf8"
	}
	return name
}

// sizePretty is pg_size_pretty. Source: size_pretty_units in PostgreSQL 15, dbsize.c.
func sizePretty(size int64) string {
	units := []struct {
		name  string
		limit int64
		round bool
		bits  uint
	}{{"bytes", 10 * 1024, false, 0}, {"kB", 20*1024 - 1, true, 10}, {"MB", 20*1024 - 1, true, 20}, {"GB", 20*1024 - 1, true, 30}, {"TB", 20*1024 - 1, true, 40}, {"PB", 20*1024 - 1, true, 50}}
	for i, u := range units {
		abs := size
		if abs < 0 {
			abs = -abs
		}
		if i == len(units)-1 || abs >= 0 && abs < u.limit {
			if u.round {
				if size < 0 {
					size = (size - 1) / 2
				} else {
					size = (size + 1) / 2
				}
			}
			return strconv.FormatInt(size, 10) + " " + u.name
		}
		next := units[i+1]
		bits := next.bits - u.bits
		if next.round {
			bits--
		}
		if u.round {
			bits++
		}
		size /= 1 << bits
	}
	return ""
}

// sizeBytes is pg_size_bytes.
func sizeBytes(text string) (any, error) {
	t := strings.TrimSpace(text)
	end := strings.IndexFunc(t, func(r rune) bool { return !strings.ContainsRune("0123456789.+-eE", r) })
	if end < 0 {
		end = len(t)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(t[:end]), 64)
	if err != nil {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "invalid size: \"%s\"", text)
	}
	shift := map[string]uint{"": 0, "bytes": 0, "b": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40, "pb": 50}
	n, ok := shift[strings.ToLower(strings.TrimSpace(t[end:]))]
	if !ok {
		e := pgerr.Newf(pgerr.InvalidParameterValue, "invalid size: \"%s\"", text)
		e.Detail = "Invalid size unit: \"" + strings.TrimSpace(t[end:]) + "\"."
		e.Hint = "Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."
		return nil, e
	}
	return int64(v * float64(int64(1)<<n)), nil
}
