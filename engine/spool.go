package engine

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// spoolLimit is the memory that the rows of one spool may hold before they go to a file.
const spoolLimit = 16 << 20

// spool keeps rows until a statement is done: RETURNING's, and those of the CTEs that run by themselves. Past spoolLimit they are in a
// temporary file that has no name any more. free ends it.
type spool struct {
	gw      *Gateway
	on      bool
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	rows    int64
	bytes   int64

	file *storeio.TempFile
	out  *ipc.Writer // nil once the rows are read
}

func (s *session) newSpool(cols []pgsql.OutCol) *spool { return &spool{gw: s.gw, on: cols != nil} }

// begin settles the columns, which are those of rows from the given one on.
func (sp *spool) begin(rows *arrow.Schema, from int) {
	if !sp.on || sp.schema != nil {
		return
	}
	var fields []arrow.Field
	for i := from; i < rows.NumFields(); i++ {
		f := rows.Field(i)
		f.Name = "c" + strconv.Itoa(i-from)
		fields = append(fields, f)
	}
	sp.schema = arrow.NewSchema(fields, nil)
}

// add keeps the columns of rec from the given one on.
func (sp *spool) add(rec arrow.RecordBatch, from int) error {
	if !sp.on || rec.NumRows() == 0 {
		return nil
	}
	sp.begin(rec.Schema(), from)
	return sp.keep(array.NewRecordBatch(sp.schema, rec.Columns()[from:], rec.NumRows()))
}

// keep takes a batch over.
func (sp *spool) keep(rec arrow.RecordBatch) error {
	sp.rows += rec.NumRows()
	if sp.out == nil {
		sp.batches = append(sp.batches, rec)
		for _, c := range rec.Columns() {
			sp.bytes += int64(c.Data().SizeInBytes())
		}
		if sp.bytes < spoolLimit {
			return nil
		}
		return sp.spill()
	}
	defer rec.Release()
	if err := sp.out.Write(rec); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

// spill moves the rows to a file.
func (sp *spool) spill() error {
	f, err := sp.gw.tempFile("rows-*.arrow")
	if err != nil {
		return fmt.Errorf("make temporary file: %w", err)
	}
	sp.file = f
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("unlink temporary file: %w", err)
	}
	sp.out = ipc.NewWriter(f, ipc.WithSchema(sp.schema))
	for _, b := range sp.batches {
		if err := sp.out.Write(b); err != nil {
			return fmt.Errorf("write temporary file: %w", err)
		}
	}
	sp.drop()
	return nil
}

func (sp *spool) drop() {
	for _, b := range sp.batches {
		b.Release()
	}
	sp.batches = nil
}

func (sp *spool) free() {
	sp.drop()
	if sp.file != nil {
		_ = sp.file.Close() // it has no name: nothing is left
		sp.file, sp.out = nil, nil
	}
}

// source is the rows as a relation; it may be read many times, and nothing more may be added.
func (sp *spool) source() *sqlfuncs.Rows {
	return &sqlfuncs.Rows{Schema: sp.schema, N: sp.rows, Batches: sp.read}
}

func (sp *spool) read(context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if sp.file == nil {
			for _, b := range sp.batches {
				if !yield(b, nil) {
					return
				}
			}
			return
		}
		if sp.out != nil {
			if err := sp.out.Close(); err != nil {
				yield(nil, fmt.Errorf("write temporary file: %w", err))
				return
			}
			sp.out = nil
		}
		rd, err := ipc.NewReader(io.NewSectionReader(sp.file, 0, 1<<62))
		if err != nil {
			yield(nil, fmt.Errorf("read temporary file: %w", err))
			return
		}
		defer rd.Release()
		for rd.Next() {
			if !yield(rd.RecordBatch(), nil) {
				return
			}
		}
		if err := rd.Err(); err != nil {
			yield(nil, fmt.Errorf("read temporary file: %w", err))
		}
	}
}

// spoolRows streams spooled rows as they are, through DuckDB's encoders.
func (s *session) spoolRows(ctx context.Context, b binding, sp *spool) (rowSource, error) {
	if sp.rows == 0 {
		sp.free()
		return noRows{}, nil
	}
	id, release, err := s.gw.duck.RegisterRelation(sp.schema, sp.rows, opener(sp.source()))
	if err != nil {
		return nil, err
	}
	_, cancel := context.WithCancelCause(context.Background())
	d := &duckRows{s: s, cols: b.cols, types: typesOf(b.cols), fmts: formatsOf(b.cols), cancel: cancel, free: []func(){release, sp.free}}
	if d.conn, err = s.conns.take(ctx); err != nil {
		d.close()
		return nil, err
	}
	var sel strings.Builder
	for i, c := range b.query().Columns {
		if i > 0 {
			sel.WriteString(", ")
		}
		name := "c" + strconv.Itoa(i)
		if c.Type == pgtype.Interval || c.Type == pgtype.IntervalArray {
			name = spooledCast(name, pgsql.RelColumn{Type: c.Type, Mod: c.Mod})
		}
		sel.WriteString(name)
	}
	if sel.Len() == 0 {
		sel.WriteString("1")
	}
	if d.stmt, err = d.conn.Prepare(ctx, "SELECT "+sel.String()+" FROM skade_rel('"+id+"')"); err != nil {
		d.close()
		return nil, err
	}
	if d.rows, err = d.stmt.Query(context.WithoutCancel(ctx), nil); err != nil {
		d.close()
		return nil, err
	}
	s.dress(d.rows, b.query().Columns)
	return d, nil
}

// noRows is an empty stream.
type noRows struct{}

func (noRows) appendRows(_ context.Context, dst []byte, _ int) ([]byte, int, bool, error) {
	return dst, 0, true, nil
}
func (noRows) close() {}
