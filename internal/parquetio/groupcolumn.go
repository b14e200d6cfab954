package parquetio

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// groupColumn reads a flat column of a row group front to back: by chunk, or by arrow-go's decoder where the column has an
// encoding that chunk does not read.
type groupColumn struct {
	leaf   int
	conv   *conversion
	chunk  *chunkScan
	stream *columnStream
	at     int64 // where stream stands
}

// read is n rows of the group from gs.at on, or those of them that keep names.
func (c *groupColumn) read(ctx context.Context, gs *groupScan, dt arrow.DataType, n int, keep []uint32, all bool) (arrow.Array, error) {
	if c.chunk != nil {
		a, err := c.chunk.column(c.conv, dt, gs.at, n, keep, all)
		if err == nil {
			gs.src.c.Rows.Add(int64(a.Len()))
		}
		if !errors.Is(err, errEncoding) {
			return a, err
		}
		c.chunk = nil
	}
	if err := c.openStream(gs); err != nil {
		return nil, err
	}
	v := newVector(c.conv, n)
	if err := c.stream.read(v, n); err != nil {
		return nil, err
	}
	c.at += int64(n)
	gs.src.c.Rows.Add(int64(n))
	a := v.array(dt)
	if all {
		return a, nil
	}
	return kept(ctx, a, keep)
}

// openStream brings the stream to gs.at.
func (c *groupColumn) openStream(gs *groupScan) error {
	if c.stream == nil {
		pq, err := gs.r.open(gs.src)
		if err != nil {
			return err
		}
		rd, err := pq.RowGroup(gs.group).Column(c.leaf)
		if err != nil {
			return err
		}
		c.stream = newColumnStream(rd, c.conv)
	}
	gap := gs.at - c.at
	if gap == 0 {
		return nil
	}
	c.at = gs.at
	rd := c.stream.rd
	pages, err := gs.r.pagesOf(gs.src, gs.group, c.leaf)
	if err != nil || pages == nil || pages[pageOf(pages, gs.at)].offset-pages[pageOf(pages, gs.at-gap)].offset < seekGap {
		return skipRows(rd, gap)
	}
	// The dictionary page is read with the first page; a seek behind it would miss it.
	if !rd.HasNext() {
		return rd.Err()
	}
	return rd.SeekToRow(gs.at)
}

// seekGap is from how many bytes on a gap is passed by the offset index instead of page by page: a seek reads a buffer
// anew, the other way inflates every page.
const seekGap = 64 << 10

type skipper interface{ Skip(int64) (int64, error) }

func skipRows(rd file.ColumnChunkReader, n int64) error {
	if n <= 0 {
		return nil
	}
	_, err := rd.(skipper).Skip(n)
	return err
}
