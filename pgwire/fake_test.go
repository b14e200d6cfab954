package pgwire

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// fakeBackend answers the few statements of the protocol scripts as PostgreSQL does, and some that make trouble.
type fakeBackend struct {
	mu       sync.Mutex
	sessions map[int32]*fakeSession
	closed   int
	refuse   error // NewSession's answer when not nil
	maxBytes int   // bound of what repeat and generate_series return, 0 is none
}

func newFakeBackend() *fakeBackend { return &fakeBackend{sessions: map[int32]*fakeSession{}} }

func (b *fakeBackend) NewSession(_ context.Context, s Startup) (Session, error) {
	if b.refuse != nil {
		return nil, b.refuse
	}
	if s.Database == "nosuch" {
		return nil, pgerr.New(pgerr.InvalidCatalogName, `database "nosuch" does not exist`)
	}
	fs := &fakeSession{b: b, su: s, cancelled: make(chan *pgerr.Error, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[s.PID] = fs
	return fs, nil
}

func (b *fakeBackend) get(pid int32) *fakeSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[pid]
}

type fakeSession struct {
	news      atomic.Int64
	b         *fakeBackend
	su        Startup
	explicit  bool
	failed    bool
	table     [][2]string
	listening bool
	pending   []string
	status    []Param
	cancelled chan *pgerr.Error
}

func (s *fakeSession) ParameterStatus() []Param {
	return []Param{{"server_version", "15.18"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}}
}

func (s *fakeSession) Split(_ context.Context, sql string) ([]Statement, error) {
	parts := strings.Split(sql, ";")
	if strings.HasPrefix(sql, "do ") {
		parts = []string{sql}
	}
	var out []Statement
	at := 0
	for _, part := range parts {
		if strings.TrimSpace(part) != "" {
			st, err := s.prepare(part)
			if err != nil {
				return nil, pgerr.As(err).WithPosition(at + 1)
			}
			out = append(out, st)
		}
		at += len(part) + 1
	}
	return out, nil
}

func (s *fakeSession) Prepare(_ context.Context, sql string, _ []uint32) (Statement, error) {
	st, err := s.prepare(sql)
	if err != nil {
		return nil, err
	}
	if err := s.check(st.sql); err != nil {
		return nil, err
	}
	return st, nil
}

var (
	seriesRE = regexp.MustCompile(`^select generate_series\(1, ?(\d+)\)$`)
	bytesRE  = regexp.MustCompile(`^select repeat\('x', ?(\d+)\) from generate_series\(1, ?(\d+)\)$`)
)

func (s *fakeSession) prepare(sql string) (*fakeStatement, error) {
	sql = strings.TrimSpace(sql)
	st := &fakeStatement{sql: sql}
	int4 := func(name string) Column { return Column{Name: name, TypeOID: 23, TypeLen: 4, TypeMod: -1} }
	text := func(name string) Column { return Column{Name: name, TypeOID: 25, TypeLen: -1, TypeMod: -1} }
	switch {
	case strings.HasPrefix(sql, "selec "):
		return nil, pgerr.New(pgerr.SyntaxError, `syntax error at or near "selec"`).WithPosition(1)
	case sql == "select 1", sql == "select 1/n from generate_series(0,0) n":
		st.cols = []Column{int4("?column?")}
	case sql == "select $1::int4":
		st.cols, st.params = []Column{int4("int4")}, []uint32{23}
	case sql == "select $1::text", sql == "select $1::text, $2::text":
		st.cols, st.params = []Column{text("text")}, []uint32{25}
		if strings.Contains(sql, "$2") {
			st.cols, st.params = append(st.cols, text("text")), append(st.params, 25)
		}
	case seriesRE.MatchString(sql):
		st.cols = []Column{int4("generate_series")}
	case bytesRE.MatchString(sql):
		st.cols = []Column{text("repeat")}
	case sql == "select sleep":
		st.cols = []Column{text("sleep")}
	}
	return st, nil
}

// check is 25P02 in a failed transaction.
func (s *fakeSession) check(sql string) error {
	if s.failed && sql != "rollback" && sql != "commit" && sql != "" {
		return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
	}
	return nil
}

func (s *fakeSession) Bind(_ context.Context, st Statement, _ []int16, params [][]byte, formats []int16) (Portal, error) {
	f := st.(*fakeStatement)
	if err := s.check(f.sql); err != nil {
		return nil, err
	}
	p := &fakePortal{s: s, st: f, params: append([][]byte(nil), params...)}
	for i := range p.params {
		if p.params[i] != nil {
			p.params[i] = append([]byte{}, p.params[i]...)
			if err := pgenc.CheckUTF8(p.params[i]); err != nil && f.params[i] == 25 {
				return nil, err
			}
		}
	}
	p.cols = append([]Column(nil), f.cols...)
	for i := range p.cols {
		if len(formats) > 0 {
			p.cols[i].Format = formats[min(i, len(formats)-1)]
		}
	}
	return p, nil
}

func (s *fakeSession) LookupPortal(string) Portal          { return nil }
func (s *fakeSession) BeginImplicit(context.Context) error { return nil }
func (s *fakeSession) Sync(context.Context) error {
	if !s.explicit {
		s.failed = false
		s.deliver()
	}
	return nil
}

func (s *fakeSession) deliver() {
	for _, p := range s.pending {
		s.su.Wire.Notify(AppendNotification(nil, s.su.PID, "c", p))
	}
	s.pending = nil
	for _, p := range s.status {
		s.su.Wire.ParameterStatus(p.Name, p.Value)
	}
	s.status = nil
}

func (s *fakeSession) Fail(error) { s.failed = s.explicit }
func (s *fakeSession) TxStatus() byte {
	switch {
	case s.failed:
		return 'E'
	case s.explicit:
		return 'T'
	}
	return 'I'
}
func (s *fakeSession) Idle(bool) {}
func (s *fakeSession) Cancel(cause *pgerr.Error) {
	select {
	case s.cancelled <- cause:
	default:
	}
}

func (s *fakeSession) Close() error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.sessions, s.su.PID)
	s.b.closed++
	return nil
}

