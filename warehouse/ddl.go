package warehouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// op is one definition of the transaction. key names the table it is about, "" when none.
type op struct {
	change catalog.Change
	key    catalog.TableKey
}

type namespace struct{ props iceberg.Properties }

func identKey(ident icetable.Identifier) string { return strings.Join(ident, "\x00") }

func objectKey(kind string, ns icetable.Identifier, name string) string {
	return kind + "\x00" + identKey(ns) + "\x00" + name
}

// addOp appends to the definitions. Savepoints hold prefixes of the slice, so it is never written in place.
func (tx *Tx) addOp(c catalog.Change, key catalog.TableKey) {
	tx.ops = append(tx.ops[:len(tx.ops):len(tx.ops)], op{c, key})
}

// dropOps takes definitions back.
func (tx *Tx) dropOps(match func(catalog.Change) bool) {
	tx.ops = slices.DeleteFunc(slices.Clone(tx.ops), func(o op) bool { return match(o.change) })
}

// NamespaceExists says whether ns exists in the transaction's view.
func (tx *Tx) NamespaceExists(ns icetable.Identifier) bool {
	if n, ok := tx.names.namespaces[identKey(ns)]; ok {
		return n != nil
	}
	_, err := tx.cut.Namespace(ns)
	return err == nil
}

// Namespaces are the transaction's namespaces, sorted.
func (tx *Tx) Namespaces() []icetable.Identifier {
	var out []icetable.Identifier
	for n := range tx.cut.Namespaces() {
		if own, ok := tx.names.namespaces[identKey(n.Ident)]; !ok || own != nil {
			out = append(out, n.Ident)
		}
	}
	for k, n := range tx.names.namespaces {
		ident := icetable.Identifier(strings.Split(k, "\x00"))
		if n == nil {
			continue
		}
		if _, err := tx.cut.Namespace(ident); err != nil {
			out = append(out, ident)
		}
	}
	slices.SortFunc(out, slices.Compare[[]string])
	return out
}

// CreateNamespace creates a namespace. iceberg-go's ErrNamespaceAlreadyExists when there is one.
func (tx *Tx) CreateNamespace(_ context.Context, ns icetable.Identifier, props iceberg.Properties) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if tx.NamespaceExists(ns) {
		return fmt.Errorf("%w: %s", icecat.ErrNamespaceAlreadyExists, strings.Join(ns, "."))
	}
	tx.names.namespaces[identKey(ns)] = &namespace{props}
	tx.addOp(catalog.CreateNamespace{Ident: ns, Props: props}, "")
	return nil
}

// DropNamespace drops an empty namespace: ErrNoSuchNamespace, ErrNamespaceNotEmpty.
func (tx *Tx) DropNamespace(_ context.Context, ns icetable.Identifier) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if !tx.NamespaceExists(ns) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	for _, t := range tx.Tables() {
		if slices.Equal(t.Ident[:len(t.Ident)-1], ns) {
			return fmt.Errorf("%w: %s", icecat.ErrNamespaceNotEmpty, strings.Join(ns, "."))
		}
	}
	for _, o := range tx.Objects("") {
		if slices.Equal(o.Namespace, ns) {
			return fmt.Errorf("%w: %s", icecat.ErrNamespaceNotEmpty, strings.Join(ns, "."))
		}
	}
	tx.names.namespaces[identKey(ns)] = nil
	if _, err := tx.cut.Namespace(ns); err != nil { // created by this transaction
		tx.dropOps(func(c catalog.Change) bool {
			n, ok := c.(catalog.CreateNamespace)
			return ok && slices.Equal(n.Ident, ns)
		})
		return nil
	}
	tx.addOp(catalog.DropNamespace{Ident: ns}, "")
	return nil
}

// TableInfo is a table in the transaction's view: State for one of the cut, Own for one that was opened or created.
type TableInfo struct {
	Ident icetable.Identifier
	Key   catalog.TableKey
	State *catalog.TableState
	Own   *TxTable
}

