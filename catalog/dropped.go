package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// ErrNoSuchDropped is returned when no dropped table of that key can come back: there never was one, it was undropped, or
// its files were purged.
var ErrNoSuchDropped = errors.New("no such dropped table")

// DroppedTable is a table that was dropped without purge: its metadata and files are as they were. Read it only.
type DroppedTable struct {
	// State is the table as it was when it was dropped.
	State *TableState
	// Seq and Time are the commit that dropped it.
	Seq  uint64
	Time time.Time
}

// UndropTable brings a dropped table back under a free name, with its key, OID and snapshots. An empty Ident is its old name.
// ErrNoSuchDropped, ErrTableAlreadyExists, ErrNoSuchNamespace.
type UndropTable struct {
	Key   TableKey
	Ident table.Identifier
}

// PurgeDropped lets go of a dropped table: its directory is removed after the commit under the conditions of DropTable's Purge, and
// never that of a registered table. ErrNoSuchDropped.
type PurgeDropped struct{ Key TableKey }

// DroppedTables yields the dropped tables that can come back. Cuts that were read from the history (CutAt) know none.
func (k *Cut) DroppedTables() iter.Seq[*DroppedTable] {
	return func(yield func(*DroppedTable) bool) {
		k.s.dropped.Scan(func(_ string, d *DroppedTable) bool { return yield(d) })
	}
}

func (d *DroppedTable) encode() []byte {
	w := newWriter(kindDropped)
	w.fixed64(d.Seq)
	w.fixed64(uint64(d.Time.UnixMicro()))
	w.bytes(d.State.encode())
	return w.seal()
}

func decodeDropped(value []byte) (*DroppedTable, error) {
	r := newReader(kindDropped, value)
	d := &DroppedTable{Seq: r.fixed64(), Time: time.UnixMicro(int64(r.fixed64())).UTC()}
	inner := r.bytes()
	err := r.done()
	if err == nil {
		d.State, err = decodeTable(inner)
	}
	if err != nil {
		return nil, fmt.Errorf("dropped table: %w", err)
	}
	return d, nil
}

// stageDropped records the new value of a dropped table, nil for none. The families of the history do not hold it.
func (a *attempt) stageDropped(t *TableState, d *DroppedTable) {
	w := write{seq: a.seq, key: droppedKey(t.UUID), latest: true}
	if d == nil {
		a.state.dropped.Delete(string(t.Key))
	} else {
		a.state.dropped.Set(string(t.Key), d)
		w.encode = d.encode
	}
	a.writes = append(a.writes, w)
}

func (ch UndropTable) apply(_ context.Context, a *attempt) error {
	d, ok := a.state.dropped.Get(string(ch.Key))
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoSuchDropped, ch.Key)
	}
	t := d.State.with(a.seq)
	if len(ch.Ident) > 0 {
		if err := checkIdent(ch.Ident, 2); err != nil {
			return err
		}
		t.Ident = cloneIdent(ch.Ident)
	}
	if _, err := a.namespace(t.Ident[:len(t.Ident)-1]); err != nil {
		return err
	}
	if err := a.free(t.Ident); err != nil {
		return err
	}
	if o, ok := a.state.byKey.Get(string(t.Key)); ok {
		return fmt.Errorf("%w: uuid %s is table %s", icecat.ErrTableAlreadyExists, t.UUID, dotted(o.Ident))
	}
	a.putTable(t)
	a.entry(TableRecord{
		Kind: KindUndrop, Key: t.Key, UUID: t.UUID, Ident: t.Ident, OldIdent: d.State.Ident, NewMetadata: t.MetadataLocation,
		SchemaID: t.schemaID, SnapshotID: t.snapshotID, Operation: OperationUndrop,
	})
	return nil
}

func (ch PurgeDropped) apply(ctx context.Context, a *attempt) error {
	d, ok := a.state.dropped.Get(string(ch.Key))
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoSuchDropped, ch.Key)
	}
	if !d.State.registered {
		if err := a.planPurge(ctx, d.State); err != nil {
			return err
		}
	}
	a.stageDropped(d.State, nil)
	a.entry(TableRecord{Kind: KindPurge, Ident: d.State.Ident, Operation: OperationPurge})
	return nil
}
