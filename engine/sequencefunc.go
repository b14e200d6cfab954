package engine

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// sequenceSession is what a session remembers about sequences: currval and lastval. DuckDB's threads use it while the session's goroutine
// waits for them.
type sequenceSession struct {
	sync.Mutex
	current map[uuid.UUID]int64 // by storedSequence.ID
	last    uint32              // OID that lastval is about
	lastID  uuid.UUID
	found   map[uint32]*storedSequence // of the running statement
}

// forget is DISCARD SEQUENCES.
func (q *sequenceSession) forget() {
	q.Lock()
	defer q.Unlock()
	q.current, q.last, q.lastID, q.found = nil, 0, uuid.Nil, nil
}

// statement starts a statement: names may mean something else by now.
func (q *sequenceSession) statement() {
	q.Lock()
	defer q.Unlock()
	q.found = nil
}

// sequenceByOID finds a sequence as the transaction sees it. It may run while the session's goroutine writes rows.
func (s *session) sequenceByOID(oid uint32) (*storedSequence, error) {
	s.sequences.Lock()
	defer s.sequences.Unlock()
	if q := s.sequences.found[oid]; q != nil {
		return q, nil
	}
	o := s.sequenceObject(oid)
	if o == nil {
		if _, ok := s.readTx().Cut().ByOID(oid).(*catalog.TableState); ok {
			return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a sequence", s.relationName(oid))
		}
		return nil, pgerr.Newf(pgerr.UndefinedTable, "could not open relation with OID %d", oid)
	}
	q, err := decodeSequence(o)
	if err != nil {
		return nil, err
	}
	if s.sequences.found == nil {
		s.sequences.found = map[uint32]*storedSequence{}
	}
	s.sequences.found[oid] = q
	return q, nil
}

func (s *session) relationName(oid uint32) string {
	if t, ok := s.readTx().Cut().TableByOID(oid); ok {
		return t.Ident[len(t.Ident)-1]
	}
	return itoa(int64(oid))
}

func (s *session) sequenceObject(oid uint32) *catalog.Object {
	tx := s.readTx()
	for _, o := range tx.OwnObjects(sequenceKind) {
		if sequenceOID(o) == oid {
			return o
		}
	}
	o, ok := tx.Cut().ByOID(oid).(*catalog.Object)
	if !ok || o.Kind != sequenceKind {
		return nil
	}
	if now, err := tx.Object(o.Kind, o.Namespace, o.Name); err != nil || sequenceOID(now) != oid {
		return nil // dropped by this transaction
	}
	return o
}

// nextvals draws n values.
func (s *session) nextvals(ctx context.Context, oid uint32, n int, each func(int64)) error {
	q, err := s.sequenceByOID(oid)
	if err != nil {
		return err
	}
	if err := s.sequenceWritable("nextval", q); err != nil {
		return err
	}
	last := int64(0)
	if err := s.sequenceRun(q).next(ctx, q, n, func(v int64) { last = v; each(v) }); err != nil {
		return err
	}
	s.sequences.Lock()
	defer s.sequences.Unlock()
	if s.sequences.current == nil {
		s.sequences.current = map[uuid.UUID]int64{}
	}
	s.sequences.current[q.ID] = last
	s.sequences.last, s.sequences.lastID = oid, q.ID
	return nil
}

func (s *session) sequenceWritable(fn string, q *storedSequence) error {
	if s.tx != nil && s.tx.readOnly() && !s.isTemp(q.ident) {
		return pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute %s() in a read-only transaction", fn)
	}
	return nil
}

func (s *session) currval(oid uint32) (int64, error) {
	q, err := s.sequenceByOID(oid)
	if err != nil {
		return 0, err
	}
	s.sequences.Lock()
	defer s.sequences.Unlock()
	v, ok := s.sequences.current[q.ID]
	if !ok {
		return 0, pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "currval of sequence \"%s\" is not yet defined in this session", q.name())
	}
	return v, nil
}

func (s *session) lastval() (int64, error) {
	s.sequences.Lock()
	oid, id := s.sequences.last, s.sequences.lastID
	v, ok := s.sequences.current[id]
	s.sequences.Unlock()
	if ok {
		q, err := s.sequenceByID(oid, id)
		if err != nil {
			return 0, err
		}
		ok = q
	}
	if !ok {
		return 0, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
	}
	return v, nil
}

// sequenceByID says whether a sequence is still there; its OID may have been provisional.
func (s *session) sequenceByID(oid uint32, id uuid.UUID) (bool, error) {
	if o := s.sequenceObject(oid); o != nil {
		q, err := decodeSequence(o)
		return err == nil && q.ID == id, err
	}
	for _, o := range s.readTx().Objects(sequenceKind) {
		if q, err := decodeSequence(o); err != nil || q.ID == id {
			return err == nil, err
		}
	}
	return false, nil
}

