package warehouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// TxTable is one table inside a transaction: its state at the cut plus the transaction's own writes.
type TxTable struct {
	tx    *Tx
	key   catalog.TableKey
	ident icetable.Identifier
	oid   uint32              // of a private table
	base  *catalog.TableState // nil for a table this transaction created

	baseMeta icetable.Metadata // at the cut, or as created
	alters   []icetable.Update
	tableMeta
	opened  tableMeta // as it was opened
	guard   Guard
	baseSet *liveset.Set

	branch        string // what it is read from
	sessionBranch string // the transaction's branch when it was opened
	newBranch     string // the branch that a write makes
	noBranch      error  // why it cannot be written on the transaction's branch
	head          head
	openedHead    head
	openedSet     *liveset.Set
	refs          []refOp
	undropped     bool // by this transaction

	mu      sync.Mutex // guards everything below while Append runs in several goroutines
	st      *state
	spill   *spill            // a flush under way, nil when none
	ownSet  *liveset.Set      // the own files alone; nil: to be made
	liveSet *liveset.Set      // base and own writes; nil: to be made
	memFile *liveset.File     // the log as it was shown last
	shown   map[string]*moves // where rows went that were shown in a log, by the log's path
}

// tableMeta is a table's metadata and what follows from it. What it refers to is never modified: transactions share it.
type tableMeta struct {
	meta      icetable.Metadata // with the transaction's alterations
	schema    *iceberg.Schema
	arrow     *arrow.Schema
	keyIDs    []int
	keyFields []iceberg.NestedField
	keyCols   []int // of the identifier fields in the schema
	keyArrow  *arrow.Schema
	router    *router
	order     []parquetio.OrderField // the sort order, nil when rows go by their key
	orderID   int

	unwritable error // nil when the table can be written
}

// PropertyKeyName is the table property that names the key's constraint when it is not <table>_pkey.
const PropertyKeyName = "skade.constraint"

// PropertyDefinition is the table property that counts the changes of what SQL declares beyond Iceberg's schema (defaults, constraints).
// A transaction whose rows were made under another count gets ErrConflict at commit.
const PropertyDefinition = "skade.definition"

// Guard completes and checks rows on their way into a table: what Append, Upsert and Update are given passes through it whole, batch by
// batch, before anything of it is written. It returns a batch of the same rows and schema, which the caller releases. It may be called
// from several goroutines. A guard checks NOT NULL, too (FirstNull).
type Guard func(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error)

// SetGuard sets the table's guard, nil for none but NOT NULL. It lasts until the transaction ends.
func (t *TxTable) SetGuard(g Guard) { t.guard = g }

// guarded passes rows through the guard and takes over rec: the batch that comes back is the one to release, after an error as well.
func (t *TxTable) guarded(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	var out arrow.RecordBatch
	err := error(nil)
	if t.guard != nil {
		out, err = t.guard(ctx, rec)
	} else if err = t.checkNotNull(rec); err == nil {
		rec.Retain()
		out = rec
	}
	if err != nil {
		return rec, err
	}
	rec.Release()
	return out, t.checkFinite(out)
}

// spill is a row log on its way into data files. Its rows stay findable until they are.
type spill struct {
	log  *rowLog
	rows int32
	dead func(int32) bool
	done chan struct{}
}

// openTable makes the transaction's view of a table at its cut.
func (tx *Tx) openTable(ctx context.Context, state *catalog.TableState) (*TxTable, error) {
	meta, err := state.Metadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("load metadata of %v: %w", state.Ident, err)
	}
	t := &TxTable{tx: tx, key: state.Key, ident: state.Ident, base: state, baseMeta: meta}
	if known, ok := tx.w.metas.get(state.MetadataLocation); ok && known.meta == meta { // a file may be seen at an older head
		t.tableMeta = known
	} else if t.setMetadata(meta); t.unwritable == nil {
		tx.w.metas.put(state.MetadataLocation, t.tableMeta)
	}
	t.opened, t.baseSet, t.sessionBranch = t.tableMeta, liveset.Empty(), tx.branch
	if err := t.chooseBranch(state); err != nil {
		return nil, err
	}
	if id := t.head.snapshot; id != nil {
		if t.baseSet, err = tx.w.opts.Live.At(ctx, t.Ref(), *id); err != nil {
			return nil, fmt.Errorf("live set of %v: %w", state.Ident, err)
		}
	}
	t.openedHead, t.openedSet = t.head, t.baseSet
	t.st = newState(t.keyed())
	return t, nil
}