// Tables are the transaction's tables, sorted by name. None is opened.
func (tx *Tx) Tables() []TableInfo {
	var out []TableInfo
	for s := range tx.cut.AllTables() {
		if _, renamed := tx.names.byIdent[identKey(s.Ident)]; !renamed {
			out = append(out, TableInfo{s.Ident, s.Key, s, tx.names.tables[s.Key]})
		}
	}
	for _, key := range tx.names.byIdent {
		if t := tx.names.tables[key]; key != "" && t != nil {
			out = append(out, TableInfo{t.ident, key, t.base, t})
		}
	}
	slices.SortFunc(out, func(a, b TableInfo) int { return slices.Compare(a.Ident, b.Ident) })
	return out
}

// Table opens a table. iceberg-go's ErrNoSuchTable when there is none. The same TxTable comes back until the
// transaction ends.
func (tx *Tx) Table(ctx context.Context, ident icetable.Identifier) (*TxTable, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if key, ok := tx.names.byIdent[identKey(ident)]; ok {
		if key == "" {
			return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchTable, strings.Join(ident, "."))
		}
		return tx.names.tables[key], nil
	}
	state, err := tx.cut.Table(ident)
	if err != nil {
		return nil, err
	}
	if t := tx.names.tables[state.Key]; t != nil {
		return t, nil
	}
	t, err := tx.openTable(ctx, state)
	if err != nil {
		return nil, err
	}
	tx.names.tables[t.key] = t
	return t, nil
}

// CreateTable describes a table to create.
type CreateTable struct {
	Ident         icetable.Identifier
	Schema        *iceberg.Schema // identifier fields set for a primary-key table; ids are assigned afresh, 1…n in order for the top level
	Spec          *iceberg.PartitionSpec
	SortOrder     *icetable.SortOrder
	FormatVersion int // 2 (0 is 2) or 3
	Properties    iceberg.Properties
	IfNotExists   bool   // an existing table is returned as it is
	Location      string // empty: the catalog's choice
}

// CreateTable creates a table, which may be written to at once. Identifier fields become required.
func (tx *Tx) CreateTable(ctx context.Context, c CreateTable) (*TxTable, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	if len(c.Ident) < 2 {
		return nil, fmt.Errorf("%w: %v has no namespace", ErrInvalidTable, c.Ident)
	}
	ns, name := c.Ident[:len(c.Ident)-1], c.Ident[len(c.Ident)-1]
	if !tx.NamespaceExists(ns) {
		return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	switch t, err := tx.Table(ctx, c.Ident); {
	case err == nil && c.IfNotExists:
		return t, nil
	case err == nil:
		return nil, fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(c.Ident, "."))
	case !errors.Is(err, icecat.ErrNoSuchTable):
		return nil, err
	}
	if tx.objectNamed(ns, name) {
		return nil, fmt.Errorf("%w: %s", catalog.ErrObjectAlreadyExists, strings.Join(c.Ident, "."))
	}
	id := uuid.New()
	meta, err := tx.newMetadata(c, id)
	if err != nil {
		return nil, err
	}
	t := &TxTable{tx: tx, key: catalog.TableKey(id.String()), ident: c.Ident, baseMeta: meta, baseSet: liveset.Empty()}
	if err := t.setMetadata(meta); err != nil {
		return nil, err
	}
	t.st = newState(t.keyed())
	tx.names.tables[t.key] = t
	tx.names.byIdent[identKey(c.Ident)] = t.key
	tx.addOp(catalog.CreateTable{Ident: c.Ident, Metadata: meta}, t.key)
	return t, nil
}

