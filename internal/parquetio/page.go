package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

var (
	errPageBody = errors.New("page is shorter than its values")
	// errEncoding makes the caller fall back to the streaming decoder.
	errEncoding = errors.New("encoding is not read page by page")
)

// pageAt is where a data page lies and the first row it holds, within its row group.
type pageAt struct {
	offset   int64
	size     int32
	firstRow int64
}

// dictionary is a decoded dictionary page: fixed-width values back to back, or byte arrays by offset.
type dictionary struct {
	data    []byte
	offsets []uint32 // byte arrays only
	width   int
	n       int
}

func (d *dictionary) value(i uint32) ([]byte, bool) {
	if int64(i) >= int64(d.n) {
		return nil, false
	}
	if d.offsets != nil {
		return d.data[d.offsets[i]:d.offsets[i+1]], true
	}
	return d.data[int(i)*d.width : (int(i)+1)*d.width], true
}

// physWidth is the bytes of a PLAIN value, 0 for byte arrays and booleans.
func physWidth(t parquet.Type, typeLength int) int {
	switch t {
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	case parquet.Types.Int96:
		return 12
	case parquet.Types.FixedLenByteArray:
		return typeLength
	}
	return 0
}

// pagesOf are the pages of a leaf by the offset index; nil when the file has none for it.
func (r *Reader) pagesOf(s *source, group, leaf int) (pages []pageAt, err error) {
	r.mu.Lock()
	pages = r.groups[group].pages[leaf]
	r.mu.Unlock()
	if pages != nil {
		return pages, nil
	}
	chunk, err := r.meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return nil, err
	}
	loc := chunk.GetOffsetIndexLocation()
	if loc == nil || loc.Length <= 0 || loc.Offset < 0 || loc.Offset+int64(loc.Length) > r.file.Size() {
		return nil, nil
	}
	buf := make([]byte, loc.Length)
	if _, err := s.ReadAt(buf, loc.Offset); err != nil {
		return nil, fmt.Errorf("read offset index: %w", err)
	}
	rows := r.starts[group+1] - r.starts[group]
	for i, p := range metadata.NewOffsetIndex(buf, nil, nil).GetPageLocations() {
		at := pageAt{p.Offset, p.CompressedPageSize, p.FirstRowIndex}
		if at.offset < 0 || at.size <= 0 || at.offset+int64(at.size) > r.file.Size() || at.firstRow >= rows ||
			i == 0 && at.firstRow != 0 || i > 0 && at.firstRow <= pages[i-1].firstRow {
			return nil, errors.New("offset index does not fit the file")
		}
		pages = append(pages, at)
	}
	r.mu.Lock()
	r.groups[group].pages[leaf] = pages
	r.mu.Unlock()
	return pages, nil
}

// pageOf is the page that holds row.
func pageOf(pages []pageAt, row int64) int {
	return sort.Search(len(pages), func(i int) bool { return pages[i].firstRow > row }) - 1
}

// dictOf is a leaf's decoded dictionary, kept for the reader's life: our files bound it to 64 KiB.
func (r *Reader) dictOf(s *source, group, leaf int) (*dictionary, error) {
	r.mu.Lock()
	d := r.groups[group].dicts[leaf]
	r.mu.Unlock()
	if d != nil {
		return d, nil
	}
	chunk, err := r.meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return nil, err
	}
	at, end, ok := r.dictRange(group, leaf)
	if !ok {
		return nil, errEncoding
	}
	buf := make([]byte, end-at)
	if _, err := s.ReadAt(buf, at); err != nil {
		return nil, fmt.Errorf("read dictionary: %w", err)
	}
	h, body, err := parsePageHeader(buf)
	if err != nil {
		return nil, err
	}
	if h.typ != pageDictionary || h.encoding != encPlain && h.encoding != encPlainDict {
		return nil, errEncoding
	}
	raw, err := inflate(chunk.Compression(), body, nil, h.uncompressed)
	if err != nil {
		return nil, err
	}
	s.c.Pages.Add(1)
	col := r.meta.Schema.Column(leaf)
	d = &dictionary{data: raw, width: physWidth(col.PhysicalType(), col.TypeLength()), n: int(h.values)}
	if err := d.check(col.PhysicalType()); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.groups[group].dicts[leaf] = d
	r.mu.Unlock()
	return d, nil
}

// dictRange is where a leaf's dictionary page lies.
func (r *Reader) dictRange(group, leaf int) (at, end int64, ok bool) {
	chunk, err := r.meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil || !chunk.HasDictionaryPage() {
		return 0, 0, false
	}
	at, end = chunk.DictionaryPageOffset(), chunk.DataPageOffset()
	return at, end, at > 0 && end > at && end <= r.file.Size()
}

