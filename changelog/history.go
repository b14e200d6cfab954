package changelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// history is one table's retained snapshots, as one metadata file lists them, next to the catalog's log. Immutable.
type history struct {
	cat   *catalog.Catalog
	cut   *catalog.Cut
	state *catalog.TableState
	meta  table.Metadata
	head  *int64
}

// openHistory binds a table at a cut.
func (r *Reader) openHistory(ctx context.Context, cut *catalog.Cut, ident table.Identifier) (*history, error) {
	state, err := cut.Table(ident)
	if err != nil {
		return nil, err
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("read table metadata: %w", err)
	}
	h := &history{cat: r.opts.Catalog, cut: cut, state: state, meta: meta}
	if id, ok := state.SnapshotID(); ok {
		h.head = &id
	}
	return h, nil
}

// snapshot returns a retained snapshot, nil without one: a look into the catalog's index, whatever the number of snapshots.
func (h *history) snapshot(id int64) *table.Snapshot { return h.meta.SnapshotByID(id) }

// parent returns the parent of a retained snapshot; gone says that the parent exists no longer.
func (h *history) parent(s *table.Snapshot) (p *table.Snapshot, gone bool) {
	if s.ParentSnapshotID == nil {
		return nil, false
	}
	p = h.snapshot(*s.ParentSnapshotID)
	return p, p == nil
}

// path lists the snapshots after base up to tip, oldest first. found is false when the walk from tip did not meet base
// (nil: the root); gone says that it ended at a snapshot whose parent has expired.
func (h *history) path(base *int64, tip int64) (path []*table.Snapshot, found, gone bool) {
	s := h.snapshot(tip)
	mark, next := int64(0), 1 // Brent's: damaged metadata may go round in a circle
	for n := 0; s != nil && (n == 0 || s.SnapshotID != mark); n++ {
		if n == next || n == 0 {
			mark, next = s.SnapshotID, 2*next
		}
		if base != nil && s.SnapshotID == *base {
			reverse(path)
			return path, true, false
		}
		path = append(path, s)
		var p *table.Snapshot
		if p, gone = h.parent(s); gone {
			reverse(path)
			return path, false, true
		}
		s = p
	}
	reverse(path)
	return path, base == nil, false
}

func reverse[T any](s []T) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

// oldest returns the oldest retained ancestor of tip, and whether it is the root.
func (h *history) oldest(tip int64) (s *table.Snapshot, root bool) {
	path, found, _ := h.path(nil, tip)
	if len(path) == 0 {
		return nil, true
	}
	return path[0], found
}

// commit returns the log record that brought a snapshot, nil when it predates the catalog or the log has let it go.
func (h *history) commit(ctx context.Context, id int64) (*catalog.Record, error) {
	rec, err := h.cat.CommitBySnapshot(ctx, h.state.Key, id)
	switch {
	case err == nil:
		if h.registered(rec) {
			return nil, nil
		}
		return rec, nil
	case errors.Is(err, catalog.ErrNoSuchCommit), errors.Is(err, catalog.ErrExpired):
		return nil, nil
	}
	return nil, fmt.Errorf("read commit log: %w", err)
}

// registered reports whether the record adopted the table with the snapshots it had.
func (h *history) registered(rec *catalog.Record) bool {
	for i := range rec.Tables {
		if rec.Tables[i].Key == h.state.Key && rec.Tables[i].Kind == catalog.KindRegister {
			return true
		}
	}
	return false
}

// schemaByID returns a schema of the table, the current one when the id is unknown.
func (h *history) schemaByID(id int) *iceberg.Schema {
	for _, sc := range h.meta.Schemas() {
		if sc.ID == id {
			return sc
		}
	}
	return h.meta.CurrentSchema()
}

// schemaOf returns the schema a snapshot was written under.
func (h *history) schemaOf(id *int64) *iceberg.Schema {
	if id != nil {
		if s := h.snapshot(*id); s != nil && s.SchemaID != nil {
			return h.schemaByID(*s.SchemaID)
		}
	}
	return h.meta.CurrentSchema()
}

func (h *history) snapshotTime(s *table.Snapshot) time.Time {
	return time.UnixMilli(s.TimestampMs).UTC()
}

// kind returns the table kind under a schema; identifier fields nested in structs make no key.
func kindOf(sc *iceberg.Schema) TableKind {
	var ids []int
	for _, f := range sc.Fields() {
		for _, id := range sc.IdentifierFieldIDs {
			if f.ID == id {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) != len(sc.IdentifierFieldIDs) {
		return Log
	}
	return TableKind{Identifier: ids}
}

// expired says that a snapshot the window needs is no longer retained.
func (h *history) expired(ctx context.Context, tip *int64, what string) error {
	e := &Error{Err: ErrExpired, Message: what + " is no longer retained",
		Hint: "Use table_changes_net, which needs only the two ends, or start from 'earliest'."}
	if tip == nil {
		tip = h.head
	}
	if tip == nil {
		return e
	}
	if s, _ := h.oldest(*tip); s != nil {
		seq := "NULL"
		if rec, err := h.commit(ctx, s.SnapshotID); err == nil && rec != nil {
			seq = fmt.Sprint(rec.Seq)
		}
		e.Detail = fmt.Sprintf("The oldest retained snapshot is %d of %s, commit seq %s.",
			s.SnapshotID, h.snapshotTime(s).Format("2006-01-02 15:04:05.999Z07:00"), seq)
	}
	return e
}

// unknownSnapshot tells a snapshot that expired from one that never was.
func (h *history) unknownSnapshot(ctx context.Context, id int64) error {
	if _, err := h.cat.CommitBySnapshot(ctx, h.state.Key, id); err == nil {
		return h.expired(ctx, nil, fmt.Sprintf("snapshot %d", id))
	}
	for _, s := range h.meta.Snapshots() {
		if s.ParentSnapshotID != nil && *s.ParentSnapshotID == id {
			return h.expired(ctx, nil, fmt.Sprintf("snapshot %d", id))
		}
	}
	return &Error{Err: ErrUnknown, Message: fmt.Sprintf("table has no snapshot %d", id),
		Hint: "View skade.snapshots lists the snapshots that are retained."}
}

func isExpired(err error) bool  { return errors.Is(err, catalog.ErrExpired) }
func isNotFound(err error) bool { return errors.Is(err, catalog.ErrSeqNotFound) }