type fakeStatement struct {
	sql    string
	cols   []Column
	params []uint32
}

func (st *fakeStatement) ParamOIDs() []uint32 { return st.params }
func (st *fakeStatement) Columns() []Column   { return st.cols }
func (st *fakeStatement) Empty() bool         { return st.sql == "" }
func (st *fakeStatement) Close()              {}

type fakePortal struct {
	s      *fakeSession
	st     *fakeStatement
	cols   []Column
	params [][]byte
	next   int
}

func (p *fakePortal) Columns() []Column { return p.cols }
func (p *fakePortal) Close()            {}

func row(fields ...[]byte) []byte {
	msg, start := pgenc.BeginDataRow(nil, len(fields))
	for _, f := range fields {
		if f == nil {
			msg = pgenc.AppendNull(msg)
		} else {
			msg = pgenc.AppendField(msg, f)
		}
	}
	return pgenc.EndDataRow(msg, start)
}

func (p *fakePortal) int4(v int) []byte {
	if p.cols[0].Format == 1 {
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	}
	return strconv.AppendInt(nil, int64(v), 10)
}

func (p *fakePortal) Execute(ctx context.Context, w Writer, maxRows int64) (string, bool, error) {
	s, sql := p.s, p.st.sql
	select {
	case <-s.cancelled:
	default:
	}
	switch {
	case sql == "":
		return "", false, nil
	case sql == "select 1":
		return "SELECT 1", false, w.Rows(row(p.int4(1)), 1)
	case strings.HasPrefix(sql, "select 1/n"):
		return "", false, pgerr.New(pgerr.DivisionByZero, "division by zero")
	case sql == "select $1::int4":
		v := p.params[0]
		if len(v) == 4 && p.cols[0].Format == 0 {
			v = strconv.AppendInt(nil, int64(int32(binary.BigEndian.Uint32(v))), 10)
		}
		return "SELECT 1", false, w.Rows(row(v), 1)
	case strings.HasPrefix(sql, "select $1::text"):
		return "SELECT 1", false, w.Rows(row(p.params...), 1)
	case seriesRE.MatchString(sql):
		n, _ := strconv.Atoi(seriesRE.FindStringSubmatch(sql)[1])
		return p.series(w, n, maxRows)
	case bytesRE.MatchString(sql):
		return p.bytes(w)
	case sql == "select sleep":
		select {
		case cause := <-s.cancelled:
			return "", false, cause
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-time.After(30 * time.Second):
			return "SELECT 0", false, nil
		}
	case sql == "panic":
		panic("as asked")
	}
	return p.utility(w)
}

func (p *fakePortal) series(w Writer, n int, maxRows int64) (string, bool, error) {
	if limit := p.s.b.maxBytes; limit > 0 && n > limit {
		return "", false, pgerr.New(pgerr.ProgramLimitExceeded, "too much")
	}
	sent := 0
	for ; p.next < n; p.next++ {
		if maxRows > 0 && int64(sent) == maxRows {
			return "", true, nil
		}
		if err := w.Rows(row(p.int4(p.next+1)), 1); err != nil {
			return "", false, err
		}
		sent++
	}
	if maxRows > 0 && int64(sent) == maxRows {
		return "", true, nil
	}
	return fmt.Sprintf("SELECT %d", sent), false, nil
}

