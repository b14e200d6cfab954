package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// MaxForeignMetadata bounds another catalog's metadata file in bytes, also decompressed: decoding takes several times as much memory.
const MaxForeignMetadata = 128 << 20

// Foreign is a table as a metadata file of another catalog describes it. Read it only.
type Foreign struct {
	Location string
	Metadata table.Metadata

	size int64
}

// ReadForeign reads a metadata file that another catalog wrote, and checks what can be known before its first use: the file and the
// table's location lie where this server may read, the format version is known, nothing is encrypted. Errors: storeio.ErrOutsideRoots,
// storeio.ErrNotLocal, ErrNoMetadata, ErrTooLarge, ErrNotMetadata, ErrUnsupportedTable.
func (c *Catalog) ReadForeign(ctx context.Context, location string) (*Foreign, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := c.readForeign(location)
	if err != nil {
		return nil, fmt.Errorf("metadata file %s: %w", storeio.PathOf(location), err)
	}
	c.metadata.put(location, f.Metadata, f.size)
	return f, nil
}

func (c *Catalog) readForeign(location string) (*Foreign, error) {
	if location == "" {
		return nil, ErrNoMetadata
	}
	if err := c.fs.Allowed(location); err != nil {
		return nil, err
	}
	if _, late := c.settler.unwritten(filepath.Clean(storeio.PathOf(location))); late { // a table that was just unregistered
		if err := c.settler.settle(); err != nil {
			return nil, err
		}
	}
	st, err := c.fs.Stat(location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoMetadata
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%w: not a regular file", ErrNotMetadata)
	case st.Size() > MaxForeignMetadata:
		return nil, fmt.Errorf("%w: %d MB, at most %d MB", ErrTooLarge, st.Size()>>20, MaxForeignMetadata>>20)
	}
	data, err := c.fs.ReadAtMost(location, MaxForeignMetadata)
	if err != nil {
		return nil, err
	}
	meta, err := parseForeign(location, data)
	if err != nil {
		return nil, err
	}
	if err := c.fs.Allowed(meta.Location()); err != nil {
		return nil, fmt.Errorf("location of the table: %w", err)
	}
	return &Foreign{Location: location, Metadata: meta, size: int64(len(data))}, nil
}

// parseForeign decodes the bytes of anybody.
func parseForeign(location string, data []byte) (meta table.Metadata, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrNotMetadata, r)
		}
	}()
	plain, err := plainMetadata(location, data, MaxForeignMetadata)
	if err != nil {
		if errors.Is(err, ErrTooLarge) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrNotMetadata, err)
	}
	var head struct {
		Version    *int              `json:"format-version"`
		Keys       []json.RawMessage `json:"encryption-keys"`
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(plain, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotMetadata, err)
	}
	switch {
	case head.Version == nil:
		return nil, fmt.Errorf("%w: it has no format-version", ErrNotMetadata)
	case *head.Version < 1 || *head.Version > 3:
		return nil, fmt.Errorf("%w: format version %d", ErrUnsupportedTable, *head.Version)
	case len(head.Keys) > 0 || head.Properties["encryption.key-id"] != "":
		return nil, fmt.Errorf("%w: it is encrypted", ErrUnsupportedTable)
	}
	if meta, err = decodePlain(plain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotMetadata, err)
	}
	switch {
	case meta.Location() == "":
		return nil, fmt.Errorf("%w: it has no location", ErrNotMetadata)
	case meta.CurrentSchema() == nil:
		return nil, fmt.Errorf("%w: it has no current schema", ErrNotMetadata)
	case meta.TableUUID() == uuid.Nil:
		return nil, fmt.Errorf("%w: it has no table-uuid", ErrNotMetadata)
	}
	return meta, nil
}

