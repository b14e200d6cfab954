package parquetio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// RowsAt reads the rows at positions (ascending, may repeat) in the projected schema, one row each, in that order. Of flat columns it reads and
// inflates only the pages that hold them, adjacent pages in one read. The caller releases the batch.
func (r *Reader) RowsAt(ctx context.Context, sc *iceberg.Schema, nm iceberg.NameMapping, positions []uint32) (rec arrow.RecordBatch, err error) {
	defer r.guard(&err)
	p, err := r.planFor(ctx, sc, nm)
	if err != nil {
		return nil, r.damaged(err)
	}
	for i, pos := range positions {
		if int64(pos) >= r.Rows() || i > 0 && pos < positions[i-1] {
			return nil, fmt.Errorf("%w: %s has %d rows, position %d", ErrPosition, r.path, r.Rows(), pos)
		}
	}
	rec, err = r.rowsAt(ctx, p, positions)
	return rec, r.damaged(err)
}

func (r *Reader) rowsAt(ctx context.Context, p *plan, positions []uint32) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, len(p.cols))
	defer releaseAll(cols)
	ga := gathers.Get().(*gather)
	defer ga.release()
	for _, i := range p.flat {
		ga.vecs = append(ga.vecs, vector{})
		ga.vecs[len(ga.vecs)-1].init(&p.cols[i].conv, len(positions))
	}
	s := r.source(ctx)
	for at := 0; at < len(positions); {
		g := r.groupOf(positions[at])
		end := at + sort.Search(len(positions)-at, func(i int) bool { return int64(positions[at+i]) >= r.starts[g+1] })
		if err := r.gatherGroup(s, p, ga, g, positions[at:end]); err != nil {
			return nil, err
		}
		at = end
	}
	for k, i := range p.flat {
		cols[i] = ga.vecs[k].array(p.arrow.Field(i).Type)
	}
	for i := range p.cols {
		if c := &p.cols[i]; c.from == fromNowhere {
			var err error
			if cols[i], err = c.absent(ctx, p.arrow.Field(i).Type, len(positions)); err != nil {
				return nil, err
			}
		}
	}
	if p.nested != nil {
		if err := r.nestedAt(ctx, p, cols, positions); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(p.arrow, cols, int64(len(positions))), nil
}

func (r *Reader) groupOf(pos uint32) int {
	return sort.Search(len(r.starts), func(i int) bool { return r.starts[i] > int64(pos) }) - 1
}

// gather is what RowsAt works with, kept from read to read: most read a single row.
type gather struct {
	vecs   []vector // of the flat columns
	tables [][]pageAt
	wanted []wantedPage // of all columns, one after the other
	ends   []int        // where each column's end in wanted
	ranges []storeio.Range
}

var gathers = sync.Pool{New: func() any { return &gather{} }}

// release gives ga back. What it pointed to is the rows' or garbage.
func (ga *gather) release() {
	if cap(ga.wanted) > maxKeptPages {
		return
	}
	clear(ga.vecs)
	ga.vecs = ga.vecs[:0]
	ga.reset()
	gathers.Put(ga)
}

func (ga *gather) reset() {
	clear(ga.tables)
	clear(ga.wanted)
	clear(ga.ranges)
	ga.tables, ga.wanted, ga.ends, ga.ranges = ga.tables[:0], ga.wanted[:0], ga.ends[:0], ga.ranges[:0]
}

// maxKeptPages bounds what a gather that is kept may hold.
const maxKeptPages = 256

// wantedPage is a page to read from, and to fetch first when it is not in the page cache.
type wantedPage struct {
	page   int
	raw    []byte
	cached bool
	open   openPage
}