// check verifies the sizes and cuts byte arrays.
func (d *dictionary) check(t parquet.Type) error {
	if t != parquet.Types.ByteArray {
		if d.width <= 0 || d.n > len(d.data)/d.width {
			return errPageBody
		}
		return nil
	}
	if d.n > len(d.data)/4 {
		return errPageBody
	}
	// Values are moved together so that offsets alone say where they are.
	out := make([]byte, 0, len(d.data)-4*d.n)
	d.offsets = append(make([]uint32, 0, d.n+1), 0)
	b := d.data
	for range d.n {
		v, rest, ok := plainBytes(b)
		if !ok {
			return errPageBody
		}
		out, b = append(out, v...), rest
		d.offsets = append(d.offsets, uint32(len(out)))
	}
	d.data = out
	return nil
}

// plainBytes cuts one PLAIN byte array.
func plainBytes(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// inflateSlack is what the zstd decoder wants behind its output to copy in whole blocks.
const inflateSlack = 64

// inflate decompresses src to size bytes, into dst when it has room. Uncompressed bytes are src itself.
func inflate(codec compress.Compression, src, dst []byte, size int64) ([]byte, error) {
	if codec == compress.Codecs.Uncompressed {
		return src, nil
	}
	c, err := compress.GetCodec(codec)
	if err != nil {
		return nil, err
	}
	if size > maxPageBytes {
		return nil, errHeader
	}
	if int64(cap(dst)) < size+inflateSlack {
		dst = make([]byte, size+inflateSlack)
	}
	out, err := compress.Decode(c, dst[:size], src)
	if err != nil {
		return nil, fmt.Errorf("inflate page: %w", err)
	}
	if int64(len(out)) != size {
		return nil, errPageBody
	}
	return out, nil
}

// openPage is one data page, inflated, ready to be read forward.
type openPage struct {
	phys   parquet.Type
	width  int
	values int
	// optional: defs says which rows have a value.
	optional bool
	defs     rle
	dict     *dictionary
	idx      rle
	plain    []byte
	row      int // next row of the page
	nth      int // values before it
	// marks are the places in whole, which is plain at the page's start, of every markEvery-th byte array; nil in a page that is read once.
	marks []uint32
	whole []byte
}

// markEvery is how many byte arrays lie between two marks of a page.
const markEvery = 16

// mark notes where byte arrays lie in a page that is kept, which has not been read from yet: else each row is found from the page's start.
func (p *openPage) mark() {
	if p.dict != nil || p.phys != parquet.Types.ByteArray || p.values <= markEvery {
		return
	}
	marks := make([]uint32, 0, (p.values+markEvery-1)/markEvery)
	for i, b := 0, p.plain; i < p.values && len(b) > 0; i++ { // fewer than there are rows, when some are NULL
		if i%markEvery == 0 {
			marks = append(marks, uint32(len(p.plain)-len(b)))
		}
		_, rest, ok := plainBytes(b)
		if !ok {
			return // whoever gets there says so
		}
		b = rest
	}
	p.marks, p.whole = marks, p.plain
}

// openPage inflates the page in raw (header included) into p.
func (r *Reader) openPage(s *source, group, leaf int, raw []byte, p *openPage) error {
	h, body, err := parsePageHeader(raw)
	if err != nil {
		return err
	}
	_, err = r.inflatePage(s, group, leaf, h, body, nil, p)
	return err
}

// inflatePage opens the data page of header h in p. The page may lie in dst, or in body when it is not compressed; the
// buffer that was inflated into is returned for the next page.
func (r *Reader) inflatePage(s *source, group, leaf int, h pageHeader, body, dst []byte, p *openPage) ([]byte, error) {
	chunk, err := r.meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return dst, err
	}
	s.c.Pages.Add(1)
	col := r.meta.Schema.Column(leaf)
	*p = openPage{phys: col.PhysicalType(), width: physWidth(col.PhysicalType(), col.TypeLength()), values: int(h.values)}
	optional, codec := col.MaxDefinitionLevel() > 0, chunk.Compression()
	inflated := func(size int64) error {
		out, err := inflate(codec, body, dst, size)
		if err == nil && codec != compress.Codecs.Uncompressed {
			dst = out
		}
		body = out
		return err
	}
	switch h.typ {
	case pageData:
		if err := inflated(h.uncompressed); err != nil {
			return dst, err
		}
		if optional {
			if h.defEncoding != encRLE {
				return dst, errEncoding
			}
			if len(body) < 4 {
				return dst, errPageBody
			}
			n := binary.LittleEndian.Uint32(body)
			if uint64(n) > uint64(len(body)-4) {
				return dst, errPageBody
			}
			p.optional, p.defs = true, rle{b: body[4 : 4+n], width: 1}
			body = body[4+n:]
		}
	case pageDataV2:
		levels := h.repLen + h.defLen
		if levels > int64(len(body)) || levels > h.uncompressed {
			return dst, errPageBody
		}
		if optional {
			p.optional, p.defs = true, rle{b: body[h.repLen:levels], width: 1}
		}
		body = body[levels:]
		if h.isCompressed {
			if err := inflated(h.uncompressed - levels); err != nil {
				return dst, err
			}
		}
	default:
		return dst, errEncoding
	}
	switch h.encoding {
	case encPlain:
		p.plain = body
	case encPlainDict, encRLEDictionary:
		if p.dict, err = r.dictOf(s, group, leaf); err != nil {
			return dst, err
		}
		if len(body) == 0 {
			body = []byte{0}
		}
		if body[0] > 32 {
			return dst, errPageBody
		}
		p.idx = rle{b: body[1:], width: int(body[0])}
	default:
		return dst, errEncoding
	}
	return dst, nil
}