func (s *session) setval(ctx context.Context, oid uint32, v int64, called bool) error {
	q, err := s.sequenceByOID(oid)
	if err != nil {
		return err
	}
	if err := s.sequenceWritable("setval", q); err != nil {
		return err
	}
	if v < q.Min || v > q.Max {
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence \"%s\" (%d..%d)", v, q.name(), q.Min, q.Max)
	}
	if err := s.sequenceRun(q).set(ctx, q, v, called); err != nil {
		return err
	}
	if called {
		s.sequences.Lock()
		defer s.sequences.Unlock()
		if s.sequences.current == nil {
			s.sequences.current = map[uuid.UUID]int64{}
		}
		s.sequences.current[q.ID] = v
	}
	return nil
}

// sequenceScalars are nextval and its kin in DuckDB. Their first argument is the session's PID.
func (gw *Gateway) sequenceScalars() []duck.Scalar {
	one := func(name string, args []string, call func(ctx context.Context, s *session, args []arrow.Array, row int) (int64, bool, error)) duck.Scalar {
		return duck.Scalar{Name: name, Args: args, Result: "BIGINT", Volatile: true, Eval: func(in []arrow.Array, rows int) (arrow.Array, error) {
			b := array.NewInt64Builder(arrowAllocator)
			defer b.Release()
			for row := range rows {
				null := false
				for _, a := range in {
					null = null || a.IsNull(row)
				}
				if null {
					b.AppendNull()
					continue
				}
				s := gw.sessionByPID(int32(in[0].(*array.Int64).Value(row)))
				if s == nil {
					return nil, pgerr.New(pgerr.InternalError, "the session of a sequence function is gone")
				}
				v, ok, err := call(context.Background(), s, in, row)
				switch {
				case err != nil:
					return nil, MapError(err)
				case ok:
					b.Append(v)
				default:
					b.AppendNull()
				}
			}
			return b.NewInt64Array(), nil
		}}
	}
	oidAt := func(a []arrow.Array, row int) uint32 { return uint32(a[1].(*array.Int64).Value(row)) }
	return []duck.Scalar{
		{Name: "skade_nextval", Args: []string{"BIGINT", "BIGINT"}, Result: "BIGINT", Volatile: true, Eval: gw.nextvalColumn},
		one("skade_currval", []string{"BIGINT", "BIGINT"}, func(_ context.Context, s *session, a []arrow.Array, row int) (int64, bool, error) {
			v, err := s.currval(oidAt(a, row))
			return v, true, err
		}),
		one("skade_lastval", []string{"BIGINT"}, func(_ context.Context, s *session, _ []arrow.Array, _ int) (int64, bool, error) {
			v, err := s.lastval()
			return v, true, err
		}),
		one("skade_setval", []string{"BIGINT", "BIGINT", "BIGINT", "BOOLEAN"}, func(ctx context.Context, s *session, a []arrow.Array, row int) (int64, bool, error) {
			v := a[2].(*array.Int64).Value(row)
			return v, true, s.setval(ctx, oidAt(a, row), v, a[3].(*array.Boolean).Value(row))
		}),
		one("skade_sequence_last_value", []string{"BIGINT", "BIGINT"}, func(ctx context.Context, s *session, a []arrow.Array, row int) (int64, bool, error) {
			q, err := s.sequenceByOID(oidAt(a, row))
			if err != nil {
				return 0, false, err
			}
			st, _, err := s.sequenceRun(q).state(ctx, q)
			return st.Last, st.Called, err
		}),
	}
}

// nextvalColumn draws a chunk's values at once, so that a large INSERT reserves large ranges.
func (gw *Gateway) nextvalColumn(in []arrow.Array, rows int) (arrow.Array, error) {
	b := array.NewInt64Builder(arrowAllocator)
	defer b.Release()
	pids, oids := in[0].(*array.Int64), in[1].(*array.Int64)
	for row := 0; row < rows; {
		if pids.IsNull(row) || oids.IsNull(row) {
			b.AppendNull()
			row++
			continue
		}
		n := 1
		for row+n < rows && oids.IsValid(row+n) && oids.Value(row+n) == oids.Value(row) {
			n++
		}
		s := gw.sessionByPID(int32(pids.Value(row)))
		if s == nil {
			return nil, pgerr.New(pgerr.InternalError, "the session of a sequence function is gone")
		}
		if err := s.nextvals(context.Background(), uint32(oids.Value(row)), n, b.Append); err != nil {
			return nil, MapError(err)
		}
		row += n
	}
	return b.NewInt64Array(), nil
}
