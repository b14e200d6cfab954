package catalog

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// with returns a copy of the state as changed by seq.
func (t *TableState) with(seq uint64) *TableState {
	return &TableState{
		Key: t.Key, Ident: t.Ident, UUID: t.UUID, OID: t.OID, MetadataLocation: t.MetadataLocation,
		CreatedSeq: t.CreatedSeq, ChangedSeq: seq, metadataSize: t.metadataSize, snapshotID: t.snapshotID,
		schemaID: t.schemaID, registered: t.registered, mounted: t.mounted, refs: t.refs, cat: t.cat,
	}
}

// putTable stages a table's state. When its metadata is one that this group writes, the state learns the file's size later.
func (a *attempt) putTable(t *TableState) {
	t.cat = a.g.c
	if _, ok := a.state.dropped.Get(string(t.Key)); ok { // it is back, by whatever way: its files are in use
		a.stageDropped(t, nil)
	}
	a.state.setTable(t)
	a.stage(tableKey(t.UUID), t.encode)
	if st, ok := a.metas[t.Key]; ok && st.location == t.MetadataLocation {
		a.metas[t.Key] = &stagedTable{location: st.location, meta: st.meta, states: append(slices.Clip(st.states), t)}
	}
}

// base returns the newest metadata of a table, and the location to put into the metadata log when it is replaced: empty
// when this group replaces it already, or it is not written.
func (a *attempt) base(ctx context.Context, t *TableState) (meta table.Metadata, replaced string, err error) {
	if st, ok := a.metas[t.Key]; ok && st.location == t.MetadataLocation {
		return st.meta, "", nil
	}
	meta, err = a.g.c.metadata.at(ctx, t)
	if _, late := a.g.c.settler.unwritten(filepath.Clean(storeio.PathOf(t.MetadataLocation))); late { // it may never be: no reader needs its name
		return meta, "", err
	}
	return meta, t.MetadataLocation, err
}

// setMeta stages new metadata for a table and returns its location: one file for all requests of the group.
func (a *attempt) setMeta(key TableKey, before, meta table.Metadata, version int) (string, error) {
	meta = chainOf(meta, before)
	if st, ok := a.metas[key]; ok {
		a.metas[key] = &stagedTable{location: st.location, meta: meta, states: st.states}
		return st.location, nil
	}
	location, err := newMetadataLocation(meta, version)
	if err != nil {
		return "", err
	}
	a.metas[key] = &stagedTable{location: location, meta: meta}
	return location, nil
}

// build runs a BuildFunc and returns its updates behind the given ones, with the commit's time.
func (a *attempt) build(ctx context.Context, f BuildFunc, updates []table.Update, base table.Metadata, location string) ([]table.Update, BuildOutput, error) {
	updates = slices.Clone(updates)
	var out BuildOutput
	if f != nil {
		var err error
		out, err = f(ctx, BuildInput{Base: base, BaseLocation: location, Time: a.time, Seq: a.seq, Batch: a.batch})
		if err != nil {
			return nil, out, err
		}
		updates = append(updates, out.Updates...)
	}
	for i, u := range updates {
		if u == nil {
			return nil, out, fmt.Errorf("%w: nil update", ErrInvalidRequest)
		}
		updates[i] = stamp(u, a.time)
	}
	return updates, out, nil
}

// stamp gives an added snapshot the commit's timestamp: iceberg-go refuses one that is a minute older than the last, and
// time travel by timestamp-ms must agree with the commit log. The update's type is unexported, its field is not.
func stamp(u table.Update, at time.Time) table.Update {
	if u.Action() != table.UpdateAddSnapshot {
		return u
	}
	v := reflect.Indirect(reflect.ValueOf(u))
	if v.Kind() != reflect.Struct {
		return u
	}
	field := v.FieldByName("Snapshot")
	if !field.IsValid() || !field.CanInterface() {
		return u
	}
	snap, ok := field.Interface().(*table.Snapshot)
	if !ok || snap == nil || snap.TimestampMs == at.UnixMilli() {
		return u
	}
	stamped := *snap
	stamped.TimestampMs = at.UnixMilli()
	return table.NewAddSnapshotUpdate(&stamped)
}

func (ch CreateTable) apply(ctx context.Context, a *attempt) error {
	if ch.Metadata == nil {
		return fmt.Errorf("%w: table %s without metadata", ErrInvalidRequest, dotted(ch.Ident))
	}
	return a.createTable(ctx, ch.Ident, ch.Metadata, nil, ch.Build)
}

func (a *attempt) createTable(ctx context.Context, ident table.Identifier, meta table.Metadata, updates []table.Update, f BuildFunc) error {
	if err := a.checkNew(ident, meta.TableUUID()); err != nil {
		return err
	}
	base := meta
	updates, out, err := a.build(ctx, f, updates, base, "")
	if err != nil {
		return err
	}
	if len(updates) > 0 {
		if meta, err = table.UpdateTableMetadata(base, updates, ""); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidRequest, err)
		}
		if err := a.checkNew(ident, meta.TableUUID()); err != nil {
			return err
		}
	}
	if meta.Location() == "" {
		return fmt.Errorf("%w: table %s without a location", ErrInvalidRequest, dotted(ident))
	}
	t := &TableState{Ident: cloneIdent(ident), UUID: meta.TableUUID(), Key: keyOf(meta.TableUUID()), OID: a.newOID(), CreatedSeq: a.seq}
	return a.moveTable(t, nil, base, meta, out, 0)
}