// gatherGroup appends the flat columns' values at positions, all in row group g, to ga's vectors. The pages of all columns are fetched together.
func (r *Reader) gatherGroup(s *source, p *plan, ga *gather, g int, positions []uint32) error {
	s.c.Groups.Add(1)
	start, keep := r.starts[g], r.pages != nil && len(positions) <= cachedReadRows
	ga.reset()
	if err := r.prefetchOffsets(s, p, g); err != nil {
		return err
	}
	for _, i := range p.flat {
		pages, err := r.pagesOf(s, g, p.cols[i].leaf)
		if err != nil {
			return err
		}
		ga.tables = append(ga.tables, pages)
		for at := 0; pages != nil && at < len(positions); {
			n := pageOf(pages, int64(positions[at])-start)
			ga.wanted = append(ga.wanted, wantedPage{page: n})
			w := &ga.wanted[len(ga.wanted)-1]
			if keep {
				w.cached = r.pages.get(pageKey{r.id, int32(g), int32(p.cols[i].leaf), int32(n)}, &w.open)
			}
			if !w.cached {
				w.raw = make([]byte, pages[n].size)
				ga.ranges = append(ga.ranges, storeio.Range{Off: pages[n].offset, Buf: w.raw})
			}
			for at < len(positions) && (n+1 == len(pages) || int64(positions[at])-start < pages[n+1].firstRow) {
				at++
			}
		}
		ga.ends = append(ga.ends, len(ga.wanted))
	}
	pageRanges := len(ga.ranges)
	if pageRanges > 0 {
		r.wantDictionaries(ga, p, g)
	}
	dicts := slices.Clone(ga.ranges[pageRanges:]) // reading sorts
	if err := s.readRanges(ga.ranges); err != nil {
		return err
	}
	s.windows = dicts
	from := 0
	for k, i := range p.flat {
		err := errEncoding
		v, end := &ga.vecs[k], ga.ends[k]
		mark := *v
		if ga.tables[k] != nil {
			err = r.gatherPages(s, g, p.cols[i].leaf, ga.tables[k], ga.wanted[from:end], v, positions)
		}
		from = end
		if errors.Is(err, errEncoding) {
			if mark.valid != nil {
				mark.valid = mark.valid[:(mark.n+7)/8]
			}
			*v = mark
			err = r.gatherStream(s, g, &p.cols[i], v, positions)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prefetchOffsets reads the offset indexes that the flat columns of a row group still need, together.
func (r *Reader) prefetchOffsets(s *source, p *plan, g int) error {
	s.windows = nil
	var ranges []storeio.Range
	r.mu.Lock()
	for _, i := range p.flat {
		leaf := p.cols[i].leaf
		if r.groups[g].pages[leaf] != nil {
			continue
		}
		chunk, err := r.meta.RowGroup(g).ColumnChunk(leaf)
		if err != nil {
			r.mu.Unlock()
			return err
		}
		if loc := chunk.GetOffsetIndexLocation(); loc != nil && loc.Length > 0 && loc.Offset >= 0 && loc.Offset+int64(loc.Length) <= r.file.Size() {
			ranges = append(ranges, storeio.Range{Off: loc.Offset, Buf: make([]byte, loc.Length)})
		}
	}
	r.mu.Unlock()
	if len(ranges) < 2 {
		return nil // pagesOf reads it
	}
	if err := s.readRanges(ranges); err != nil {
		return fmt.Errorf("read offset indexes: %w", err)
	}
	s.windows = ranges
	return nil
}

// wantDictionaries adds to ga's ranges the dictionaries that the flat columns of a row group still need.
func (r *Reader) wantDictionaries(ga *gather, p *plan, g int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range p.flat {
		leaf := p.cols[i].leaf
		if r.groups[g].dicts[leaf] != nil {
			continue
		}
		if at, end, ok := r.dictRange(g, leaf); ok && end-at <= maxDictAhead {
			ga.ranges = append(ga.ranges, storeio.Range{Off: at, Buf: make([]byte, end-at)})
		}
	}
}

// maxDictAhead is the largest dictionary that is read before a page says that it needs it: our own are not larger.
const maxDictAhead = 64 << 10

// coalesce is off in the test that proves that reads are counted.
var coalesce = true

func (s *source) readRanges(ranges []storeio.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	if !coalesce && len(ranges) > 1 {
		for i := range ranges {
			if err := s.readRanges(ranges[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := s.f.ReadRanges(ranges); err != nil {
		return err
	}
	end := int64(-1)
	for _, r := range ranges {
		s.c.Bytes.Add(int64(len(r.Buf)))
		if end < 0 || r.Off < end || r.Off-end > storeio.MaxGap {
			s.c.Reads.Add(1)
		}
		end = r.Off + int64(len(r.Buf))
	}
	return nil
}

func (r *Reader) gatherPages(s *source, g, leaf int, pages []pageAt, wanted []wantedPage, v *vector, positions []uint32) error {
	start, at := r.starts[g], 0
	for i := range wanted {
		w := &wanted[i]
		pg := &w.open
		if !w.cached {
			if err := r.openPage(s, g, leaf, w.raw, pg); err != nil {
				return err
			}
			if r.pages != nil && len(positions) <= cachedReadRows {
				r.pages.put(pageKey{r.id, int32(g), int32(leaf), int32(w.page)}, pg)
			}
		}
		first := pages[w.page].firstRow
		for ; at < len(positions); at++ {
			row := int64(positions[at]) - start
			if w.page+1 < len(pages) && row >= pages[w.page+1].firstRow {
				break
			}
			if at > 0 && positions[at] == positions[at-1] {
				v.repeatLast()
				continue
			}
			if err := pg.appendRow(v, int(row-first), s.c); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeatLast appends the last row once more.
func (v *vector) repeatLast() {
	i := v.n - 1
	if v.valid != nil && v.valid[i/8]>>(i%8)&1 == 0 {
		v.appendNull()
		return
	}
	switch v.conv.lay {
	case layBits:
		v.appendBool(v.data[i/8]>>(i%8)&1 == 1)
	case layBytes:
		v.data = append(v.data, v.data[v.offsets[i]:v.offsets[i+1]]...)
		v.offsets = append(v.offsets, int32(len(v.data)))
		v.mark(true)
	default:
		v.data = append(v.data, v.data[i*v.conv.width:(i+1)*v.conv.width]...)
		v.mark(true)
	}
}

// gatherStream is gatherPages for columns without page index or with other encodings: it reads the chunk from its start.
func (r *Reader) gatherStream(s *source, g int, c *planColumn, v *vector, positions []uint32) error {
	pq, err := r.open(s)
	if err != nil {
		return err
	}
	rd, err := pq.RowGroup(g).Column(c.leaf)
	if err != nil {
		return err
	}
	defer rd.Close()
	cs := newColumnStream(rd, &c.conv)
	start, next := r.starts[g], int64(0)
	for i, pos := range positions {
		if i > 0 && pos == positions[i-1] {
			v.repeatLast()
			continue
		}
		row := int64(pos) - start
		if err := skipRows(rd, row-next); err != nil {
			return err
		}
		s.c.Rows.Add(row - next + 1)
		if err := cs.read(v, 1); err != nil {
			return err
		}
		next = row + 1
	}
	return nil
}

// open is an arrow-go reader over the cached footer.
func (r *Reader) open(s *source) (*file.Reader, error) {
	return file.NewParquetReader(s, file.WithMetadata(r.meta), file.WithReadProps(scanProperties()))
}
