package parquetio

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
)

// chunkPadding is added to a column chunk's length: old writers left the dictionary page's header out of it.
const chunkPadding = 128

// chunkScan reads a flat column of one row group from front to back by itself: PLAIN and dictionary pages in bulk, and
// only the pages that hold rows asked for. errEncoding: it has another encoding, and columnStream must read it.
type chunkScan struct {
	r           *Reader
	src         *source
	group, leaf int
	pages       []pageAt // nil: the file has no offset index for it

	off, end int64  // the next page's header, and where the chunk ends
	buf      []byte // bytes of the file from bufAt on
	bufAt    int64
	raw      []byte // inflated pages, one after the other
	page     openPage
	left     int   // rows left in page
	at       int64 // next row of the row group
}

// openChunk prepares reading; last is the last row of the group that will be asked for.
func (r *Reader) openChunk(s *source, group, leaf int, last int64) (*chunkScan, error) {
	chunk, err := r.meta.RowGroup(group).ColumnChunk(leaf)
	if err != nil {
		return nil, err
	}
	if chunk.CryptoMetadata() != nil {
		return nil, errEncoding
	}
	c := &chunkScan{r: r, src: s, group: group, leaf: leaf, off: chunk.DataPageOffset()}
	start := c.off
	if d := chunk.DictionaryPageOffset(); chunk.HasDictionaryPage() && d > 0 {
		start = min(start, d)
	}
	c.end = min(start+chunk.TotalCompressedSize()+chunkPadding, r.file.Size())
	if c.off <= 0 || c.off > c.end {
		return nil, errors.New("column chunk does not fit the file")
	}
	if c.pages, err = r.pagesOf(s, group, leaf); err != nil {
		return nil, err
	}
	if c.pages != nil {
		p := c.pages[pageOf(c.pages, last)]
		c.end = p.offset + int64(p.size)
	}
	return c, nil
}

// take appends rows [from, from+n) to v; from never goes back.
func (c *chunkScan) take(v *vector, from int64, n int) error {
	if err := c.pass(from); err != nil {
		return err
	}
	for n > 0 {
		if c.left == 0 {
			if err := c.next(0); err != nil {
				return err
			}
		}
		k := min(n, c.left)
		if err := c.page.appendRows(v, k); err != nil {
			return err
		}
		c.left -= k
		c.at += int64(k)
		n -= k
	}
	return nil
}

// pass moves to row to. Pages in between are not inflated, and with an offset index not read.
func (c *chunkScan) pass(to int64) error {
	if gap := to - c.at; gap > 0 && gap >= int64(c.left) {
		c.at += int64(c.left)
		c.left = 0
	}
	if c.at < to && c.left == 0 && c.pages != nil {
		p := c.pages[pageOf(c.pages, to)]
		if p.firstRow > c.at {
			c.off, c.at = p.offset, p.firstRow
		}
	}
	for c.at < to {
		if c.left == 0 {
			if err := c.next(to - c.at); err != nil {
				return err
			}
			continue
		}
		k := int(min(to-c.at, int64(c.left)))
		if err := c.page.passRows(k); err != nil {
			return err
		}
		c.left -= k
		c.at += int64(k)
	}
	return nil
}

// next opens the next data page, but passes over it when it has no more than skip rows.
func (c *chunkScan) next(skip int64) error {
	for {
		h, body, err := c.header()
		if err != nil {
			return err
		}
		if h.typ != pageData && h.typ != pageDataV2 {
			continue // the dictionary has been read, or is when a page needs it
		}
		if h.values > c.r.starts[c.group+1]-c.r.starts[c.group]-c.at {
			return errPageBody
		}
		if h.values == 0 {
			continue
		}
		if skip > 0 && h.values <= skip {
			c.at += h.values
			return nil
		}
		if c.raw, err = c.r.inflatePage(c.src, c.group, c.leaf, h, body, c.raw, &c.page); err != nil {
			return err
		}
		c.left = int(h.values)
		return nil
	}
}

// header reads the next page's header and body and moves behind them. The body is valid until the next call.
func (c *chunkScan) header() (h pageHeader, body []byte, err error) {
	size := 0
	for want := int64(1); ; {
		b, err := c.window(want)
		if err != nil {
			return h, nil, err
		}
		if h, size, err = parseHeader(b); err == nil {
			break
		}
		if want = 2 * int64(len(b)); c.off+want > c.end {
			if want = c.end - c.off; want <= int64(len(b)) {
				return h, nil, err
			}
		}
	}
	length := int64(size) + h.compressed
	b, err := c.window(length)
	if err != nil {
		return h, nil, err
	}
	c.off += length
	return h, b[size:length], nil
}

// window returns the chunk's bytes from off on, at least n of them.
func (c *chunkScan) window(n int64) ([]byte, error) {
	if n > c.end-c.off {
		return nil, errPageBody
	}
	lo := c.off - c.bufAt
	if lo >= 0 && lo+n <= int64(len(c.buf)) {
		return c.buf[lo:], nil
	}
	size, have := min(max(n, scanBuffer), c.end-c.off), 0
	old := c.buf
	if int64(cap(c.buf)) < size {
		c.buf = make([]byte, size)
	}
	c.buf = c.buf[:size]
	if lo >= 0 && lo < int64(len(old)) {
		have = copy(c.buf, old[lo:])
	}
	c.bufAt = c.off
	if _, err := c.src.ReadAt(c.buf[have:], c.off+int64(have)); err != nil {
		c.buf = c.buf[:0]
		return nil, err
	}
	return c.buf, nil
}

// column is rows [at, at+n) of the group, or those of them that keep names by offset.
func (c *chunkScan) column(conv *conversion, dt arrow.DataType, at int64, n int, keep []uint32, all bool) (arrow.Array, error) {
	if all {
		v := newVector(conv, n)
		if err := c.take(v, at, n); err != nil {
			return nil, err
		}
		return v.array(dt), nil
	}
	v := newVector(conv, len(keep))
	for i := 0; i < len(keep); {
		k := i + 1
		for k < len(keep) && keep[k] == keep[k-1]+1 {
			k++
		}
		if err := c.take(v, at+int64(keep[i]), k-i); err != nil {
			return nil, err
		}
		i = k
	}
	return v.array(dt), nil
}
