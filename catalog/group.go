package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// group is what one leader commits: requests that succeeded so far, staged on a private copy of the newest state.
type group struct {
	c       *Catalog
	head    []byte // keyHead's value under which all this is valid
	state   *state
	records []*Record
	writes  []write
	commits []store.Op // COMMITS by (table, snapshot)
	tables  map[TableKey]*stagedTable
	batch   *storeio.Batch
	purges  []string
	size    int // bytes of records and objects so far
	taken   int // requests that changed something

	created []string // metadata files written by commit: removed when it fails
	late    []string // metadata files that the settler will write
}

// stagedTable is a table whose metadata the group changes: one file for all its requests.
type stagedTable struct {
	location string
	meta     table.Metadata
	states   []*TableState // every state that points to the file

	doc  *document // of the file, and its path, once it is encoded; nil when it is compressed
	path string
}

// write is the value of one entity after one request; a nil encode means that the entity is gone.
type write struct {
	seq    uint64
	key    []byte
	encode func() []byte
	latest bool // only the newest value is kept, no history
}

// attempt is one request being tried. On success it replaces the group's state, else it is dropped.
type attempt struct {
	g       *group
	state   *state
	seq     uint64
	time    time.Time
	mount   string
	entries []TableRecord
	writes  []write
	commits []store.Op
	metas   map[TableKey]*stagedTable
	batch   *storeio.Batch
	purges  []string
	size    int
	quiet   bool // it changes something that takes no seq
}

func (c *Catalog) newGroup() (*group, error) {
	st, err := c.mirror.fork()
	if err != nil {
		return nil, err
	}
	return &group{c: c, head: st.encodeHead(), state: st, tables: map[TableKey]*stagedTable{}, batch: c.fs.NewBatch()}, nil
}

// full reports whether the store's bounds are near.
func (g *group) full() bool {
	l := g.c.store.Limits()
	return 2*len(g.writes)+len(g.commits)+len(g.records) > l.Ops/4 || g.size > l.Bytes/4
}

// try runs one request on the group's state. An error leaves the group as it was.
func (g *group) try(ctx context.Context, req *Request) (*Record, error) {
	a := &attempt{g: g, state: g.state.copy(), seq: g.state.seq + 1, mount: req.Mount, metas: maps.Clone(g.tables), batch: g.c.fs.NewBatch()}
	a.time = g.c.now().UTC().Truncate(time.Microsecond)
	if !a.time.After(g.state.time) {
		a.time = g.state.time.Add(time.Microsecond) // C5
	}
	for _, ch := range req.Changes {
		if err := a.change(ctx, ch); err != nil {
			return nil, err
		}
	}
	if len(a.entries) == 0 {
		if a.quiet {
			g.take(a)
		}
		return nil, nil
	}
	rec := &Record{
		Seq: a.seq, Time: a.time, TxID: req.TxID, Actor: req.Actor, ApplicationName: req.ApplicationName,
		Context: slices.Clone(req.Context), Tables: a.entries,
	}
	a.size += 256 + len(rec.TxID) + len(rec.Actor) + len(rec.ApplicationName) + len(rec.Context) + 1024*len(rec.Tables)
	l := g.c.store.Limits()
	if 2*len(a.writes)+len(a.commits) > l.Ops/2 || a.size > l.Bytes/2 {
		return nil, fmt.Errorf("%w: %d changes, about %d bytes: more than one transaction of the store holds", ErrInvalidRequest, len(a.writes), a.size)
	}
	a.state.seq, a.state.time = a.seq, a.time
	g.records = append(g.records, rec)
	g.take(a)
	return rec, nil
}

// take makes an attempt's state and writes the group's.
func (g *group) take(a *attempt) {
	g.taken++
	g.state, g.tables = a.state, a.metas
	g.writes = append(g.writes, a.writes...)
	g.commits = append(g.commits, a.commits...)
	g.purges = append(g.purges, a.purges...)
	g.size += a.size
	for _, p := range a.batch.Paths() {
		g.batch.Add(p)
	}
}

// change applies one change. A panic in a BuildFunc is its request's error: one session must not end the process.
func (a *attempt) change(ctx context.Context, ch Change) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.g.c.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("commit request")
			err = fmt.Errorf("%w: panic: %v", ErrInvalidRequest, r)
		}
	}()
	if ch == nil {
		return fmt.Errorf("%w: nil change", ErrInvalidRequest)
	}
	return ch.apply(ctx, a)
}