func (p *fakePortal) bytes(w Writer) (string, bool, error) {
	m := bytesRE.FindStringSubmatch(p.st.sql)
	size, _ := strconv.Atoi(m[1])
	n, _ := strconv.Atoi(m[2])
	if limit := p.s.b.maxBytes; limit > 0 && (size > limit || n > limit || size*n > limit) {
		return "", false, pgerr.New(pgerr.ProgramLimitExceeded, "too much")
	}
	one := row([]byte(strings.Repeat("x", size)))
	for range n {
		if err := w.Rows(one, 1); err != nil {
			return "", false, err
		}
	}
	return fmt.Sprintf("SELECT %d", n), false, nil
}

func (p *fakePortal) utility(w Writer) (string, bool, error) {
	s := p.s
	switch sql := p.st.sql; {
	case sql == "begin":
		if s.explicit {
			w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.ActiveSQLTransaction, Message: "there is already a transaction in progress"})
		}
		s.explicit = true
		return "BEGIN", false, nil
	case sql == "commit", sql == "rollback":
		tag := strings.ToUpper(sql)
		if s.failed {
			tag = "ROLLBACK"
		}
		if !s.explicit {
			w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.NoActiveSQLTransaction, Message: "there is no transaction in progress"})
		}
		s.explicit, s.failed = false, false
		s.deliver()
		return tag, false, nil
	case strings.HasPrefix(sql, "create temp table"):
		s.table = nil
		return "CREATE TABLE", false, nil
	case strings.HasPrefix(sql, "drop table"):
		return "DROP TABLE", false, nil
	case sql == "insert into t values (1, 'x')":
		s.table = append(s.table, [2]string{"1", "x"})
		return "INSERT 0 1", false, nil
	case strings.HasPrefix(sql, "do "):
		w.Notice(&pgerr.Error{Severity: pgerr.SevNotice, Code: pgerr.SuccessfulCompletion, Message: "hi"})
		return "DO", false, nil
	case sql == "listen c":
		s.listening = true
		return "LISTEN", false, nil
	case sql == "notify c, 'p'":
		if s.listening {
			s.pending = append(s.pending, "p")
		}
		return "NOTIFY", false, nil
	case strings.HasPrefix(sql, "set application_name to "):
		s.status = append(s.status, Param{"application_name", strings.Trim(strings.TrimPrefix(sql, "set application_name to "), "'")})
		return "SET", false, nil
	case sql == "copy t from stdin":
		return p.copyIn(w)
	case sql == "copy t to stdout":
		return p.copyOut(w)
	}
	return "", false, pgerr.Newf(pgerr.FeatureNotSupported, "the script knows no %q", p.st.sql)
}

func (p *fakePortal) copyIn(w Writer) (string, bool, error) {
	r, err := w.CopyIn(0, []int16{0, 0})
	if err != nil {
		return "", false, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		if e := pgerr.As(err); e != nil && e.Code == pgerr.QueryCanceled {
			c := *e
			c.Where = "COPY t, line 1"
			err = &c
		}
		return "", false, err
	}
	n := 0
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if line == "" || line == `\.` {
			continue
		}
		a, b, ok := strings.Cut(line, "\t")
		if _, err := strconv.Atoi(a); err != nil {
			e := pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type integer: \"%s\"", a)
			e.Where = fmt.Sprintf("COPY t, line %d, column a: \"%s\"", n+1, a)
			return "", false, e
		}
		if !ok {
			e := pgerr.New(pgerr.BadCopyFileFormat, `missing data for column "b"`)
			e.Where = fmt.Sprintf("COPY t, line %d: \"%s\"", n+1, line)
			return "", false, e
		}
		p.s.table = append(p.s.table, [2]string{a, b})
		n++
	}
	return fmt.Sprintf("COPY %d", n), false, nil
}

func (p *fakePortal) copyOut(w Writer) (string, bool, error) {
	out, err := w.CopyOut(0, []int16{0, 0})
	if err != nil {
		return "", false, err
	}
	for _, r := range p.s.table {
		if _, err := io.WriteString(out, r[0]+"\t"+r[1]+"\n"); err != nil {
			return "", false, err
		}
	}
	return fmt.Sprintf("COPY %d", len(p.s.table)), false, out.Close()
}