func (tx *Tx) newMetadata(c CreateTable, id uuid.UUID) (icetable.Metadata, error) {
	version := c.FormatVersion
	if version == 0 {
		version = 2
	}
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("%w: format version %d", ErrInvalidTable, version)
	}
	sc, err := keySchema(c.Schema)
	if err != nil {
		return nil, err
	}
	loc := c.Location
	if loc == "" {
		if loc, err = tx.w.opts.Catalog.NewTableLocation(tx.cut, c.Ident, id); err != nil {
			return nil, fmt.Errorf("table location: %w", err)
		}
	}
	spec, order := iceberg.UnpartitionedSpec, icetable.UnsortedSortOrder
	if c.Spec != nil {
		spec = c.Spec
	}
	if c.SortOrder != nil {
		order = *c.SortOrder
	}
	props := iceberg.Properties{
		"write.parquet.compression-codec": "zstd",
		"write.delete.mode":               "merge-on-read",
		"write.update.mode":               "merge-on-read",
		"write.merge.mode":                "merge-on-read",
	}
	maps.Copy(props, c.Properties)
	props["format-version"] = strconv.Itoa(version)
	meta, err := icetable.NewMetadataWithUUID(sc, spec, order, loc, props, id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTable, err)
	}
	return meta, nil
}

// keySchema makes identifier fields required, and refuses those the spec forbids.
func keySchema(sc *iceberg.Schema) (*iceberg.Schema, error) {
	if sc == nil {
		return nil, fmt.Errorf("%w: no schema", ErrInvalidTable)
	}
	fields := slices.Clone(sc.Fields())
	for _, id := range sc.IdentifierFieldIDs {
		i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%w: identifier field %d is not a top-level column", ErrInvalidTable, id)
		}
		if _, ok := fields[i].Type.(iceberg.PrimitiveType); !ok || isFloat(fields[i].Type) {
			return nil, fmt.Errorf("%w: column %s of type %s cannot be an identifier field", ErrInvalidTable, fields[i].Name, fields[i].Type)
		}
		fields[i].Required = true
	}
	return iceberg.NewSchemaWithIdentifiers(sc.ID, sc.IdentifierFieldIDs, fields...), nil
}

// DropTable drops a table; purge removes its files once nothing reads them.
func (tx *Tx) DropTable(ctx context.Context, ident icetable.Identifier, purge bool) error {
	if err := tx.writable(); err != nil {
		return err
	}
	key, created, err := tx.resolve(ident)
	if err != nil {
		return err
	}
	tx.names.byIdent[identKey(ident)] = ""
	delete(tx.names.tables, key)
	if created {
		tx.ops = slices.DeleteFunc(slices.Clone(tx.ops), func(o op) bool { return o.key == key })
		return nil
	}
	tx.addOp(catalog.DropTable{Ident: ident, Purge: purge}, key)
	return nil
}

// resolve finds a name's table without opening it.
func (tx *Tx) resolve(ident icetable.Identifier) (key catalog.TableKey, created bool, err error) {
	if key, ok := tx.names.byIdent[identKey(ident)]; ok {
		if key == "" {
			return "", false, fmt.Errorf("%w: %s", icecat.ErrNoSuchTable, strings.Join(ident, "."))
		}
		t := tx.names.tables[key]
		return key, t.base == nil, nil
	}
	state, err := tx.cut.Table(ident)
	if err != nil {
		return "", false, err
	}
	return state.Key, false, nil
}

// RenameTable gives a table another name, in its namespace or another.
func (tx *Tx) RenameTable(ctx context.Context, from, to icetable.Identifier) error {
	if err := tx.writable(); err != nil {
		return err
	}
	t, err := tx.Table(ctx, from)
	if err != nil {
		return err
	}
	ns := to[:len(to)-1]
	if !tx.NamespaceExists(ns) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	if _, _, err := tx.resolve(to); err == nil || tx.objectNamed(ns, to[len(to)-1]) {
		return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(to, "."))
	}
	tx.names.byIdent[identKey(from)] = ""
	tx.names.byIdent[identKey(to)] = t.key
	t.ident = to
	if t.base != nil {
		tx.addOp(catalog.RenameTable{From: from, To: to}, t.key)
		return nil
	}
	ops := slices.Clone(tx.ops)
	for i, o := range ops {
		if c, ok := o.change.(catalog.CreateTable); ok && o.key == t.key {
			c.Ident = to
			ops[i].change = c
		}
	}
	tx.ops = ops
	return nil
}