func (a *attempt) checkNew(ident table.Identifier, id uuid.UUID) error {
	if err := checkIdent(ident, 2); err != nil {
		return err
	}
	if err := a.writableNamespace(ident[:len(ident)-1]); err != nil {
		return err
	}
	if err := a.free(ident); err != nil {
		return err
	}
	if id == uuid.Nil {
		return fmt.Errorf("%w: table %s without a uuid", ErrInvalidRequest, dotted(ident))
	}
	if t, ok := a.state.byKey.Get(string(keyOf(id))); ok {
		return fmt.Errorf("%w: uuid %s is table %s", icecat.ErrTableAlreadyExists, id, dotted(t.Ident))
	}
	return nil
}

func headOf(meta table.Metadata) *int64 {
	if m, ok := meta.(*chained); ok {
		return m.current
	}
	if s := meta.CurrentSnapshot(); s != nil {
		id := s.SnapshotID
		return &id
	}
	return nil
}

func (ch UpdateTable) apply(ctx context.Context, a *attempt) error {
	var t *TableState
	var err error
	if ch.Key != "" {
		var ok bool
		if t, ok = a.state.byKey.Get(string(ch.Key)); !ok {
			return fmt.Errorf("%w: %s (%s)", icecat.ErrNoSuchTable, dotted(ch.Ident), ch.Key)
		}
	} else if t, err = (&Cut{s: a.state}).Table(ch.Ident); err != nil {
		if slices.ContainsFunc(ch.Requirements, func(r table.Requirement) bool { return r != nil && r.GetType() == "assert-create" }) {
			return ch.create(ctx, a)
		}
		return err
	}
	if err := a.own(t); err != nil {
		return err
	}
	base, replaced, err := a.base(ctx, t)
	if err != nil {
		return err
	}
	if err := check(ch.Requirements, base, t.Ident); err != nil {
		return err
	}
	updates, out, err := a.build(ctx, ch.Build, ch.Updates, base, t.MetadataLocation)
	if err != nil || len(updates) == 0 {
		return err
	}
	next, err := updateMetadata(base, updates, replaced)
	if err != nil {
		return fmt.Errorf("%w: update %s: %w", ErrInvalidRequest, dotted(t.Ident), err)
	}
	if next.TableUUID() != t.UUID {
		return fmt.Errorf("%w: update %s: a table's uuid never changes", ErrInvalidRequest, dotted(t.Ident))
	}
	return a.moveTable(t, t, base, next, out, metadataVersion(t.MetadataLocation)+1)
}

// updateMetadata applies updates: those of a plain commit in the time of what they add, all others by the library.
func updateMetadata(base table.Metadata, updates []table.Update, replaced string) (table.Metadata, error) {
	if next, ok := appendSnapshot(base, updates, replaced); ok {
		return next, nil
	}
	return table.UpdateTableMetadata(base, updates, replaced)
}

func check(requirements []table.Requirement, base table.Metadata, ident table.Identifier) error {
	for _, r := range requirements {
		if r == nil {
			return fmt.Errorf("%w: nil requirement", ErrInvalidRequest)
		}
		if err := r.Validate(base); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrConflict, dotted(ident), err)
		}
	}
	return nil
}

// create is UpdateTable with an assert-create requirement: the updates make the table from nothing (iceberg-go's staged create).
func (ch UpdateTable) create(ctx context.Context, a *attempt) error {
	if err := check(ch.Requirements, nil, ch.Ident); err != nil {
		return err
	}
	empty, err := table.NewMetadata(iceberg.NewSchema(0), nil, table.UnsortedSortOrder, "", nil)
	if err != nil {
		return err
	}
	return a.createTable(ctx, ch.Ident, empty, ch.Updates, ch.Build)
}

// moveTable stages a table's new metadata and the record entries that say what changed. old is nil for a new table.
func (a *attempt) moveTable(t, old *TableState, base, next table.Metadata, out BuildOutput, version int) error {
	location, err := a.setMeta(t.Key, base, next, version)
	if err != nil {
		return err
	}
	t = t.with(a.seq)
	t.MetadataLocation, t.snapshotID, t.schemaID, t.registered = location, headOf(next), next.CurrentSchema().ID, t.registered && old != nil
	t.refs = refsOf(next)
	a.putTable(t)
	a.recordMove(t, old, base, next, out)
	return nil
}

