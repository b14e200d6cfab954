package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgcopy"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// copyInto is the target of COPY FROM.
type copyInto struct {
	t     *warehouse.TxTable
	rel   *pgsql.Relation
	names []string // columns in the data's order
	// defaults are the columns that the guard fills row by row; guard is nil when rows need none.
	defaults []int
	guard    *rowGuard
}

// filled says whether the guard computes a column: a generated one, or a default that is another for each row.
func (into *copyInto) filled(col int) bool {
	return into.rel.Columns[col].Generated != "" || slices.Contains(into.defaults, col)
}

// copyBatch is rows on their way to the table, with the lines they came from.
type copyBatch struct {
	rec   arrow.RecordBatch
	lines []int64
	// raw says to keep the lines' text, for errors that show it.
	raw   bool
	text  []byte
	ends  []int
	table string
}

// add notes the row that rd gave last.
func (b *copyBatch) add(rd copyReader) {
	b.lines = append(b.lines, rd.Line())
	if b.raw {
		b.text = append(b.text, rd.(*pgcopy.Reader).Row()...)
		b.ends = append(b.ends, len(b.text))
	}
}

// locate gives an error about a row of the batch PostgreSQL's context: the line, and its text for what was found before rows are written.
func (b *copyBatch) locate(err error) error {
	row := -1
	var re *rowError
	var dup *warehouse.DuplicateKeyError
	switch {
	case errors.As(err, &re):
		row = re.row
	case errors.As(err, &dup):
		row = dup.Row
	}
	e := pgerr.As(MapError(err))
	if row < 0 || row >= len(b.lines) || e == nil || e.Where != "" {
		return err
	}
	c := *e
	c.Where = fmt.Sprintf("COPY %s, line %d", b.table, b.lines[row])
	if re != nil && row < len(b.ends) {
		from := 0
		if row > 0 {
			from = b.ends[row-1]
		}
		c.Where += ": \"" + pgcopy.Limit(string(b.text[from:b.ends[row]])) + "\""
	}
	return &c
}

// copyGuard gives the table a guard that also fills the columns whose default must be computed for each row. restore gives it its own back.
func (s *session) copyGuard(ctx context.Context, into *copyInto) (restore func(), err error) {
	for i, c := range into.rel.Columns {
		if slices.Contains(into.names, c.Name) || c.Default == "" {
			continue
		}
		_, constant, err := s.constantDefault(ctx, c)
		if err != nil {
			return nil, err
		}
		if !constant {
			into.defaults = append(into.defaults, i)
		}
	}
	if into.guard = s.guard(into.t); len(into.defaults) == 0 {
		return func() {}, nil
	}
	version := definitionVersion(into.t)
	into.guard = s.newRowGuard(into.t, into.defaults)
	s.setGuard(into.t, into.guard, version)
	return func() { s.setGuard(into.t, s.newRowGuard(into.t, nil), version) }, nil
}

// copySink appends batches on a goroutine of its own, so that parsing and writing overlap. stop must be called.
type copySink struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	in     chan copyBatch
	done   chan error
	closed bool
}

func (into *copyInto) start(ctx context.Context) *copySink {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &copySink{ctx: ctx, cancel: cancel, in: make(chan copyBatch, 2), done: make(chan error, 1)}
	go func() {
		var err error
		for b := range k.in {
			if err == nil {
				if err = into.t.Append(ctx, b.rec); err != nil {
					b.table = into.rel.Name
					err = b.locate(err)
					cancel(err)
				}
			}
			b.rec.Release()
		}
		k.done <- err
	}()
	return k
}

// send hands over a batch.
func (k *copySink) send(b copyBatch) error {
	select {
	case k.in <- b:
		return nil
	case <-k.ctx.Done():
		b.rec.Release()
		return context.Cause(k.ctx)
	}
}

// finish waits for the last batch.
func (k *copySink) finish() error {
	k.closed = true
	close(k.in)
	return <-k.done
}

// stop ends the goroutine and waits for it.
func (k *copySink) stop() {
	if !k.closed {
		k.cancel(errors.New("copy stopped"))
		_ = k.finish() // the error that stopped it is told already
	}
	k.cancel(nil)
}

// tempFile makes a file below the server's temporary folder, where DuckDB may read and write.
func (gw *Gateway) tempFile(pattern string) (*storeio.TempFile, error) {
	dir := filepath.Join(gw.dir, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return gw.fs.CreateTemp(dir, pattern)
}

// copyParquet spools an uploaded Parquet file, then reads it with DuckDB. The overall format is binary, or psql would change the bytes.
func (s *session) copyParquet(ctx context.Context, w pgwire.Writer, u *pgsql.Copy, into *copyInto) (int64, error) {
	f, err := s.gw.tempFile("copy-*.parquet")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	formats := slices.Repeat([]int16{1}, len(into.names))
	src, err := w.CopyIn(1, formats)
	if err != nil {
		return 0, err
	}
	if _, err := io.CopyBuffer(f, src, make([]byte, 256<<10)); err != nil {
		return 0, err
	}
	if err := checkParquet(f); err != nil {
		return 0, err
	}
	conn, err := s.conns.take(ctx)
	if err != nil {
		return 0, err
	}
	defer s.conns.give(conn)
	sql, err := s.parquetSelect(ctx, conn, f.Name(), u, into)
	if err != nil {
		return 0, err
	}
	st, err := conn.Prepare(ctx, sql)
	if err != nil {
		return 0, badParquet(err)
	}
	defer st.Close()
	rows, err := st.Query(ctx, nil)
	if err != nil {
		return 0, badParquet(err)
	}
	d := &duckRows{s: s, rows: rows, cancel: func(error) {}}
	defer rows.Close()
	sink := into.start(ctx)
	defer sink.stop()
	var n int64
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		out, err := conform(rec, 0, into.t.ArrowSchema())
		if err != nil {
			return err
		}
		n += out.NumRows()
		return sink.send(copyBatch{rec: out})
	})
	if err != nil {
		return 0, badParquet(err)
	}
	return n, sink.finish()
}

