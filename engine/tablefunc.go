package engine

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// functionItem opens one call of a function, whose arguments are vals.
func (s *session) functionItem(ctx context.Context, r *rendered, use *pgsql.RelUse, h *handle, vals []*sqlfuncs.Value, args []value, keys *joinKeys) (string, error) {
	if r.plan && h.function.Volatile {
		return "(SELECT NULL)", nil
	}
	env := s.env(ctx)
	s.noteReadOf(ctx, h)
	if h.function.Name == sqlfuncs.TableAt {
		at, err := s.stateAt(ctx, h, vals[1])
		if err != nil {
			return "", err
		}
		return s.tableItem(ctx, r, use, h.table, at, args, nil, keys)
	}
	rows, err := h.function.Open(ctx, env, h.shape, vals)
	if err != nil {
		return "", err
	}
	if rows.Warnings != nil {
		r.warnings = append(r.warnings, rows.Warnings)
	}
	if rows.N < 0 && use.Driver > 0 { // the side of the join that is streamed, in its order
		rows.N = manyRows
	}
	return s.relationItem(r, use, rows.Schema, rows.N, opener(rows))
}

// stateAt is the state that a call of table_at names.
func (s *session) stateAt(ctx context.Context, h *handle, bound *sqlfuncs.Value) (*pinnedState, error) {
	st, err := sqlfuncs.TableStateAt(ctx, s.env(ctx), h.table, bound)
	if err != nil {
		return nil, err
	}
	return &pinnedState{metadata: st.Metadata, snapshot: st.Snapshot, schema: h.shape.Table}, nil
}

// maxCalls bounds the calls of one driven source: each of them is opened before the query runs.
const maxCalls = 1000

// manyRows is DuckDB's estimate of a driven call.
const manyRows = 1 << 30

// drivenItem opens one call for each row of the part that drives a function: the union of their rows, numbered when the source is.
func (s *session) drivenItem(ctx context.Context, r *rendered, use *pgsql.RelUse, h *handle, args []value, driver *sqlfuncs.Rows, keys *joinKeys) (string, error) {
	if driver == nil { // EXPLAIN: nothing ran
		return "(SELECT NULL)", nil
	}
	calls, err := s.readCalls(ctx, use, driver)
	if err != nil {
		return "", err
	}
	one := *use
	number := use.Numbered && len(use.Columns) > 0 && use.Columns[len(use.Columns)-1] == len(use.Relation.Columns)-1
	if number {
		one.Columns = use.Columns[:len(use.Columns)-1]
	}
	var parts []string
	for _, call := range calls {
		vals := make([]*sqlfuncs.Value, len(use.Args))
		for i, a := range use.Args {
			if a != nil && a.Driven {
				vals[i] = call.vals[i]
			} else if vals[i], err = s.evaluateArg(ctx, a, args); err != nil {
				return "", err
			}
		}
		item, err := s.functionItem(ctx, r, &one, h, vals, args, keys)
		if err != nil {
			return "", err
		}
		if number {
			star := "*, "
			if len(one.Columns) == 0 {
				star = ""
			}
			item = "SELECT " + star + "CAST(" + call.number + " AS BIGINT) FROM " + item
		} else {
			item = "SELECT * FROM " + item
		}
		parts = append(parts, item)
	}
	if len(parts) == 0 {
		parts = []string{noCalls(use)}
	}
	return "(" + strings.Join(parts, " UNION ALL ") + ")", nil
}

// noCalls is a source without rows.
func noCalls(use *pgsql.RelUse) string {
	cols := make([]string, len(use.Columns))
	for k, c := range use.Columns {
		col := use.Relation.Columns[c]
		cols[k] = "CAST(NULL AS " + pgtype.DuckName(col.Type, col.Mod) + ")"
	}
	if len(cols) == 0 {
		cols = []string{"1"}
	}
	return "SELECT " + strings.Join(cols, ", ") + " WHERE false"
}

// drivenCall is a row of the part that drives a source: the driven arguments in their places, and its number.
type drivenCall struct {
	vals   []*sqlfuncs.Value
	number string
}

func (s *session) readCalls(ctx context.Context, use *pgsql.RelUse, driver *sqlfuncs.Rows) ([]drivenCall, error) {
	if driver.N > maxCalls {
		return nil, pgerr.Newf(pgerr.ProgramLimitExceeded, "function %s would be called with %d different lists of arguments", use.Func.Name, driver.N).
			WithDetail("The limit is %d.", maxCalls)
	}
	if driver.N == 0 {
		return nil, nil
	}
	id, release, err := s.gw.duck.RegisterRelation(driver.Schema, driver.N, opener(driver))
	if err != nil {
		return nil, err
	}
	defer release()
	var cols []string
	var oids []uint32
	for _, a := range use.Args {
		if a != nil && a.Driven {
			cols = append(cols, spooledCast("c"+strconv.Itoa(a.Column), pgsql.RelColumn{Type: a.Type, Mod: -1}))
			oids = append(oids, a.Type)
		}
	}
	if use.Numbered {
		cols, oids = append(cols, "c"+strconv.Itoa(driver.Schema.NumFields()-1)), append(oids, pgtype.Int8)
	}
	rows, err := s.readTexts(ctx, "SELECT "+strings.Join(cols, ", ")+" FROM skade_rel('"+id+"')", oids)
	if err != nil {
		return nil, err
	}
	out := make([]drivenCall, len(rows))
	for n, row := range rows {
		vals, k := make([]*sqlfuncs.Value, len(use.Args)), 0
		for i, a := range use.Args {
			if a == nil || !a.Driven {
				continue
			}
			v := value{oid: a.Type, null: row[k] == nil}
			if row[k] != nil {
				if v.v, err = s.decode(a.Type, pgenc.Text, row[k]); err != nil {
					return nil, err
				}
			}
			vals[i] = v.text(s.argStyle())
			k++
		}
		out[n].vals = vals
		if use.Numbered {
			out[n].number = string(row[k])
		}
	}
	return out, nil
}

// readTexts runs a DuckDB query of few rows and returns them in text form, nil for NULL.
func (s *session) readTexts(ctx context.Context, sql string, oids []uint32) ([][][]byte, error) {
	conn, err := s.conns.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.conns.give(conn)
	st, err := conn.Prepare(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	rows, err := st.Query(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out [][][]byte
	for {
		msg, _, done, err := rows.AppendDataRows(nil, nil, oids, s.gucs.loc, 0)
		if err != nil {
			return nil, err
		}
		for len(msg) > 0 {
			n := 1 + int(binary.BigEndian.Uint32(msg[1:]))
			out = append(out, dataRowFields(msg[:n]))
			msg = msg[n:]
		}
		if done {
			return out, nil
		}
	}
}

// dataRowFields are the fields of a DataRow message, nil for NULL.
func dataRowFields(msg []byte) [][]byte {
	fields := make([][]byte, binary.BigEndian.Uint16(msg[5:]))
	at := 7
	for i := range fields {
		n := int32(binary.BigEndian.Uint32(msg[at:]))
		at += 4
		if n >= 0 {
			fields[i] = msg[at : at+int(n) : at+int(n)]
			at += int(n)
		}
	}
	return fields
}
