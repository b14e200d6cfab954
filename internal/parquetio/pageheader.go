package parquetio

import (
	"encoding/binary"
	"errors"
)

// errHeader is returned for a page header that is not well-formed Thrift compact protocol.
var errHeader = errors.New("malformed page header")

// Page types and encodings of the Parquet format (parquet.thrift) that are read page by page.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3

	encPlain          = 0
	encPlainDict      = 2
	encRLE            = 3
	encRLEDictionary  = 8
	maxPageBytes      = 1 << 30
	maxThriftNesting  = 16
	thriftStop        = 0
	thriftTrue        = 1
	thriftFalse       = 2
	thriftByte        = 3
	thriftI64         = 6
	thriftDouble      = 7
	thriftBinary      = 8
	thriftList        = 9
	thriftSet         = 10
	thriftMap         = 11
	thriftStruct      = 12
	defaultCompressed = true
)

// pageHeader is what is needed of a PageHeader.
type pageHeader struct {
	typ          int64
	uncompressed int64
	compressed   int64
	values       int64
	encoding     int64
	defEncoding  int64
	defLen       int64 // V2
	repLen       int64 // V2
	isCompressed bool  // V2
}

// thrift reads the compact protocol.
type thrift struct {
	b   []byte
	at  int
	bad bool
}

func (t *thrift) byte() byte {
	if t.at >= len(t.b) {
		t.bad = true
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	if n <= 0 {
		t.bad = true
		return 0
	}
	t.at += n
	return v
}

func (t *thrift) varint() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// fields calls do for each field of a struct; do returns false when it did not consume the value.
func (t *thrift) fields(depth int, do func(id int64, typ byte) bool) {
	id := int64(0)
	for !t.bad {
		h := t.byte()
		typ := h & 0x0f
		if t.bad || typ == thriftStop {
			return
		}
		if d := int64(h >> 4); d != 0 {
			id += d
		} else {
			id = t.varint()
		}
		if !do(id, typ) {
			t.skip(typ, depth+1)
		}
	}
}

func (t *thrift) skip(typ byte, depth int) {
	if depth > maxThriftNesting {
		t.bad = true
	}
	if t.bad {
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case 4, 5, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.advance(8)
	case thriftBinary:
		t.advance(t.uvarint())
	case thriftList, thriftSet:
		h := t.byte()
		n := uint64(h >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		for ; n > 0 && !t.bad; n-- {
			t.skipElement(h&0x0f, depth+1)
		}
	case thriftMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kv := t.byte()
		for ; n > 0 && !t.bad; n-- {
			t.skipElement(kv>>4, depth+1)
			t.skipElement(kv&0x0f, depth+1)
		}
	case thriftStruct:
		t.fields(depth, func(int64, byte) bool { return false })
	default:
		t.bad = true
	}
}

// skipElement skips a value in a collection, where a boolean takes a byte.
func (t *thrift) skipElement(typ byte, depth int) {
	if typ == thriftTrue || typ == thriftFalse {
		t.byte()
		return
	}
	t.skip(typ, depth)
}

func (t *thrift) advance(n uint64) {
	if n > uint64(len(t.b)-t.at) {
		t.bad = true
		return
	}
	t.at += int(n)
}

// parsePageHeader reads the header at the start of b and returns the body that follows it.
func parsePageHeader(b []byte) (h pageHeader, body []byte, err error) {
	h, size, err := parseHeader(b)
	if err != nil || h.compressed > int64(len(b)-size) {
		return h, nil, errHeader
	}
	return h, b[size : size+int(h.compressed)], nil
}

// parseHeader reads the header at the start of b and returns its length.
func parseHeader(b []byte) (h pageHeader, size int, err error) {
	t := &thrift{b: b}
	h.isCompressed = defaultCompressed
	h.typ = -1
	t.fields(0, func(id int64, typ byte) bool {
		isInt := typ >= 4 && typ <= thriftI64
		switch {
		case id == 1 && isInt:
			h.typ = t.varint()
		case id == 2 && isInt:
			h.uncompressed = t.varint()
		case id == 3 && isInt:
			h.compressed = t.varint()
		case (id == 5 || id == 7 || id == 8) && typ == thriftStruct:
			t.fields(1, func(f int64, typ byte) bool { return h.dataField(t, id, f, typ) })
		default:
			return false
		}
		return true
	})
	if t.bad || h.uncompressed < 0 || h.compressed < 0 || h.values < 0 || h.defLen < 0 || h.repLen < 0 ||
		h.uncompressed > maxPageBytes {
		return h, 0, errHeader
	}
	return h, t.at, nil
}

// dataField takes a field of a DataPageHeader (5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
func (h *pageHeader) dataField(t *thrift, in, id int64, typ byte) bool {
	isInt := typ >= 4 && typ <= thriftI64
	switch {
	case id == 1 && isInt:
		h.values = t.varint()
	case isInt && (in != 8 && id == 2 || in == 8 && id == 4):
		h.encoding = t.varint()
	case isInt && in == 5 && id == 3:
		h.defEncoding = t.varint()
	case isInt && in == 8 && id == 5:
		h.defLen = t.varint()
	case isInt && in == 8 && id == 6:
		h.repLen = t.varint()
	case in == 8 && id == 7 && (typ == thriftTrue || typ == thriftFalse):
		h.isCompressed = typ == thriftTrue
	default:
		return false
	}
	return true
}