// recordMove adds the record entries of a table's move from one metadata to the next.
func (a *attempt) recordMove(t, old *TableState, base, next table.Metadata, out BuildOutput) {
	entry := TableRecord{Key: t.Key, UUID: t.UUID, Ident: t.Ident, NewMetadata: t.MetadataLocation, SchemaID: t.schemaID}
	if old != nil {
		entry.OldMetadata = old.MetadataLocation
	}
	added := addedSnapshots(base, next)
	first := len(a.entries)
	entries := refEntries(base, next, added, entry)
	if len(entries) == 0 {
		entry.Kind = KindMetadata
		entries = append(entries, entry)
	}
	if old == nil {
		entries[0].Kind = KindCreate
		if entries[0].Operation == "" {
			entries[0].Operation = OperationCreate
		}
	}
	if len(added) == 1 {
		applyOutput(entries, out)
	}
	a.entries = append(a.entries, entries...)
	for id := range added {
		ref := commitRef{seq: a.seq, entry: first}
		for i, e := range entries {
			if e.SnapshotID != nil && *e.SnapshotID == id {
				ref.entry = first + i
			}
		}
		a.commits = append(a.commits, storePut(commitKey(t.UUID, id), ref.encode()))
	}
}

// applyOutput puts what the builder counted into the entry of its snapshot.
func applyOutput(entries []TableRecord, out BuildOutput) {
	for i := range entries {
		e := &entries[i]
		if e.SnapshotID == nil || (out.Ref != "" && e.Ref != out.Ref) {
			continue
		}
		if out.Operation != "" {
			e.Operation = out.Operation
		}
		if out.RowsAdded|out.RowsDeleted|out.FilesAdded|out.FilesDeleted != 0 {
			e.RowsAdded, e.RowsDeleted, e.FilesAdded, e.FilesDeleted = out.RowsAdded, out.RowsDeleted, out.FilesAdded, out.FilesDeleted
		}
		return
	}
}

func addedSnapshots(base, next table.Metadata) map[int64]*table.Snapshot {
	added := map[int64]*table.Snapshot{}
	all := snapshotsOf(next)
	for i := len(all) - 1; i >= 0; i-- { // new ones are at the end
		if base.SnapshotByID(all[i].SnapshotID) != nil {
			break
		}
		added[all[i].SnapshotID] = &all[i]
	}
	return added
}

// snapshotsOf is meta's snapshots, to be read only.
func snapshotsOf(meta table.Metadata) []table.Snapshot {
	if m, ok := meta.(*chained); ok {
		return m.snapshots
	}
	return meta.Snapshots()
}

// refEntries compares the refs of two metadata, main first, the others by name.
func refEntries(base, next table.Metadata, added map[int64]*table.Snapshot, like TableRecord) []TableRecord {
	before, after := maps.Collect(base.Refs()), maps.Collect(next.Refs())
	names := map[string]struct{}{}
	for name := range before {
		names[name] = struct{}{}
	}
	for name := range after {
		names[name] = struct{}{}
	}
	order := slices.SortedFunc(maps.Keys(names), func(x, y string) int {
		if (x == table.MainBranch) != (y == table.MainBranch) {
			if x == table.MainBranch {
				return -1
			}
			return 1
		}
		if x < y {
			return -1
		}
		return 1
	})
	var entries []TableRecord
	for _, name := range order {
		was, had := before[name]
		is, has := after[name]
		if had && has && was.SnapshotID == is.SnapshotID {
			continue
		}
		e := like
		e.Ref = name
		var from, to *int64
		if had {
			from = &was.SnapshotID
		}
		if has {
			to = &is.SnapshotID
		}
		entries = append(entries, moveEntries(from, to, added, e)...)
	}
	return entries
}

// moveEntries describes one ref's move: its new snapshots when they continue the old head, else one ref entry with both heads.
func moveEntries(from, to *int64, added map[int64]*table.Snapshot, like TableRecord) []TableRecord {
	var chain []*table.Snapshot
	at := to
	for at != nil {
		s, ok := added[*at]
		if !ok || len(chain) > len(added) {
			break
		}
		chain = append(chain, s)
		at = s.ParentSnapshotID
	}
	continues := from == nil || (at != nil && *at == *from)
	if len(chain) == 0 || !continues {
		like.Kind, like.SnapshotID, like.ParentID = KindRef, to, from
		if len(chain) > 0 {
			summarize(&like, chain[0])
		}
		return []TableRecord{like}
	}
	slices.Reverse(chain)
	entries := make([]TableRecord, 0, len(chain))
	for _, s := range chain {
		e := like
		e.Kind = KindCommit
		id := s.SnapshotID
		e.SnapshotID, e.ParentID = &id, s.ParentSnapshotID
		if s.SchemaID != nil {
			e.SchemaID = *s.SchemaID
		}
		summarize(&e, s)
		entries = append(entries, e)
	}
	return entries
}

// summarize fills counts from a snapshot's summary. Rows deleted by equality deletes are not known: the delete records count.
func summarize(e *TableRecord, s *table.Snapshot) {
	if s.Summary == nil {
		return
	}
	p := s.Summary.Properties
	e.Operation = string(s.Summary.Operation)
	e.RowsAdded = summaryInt(p, "added-records")
	e.RowsDeleted = summaryInt(p, "deleted-records", "added-position-deletes", "added-equality-deletes")
	e.FilesAdded = summaryInt(p, "added-data-files", "added-delete-files")
	e.FilesDeleted = summaryInt(p, "deleted-data-files", "removed-delete-files")
}
