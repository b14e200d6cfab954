package duck

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTest opens a DB that may read dir, and checks at the end that nothing leaked.
func openTest(t testing.TB, o Options) *DB {
	t.Helper()
	if o.Threads == 0 {
		o.Threads = 2
	}
	db, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.Zero(t, setsAlive())
		require.Zero(t, bitmapsAlive())
	})
	return db
}

func connTest(t testing.TB, db *DB) *Conn {
	t.Helper()
	c, err := db.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// request is how a test reads rows.
type request struct {
	formats []int16
	types   []uint32
	tz      *time.Location
	args    []any
	max     int
}

// rowsOf runs sql and cuts the DataRow messages into fields; nil is NULL.
func rowsOf(c *Conn, sql string, q request) ([][][]byte, error) {
	ctx := context.Background()
	s, err := c.Prepare(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r, err := s.Query(ctx, q.args)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out [][][]byte
	for {
		buf, n, done, err := r.AppendDataRows(nil, q.formats, q.types, q.tz, q.max)
		rows, perr := parseRows(buf)
		if perr != nil {
			return out, perr
		}
		if len(rows) != n {
			return out, fmt.Errorf("%d rows announced, %d sent", n, len(rows))
		}
		out = append(out, rows...)
		if err != nil || done {
			return out, err
		}
	}
}

func parseRows(b []byte) ([][][]byte, error) {
	var rows [][][]byte
	for len(b) > 0 {
		if len(b) < 7 || b[0] != 'D' {
			return nil, fmt.Errorf("no DataRow at % x", b[:min(8, len(b))])
		}
		msg := b[5 : 1+binary.BigEndian.Uint32(b[1:])]
		b = b[1+binary.BigEndian.Uint32(b[1:]):]
		n := int(binary.BigEndian.Uint16(msg))
		msg = msg[2:]
		row := make([][]byte, n)
		for i := range row {
			l := int32(binary.BigEndian.Uint32(msg))
			msg = msg[4:]
			if l >= 0 {
				row[i] = append([]byte{}, msg[:l]...)
				msg = msg[l:]
			}
		}
		if len(msg) > 0 {
			return nil, fmt.Errorf("%d bytes left in a DataRow", len(msg))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// textOf is rowsOf in text with NULL as "∅".
func textOf(t testing.TB, c *Conn, sql string, args ...any) [][]string {
	t.Helper()
	rows, err := rowsOf(c, sql, request{args: args})
	require.NoError(t, err, sql)
	var out [][]string
	for _, r := range rows {
		var s []string
		for _, f := range r {
			if f == nil {
				s = append(s, "∅")
			} else {
				s = append(s, string(f))
			}
		}
		out = append(out, s)
	}
	return out
}

// writeParquet makes a Parquet file with an instance of its own, outside any lock. options are COPY's.
func writeParquet(t testing.TB, path, query, options string) {
	t.Helper()
	db := rawDB(t)
	_, err := db.exec(context.Background(), fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet, %s)", query, quoteLiteral(path), options))
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Positive(t, st.Size())
}
