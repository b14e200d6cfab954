package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// bbolt's file format (its internal/common package): a file of pages, in the machine's byte order, which is little-endian on
// every machine this runs on.
const (
	pageHeaderSize = 16 // id u64, flags u16, count u16, overflow u32
	elementSize    = 16 // branch: pos u32, ksize u32, pgid u64; leaf: flags u32, pos u32, ksize u32, vsize u32
	metaSize       = 64 // magic, version, pageSize, flags u32; root{pgid, sequence}, freelist, pgid, txid, checksum u64
	bucketHeader   = 16 // root u64, sequence u64; an inline bucket's page follows when root is 0

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	leafBucket   = 0x01
	noFreelist   = math.MaxUint64

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	// maxDepth is far above what fits in a file: a branch page has at least two children.
	maxDepth = 64
	// maxProblems bounds a report: one lost page can hide many.
	maxProblems = 20
)

// errTooMany ends a walk that has reported enough.
var errTooMany = errors.New("too many problems")

// pageCheck walks a bbolt file by reading it, not through a memory map, and trusts nothing it reads: no page is visited twice, no
// offset leaves its page. bbolt's own Check runs in a goroutine of its own, where a fault cannot be caught, and recurses along
// whatever the pages say.
type pageCheck struct {
	f        io.ReaderAt
	pageSize int64
	pages    uint64 // pages below the meta page's high-water mark
	state    []byte // one of the page states, by id
	report   func(string)
	problems int
}

const (
	pageUnknown = iota
	pageUsed
	pageFree
)

// page is one page with its overflow pages.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte
}

// meta is what the meta page of a transaction says.
type meta struct {
	pageSize             int64
	root, freelist, high uint64
	txid                 uint64
}

// checkPages reads every page that belongs to transaction txid and reports what is wrong with it, at most maxProblems times.
// Those pages must stay: the caller holds a read transaction.
func checkPages(f *os.File, txid uint64, report func(string)) error {
	m, err := readMeta(f, txid)
	if err != nil {
		report(err.Error())
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if m.high < 3 || m.high > uint64(st.Size()/m.pageSize)+1 { // the file grows in larger steps, but never lags
		report(fmt.Sprintf("the meta page counts %d pages, the file holds %d", m.high, st.Size()/m.pageSize))
		return nil
	}
	c := &pageCheck{f: f, pageSize: m.pageSize, pages: m.high, state: make([]byte, m.high), report: report}
	c.state[0], c.state[1] = pageUsed, pageUsed
	err = c.freelist(m.freelist)
	if err == nil {
		err = c.tree(m.root, nil, nil, 0)
	}
	if err == nil && m.freelist != noFreelist && c.problems == 0 {
		for id, s := range c.state {
			if s == pageUnknown {
				err = c.problem("page %d is neither used nor free", id)
			}
			if err != nil {
				break
			}
		}
	}
	if errors.Is(err, errTooMany) {
		return nil
	}
	return err
}

// readMeta finds the meta page of the transaction: bbolt writes them in turns.
func readMeta(f io.ReaderAt, txid uint64) (meta, error) {
	var sizes []int64
	b := make([]byte, pageHeaderSize+metaSize)
	le := binary.LittleEndian
	look := func(off int64) (meta, bool) {
		if _, err := f.ReadAt(b, off); err != nil {
			return meta{}, false
		}
		mb := b[pageHeaderSize:]
		h := fnv.New64a()
		_, _ = h.Write(mb[:metaSize-8])
		m := meta{pageSize: int64(le.Uint32(mb[8:])), root: le.Uint64(mb[16:]), freelist: le.Uint64(mb[32:]), high: le.Uint64(mb[40:]), txid: le.Uint64(mb[48:])}
		ok := le.Uint32(mb) == metaMagic && le.Uint32(mb[4:]) == metaVersion && le.Uint64(mb[56:]) == h.Sum64()
		return m, ok && m.pageSize >= 512 && m.pageSize <= 1<<20 && m.pageSize&(m.pageSize-1) == 0
	}
	if m, ok := look(0); ok {
		if m.txid == txid {
			return m, nil
		}
		sizes = []int64{m.pageSize}
	} else { // the first meta page is lost: bbolt tries these sizes for the second
		for s := int64(1024); s <= 16<<20; s <<= 1 {
			sizes = append(sizes, s)
		}
	}
	for _, s := range sizes {
		if m, ok := look(s); ok && m.pageSize == s && m.txid == txid {
			return m, nil
		}
	}
	return meta{}, fmt.Errorf("no meta page of transaction %d", txid)
}

func (c *pageCheck) problem(format string, args ...any) error {
	c.report(fmt.Sprintf(format, args...))
	if c.problems++; c.problems >= maxProblems {
		return errTooMany
	}
	return nil
}

// read reads a page and its overflow and marks them. A nil page was reported.
func (c *pageCheck) read(id uint64, what string) (*page, error) {
	if id < 2 || id >= c.pages {
		return nil, c.problem("%s %d is outside the file (%d pages)", what, id, c.pages)
	}
	var h [pageHeaderSize]byte
	if _, err := c.f.ReadAt(h[:], int64(id)*c.pageSize); err != nil {
		return nil, c.unreadable(id, err)
	}
	le := binary.LittleEndian
	n := uint64(le.Uint32(h[12:])) + 1
	if le.Uint64(h[:]) != id {
		return nil, c.problem("page %d says that it is page %d", id, le.Uint64(h[:]))
	}
	if n > c.pages-id {
		return nil, c.problem("page %d with its overflow of %d pages is outside the file (%d pages)", id, n-1, c.pages)
	}
	for i := id; i < id+n; i++ {
		if c.state[i] != pageUnknown {
			return nil, c.problem("page %d is %s, and used by %s %d", i, map[byte]string{pageUsed: "in use", pageFree: "free"}[c.state[i]], what, id)
		}
		c.state[i] = pageUsed
	}
	p := &page{id: id, flags: le.Uint16(h[8:]), count: int(le.Uint16(h[10:])), data: make([]byte, int64(n)*c.pageSize)}
	if _, err := c.f.ReadAt(p.data, int64(id)*c.pageSize); err != nil {
		return nil, c.unreadable(id, err)
	}
	return p, nil
}

func (c *pageCheck) unreadable(id uint64, err error) error {
	if errors.Is(err, io.EOF) {
		return c.problem("page %d is cut off", id)
	}
	return c.problem("page %d cannot be read: %v", id, err)
}

func (c *pageCheck) freelist(id uint64) error {
	if id == noFreelist {
		return nil
	}
	p, err := c.read(id, "freelist page")
	if p == nil || err != nil {
		return err
	}
	if p.flags != flagFreelist {
		return c.problem("page %d has flags %#x instead of a freelist's", id, p.flags)
	}
	ids := p.data[pageHeaderSize:]
	n := uint64(p.count)
	if p.count == math.MaxUint16 {
		n, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids))/8 {
		return c.problem("the freelist counts %d pages, more than fit in it", n)
	}
	last := uint64(1)
	for i := range n {
		free := binary.LittleEndian.Uint64(ids[8*i:])
		switch {
		case free <= last || free >= c.pages:
			return c.problem("the freelist names page %d after page %d, of %d pages", free, last, c.pages)
		case c.state[free] != pageUnknown:
			if err := c.problem("page %d is free and in use", free); err != nil {
				return err
			}
		}
		last, c.state[free] = free, pageFree
	}
	return nil
}

