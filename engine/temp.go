package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// Temporary tables, views and sequences are in the session's schema pg_temp_N, which is the private side of its transactions
// (warehouse.Private). A session that makes none has none: no folder, no schema, no cost.

// tempAlias is how SQL names the session's own temporary schema.
const tempAlias = "pg_temp"

// tempSchema is a session's temporary schema, made when the session first creates something temporary.
type tempSchema struct {
	*warehouse.Private
	name   string // pg_temp_N
	number int
	oid    uint32
	// sequences are the values of its sequences.
	sequences *sequenceValues
	// snapshot is the system catalogs of a transaction that changed nothing else; at and version say of which state.
	snapshot *pgcatalog.Snapshot
	at       uint64
	version  int64
}

// tempNumbers gives sessions the numbers of their temporary schemas, and OIDs to what is in them.
type tempNumbers struct {
	mu struct {
		sync.Mutex
		used []bool
	}
	oids atomic.Uint32
}

func (n *tempNumbers) take() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.mu.used, false)
	if i < 0 {
		i = len(n.mu.used)
		n.mu.used = append(n.mu.used, false)
	}
	n.mu.used[i] = true
	return i + 1
}

func (n *tempNumbers) has(number int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return number > 0 && number <= len(n.mu.used) && n.mu.used[number-1]
}

func (n *tempNumbers) give(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.used[number-1] = false
}

// OIDs without a commit: below firstTempOID those of objects whose transaction is open, from there on those of temporary objects.
const (
	firstProvisionalOID = 1 << 27
	firstTempOID        = firstProvisionalOID | 1<<26
)

func (n *tempNumbers) newOID() uint32 { return firstTempOID | n.oids.Add(1)&(1<<26-1) }

// temp is the session's temporary schema, nil when it has none.
func (s *session) temp() *tempSchema { return s.ownTemp.Load() }

// ensureTemp makes the session's temporary schema if it has none.
func (s *session) ensureTemp() *tempSchema {
	if s.temp() == nil {
		number := s.gw.temps.take()
		name := fmt.Sprintf("pg_temp_%d", number)
		s.ownTemp.Store(&tempSchema{name: name, number: number, oid: s.gw.temps.newOID(), Private: s.gw.warehouse.NewPrivate(warehouse.PrivateOptions{
			Namespace: name, NewOID: s.gw.temps.newOID,
			Dir: filepath.Join(s.gw.dir, "tmp", fmt.Sprintf("temp-%d-%d", s.startup.PID, number)),
		}), sequences: newSequenceValues(&memorySequences{states: map[uuid.UUID]catalog.SequenceState{}})})
	}
	if tx := s.tx.warehouseTx(); tx.Private() == nil {
		tx.Attach(s.temp().Private)
	}
	return s.temp()
}

// closeTemp removes the session's temporary objects at its end.
func (s *session) closeTemp() error {
	if s.temp() == nil {
		return nil
	}
	err := s.temp().Close()
	s.gw.temps.give(s.temp().number)
	s.ownTemp.Store(nil)
	return err
}

// private is the session's side of a new transaction.
func (s *session) private() *warehouse.Private {
	if s.temp() == nil {
		return nil
	}
	return s.temp().Private
}

// schemaName resolves pg_temp.
func (s *session) schemaName(schema string) string {
	if schema == tempAlias && s.temp() != nil {
		return s.temp().name
	}
	return schema
}

// isTemp says whether an identifier is in the session's temporary schema.
func (s *session) isTemp(ident table.Identifier) bool {
	return s.temp() != nil && len(ident) == 2 && ident[0] == s.temp().name
}

// tempTarget says whether a relation is a temporary table, which may be written in a read-only transaction, too.
func (s *session) tempTarget(rel *pgsql.Relation) bool {
	if rel == nil {
		return false
	}
	h, ok := rel.Handle.(*handle)
	return ok && h != nil && s.isTemp(h.table)
}