// commit makes the group durable and visible. From here on no context is honoured.
func (g *group) commit() error {
	if g.taken == 0 {
		return nil
	}
	revision, err := g.persist(context.Background())
	if err != nil {
		if !errors.Is(err, ErrUnknownOutcome) {
			for _, p := range g.created {
				_ = g.c.fs.Remove(p) // nothing refers to it
			}
			for _, p := range g.late {
				g.c.settler.never(p)
			}
		}
		return err
	}
	g.c.counts.groups.Add(1)
	g.c.counts.commits.Add(int64(len(g.records)))
	if err := g.c.mirror.wait(revision); err != nil {
		return fmt.Errorf("%w: durable, but not visible: %w", ErrUnknownOutcome, err)
	}
	return nil
}

func (g *group) persist(ctx context.Context) (uint64, error) {
	files, err := g.writeMetadata()
	if err != nil {
		return 0, err
	}
	redo := settleGroup{key: redoKey(g.state.seq)}
	if redo.files, err = g.syncOrInline(ctx, files); err != nil {
		return 0, err
	}
	tx := store.Tx{Compares: []store.Compare{{Key: keyHead, Value: g.head}}, Ops: g.ops()}
	if len(redo.files) > 0 {
		value := encodeRedo(redo.files)
		redo.size = len(value)
		tx.Ops = append(tx.Ops, store.Op{Key: redo.key, Value: value, Quiet: true})
		for i := range redo.files {
			redo.files[i].drop()
		}
	}
	for _, t := range g.tables {
		if t.meta != nil { // before anybody can be woken by the commit, who would read the file; should it fail, nobody asks for the location
			g.c.metadata.put(t.location, t.meta, t.states[0].metadataSize)
		}
	}
	settled := g.c.settler.takeSettled(1024)
	for _, k := range settled {
		tx.Ops = append(tx.Ops, store.Op{Key: k, Delete: true, Quiet: true})
	}
	var revision uint64
	hooks := g.c.fs.Hooks()
	err = hooks.Run(storeio.OpStore, g.c.store.Path(), func() (err error) {
		revision, err = g.c.store.Apply(ctx, tx)
		return err
	})
	if err != nil {
		g.c.settler.giveBack(settled)
		return 0, commitError(err)
	}
	for _, t := range g.tables {
		if t.doc != nil {
			t.doc.chain.last, t.doc.chain.path = t.doc, t.path
		}
	}
	g.c.settler.add(redo)
	g.c.counts.inlined.Add(int64(len(redo.files)))
	g.c.counts.carried.Add(int64(redo.size))
	if err := hooks.Run(storeio.OpStored, g.c.store.Path(), func() error { return nil }); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return revision, nil
}

// commitError says in the catalog's words what a store transaction's error means.
func commitError(err error) error {
	switch {
	case errors.Is(err, store.ErrUnknownOutcome):
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case errors.Is(err, store.ErrFailed):
		return fmt.Errorf("%w: %w", ErrFailed, err)
	case errors.Is(err, store.ErrCompareFailed):
		return fmt.Errorf("%w: another writer moved the catalog: %w", ErrConflict, err)
	case errors.Is(err, store.ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("store commit: %w", err)
}

// ops returns the writes of the store transaction: every entity's newest value, every version of its history, the records
// and the head.
func (g *group) ops() []store.Op {
	ops := make([]store.Op, 0, 2*len(g.writes)+len(g.commits)+len(g.records)+1)
	newest := make(map[string]int, len(g.writes))
	for i, w := range g.writes {
		newest[string(w.key)] = i
	}
	for i, w := range g.writes {
		var value []byte
		if w.encode != nil {
			value = w.encode()
		}
		if newest[string(w.key)] == i {
			ops = append(ops, store.Op{Key: w.key, Value: value, Delete: w.encode == nil})
		}
		if w.latest {
			continue
		}
		if w.encode == nil {
			value = newWriter(kindTombstone).seal()
		}
		ops = append(ops, store.Op{Key: historyKey(w.key, w.seq), Value: value})
	}
	ops = append(ops, g.commits...)
	for _, rec := range g.records {
		ops = append(ops, store.Op{Key: recordKey(rec.Seq), Value: rec.encode()})
	}
	return append(ops, store.Op{Key: keyHead, Value: g.state.encodeHead()})
}

// purge removes the directories of purged tables. Best effort: the commit stands.
func (g *group) purge() {
	for _, dir := range g.purges {
		g.c.settler.forget(dir)
		if err := g.c.settler.drain(); err != nil { // else Open would look for files to make others from
			g.c.log.Warn().Err(err).Str("dir", dir).Msg("purge of a dropped table")
			continue
		}
		if err := g.c.fs.RemoveAll(dir); err != nil {
			g.c.log.Warn().Err(err).Str("dir", dir).Msg("purge of a dropped table")
		}
	}
}
