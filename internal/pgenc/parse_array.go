package pgenc

import (
	"bytes"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// maxArrayDims is the greatest number of dimensions. Source: MAXDIM.
const maxArrayDims = 6

func tooManyDims(n int) error {
	return pgerr.Newf(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, maxArrayDims)
}

// arrayParser reads an array literal. Source: array_in and its helpers ArrayCount and ReadArrayStr.
type arrayParser struct {
	in  []byte // the whole literal, for messages
	b   []byte // what is left
	buf []byte // one element, unescaped
}

func (p *arrayParser) malformed(format string, args ...any) error {
	return pgerr.Newf(pgerr.InvalidTextRepresentation, "malformed array literal: \"%s\"", p.in).WithDetail(format, args...)
}

func (p *arrayParser) space() {
	for len(p.b) > 0 && isSpace(p.b[0]) {
		p.b = p.b[1:]
	}
}

// ParseArray reads an array literal, "{1,2,NULL}" or "[0:1]={a,b}", with elements of the type elem.
func (s Style) ParseArray(elem uint32, in []byte) (Array, error) {
	a := Array{ElemOID: elem}
	dims, err := EachArrayElem(in, func(text []byte) error {
		if text == nil {
			a.Elems = append(a.Elems, nil)
			return nil
		}
		v, err := s.decodeText(elem, text)
		a.Elems = append(a.Elems, v)
		return err
	})
	if err != nil {
		return Array{}, err
	}
	a.Dims = dims
	return a, nil
}

// BeginAtOne refuses dimensions that begin elsewhere: a list does not keep that.
func BeginAtOne(dims []ArrayDim) *pgerr.Error {
	for _, d := range dims {
		if d.LowerBound != 1 {
			return pgerr.New(pgerr.FeatureNotSupported, "arrays with a lower bound other than 1 are not supported")
		}
	}
	return nil
}

// EachArrayElem calls f with each element's text in order, nil for NULL, and returns the dimensions (none for an empty
// array). The text is valid during the call only.
func EachArrayElem(in []byte, f func(text []byte) error) ([]ArrayDim, error) {
	p := arrayParser{in: in, b: in}
	p.space()
	bounds, err := p.bounds()
	if err != nil {
		return nil, err
	}
	if len(p.b) == 0 || p.b[0] != '{' {
		if bounds != nil {
			return nil, p.malformed("Array contents must start with \"{\".")
		}
		return nil, p.malformed("Array value must start with \"{\" or dimension information.")
	}
	lens, empty, err := p.count()
	if err != nil {
		return nil, err
	}
	if empty {
		if bounds != nil {
			return nil, p.malformed("Specified array dimensions do not match array contents.")
		}
		return nil, nil
	}
	var dims []ArrayDim
	for _, n := range lens {
		dims = append(dims, ArrayDim{Len: n, LowerBound: 1})
	}
	if bounds == nil {
		return dims, p.elements(f)
	}
	if len(bounds) != len(dims) {
		return nil, p.malformed("Specified array dimensions do not match array contents.")
	}
	for i := range bounds {
		if bounds[i].Len != dims[i].Len {
			return nil, p.malformed("Specified array dimensions do not match array contents.")
		}
	}
	return bounds, p.elements(f)
}

// bounds reads "[1:3][0:1]=".
func (p *arrayParser) bounds() ([]ArrayDim, error) {
	var dims []ArrayDim
	for len(p.b) > 0 && p.b[0] == '[' {
		if len(dims) == maxArrayDims {
			return nil, tooManyDims(len(dims) + 1)
		}
		end := bytes.IndexByte(p.b, ']')
		if end < 0 {
			return nil, p.malformed("Missing \"%s\" after array dimensions.", "]")
		}
		lowText, highText, ranged := bytes.Cut(p.b[1:end], []byte{':'})
		low, high := int32(1), int32(0)
		var err error
		if ranged {
			if low, err = ParseInt4(lowText); err == nil {
				high, err = ParseInt4(highText)
			}
		} else {
			high, err = ParseInt4(lowText)
		}
		if err != nil {
			return nil, p.malformed("\"[\" must introduce explicitly-specified array dimensions.")
		}
		if high < low {
			return nil, pgerr.New("2202E", "upper bound cannot be less than lower bound")
		}
		n := int64(high) - int64(low) + 1
		if n > 134217727 {
			return nil, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (134217727)")
		}
		dims = append(dims, ArrayDim{Len: int32(n), LowerBound: low})
		p.b = p.b[end+1:]
		p.space()
	}
	if dims == nil {
		return nil, nil
	}
	if len(p.b) == 0 || p.b[0] != '=' {
		return nil, p.malformed("Missing \"%s\" after array dimensions.", "=")
	}
	p.b = p.b[1:]
	p.space()
	return dims, nil
}

// arrayState is where the scan of a literal stands. Source: ArrayParseState.
type arrayState uint8

const (
	noLevel arrayState = iota
	levelStarted
	elemStarted
	quotedStarted
	quotedCompleted
	elemDelimited
	levelCompleted
	levelDelimited
)

// count checks the literal's structure and finds its dimensions; empty means that it has no element. Source: ArrayCount in PostgreSQL 15.
func (p *arrayParser) count() (dims []int32, empty bool, err error) {
	var elems, last, length [maxArrayDims]int32
	for i := range elems {
		elems[i] = 1
	}
	state, level, ndim := noLevel, 0, 0
	empty = true
	b := p.b
	for i := 0; ; i++ {
		if i >= len(b) {
			return nil, false, p.malformed("Unexpected end of input.")
		}
		c := b[i]
		if state == quotedStarted && c != '"' && c != '\\' {
			continue
		}
		bad := false
		switch {
		case c == '\\':
			bad = state != levelStarted && state != elemStarted && state != quotedStarted && state != elemDelimited
			if !bad && state != quotedStarted {
				state = elemStarted
			}
			if i++; !bad && i >= len(b) {
				return nil, false, p.malformed("Unexpected end of input.")
			}
		case c == '"':
			switch state {
			case quotedStarted:
				state = quotedCompleted
			case levelStarted, elemDelimited:
				state = quotedStarted
			default:
				return nil, false, p.malformed("Unexpected array element.")
			}
			empty = false
		case c == '{':
			if state != noLevel && state != levelStarted && state != levelDelimited {
				bad = true
				break
			}
			state = levelStarted
			if level >= maxArrayDims {
				return nil, false, tooManyDims(level + 1)
			}
			length[level] = 0
			level++
			ndim = max(ndim, level)
		case c == '}':
			if state != elemStarted && state != quotedCompleted && state != levelCompleted && !(level == 1 && state == levelStarted) {
				bad = true
				break
			}
			if state == elemStarted || state == quotedCompleted {
				length[level-1]++
			}
			state = levelCompleted
			level--
			if last[level] != 0 && elems[level] != last[level] {
				return nil, false, p.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			last[level], elems[level] = elems[level], 1
			if level > 0 {
				length[level-1]++
				continue
			}
			for _, rest := range b[i+1:] {
				if !isSpace(rest) {
					return nil, false, p.malformed("Junk after closing right brace.")
				}
			}
			return append([]int32(nil), last[:ndim]...), empty, nil
		case c == ',':
			switch state {
			case elemStarted, quotedCompleted:
				state = elemDelimited
				length[level-1]++
			case levelCompleted:
				state = levelDelimited
			default:
				bad = true
			}
			if !bad {
				elems[level-1]++
			}
		case isSpace(c):
		default:
			if state != levelStarted && state != elemStarted && state != elemDelimited {
				return nil, false, p.malformed("Unexpected array element.")
			}
			state, empty = elemStarted, false
		}
		if bad {
			return nil, false, p.malformed("Unexpected \"%c\" character.", c)
		}
	}
}

// elements passes on the elements of a literal that count has checked.
func (p *arrayParser) elements(f func([]byte) error) error {
	for i := 0; i < len(p.b); {
		c := p.b[i]
		if c == '{' || c == '}' || c == ',' || isSpace(c) {
			i++
			continue
		}
		p.buf = p.buf[:0]
		quoted, keep := c == '"', 0
		if quoted {
			i++
		}
		escaped := false
		for i < len(p.b) {
			c := p.b[i]
			if quoted && c == '"' {
				i++
				break
			}
			if !quoted && (c == ',' || c == '}') {
				break
			}
			if c == '\\' {
				i++
				c = p.b[i]
				escaped, keep = true, len(p.buf)+1
			}
			p.buf = append(p.buf, c)
			i++
		}
		text := p.buf
		if !quoted {
			// Trailing white space is not part of an unquoted element, unless escaped.
			n := len(text)
			for n > keep && isSpace(text[n-1]) {
				n--
			}
			text = text[:n]
			if !escaped && isNullWord(text) {
				text = nil
			}
		} else if text == nil {
			text = []byte{}
		}
		if err := f(text); err != nil {
			return err
		}
	}
	return nil
}

// parseVector reads int2vector and oidvector: numbers separated by spaces, lower bound 0.
func (s Style) parseVector(oid uint32, b []byte) (any, error) {
	elem := pgtype.Int2
	if oid == pgtype.OIDVector {
		elem = pgtype.OID
	}
	a := Array{ElemOID: elem}
	for _, word := range bytes.Fields(b) {
		v, err := s.decodeText(elem, word)
		if err != nil {
			return nil, err
		}
		a.Elems = append(a.Elems, v)
	}
	// An empty vector still has its dimension.
	a.Dims = []ArrayDim{{Len: int32(len(a.Elems))}}
	return a, nil
}