// tree checks the page and all below it. Its keys must be at least low and below high; nil bounds nothing.
func (c *pageCheck) tree(id uint64, low, high []byte, depth int) error {
	if depth > maxDepth {
		return c.problem("page %d is more than %d levels deep", id, maxDepth)
	}
	p, err := c.read(id, "page")
	if p == nil || err != nil {
		return err
	}
	return c.elements(p, low, high, depth)
}

func (c *pageCheck) elements(p *page, low, high []byte, depth int) error {
	if p.flags != flagBranch && p.flags != flagLeaf {
		return c.problem("page %d has flags %#x: neither branch nor leaf", p.id, p.flags)
	}
	if p.flags == flagBranch && p.count == 0 {
		return c.problem("branch page %d is empty", p.id)
	}
	if pageHeaderSize+elementSize*p.count > len(p.data) {
		return c.problem("page %d counts %d elements, more than fit in it", p.id, p.count)
	}
	le := binary.LittleEndian
	type child struct {
		key  []byte
		page uint64
	}
	var children []child
	var last []byte
	for i := range p.count {
		at := pageHeaderSize + elementSize*i
		e := p.data[at : at+elementSize]
		flags, pos, ksize, vsize := uint32(0), le.Uint32(e), le.Uint32(e[4:]), uint32(0)
		if p.flags == flagLeaf {
			flags, pos, ksize, vsize = le.Uint32(e), le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])
		}
		start := uint64(at) + uint64(pos)
		if start+uint64(ksize)+uint64(vsize) > uint64(len(p.data)) || start < uint64(pageHeaderSize+elementSize*p.count) {
			return c.problem("element %d of page %d is outside it", i, p.id)
		}
		key := p.data[start : start+uint64(ksize)]
		switch {
		case i > 0 && bytes.Compare(last, key) >= 0:
			return c.problem("the keys of page %d are not in order at element %d", p.id, i)
		case low != nil && bytes.Compare(key, low) < 0, high != nil && bytes.Compare(key, high) >= 0:
			return c.problem("element %d of page %d is not between its parent's keys", i, p.id)
		}
		last = key
		switch {
		case p.flags == flagBranch:
			children = append(children, child{key, le.Uint64(e[8:])})
		case flags == leafBucket:
			if err := c.bucket(p.data[start+uint64(ksize):start+uint64(ksize)+uint64(vsize)], p.id, depth); err != nil {
				return err
			}
		case flags != 0:
			return c.problem("element %d of page %d has flags %#x", i, p.id, flags)
		}
	}

	for i, ch := range children {
		next := high
		if i+1 < len(children) {
			next = children[i+1].key
		}
		if err := c.tree(ch.page, ch.key, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a nested bucket's header and what it leads to.
func (c *pageCheck) bucket(v []byte, in uint64, depth int) error {
	if len(v) < bucketHeader {
		return c.problem("a bucket in page %d is cut short", in)
	}
	if root := binary.LittleEndian.Uint64(v); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	v = v[bucketHeader:]
	if len(v) < pageHeaderSize {
		return c.problem("an inline bucket in page %d is cut short", in)
	}
	p := &page{id: in, flags: binary.LittleEndian.Uint16(v[8:]), count: int(binary.LittleEndian.Uint16(v[10:])), data: v}
	if p.flags != flagLeaf {
		return c.problem("an inline bucket in page %d has flags %#x", in, p.flags)
	}
	return c.elements(p, nil, nil, depth+1)
}