// appendRow appends the value of the page's row-th row (never before the last one asked for) to v.
func (p *openPage) appendRow(v *vector, row int, c *Counters) error {
	if row < p.row || row >= p.values {
		return errPageBody
	}
	target, null := p.nth+row-p.row, false
	if p.optional {
		before, ok := p.defs.skip(row - p.row)
		if !ok {
			return errPageBody
		}
		level, ok := p.defs.next()
		if !ok {
			return errPageBody
		}
		target, null = p.nth+before, level == 0
	}
	p.row = row + 1
	c.Rows.Add(1)
	if err := p.seek(target); err != nil {
		return err
	}
	if null {
		v.appendNull()
		return nil
	}
	return p.appendNext(v)
}

// seek moves to the n-th stored value.
func (p *openPage) seek(n int) error {
	k := n - p.nth
	p.nth = n
	if k >= markEvery && n/markEvery < len(p.marks) {
		p.plain = p.whole[p.marks[n/markEvery]:]
		k = n % markEvery
	}
	switch {
	case k == 0:
		return nil
	case p.dict != nil:
		if _, ok := p.idx.skip(k); !ok {
			return errPageBody
		}
	case p.phys == parquet.Types.Boolean:
	case p.width > 0:
		if k > len(p.plain)/p.width {
			return errPageBody
		}
		p.plain = p.plain[k*p.width:]
	default:
		for ; k > 0; k-- {
			_, rest, ok := plainBytes(p.plain)
			if !ok {
				return errPageBody
			}
			p.plain = rest
		}
	}
	return nil
}

// appendNext appends the next stored value.
func (p *openPage) appendNext(v *vector) error {
	var raw []byte
	switch {
	case p.dict != nil:
		i, ok := p.idx.next()
		if !ok {
			return errPageBody
		}
		if raw, ok = p.dict.value(i); !ok {
			return errPageBody
		}
	case p.phys == parquet.Types.Boolean:
		if p.nth/8 >= len(p.plain) {
			return errPageBody
		}
		v.appendBool(p.plain[p.nth/8]>>(p.nth%8)&1 == 1)
		p.nth++
		return nil
	case p.width > 0:
		if len(p.plain) < p.width {
			return errPageBody
		}
		raw, p.plain = p.plain[:p.width], p.plain[p.width:]
	default:
		var ok bool
		if raw, p.plain, ok = plainBytes(p.plain); !ok {
			return errPageBody
		}
	}
	p.nth++
	return v.appendPlain(p.phys, raw)
}

// appendPlain appends one PLAIN value.
func (v *vector) appendPlain(t parquet.Type, raw []byte) error {
	switch t {
	case parquet.Types.Int32:
		v.appendInt(int64(int32(binary.LittleEndian.Uint32(raw))))
	case parquet.Types.Int64:
		v.appendInt(int64(binary.LittleEndian.Uint64(raw)))
	case parquet.Types.Float:
		v.appendFloat(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case parquet.Types.Double:
		v.appendDouble(math.Float64frombits(binary.LittleEndian.Uint64(raw)))
	case parquet.Types.Int96:
		v.appendInt96(parquet.Int96(raw))
	default:
		return v.appendBytes(raw)
	}
	return nil
}