// checkParquet looks at the magic bytes at both ends: a truncated upload lacks the last.
func checkParquet(f *storeio.TempFile) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var head, tail [4]byte
	if st.Size() >= 12 {
		if _, err := f.ReadAt(head[:], 0); err != nil {
			return err
		}
		if _, err := f.ReadAt(tail[:], st.Size()-4); err != nil {
			return err
		}
	}
	if string(head[:]) != "PAR1" || string(tail[:]) != "PAR1" {
		return pgerr.New(pgerr.BadCopyFileFormat, "the data is not a Parquet file, or it was cut off").
			WithHint("In psql use \\copy … WITH (FORMAT parquet), which sends the file as it is.")
	}
	return nil
}

// badParquet is an error of the uploaded file itself: not the server's damage.
func badParquet(err error) error {
	e := pgerr.As(MapError(err))
	if e == nil {
		return err
	}
	switch e.Code {
	case pgerr.DataCorrupted, pgerr.InternalError, pgerr.UndefinedFile, pgerr.IOError:
		return pgerr.New(pgerr.BadCopyFileFormat, "the data is not a valid Parquet file").WithCause(err)
	}
	return err
}

// parquetSelect selects the table's columns from the file, by name, cast to the table's types.
func (s *session) parquetSelect(ctx context.Context, conn *sessionConn, path string, u *pgsql.Copy, into *copyInto) (string, error) {
	from := "read_parquet('" + strings.ReplaceAll(path, "'", "''") + "')"
	st, err := conn.Prepare(ctx, "SELECT * FROM "+from)
	if err != nil {
		return "", badParquet(err)
	}
	have := map[string]duck.Column{}
	for _, c := range st.Columns() {
		have[c.Name] = c
	}
	st.Close()
	sel := make([]string, len(into.rel.Columns))
	for i, c := range into.rel.Columns {
		stored := pgtype.DuckStorageName(c.Type, c.Mod)
		src, ok := have[c.Name]
		switch {
		case into.filled(i):
			sel[i] = "CAST(NULL AS " + stored + ")"
		case !slices.Contains(into.names, c.Name):
			raw, null, err := s.defaultOrNull(ctx, c)
			if err != nil {
				return "", err
			}
			sel[i] = "CAST(NULL AS " + stored + ")"
			if !null {
				sel[i] = "CAST('" + strings.ReplaceAll(string(raw), "'", "''") + "' AS " + stored + ")"
			}
		case !ok:
			return "", pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" is not in the Parquet file", c.Name, u.Table).
				WithDetail("The file has the columns %s.", strings.Join(columnNames(have), ", "))
		default:
			sel[i] = sqlToStored("CAST("+quoteIdent(src.Name)+" AS "+pgtype.DuckName(c.Type, c.Mod)+")", c.Type, c.Mod)
		}
	}
	return "SELECT " + strings.Join(sel, ", ") + " FROM " + from, nil
}

func (s *session) defaultOrNull(ctx context.Context, c pgsql.RelColumn) ([]byte, bool, error) {
	if c.Default == "" {
		return nil, true, nil
	}
	return s.defaultValue(ctx, c)
}

func columnNames(m map[string]duck.Column) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// copyToParquet writes a Parquet file with DuckDB and sends its bytes.
func (s *session) copyToParquet(ctx context.Context, b binding, w pgwire.Writer, u *pgsql.Copy) (int64, error) {
	q, err := s.copyQuery(ctx, b, u)
	if err != nil {
		return 0, err
	}
	if q.p.stmt.Kind != pgsql.Select {
		return 0, pgerr.New(pgerr.FeatureNotSupported, "COPY of a data-modifying statement in FORMAT parquet is not supported")
	}
	f, err := s.gw.tempFile("copy-*.parquet")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	n, err := s.writeParquet(ctx, q, f.Name())
	if err != nil {
		return 0, err
	}
	out, err := w.CopyOut(1, slices.Repeat([]int16{1}, len(q.cols)))
	if err != nil {
		return 0, err
	}
	// DuckDB may have replaced the file: open it by name.
	file, err := os.Open(f.Name())
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, file, make([]byte, 64<<10)); err != nil {
		return 0, err
	}
	return n, out.Close()
}

func (s *session) writeParquet(ctx context.Context, q binding, path string) (int64, error) {
	if err := s.beginParts(ctx, q); err != nil {
		return 0, err
	}
	q, _, free, err := s.withParts(ctx, q)
	if err != nil {
		return 0, err
	}
	defer free()
	binds, err := s.binds(ctx, q.p.query.Binds, q.args)
	if err != nil {
		return 0, err
	}
	r, err := s.render(ctx, q.p.query, q.args, q.spooled(q.p.query, nil))
	if err != nil {
		return 0, err
	}
	defer r.release()
	conn, err := s.conns.take(ctx)
	if err != nil {
		return 0, err
	}
	defer s.conns.give(conn)
	names := make([]string, len(q.cols))
	for i, c := range q.cols {
		names[i] = quoteIdent(c.Name)
	}
	sql := "COPY (SELECT * FROM (" + r.sql + ") AS q(" + strings.Join(names, ", ") + ")) TO '" + strings.ReplaceAll(path, "'", "''") + "' (FORMAT parquet, COMPRESSION zstd)"
	st, err := conn.Prepare(ctx, sql)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	rows, err := st.Query(ctx, binds)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	return rows.RowsChanged(), nil
}