// setMetadata derives what follows from the schema and the spec. A table this package cannot write (format v1, a nested
// identifier field, a type without an Arrow form) stays readable: unwritable says why.
func (t *TxTable) setMetadata(meta icetable.Metadata) {
	t.tableMeta = tableMeta{meta: meta, schema: meta.CurrentSchema(), keyArrow: arrow.NewSchema(nil, nil)}
	t.unwritable = t.deriveMeta()
}

func (t *TxTable) deriveMeta() error {
	sc := t.schema
	var err error
	if t.arrow, err = parquetio.ArrowSchema(sc, false); err != nil {
		return fmt.Errorf("%w: arrow schema of %v: %w", ErrInvalidTable, t.ident, err)
	}
	ids := slices.Clone(sc.IdentifierFieldIDs)
	fields, cols, err := fieldsOf(sc, ids)
	if err != nil {
		return err
	}
	keyArrow := make([]arrow.Field, len(cols))
	for i, c := range cols {
		keyArrow[i] = t.arrow.Field(c)
	}
	t.keyIDs, t.keyFields, t.keyCols, t.keyArrow = ids, fields, cols, arrow.NewSchema(keyArrow, nil)
	if t.router, err = newRouter(sc, t.meta.PartitionSpec()); err != nil {
		return err
	}
	t.order, t.orderID = writeOrder(sc, t.meta.SortOrder())
	if t.meta.Version() < 2 {
		return fmt.Errorf("%w: tables of format version 1 are read-only", ErrInvalidTable)
	}
	return nil
}

// writable refuses writes to an ended or read-only transaction and to a table that cannot be written.
func (t *TxTable) writable() error {
	if err := t.tx.rowsWritable(); err != nil {
		return err
	}
	if err := t.ownTable(); err != nil {
		return err
	}
	switch {
	case t.unwritable != nil:
		return t.unwritable
	case t.noBranch != nil:
		return t.noBranch
	case t.sealed():
		return &RefError{Err: ErrRefState, Message: fmt.Sprintf("table %q cannot be written after a branch or tag was made of this transaction's rows", t.name()),
			Hint: "Write first, then make the branch or tag, then commit."}
	}
	return nil
}

// altered says whether the transaction changed the table in any way.
func (t *TxTable) altered() bool { return t.Changed() || len(t.alters) > 0 || len(t.refs) > 0 }

// Ident is the table's name inside the transaction.
func (t *TxTable) Ident() icetable.Identifier { return t.ident }

func (t *TxTable) name() string { return t.ident[len(t.ident)-1] }

// keyName is the name of the key's constraint.
func (t *TxTable) keyName() string {
	if n := t.meta.Properties()[PropertyKeyName]; n != "" {
		return n
	}
	return t.name() + "_pkey"
}

func (t *TxTable) schemaName() string { return strings.Join(t.ident[:len(t.ident)-1], ".") }

// State is the table at the transaction's cut, nil for a table this transaction created.
func (t *TxTable) State() *catalog.TableState { return t.base }

// Private says that the table is the session's own.
func (t *TxTable) Private() bool { return t.tx.side != nil }

// PrivateOID is a private table's OID, 0 for others.
func (t *TxTable) PrivateOID() uint32 { return t.oid }

