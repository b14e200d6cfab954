package parquetio

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"golang.org/x/sync/errgroup"
)

// sink encodes batches into a Parquet file.
type sink interface {
	WriteBuffered(rec arrow.RecordBatch) error
	NewBufferedRowGroupChecked() error
	RowGroupTotalBytesWritten() int64
	RowGroupTotalCompressedBytes() int64
	Close() error
	FileMetadata() (*metadata.FileMetaData, error)
}

// newSink encodes columns in parallel when all of them are flat; nested ones need pqarrow's level builder, which is one at a time.
func newSink(as *arrow.Schema, w io.Writer, props *parquet.WriterProperties) (sink, error) {
	for _, f := range as.Fields() {
		if _, nested := storage(f.Type).(arrow.NestedType); nested || f.Type.ID() == arrow.NULL {
			return pqarrow.NewFileWriter(as, w, props, pqarrow.DefaultWriterProps())
		}
	}
	sc, err := pqarrow.ToParquet(as, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	return newFlatSink(sc, w, props)
}

// flatSink writes flat columns into a buffered row group, one goroutine a column and batch.
type flatSink struct {
	w    *file.Writer
	rg   file.BufferedRowGroupWriter
	rows int64 // of the open row group
	max  int64
	cols []flatColumn
}

type flatColumn struct {
	ctx  context.Context // pqarrow's scratch buffers, one a column
	opt  bool
	defs []int16
}

func newFlatSink(sc *schema.Schema, w io.Writer, props *parquet.WriterProperties) (*flatSink, error) {
	fw, err := file.NewParquetWriterWithError(w, sc.Root(), file.WithWriterProps(props))
	if err != nil {
		return nil, err
	}
	s := &flatSink{w: fw, max: props.MaxRowGroupLength(), cols: make([]flatColumn, sc.NumColumns())}
	for i := range s.cols {
		s.cols[i] = flatColumn{ctx: pqarrow.NewArrowWriteContext(context.Background(), nil), opt: sc.Column(i).MaxDefinitionLevel() > 0}
	}
	return s, nil
}

func (s *flatSink) NewBufferedRowGroupChecked() error {
	if s.rg != nil {
		if err := s.rg.Close(); err != nil {
			return err
		}
	}
	rg, err := s.w.AppendBufferedRowGroupChecked()
	s.rg, s.rows = rg, 0
	return err
}

func (s *flatSink) RowGroupTotalBytesWritten() int64 {
	if s.rg == nil {
		return 0
	}
	return s.rg.TotalBytesWritten()
}

func (s *flatSink) RowGroupTotalCompressedBytes() int64 {
	if s.rg == nil {
		return 0
	}
	return s.rg.TotalCompressedBytes()
}

func (s *flatSink) WriteBuffered(rec arrow.RecordBatch) error {
	for at := int64(0); at < rec.NumRows(); {
		if s.rg == nil || s.rows >= s.max {
			if err := s.NewBufferedRowGroupChecked(); err != nil {
				return err
			}
		}
		n := min(rec.NumRows()-at, s.max-s.rows)
		part := rec.NewSlice(at, at+n)
		err := s.write(part)
		part.Release()
		if err != nil {
			return err
		}
		at, s.rows = at+n, s.rows+n
	}
	return nil
}

func (s *flatSink) write(rec arrow.RecordBatch) error {
	var eg errgroup.Group
	eg.SetLimit(runtime.GOMAXPROCS(0))
	for i := range s.cols {
		eg.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("encode column %d: %v", i, p)
				}
			}()
			return s.column(i, rec.Column(i))
		})
	}
	return eg.Wait()
}

func (s *flatSink) column(i int, a arrow.Array) error {
	cw, err := s.rg.Column(i)
	if err != nil {
		return err
	}
	c := &s.cols[i]
	var defs []int16
	if c.opt {
		defs = scratch(&c.defs, a.Len())
		if a.NullN() == 0 {
			for j := range defs {
				defs[j] = 1
			}
		} else {
			for j := range defs {
				defs[j] = 0
				if a.IsValid(j) {
					defs[j] = 1
				}
			}
		}
	} else if a.NullN() > 0 {
		return fmt.Errorf("column %s is required and has NULLs", cw.Descr().Name())
	}
	return pqarrow.WriteArrowToColumn(c.ctx, cw, a, defs, nil, c.opt)
}

func (s *flatSink) Close() error {
	if s.rg != nil {
		if err := s.rg.Close(); err != nil {
			return err
		}
		s.rg = nil
	}
	return s.w.Close()
}

func (s *flatSink) FileMetadata() (*metadata.FileMetaData, error) { return s.w.FileMetadata() }