// decodePlain parses metadata. A table of format version 1 may have no uuid: it gets one of its location, which stays the same.
func decodePlain(data []byte) (table.Metadata, error) {
	meta, err := table.ParseMetadataBytes(data)
	if err != nil || meta.TableUUID() != uuid.Nil {
		return meta, err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte(storeio.PathOf(meta.Location())))
	doc["table-uuid"] = fmt.Appendf(nil, "%q", id.String())
	if data, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	return table.ParseMetadataBytes(data)
}

// IsMetadataFile reports whether a file's name is one of a table metadata file, and its version: -1 when the name tells none.
func IsMetadataFile(name string) (version int, ok bool) {
	base := path.Base(name)
	if !strings.HasSuffix(base, ".metadata.json") && !strings.HasSuffix(base, ".metadata.json.gz") {
		return -1, false
	}
	return metadataVersion(base), true
}

// RegisterTable adopts a table by the metadata file that another catalog wrote. Its files stay where they are. Mounted makes it the table of
// the request's mount: read here, written by its own catalog. ErrTableAlreadyExists (also for a uuid that is in use), ErrNoSuchNamespace,
// and the errors of ReadForeign.
type RegisterTable struct {
	Ident            table.Identifier
	MetadataLocation string
	// Foreign is what ReadForeign gave for MetadataLocation, so that nothing is decoded while other commits wait; nil: it is read.
	Foreign *Foreign
}

func (ch RegisterTable) apply(ctx context.Context, a *attempt) error {
	f, err := ch.read(ctx, a.g.c)
	if err != nil {
		return fmt.Errorf("register %s: %w", dotted(ch.Ident), err)
	}
	meta := f.Metadata
	if err := a.checkNew(ch.Ident, meta.TableUUID()); err != nil {
		return err
	}
	if err := a.notAhead(ch.Ident, meta); err != nil {
		return err
	}
	t := a.g.c.Preview(ch.Ident, f)
	t.OID, t.CreatedSeq, t.ChangedSeq, t.mounted = a.newOID(), a.seq, a.seq, a.mount != ""
	a.adopt(t)
	a.entry(TableRecord{
		Kind: KindRegister, Key: t.Key, UUID: t.UUID, Ident: t.Ident, NewMetadata: t.MetadataLocation,
		SchemaID: t.schemaID, SnapshotID: t.snapshotID,
	})
	return nil
}

// Preview is the state that registering a table would give it. It is in no cut; its OID is 0.
func (c *Catalog) Preview(ident table.Identifier, f *Foreign) *TableState {
	meta := f.Metadata
	return &TableState{
		Key: keyOf(meta.TableUUID()), Ident: cloneIdent(ident), UUID: meta.TableUUID(), MetadataLocation: f.Location,
		snapshotID: headOf(meta), schemaID: meta.CurrentSchema().ID, refs: refsOf(meta), registered: true, metadataSize: f.size, cat: c,
	}
}

func (ch RegisterTable) read(ctx context.Context, c *Catalog) (*Foreign, error) {
	if ch.Foreign != nil {
		return ch.Foreign, nil
	}
	return c.ReadForeign(ctx, ch.MetadataLocation)
}

// adopt points a table to a file of another catalog.
func (a *attempt) adopt(t *TableState) {
	if !t.mounted {
		a.batch.Add(storeio.PathOf(t.MetadataLocation)) // others may not have synced it
	}
	a.putTable(t)
}

// FollowTable moves a registered or mounted table to a newer metadata file that its other catalog wrote. Every snapshot that the move
// brings is an entry of the record. ErrConflict when the metadata is of another table.
type FollowTable struct {
	Key     TableKey
	Foreign *Foreign
}

