package parquetio

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go/table"
)

// readNested reads the nested columns of a whole row group in the projected schema.
func (r *Reader) readNested(ctx context.Context, s *source, np *nestedPlan, g int) (arrow.RecordBatch, error) {
	pq, err := r.open(s)
	if err != nil {
		return nil, err
	}
	fr, err := pqarrow.NewFileReader(pq, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	tbl, err := fr.ReadRowGroups(ctx, np.leaves, []int{g})
	if err != nil {
		return nil, err
	}
	defer tbl.Release()
	rows := r.starts[g+1] - r.starts[g]
	if tbl.NumRows() != rows {
		return nil, errShort
	}
	s.c.Rows.Add(rows * int64(tbl.NumCols()))
	cols := make([]arrow.Array, tbl.NumCols())
	defer releaseAll(cols)
	for i := range cols {
		chunks := tbl.Column(i).Data().Chunks()
		if len(chunks) == 1 {
			chunks[0].Retain()
			cols[i] = chunks[0]
			continue
		}
		if len(chunks) == 0 {
			return nil, errors.New("nested column without data")
		}
		if cols[i], err = array.Concatenate(chunks, memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	all := array.NewRecordBatch(tbl.Schema(), cols, rows)
	defer all.Release()
	return table.ToRequestedSchema(ctx, np.want, np.file, all, nestedOptions())
}

// nestedAt fills the nested columns of RowsAt: whole row groups are read, then the rows taken.
func (r *Reader) nestedAt(ctx context.Context, p *plan, cols []arrow.Array, positions []uint32) error {
	parts := make([][]arrow.Array, p.nested.want.NumFields())
	defer func() {
		for _, ps := range parts {
			releaseAll(ps)
		}
	}()
	s := r.source(ctx)
	for at := 0; at < len(positions); {
		g := r.groupOf(positions[at])
		var rows []uint32
		for ; at < len(positions) && int64(positions[at]) < r.starts[g+1]; at++ {
			rows = append(rows, positions[at]-uint32(r.starts[g]))
		}
		rec, err := r.readNested(ctx, s, p.nested, g)
		if err != nil {
			return err
		}
		got, err := take(ctx, rec, rows)
		rec.Release()
		if err != nil {
			return err
		}
		for i := range parts {
			c := got.Column(i)
			c.Retain()
			parts[i] = append(parts[i], c)
		}
		got.Release()
	}
	for i := range p.cols {
		if p.cols[i].from != fromNested {
			continue
		}
		ps, dt := parts[p.cols[i].nth], p.arrow.Field(i).Type
		if len(ps) == 0 {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, dt, 0)
			continue
		}
		whole, err := array.Concatenate(ps, memory.DefaultAllocator)
		if err != nil {
			return err
		}
		cols[i], err = asType(whole, dt)
		whole.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
