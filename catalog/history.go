package catalog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog/store"
)

// cutCacheSize is how many older cuts CutAt keeps.
const cutCacheSize = 64

// cutCache keeps cuts that were read from the history. A cut never changes, so neither does an entry.
type cutCache struct {
	mu struct {
		sync.Mutex
		cuts  map[uint64]*Cut
		order []uint64
	}
}

func (c *cutCache) get(seq uint64) (*Cut, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cut, ok := c.mu.cuts[seq]
	return cut, ok
}

func (c *cutCache) put(cut *Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.cuts == nil {
		c.mu.cuts = map[uint64]*Cut{}
	}
	if _, ok := c.mu.cuts[cut.Seq()]; ok {
		return
	}
	if len(c.mu.order) == cutCacheSize {
		delete(c.mu.cuts, c.mu.order[0])
		c.mu.order = c.mu.order[1:]
	}
	c.mu.cuts[cut.Seq()] = cut
	c.mu.order = append(c.mu.order, cut.Seq())
}

func (k TableKey) uuid() (uuid.UUID, error) {
	id, err := uuid.Parse(string(k))
	if err != nil {
		return id, fmt.Errorf("%w: table key %q", ErrInvalidRequest, string(k))
	}
	return id, nil
}

// CutAt returns the catalog as it was at a seq; 0 is the empty catalog. The newest cuts are in memory, others are read from
// the history: two seeks an entity. ErrSeqNotFound, ErrExpired.
func (c *Catalog) CutAt(ctx context.Context, seq uint64) (*Cut, error) {
	if now := c.Cut(); now.Seq() == seq {
		return now, nil
	}
	if seq == 0 {
		if c.OldestSeq() > 1 {
			return nil, fmt.Errorf("seq 0, the oldest is %d: %w", c.OldestSeq(), ErrExpired)
		}
		return &Cut{s: newState()}, nil
	}
	if err := c.retained(seq); err != nil {
		return nil, err
	}
	if cut, ok := c.mirror.recentCut(seq); ok {
		return cut, nil
	}
	if cut, ok := c.older.get(seq); ok {
		return cut, nil
	}
	rec, err := c.Record(ctx, seq)
	if err != nil {
		return nil, err
	}
	st := newState()
	st.seq, st.time, st.first = seq, rec.Time, c.OldestSeq()
	for _, family := range []byte{familyNamespace, familyTable, familyObject} {
		if err := c.readHistory(ctx, family, seq, st); err != nil {
			return nil, err
		}
	}
	st.adopt(c)
	cut := &Cut{s: st}
	c.older.put(cut)
	return cut, nil
}

// CutAtTime returns the catalog as it was at an instant: the cut of SeqAt.
func (c *Catalog) CutAtTime(ctx context.Context, t time.Time) (*Cut, error) {
	seq, err := c.SeqAt(ctx, t)
	if err != nil {
		return nil, err
	}
	return c.CutAt(ctx, seq)
}

// readHistory puts every entity of a family, as it was at seq, into st.
func (c *Catalog) readHistory(ctx context.Context, family byte, seq uint64, st *state) error {
	from := []byte{familyHistory, family}
	end := store.PrefixEnd(from)
	for {
		res, err := c.store.Range(ctx, store.RangeRequest{From: from, To: end, Limit: 1, KeysOnly: true})
		if err != nil {
			return storeError(c.store, from, err)
		}
		if len(res.Pairs) == 0 {
			return nil
		}
		entity, _, err := splitHistory(res.Pairs[0].Key)
		if err != nil {
			return storeError(c.store, res.Pairs[0].Key, err)
		}
		value, err := c.versionAt(ctx, entity, seq)
		if err != nil {
			return err
		}
		if value != nil {
			if err := st.put(entity, value); err != nil {
				return storeError(c.store, entity, err)
			}
		}
		from = store.PrefixEnd(historyPrefix(entity))
	}
}

// ObjectVersions calls f for every retained version of the objects of a kind, those that are gone included; an object's versions come in
// order of their seqs.
func (c *Catalog) ObjectVersions(ctx context.Context, kind string, f func(o *Object) error) error {
	from := []byte{familyHistory, familyObject}
	return store.All(ctx, c.store, store.RangeRequest{From: from, To: store.PrefixEnd(from)}, func(p store.Pair) error {
		if len(p.Value) > 0 && p.Value[0] == kindTombstone {
			return nil
		}
		o, err := decodeObject(p.Value)
		if err != nil {
			return storeError(c.store, p.Key, err)
		}
		if o.Kind != kind {
			return nil
		}
		return f(o)
	})
}