// AlterTable applies metadata updates (add-schema, set-current-schema, set-properties …). Rows written before in the
// transaction are read through the new schema. At Commit the table's schema and spec must be those of the cut.
func (tx *Tx) AlterTable(ctx context.Context, ident icetable.Identifier, updates ...icetable.Update) error {
	if err := tx.writable(); err != nil {
		return err
	}
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.flushLocked(ctx); err != nil {
		return err
	}
	alters := append(t.alters[:len(t.alters):len(t.alters)], updates...)
	meta, err := icetable.UpdateTableMetadata(t.baseMeta, alters, "")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidTable, err)
	}
	before := t.tableMeta
	if err := t.setMetadata(meta); err != nil {
		t.tableMeta = before
		return err
	}
	if err := t.writableLocked(ctx); err != nil {
		return err
	}
	t.alters, t.ownSet, t.liveSet = alters, nil, nil
	t.st.log = newRowLog(t.keyed())
	return nil
}

// objectNamed says whether an object of any kind that shares the tables' name space has the name.
func (tx *Tx) objectNamed(ns icetable.Identifier, name string) bool {
	_, err := tx.Object(KindView, ns, name)
	return err == nil
}

// KindView is the kind of objects that share one name space with tables.
const KindView = "view"

// Object finds an object in the transaction's view. catalog.ErrNoSuchObject when there is none.
func (tx *Tx) Object(kind string, ns icetable.Identifier, name string) (*catalog.Object, error) {
	if o, ok := tx.names.objects[objectKey(kind, ns, name)]; ok {
		if o == nil {
			return nil, fmt.Errorf("%w: %s", catalog.ErrNoSuchObject, name)
		}
		return o, nil
	}
	return tx.cut.Object(kind, ns, name)
}

// Objects are the transaction's objects of a kind, "" for all, in all namespaces, sorted.
func (tx *Tx) Objects(kind string) []*catalog.Object {
	var out []*catalog.Object
	for n := range tx.cut.Namespaces() {
		for o := range tx.cut.Objects(kind, n.Ident) {
			if _, own := tx.names.objects[objectKey(o.Kind, o.Namespace, o.Name)]; !own {
				out = append(out, o)
			}
		}
	}
	for _, o := range tx.names.objects {
		if o != nil && (kind == "" || o.Kind == kind) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *catalog.Object) int {
		return strings.Compare(objectKey(a.Kind, a.Namespace, a.Name), objectKey(b.Kind, b.Namespace, b.Name))
	})
	return out
}

// PutObject creates an object, or replaces one when replace is set. ErrObjectAlreadyExists, ErrTableAlreadyExists for a
// view named like a table.
func (tx *Tx) PutObject(_ context.Context, o catalog.Object, replace bool) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if !tx.NamespaceExists(o.Namespace) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(o.Namespace, "."))
	}
	old, err := tx.Object(o.Kind, o.Namespace, o.Name)
	if err == nil {
		if !replace {
			return fmt.Errorf("%w: %s", catalog.ErrObjectAlreadyExists, o.Name)
		}
		o.OID = old.OID
	}
	if o.Kind == KindView {
		ident := append(slices.Clone(o.Namespace), o.Name)
		if _, _, err := tx.resolve(ident); err == nil {
			return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, o.Name)
		}
	}
	tx.names.objects[objectKey(o.Kind, o.Namespace, o.Name)] = &o
	tx.addOp(catalog.PutObject{Object: o, MustNotExist: !replace}, "")
	return nil
}

// DropObject drops an object: ErrNoSuchObject.
func (tx *Tx) DropObject(_ context.Context, kind string, ns icetable.Identifier, name string) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if _, err := tx.Object(kind, ns, name); err != nil {
		return err
	}
	tx.names.objects[objectKey(kind, ns, name)] = nil
	if _, err := tx.cut.Object(kind, ns, name); err != nil { // created by this transaction
		tx.dropOps(func(c catalog.Change) bool {
			p, ok := c.(catalog.PutObject)
			return ok && objectKey(p.Object.Kind, p.Object.Namespace, p.Object.Name) == objectKey(kind, ns, name)
		})
		return nil
	}
	tx.addOp(catalog.DropObject{Kind: kind, Namespace: ns, Name: name}, "")
	return nil
}