// othersTemp says whether a name is that of another session's temporary schema.
func (s *session) othersTemp(schema string) bool {
	digits, ok := strings.CutPrefix(schema, "pg_temp_")
	n, err := strconv.Atoi(digits)
	return ok && err == nil && (s.temp() == nil || n != s.temp().number) && s.gw.temps.has(n)
}

// createInTemp is where CREATE puts an object that is asked to be temporary, or whose schema is the session's temporary one; ok is
// false for others. As RangeVarAdjustRelationPersistence in PostgreSQL.
func (s *session) createInTemp(temp bool, schema, name string) (ident table.Identifier, ok bool, err error) {
	real := s.schemaName(schema)
	switch {
	case schema == tempAlias, temp && schema == "", s.temp() != nil && real == s.temp().name:
		return identOf(s.ensureTemp().name, name), true, nil
	case s.othersTemp(schema):
		return nil, false, pgerr.New(pgerr.InvalidTableDefinition, "cannot create relations in temporary schemas of other sessions")
	case temp:
		if _, err := s.createIn(schema, name); err != nil {
			if e := pgerr.As(err); e != nil && e.Code == pgerr.InvalidSchemaName {
				return nil, false, err
			}
		}
		return nil, false, pgerr.New(pgerr.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema")
	}
	return nil, false, nil
}

// createWhere is createIn for an object that may be temporary.
func (s *session) createWhere(temp bool, schema, name string) (table.Identifier, error) {
	if ident, ok, err := s.createInTemp(temp, schema, name); ok || err != nil {
		return ident, err
	}
	return s.createIn(schema, name)
}

// moveTarget is where SET SCHEMA puts an object. Nothing moves into or out of temporary schemas.
func (s *session) moveTarget(from table.Identifier, schema string) (table.Identifier, error) {
	if schema != tempAlias && !s.othersTemp(schema) && (s.temp() == nil || schema != s.temp().name) {
		to, err := s.createIn(schema, from[len(from)-1])
		if err != nil || !s.isTemp(from) {
			return to, err
		}
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
}

// usesTemp says whether a view's query reads something temporary.
func (s *session) usesTemp(ctx context.Context, sql string) (bool, error) {
	if s.temp() == nil {
		return false, nil
	}
	uses, err := pgsql.ViewUses(sql, &resolver{ctx: ctx, s: s})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(uses, func(u pgsql.RelUse) bool { return u.Relation.Schema == s.temp().name }), nil
}

// propOnCommit is the table property that keeps ON COMMIT of a temporary table: delete rows, or drop.
const propOnCommit = "skade.temp.on-commit"

// endTemp does what ON COMMIT asks for. It runs before the commit: it can fail, what follows on the temporary side cannot.
func (s *session) endTemp(ctx context.Context, t *txn) error {
	if t.wh == nil || t.wh.Private() == nil {
		return nil
	}
	for _, info := range t.wh.Tables() {
		if !s.isTemp(info.Ident) {
			continue
		}
		switch info.Own.Metadata().Properties()[propOnCommit] {
		case "delete rows":
			if info.Own.Clear() {
				t.wrote = true
			}
		case "drop":
			deps, _, err := s.dependents(ctx, dropTarget{info.Ident, info.Key}, "")
			if err != nil {
				return err
			}
			for _, d := range deps {
				if err := d.drop(ctx); err != nil {
					return err
				}
			}
			if err := s.dropTable(ctx, info.Ident, info.Key); err != nil {
				return err
			}
			t.wrote = true
		}
	}
	return nil
}

// discardTemp is DISCARD TEMP.
func (s *session) discardTemp(ctx context.Context) error {
	if s.temp() == nil {
		return nil
	}
	tx := s.tx.warehouseTx()
	ns := table.Identifier{s.temp().name}
	for _, d := range s.inSchema(tx, ns) {
		if err := d.drop(ctx); err != nil {
			return err
		}
	}
	s.tx.wrote = true
	return nil
}

// tempTableByOID finds a temporary table.
func (s *session) tempTableByOID(tx *warehouse.Tx, oid uint32) table.Identifier {
	if s.temp() == nil || oid < firstTempOID {
		return nil
	}
	for _, t := range tx.Tables() {
		if t.Own != nil && t.Own.PrivateOID() == oid {
			return t.Ident
		}
	}
	return nil
}

// refuseTemp is the error of a function that is about a table's snapshots.
func refuseTemp(name string) error {
	return pgerr.Newf(pgerr.FeatureNotSupported, "\"%s\" is a temporary table", name).
		WithDetail("Temporary tables have no snapshots: their changes are in no commit log.")
}

// tempSnapshot is the system catalogs of a session with temporary objects, kept until these or the cut change.
func (s *session) tempSnapshot(tx *warehouse.Tx) *pgcatalog.Snapshot {
	t, seq, version := s.temp(), tx.Cut().Seq(), s.temp().Version()
	if t.snapshot == nil || t.at != seq || t.version != version {
		t.snapshot, t.at, t.version = s.gw.syscat.Snapshot(s.gw.objects(tx, t)), seq, version
	}
	return t.snapshot
}

// onCommit keeps what ON COMMIT says.
func (s *session) onCommit(n *newTable, what string) error {
	if what == "" {
		return nil
	}
	if !s.isTemp(n.ident) {
		return pgerr.New(pgerr.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	n.props[propOnCommit] = what
	return nil
}

// systemSchema says whether a schema is reserved and not the session's temporary one.
func (s *session) systemSchema(schema string) bool {
	return reservedSchema(schema) && schema != tempAlias && (s.temp() == nil || schema != s.temp().name)
}

// sequenceRun is where a sequence's values are drawn from: in memory for a temporary one.
func (s *session) sequenceRun(q *storedSequence) *sequenceRun {
	if s.isTemp(q.ident) {
		return s.temp().sequences.run(q.State)
	}
	return s.gw.sequences.run(q.State)
}

// memorySequences is the sequenceStore of temporary sequences.
type memorySequences struct {
	sync.Mutex
	states map[uuid.UUID]catalog.SequenceState
}

func (m *memorySequences) Sequence(_ context.Context, id uuid.UUID) (catalog.SequenceState, bool, error) {
	m.Lock()
	defer m.Unlock()
	st, ok := m.states[id]
	return st, ok, nil
}

func (m *memorySequences) SetSequence(_ context.Context, id uuid.UUID, _ *catalog.SequenceState, now catalog.SequenceState) error {
	m.Lock()
	defer m.Unlock()
	m.states[id] = now
	return nil
}

// writableTarget is writable for a statement that writes one relation: a temporary table may be written whatever the transaction
// reads or must leave alone.
func (t *txn) writableTarget(command string, target *pgsql.Relation) error {
	if t.s.tempTarget(target) {
		t.wrote = true
		return nil
	}
	return t.writable(command)
}

// namesTemp says whether a default, as it is stored, names one of the session's temporary sequences.
func (s *session) namesTemp(text string) bool {
	t := s.temp()
	return t != nil && strings.Contains(text, "'"+t.name+".")
}

// createdTable is a table that no cut knows: temporary, or created by this transaction; nil for others.
func (s *session) createdTable(ctx context.Context, ident table.Identifier) (*sqlfuncs.CreatedTable, error) {
	t, err := s.table(ctx, ident)
	if err != nil || t.State() != nil {
		return nil, err
	}
	set, err := t.Live(ctx)
	return &sqlfuncs.CreatedTable{Ref: t.Ref(), Live: set, OID: tableOID(t)}, err
}

// storedState is a table's state at the transaction's cut, nil when the cut does not know it.
func (s *session) storedState(ctx context.Context, ident table.Identifier) (*catalog.TableState, error) {
	t, err := s.table(ctx, ident)
	if err != nil || t.State() == nil {
		return nil, err
	}
	st, _ := s.readTx().Cut().TableByKey(t.Key())
	return st, nil
}
