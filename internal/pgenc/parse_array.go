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
	in   []byte // the whole literal, for messages
	b    []byte // what is left
	buf  []byte // one element, unescaped
	dims []int32
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
	if err := p.nested(0, f); err != nil {
		return nil, err
	}
	p.space()
	if len(p.b) > 0 {
		return nil, p.malformed("Junk after closing right brace.")
	}
	var dims []ArrayDim
	for _, n := range p.dims {
		if n == 0 {
			// {} and {{},{}} are the empty array.
			return nil, nil
		}
		dims = append(dims, ArrayDim{Len: n, LowerBound: 1})
	}
	if bounds == nil {
		return dims, nil
	}
	if len(bounds) != len(dims) {
		return nil, p.malformed("Specified array dimensions do not match array contents.")
	}
	for i := range bounds {
		if bounds[i].Len != dims[i].Len {
			return nil, p.malformed("Specified array dimensions do not match array contents.")
		}
	}
	return bounds, nil
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

// nested reads one brace level; all levels of one depth must have the same length.
func (p *arrayParser) nested(depth int, f func([]byte) error) error {
	if depth >= maxArrayDims {
		return tooManyDims(depth + 1)
	}
	p.b = p.b[1:] // {
	fresh := len(p.dims) <= depth
	if fresh {
		p.dims = append(p.dims, -1)
	}
	count := int32(0)
	for p.space(); ; p.space() {
		if len(p.b) == 0 {
			return p.malformed("Unexpected end of input.")
		}
		switch c := p.b[0]; {
		case c == '}' && count == 0:
			p.b = p.b[1:]
			return p.endLevel(depth, count)
		case c == '{':
			if fresh && count == 0 && len(p.dims) > depth+1 {
				return p.malformed("Unexpected \"%c\" character.", c)
			}
			if err := p.nested(depth+1, f); err != nil {
				return err
			}
		case c == '}' || c == ',':
			return p.malformed("Unexpected \"%c\" character.", c)
		default:
			if len(p.dims) > depth+1 {
				return p.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			if err := p.element(f); err != nil {
				return err
			}
		}
		count++
		p.space()
		if len(p.b) == 0 {
			return p.malformed("Unexpected end of input.")
		}
		c := p.b[0]
		p.b = p.b[1:]
		if c == '}' {
			return p.endLevel(depth, count)
		}
		if c != ',' {
			if c == '"' {
				return p.malformed("Unexpected array element.")
			}
			return p.malformed("Unexpected \"%c\" character.", c)
		}
	}
}

func (p *arrayParser) endLevel(depth int, count int32) error {
	if p.dims[depth] >= 0 && p.dims[depth] != count {
		return p.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	p.dims[depth] = count
	return nil
}

// element reads one element, quoted or not, and passes it on.
func (p *arrayParser) element(f func([]byte) error) error {
	p.buf = p.buf[:0]
	if p.b[0] == '"' {
		p.b = p.b[1:]
		for {
			switch {
			case len(p.b) == 0:
				return p.malformed("Unexpected end of input.")
			case p.b[0] == '"':
				p.b = p.b[1:]
				if p.buf == nil {
					p.buf = []byte{}
				}
				return f(p.buf)
			case p.b[0] == '\\':
				if p.b = p.b[1:]; len(p.b) == 0 {
					return p.malformed("Unexpected end of input.")
				}
			}
			p.buf = append(p.buf, p.b[0])
			p.b = p.b[1:]
		}
	}
	escaped, keep := false, 0
	for len(p.b) > 0 && p.b[0] != ',' && p.b[0] != '}' {
		c := p.b[0]
		switch c {
		case '{':
			return p.malformed("Unexpected \"%c\" character.", c)
		case '"':
			return p.malformed("Unexpected array element.")
		case '\\':
			escaped = true
			if p.b = p.b[1:]; len(p.b) == 0 {
				return p.malformed("Unexpected end of input.")
			}
			c = p.b[0]
			keep = len(p.buf) + 1
		}
		p.buf = append(p.buf, c)
		p.b = p.b[1:]
	}
	// Trailing white space is not part of an unquoted element, unless escaped.
	n := len(p.buf)
	for n > keep && isSpace(p.buf[n-1]) {
		n--
	}
	if !escaped && isNullWord(p.buf[:n]) {
		return f(nil)
	}
	return f(p.buf[:n])
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
	if len(a.Elems) > 0 {
		a.Dims = []ArrayDim{{Len: int32(len(a.Elems))}}
	}
	return a, nil
}