func (ch FollowTable) apply(ctx context.Context, a *attempt) error {
	old, ok := a.state.byKey.Get(string(ch.Key))
	if !ok {
		return fmt.Errorf("%w: table %s is gone", ErrConflict, ch.Key)
	}
	if err := a.own(old); err != nil {
		return err
	}
	next := ch.Foreign.Metadata
	if next.TableUUID() != old.UUID {
		return fmt.Errorf("%w: %s is table %s, the file is of %s", ErrConflict, dotted(old.Ident), old.UUID, next.TableUUID())
	}
	if st, staged := a.metas[old.Key]; staged && st.location == old.MetadataLocation {
		return fmt.Errorf("%w: %s changed meanwhile", ErrConflict, dotted(old.Ident))
	}
	if ch.Foreign.Location == old.MetadataLocation {
		return nil
	}
	if err := a.notAhead(old.Ident, next); err != nil {
		return err
	}
	base, err := a.g.c.metadata.at(ctx, old)
	if err != nil {
		if base, err = withoutSince(next, old.snapshotID); err != nil {
			return fmt.Errorf("follow %s: %w", dotted(old.Ident), err)
		}
	}
	t := old.with(a.seq)
	t.MetadataLocation, t.metadataSize, t.registered = ch.Foreign.Location, ch.Foreign.size, true
	t.snapshotID, t.schemaID, t.refs = headOf(next), next.CurrentSchema().ID, refsOf(next)
	a.adopt(t)
	a.recordMove(t, old, base, next, BuildOutput{})
	return nil
}

// withoutSince stands in for an older metadata file that its catalog has removed: next without the snapshots behind the old head.
func withoutSince(next table.Metadata, head *int64) (table.Metadata, error) {
	after := map[int64]bool{}
	for s := next.CurrentSnapshot(); s != nil && (head == nil || s.SnapshotID != *head); {
		after[s.SnapshotID] = true
		if s.ParentSnapshotID == nil {
			break
		}
		s = next.SnapshotByID(*s.ParentSnapshotID)
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	kept := []table.Snapshot{}
	for _, s := range next.Snapshots() {
		if !after[s.SnapshotID] {
			kept = append(kept, s)
		}
	}
	refs := map[string]table.SnapshotRef{}
	for name, ref := range next.Refs() {
		if !after[ref.SnapshotID] {
			refs[name] = ref
		}
	}
	delete(doc, "current-snapshot-id")
	delete(refs, table.MainBranch)
	if head != nil && next.SnapshotByID(*head) != nil {
		doc["current-snapshot-id"] = fmt.Appendf(nil, "%d", *head)
		refs[table.MainBranch] = table.SnapshotRef{SnapshotID: *head, SnapshotRefType: table.BranchRef}
	}
	for key, v := range map[string]any{"snapshots": kept, "refs": refs, "snapshot-log": []any{}} {
		if doc[key], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if raw, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	return table.ParseMetadataBytes(bytes.TrimSpace(raw))
}

// notAhead refuses metadata of the future for a table that is written here: no snapshot could follow.
func (a *attempt) notAhead(ident table.Identifier, meta table.Metadata) error {
	updated := time.UnixMilli(meta.LastUpdatedMillis())
	if a.mount != "" || updated.Sub(a.time) <= time.Minute {
		return nil
	}
	return fmt.Errorf("%w: metadata of %s was updated in the future, at %s: no snapshot could follow", ErrInvalidRequest,
		dotted(ident), updated.UTC().Format(time.RFC3339))
}

// own refuses a change of a table that another catalog writes.
func (a *attempt) own(t *TableState) error {
	if t.mounted && a.mount != t.Ident[0] {
		return fmt.Errorf("%s %w", dotted(t.Ident), ErrMounted)
	}
	return nil
}

func (a *attempt) ownNamespace(n *NamespaceState) error {
	if m := n.Mount(); m != "" && m != a.mount {
		return fmt.Errorf("%s %w", dotted(n.Ident), ErrMounted)
	}
	return nil
}

// writableNamespace finds a namespace that the request may put something into.
func (a *attempt) writableNamespace(ns []string) error {
	n, err := a.namespace(ns)
	if err != nil {
		return err
	}
	return a.ownNamespace(n)
}
