package pgsql

import (
	"math/big"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// numberFormat is a parsed numeric format.
type numberFormat struct {
	toks           []string
	pre, post      int
	zeroAt         int // digits before the point from the first 0 on
	zeroEnd        int
	fm, sFirst     bool
	s, pr, mi, pl  bool
	sAtEnd, eeee   bool
	roman, romanLo bool
	v              int
	hasPoint       bool
	th             string
}

func parseNumberFormat(f string) (*numberFormat, error) {
	n := &numberFormat{zeroAt: -1}
	inV := false
	for len(f) > 0 {
		up := strings.ToUpper(f)
		take := func(k string) {
			n.toks = append(n.toks, k)
			f = f[len(k):]
		}
		switch {
		case f[0] == '"':
			end := strings.IndexByte(f[1:], '"')
			if end < 0 {
				end = len(f) - 1
			}
			n.toks = append(n.toks, "\""+f[1:end+1])
			f = f[min(len(f), end+2):]
		case strings.HasPrefix(up, "EEEE"):
			n.eeee = true
			take("EEEE")
		case strings.HasPrefix(up, "FM"):
			n.fm = true
			f = f[2:]
		case strings.HasPrefix(up, "TH"):
			n.th = f[:2]
			n.toks = append(n.toks, "TH")
			f = f[2:]
		case strings.HasPrefix(up, "RN"):
			n.roman, n.romanLo = true, f[:2] == "rn"
			take("RN")
		case strings.HasPrefix(up, "PR"):
			n.pr = true
			take("PR")
		case strings.HasPrefix(up, "MI"):
			n.mi = true
			take("MI")
		case strings.HasPrefix(up, "PL"):
			n.pl = true
			take("PL")
		case strings.HasPrefix(up, "SG"):
			take("SG")
		case up[0] == 'S':
			n.s = true
			if n.pre+n.post == 0 {
				n.sFirst = true
			} else {
				n.sAtEnd = true
			}
			take("S")
		case up[0] == 'V':
			inV = true
			take("V")
		case f[0] == '.' || up[0] == 'D':
			if n.hasPoint {
				return nil, pgerr.New(pgerr.SyntaxError, "multiple decimal points")
			}
			n.hasPoint = true
			n.toks = append(n.toks, ".")
			f = f[1:]
		case f[0] == ',' || up[0] == 'G':
			n.toks = append(n.toks, ",")
			f = f[1:]
		case up[0] == 'L':
			n.toks = append(n.toks, "L")
			f = f[1:]
		case f[0] == '9' || f[0] == '0':
			switch {
			case inV:
				n.v++
			case n.hasPoint:
				n.post++
				if f[0] == '0' {
					n.zeroEnd = n.post
				}
			default:
				if f[0] == '0' && n.zeroAt < 0 {
					n.zeroAt = n.pre
				}
				n.pre++
			}
			n.toks = append(n.toks, f[:1])
			f = f[1:]
		default:
			r := string([]rune(f)[:1])
			n.toks = append(n.toks, "\""+r)
			f = f[len(r):]
		}
	}
	return n, nil
}

// toCharNumber is to_char for numbers.
func toCharNumber(value, format string) (string, error) {
	n, err := parseNumberFormat(format)
	if err != nil {
		return "", err
	}
	d, err := parseDecimal(value)
	if err != nil {
		return "", err
	}
	if n.roman {
		return roman(d, n), nil
	}
	if n.eeee {
		return scientific(d, n), nil
	}
	if n.v > 0 {
		d.c = new(big.Int).Mul(d.c, pow10(n.v))
		n.pre += n.v
	}
	r := d.rescale(n.post)
	neg := r.c.Sign() < 0
	text := strings.TrimPrefix(r.String(), "-")
	whole, frac, _ := strings.Cut(text, ".")
	if whole == "0" && n.post > 0 {
		whole = ""
	}
	return n.fill(whole, frac, neg), nil
}

// fill places digits into the format, as NUM_processor does.
func (n *numberFormat) fill(whole, frac string, neg bool) string {
	overflow := len(whole) > n.pre
	if overflow {
		whole = strings.Repeat("#", n.pre)
		frac = strings.Repeat("#", n.post)
	}
	digits := strings.Repeat(" ", n.pre-len(whole)) + whole
	first := n.pre - len(whole)
	if n.zeroAt >= 0 && n.zeroAt < first {
		first = n.zeroAt
		digits = strings.Repeat(" ", first) + strings.Repeat("0", n.pre-len(whole)-first) + whole
	}
	if n.pre > 0 && whole == "" && first == n.pre && n.post == 0 {
		digits = digits[:n.pre-1] + "0"
		first = n.pre - 1
	}
	sign := " "
	switch {
	case n.s || n.pl:
		sign = "+"
		if n.pl {
			sign = " "
		}
		if neg {
			sign = "-"
		}
	case neg && !n.mi:
		sign = "-"
	}
	if n.pr {
		sign = " "
		if neg {
			sign = "<"
		}
	}
	fracOut := frac
	if n.fm && !overflow {
		fracOut = frac[:max(n.zeroEnd, len(strings.TrimRight(frac, "0")))]
	}
	var b strings.Builder
	signDone := n.sAtEnd || n.mi && !n.s && !n.pr
	pos, post, started := 0, 0, false
	putSign := func() {
		if signDone {
			return
		}
		signDone = true
		if sign != " " || !n.fm {
			b.WriteString(sign)
		}
	}
	point := false
	for _, t := range n.toks {
		switch t {
		case "9", "0":
			if point {
				if post < len(fracOut) {
					b.WriteByte(fracOut[post])
				} else if !n.fm {
					b.WriteByte(' ')
				}
				post++
				continue
			}
			if pos == first {
				putSign()
				started = true
			}
			if digits[pos] == ' ' {
				if !n.fm {
					b.WriteByte(' ')
				}
			} else {
				b.WriteByte(digits[pos])
			}
			pos++
		case ",":
			if started && pos > first {
				b.WriteByte(',')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case ".":
			putSign()
			point = true
			started = true
			b.WriteByte('.')
		case "S":
			if n.sAtEnd {
				b.WriteString(sign)
			}
		case "MI":
			if neg {
				b.WriteByte('-')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "PL":
			if !neg {
				b.WriteByte('+')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "SG":
			if neg {
				b.WriteByte('-')
			} else {
				b.WriteByte('+')
			}
			signDone = true
		case "PR":
			if neg {
				b.WriteByte('>')
			} else if !n.fm {
				b.WriteByte(' ')
			}
		case "TH":
			if !neg && len(strings.TrimSpace(digits)) > 0 {
				b.WriteString(ordinal(digits, n.th == "TH"))
			}
		case "L":
			b.WriteByte(' ')
		case "V":
		default:
			b.WriteString(strings.TrimPrefix(t, "\""))
		}
	}
	out := b.String()
	if !signDone {
		out = sign + out
	}
	// A sign in front of blanks moves to the digits; blanks come first.
	return out
}

func roman(d decimal, n *numberFormat) string {
	v := d.rescale(0).c
	out := strings.Repeat("#", 15)
	if v.IsInt64() && v.Int64() > 0 && v.Int64() < 4000 {
		x := int(v.Int64())
		var b strings.Builder
		for i, val := range []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1} {
			for x >= val {
				b.WriteString([]string{"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"}[i])
				x -= val
			}
		}
		out = b.String()
	}
	if n.romanLo {
		out = strings.ToLower(out)
	}
	if n.fm {
		return out
	}
	return strings.Repeat(" ", max(0, 15-len(out))) + out
}

func scientific(d decimal, n *numberFormat) string {
	f := d.bigFloat(300)
	s := f.Text('e', n.post)
	if !strings.HasPrefix(s, "-") {
		s = " " + s
	}
	return s
}

// toNumber is to_number: the digits that the format picks from the text.
func toNumber(in, format string) (string, error) {
	n, err := parseNumberFormat(format)
	if err != nil {
		return "", err
	}
	var digits strings.Builder
	neg, point := false, false
	count, post := 0, 0
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c >= '0' && c <= '9':
			if point {
				if post < n.post {
					digits.WriteByte(c)
					post++
				}
			} else if count < n.pre {
				digits.WriteByte(c)
				count++
			}
		case c == '.' && !point && n.hasPoint:
			point = true
			digits.WriteByte('.')
		case c == '-' || c == '<':
			neg = true
		}
	}
	s := strings.TrimSuffix(digits.String(), ".")
	if s == "" || s == "." {
		return "", pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type numeric: %q", in)
	}
	if strings.HasPrefix(s, ".") {
		s = "0" + s
	}
	if neg {
		s = "-" + s
	}
	d, err := parseDecimal(s)
	if err != nil {
		return "", err
	}
	if n.v > 0 {
		d.scale += n.v
	}
	return d.String(), nil
}