// Key is the table's key, its uuid in lower case.
func (t *TxTable) Key() catalog.TableKey { return t.key }

// Schema is the current schema, with this transaction's alterations.
func (t *TxTable) Schema() *iceberg.Schema { return t.schema }

// Metadata is the table's metadata at the cut with this transaction's alterations, without its rows.
func (t *TxTable) Metadata() icetable.Metadata { return t.meta }

// ArrowSchema is the schema Append, Upsert and Update take: the table's columns in order, with field ids.
func (t *TxTable) ArrowSchema() *arrow.Schema { return t.arrow }

// KeySchema is the schema FindKeys and DeleteKeys take: the identifier fields in order. It has no fields when the table
// has no key.
func (t *TxTable) KeySchema() *arrow.Schema { return t.keyArrow }

// Ref names the table to liveset.
func (t *TxTable) Ref() liveset.Ref { return liveset.Ref{UUID: t.meta.TableUUID(), Metadata: t.meta} }

// BaseSet is the table at the transaction's cut, without its own writes.
func (t *TxTable) BaseSet() *liveset.Set { return t.baseSet }

func (t *TxTable) keyed() bool { return len(t.keyIDs) > 0 }

func (t *TxTable) v3() bool { return t.meta.Version() >= 3 }

// Live is the table as this transaction sees it. A few rows in memory are a file of the set that is in memory (liveset.File.InMemory); many are
// written to a data file first. The set stays valid, and its files readable, until the transaction ends.
func (t *TxTable) Live(ctx context.Context) (*liveset.Set, error) {
	if err := t.tx.usable(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.liveLocked(ctx)
}

func (t *TxTable) liveLocked(ctx context.Context) (*liveset.Set, error) {
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	if t.st.log.bytes() > sharedLogLimit {
		if err := t.flushLocked(ctx); err != nil {
			return nil, err
		}
	}
	if t.liveSet == nil {
		base := t.baseSet
		if t.st.truncated {
			base = liveset.Empty()
		}
		ov := liveset.Overlay{Suppress: t.st.suppress}
		for _, o := range t.st.own {
			ov.Add = append(ov.Add, o.file)
		}
		mem, err := t.memFileLocked()
		if err != nil {
			return nil, err
		}
		if mem == nil && len(ov.Add) == 0 && len(ov.Suppress) == 0 {
			t.liveSet = base
		} else {
			ov.Suppress = t.st.shareBitmaps() // the set outlives later writes
			if mem != nil {
				ov.Add = append(ov.Add, mem)
				if t.st.dead != nil {
					ov.Suppress[mem.Path] = t.st.dead.Clone()
				}
			}
			t.liveSet = base.With(ov)
		}
	}
	return t.liveSet, nil
}

// ownSetLocked is the set of the own files alone.
func (t *TxTable) ownSetLocked() *liveset.Set {
	if t.ownSet == nil {
		ov := liveset.Overlay{}
		for _, o := range t.st.own {
			ov.Add = append(ov.Add, o.file)
		}
		t.ownSet = liveset.Empty().With(ov)
	}
	return t.ownSet
}

// Changed says whether the transaction changed the table's rows.
func (t *TxTable) Changed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.st.changed() || t.spill != nil
}

// writableLocked makes t.st a state that may be modified: after a savepoint, a clone.
func (t *TxTable) writableLocked(ctx context.Context) error {
	if t.st.err != nil {
		return t.st.err
	}
	if !t.st.frozen {
		return nil
	}
	// The savepoint keeps a small log in memory; a large one becomes a data file that both states share.
	if t.st.log.bytes() > sharedLogLimit {
		if err := t.flushLocked(ctx); err != nil {
			return err
		}
	}
	t.st = t.st.clone()
	return nil
}

// sharedLogLimit bounds the rows in memory that one savepoint holds on to.
const sharedLogLimit = 1 << 20

// touched drops the sets derived from the state before a write.
func (t *TxTable) touched() { t.liveSet = nil }