// versionAt returns an entity's value at a seq, nil when it did not exist. ErrExpired when the log was trimmed meanwhile: the version
// may have gone with it.
func (c *Catalog) versionAt(ctx context.Context, entity []byte, seq uint64) ([]byte, error) {
	value, err := c.version(ctx, entity, seq)
	if err != nil {
		return nil, err
	}
	return value, c.retained(seq)
}

// version returns an entity's newest value at or before a seq that is still there, nil without one.
func (c *Catalog) version(ctx context.Context, entity []byte, seq uint64) ([]byte, error) {
	r := store.RangeRequest{From: historyKey(entity, 0), To: historyKey(entity, seq+1), Limit: 1, Reverse: true}
	res, err := c.store.Range(ctx, r)
	if err != nil {
		return nil, storeError(c.store, entity, err)
	}
	if len(res.Pairs) == 0 || (len(res.Pairs[0].Value) > 0 && res.Pairs[0].Value[0] == kindTombstone) {
		return nil, nil
	}
	return res.Pairs[0].Value, nil
}

// HeadAt is main's head of a table at some seq.
type HeadAt struct {
	// Exists is false before the table was made and after it was dropped.
	Exists bool
	// Seq is the table's newest change at that point.
	Seq        uint64
	SnapshotID *int64
	SchemaID   int
	// Dropped says that the table was dropped at that point: the fields are those of its last state, Exists is false.
	Dropped bool
}

// SnapshotAtSeq returns main's head of a table at a seq: one seek. ErrSeqNotFound, ErrExpired.
func (c *Catalog) SnapshotAtSeq(ctx context.Context, key TableKey, seq uint64) (HeadAt, error) {
	t, err := c.tableAt(ctx, key, seq)
	dropped := false
	if err == nil && t == nil {
		t, err = c.beforeDrop(ctx, key, seq)
		dropped = true
	}
	if err != nil || t == nil {
		return HeadAt{}, err
	}
	return HeadAt{Exists: !dropped, Dropped: dropped, Seq: t.ChangedSeq, SnapshotID: t.snapshotID, SchemaID: t.schemaID}, nil
}

// SnapshotAt returns main's head of a table at an instant, through the commit log.
func (c *Catalog) SnapshotAt(ctx context.Context, key TableKey, t time.Time) (HeadAt, error) {
	seq, err := c.SeqAt(ctx, t)
	if err != nil {
		return HeadAt{}, err
	}
	return c.SnapshotAtSeq(ctx, key, seq)
}

// tableAt returns a table's state at a seq, nil when it did not exist.
func (c *Catalog) tableAt(ctx context.Context, key TableKey, seq uint64) (*TableState, error) {
	id, err := key.uuid()
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, nil
	}
	if err := c.retained(seq); err != nil {
		return nil, err
	}
	if cut := c.Cut(); cut.Seq() == seq {
		t, _ := cut.TableByKey(key)
		return t, nil
	}
	entity := tableKey(id)
	value, err := c.versionAt(ctx, entity, seq)
	if err != nil || value == nil {
		return nil, err
	}
	t, err := decodeTable(value)
	if err != nil {
		return nil, storeError(c.store, entity, err)
	}
	t.cat = c
	return t, nil
}

// beforeDrop returns the last state of a table that was dropped at or before seq, nil when it did not exist yet.
func (c *Catalog) beforeDrop(ctx context.Context, key TableKey, seq uint64) (*TableState, error) {
	id, err := key.uuid()
	if err != nil || seq == 0 {
		return nil, err
	}
	entity := tableKey(id)
	r := store.RangeRequest{From: historyKey(entity, 0), To: historyKey(entity, seq+1), Limit: 1, Reverse: true, KeysOnly: true}
	res, err := c.store.Range(ctx, r)
	if err != nil {
		return nil, storeError(c.store, entity, err)
	}
	if len(res.Pairs) == 0 {
		return nil, nil
	}
	_, at, err := splitHistory(res.Pairs[0].Key)
	if err != nil || at == 0 {
		return nil, storeError(c.store, entity, err)
	}
	value, err := c.version(ctx, entity, at-1) // when it was dropped by the oldest commit, this is older than the log
	if err != nil || value == nil {
		return nil, err
	}
	t, err := decodeTable(value)
	if err != nil {
		return nil, storeError(c.store, entity, err)
	}
	t.cat = c
	return t, nil
}

// TableAt returns a table's state at a seq, whatever its name was then; false when it did not exist. One seek.
func (c *Catalog) TableAt(ctx context.Context, key TableKey, seq uint64) (*TableState, bool, error) {
	t, err := c.tableAt(ctx, key, seq)
	return t, t != nil, err
}
