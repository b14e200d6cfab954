package warehouse

import (
	"context"
	"fmt"
	"strings"

	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// RegisterTable adopts a table that another catalog wrote: from the commit on it is written here. Its snapshot is read at once, so a table
// that cannot be read is refused. With replace, a table of that name gives way: one of the same uuid moves to the metadata file and keeps
// its history, another is dropped. iceberg-go's ErrTableAlreadyExists (also for a uuid that is in use), ErrNoSuchNamespace.
func (tx *Tx) RegisterTable(ctx context.Context, ident icetable.Identifier, f *catalog.Foreign, replace bool) (*TxTable, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	if len(ident) < 2 {
		return nil, fmt.Errorf("%w: %v has no namespace", ErrInvalidTable, ident)
	}
	ns, name := ident[:len(ident)-1], ident[len(ident)-1]
	if !tx.NamespaceExists(ns) {
		return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	if err := tx.writableNamespace(ns); err != nil {
		return nil, err
	}
	if tx.objectNamed(ns, name) {
		return nil, fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(ident, "."))
	}
	state := tx.w.opts.Catalog.Preview(ident, f)
	var change catalog.Change = catalog.RegisterTable{Ident: ident, MetadataLocation: f.Location, Foreign: f}
	old, _, err := tx.resolve(ident)
	switch {
	case err != nil: // the name is free
	case !replace:
		return nil, fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(ident, "."))
	case old == state.Key:
		t, err := tx.Table(ctx, ident)
		if err != nil {
			return nil, err
		}
		if t.base == nil || t.altered() {
			return nil, fmt.Errorf("%w: table %s was changed in this transaction", ErrInvalidTable, strings.Join(ident, "."))
		}
		state.OID = t.base.OID
		change = catalog.FollowTable{Key: state.Key, Foreign: f}
	default:
		if err := tx.DropTable(ctx, ident, false); err != nil {
			return nil, err
		}
	}
	if used, ok := tx.named(state.Key); ok && old != state.Key {
		return nil, fmt.Errorf("%w: the metadata file is of table %s", icecat.ErrTableAlreadyExists, strings.Join(used, "."))
	}
	t, err := tx.openTable(ctx, state)
	if err != nil {
		return nil, err
	}
	tx.names.tables[t.key] = t
	tx.names.byIdent[identKey(ident)] = t.key
	tx.addOp(change, t.key)
	return t, nil
}

// UnregisterTable takes a table out of the catalog and leaves all its files, for another catalog to register. It returns the metadata file.
// A commit that moves the table meanwhile is a conflict: the file is the last word.
func (tx *Tx) UnregisterTable(ctx context.Context, ident icetable.Identifier) (string, error) {
	if err := tx.writable(); err != nil {
		return "", err
	}
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return "", err
	}
	if t.base == nil || t.altered() {
		return "", fmt.Errorf("%w: table %s was changed in this transaction", ErrInvalidTable, strings.Join(ident, "."))
	}
	if err := t.ownTable(); err != nil {
		return "", err
	}
	tx.names.byIdent[identKey(ident)] = ""
	delete(tx.names.tables, t.key)
	if err := tx.w.opts.Catalog.WriteMetadata(); err != nil { // the next catalog reads the file
		return "", err
	}
	location := t.base.MetadataLocation
	tx.addOp(catalog.DropTable{Ident: ident, MetadataLocation: location, Operation: catalog.OperationUnregister}, t.key)
	return location, nil
}

// named finds the name under which the transaction sees a table.
func (tx *Tx) named(key catalog.TableKey) (icetable.Identifier, bool) {
	for _, t := range tx.Tables() {
		if t.Key == key {
			return t.Ident, true
		}
	}
	return nil, false
}

// registered reports the tables that the transaction itself adopts: their rows commit behind that.
func (tx *Tx) registered() map[catalog.TableKey]bool {
	out := map[catalog.TableKey]bool{}
	for _, o := range tx.ops {
		switch o.change.(type) {
		case catalog.RegisterTable, catalog.FollowTable:
			out[o.key] = true
		}
	}
	return out
}

// ownTable refuses a table that a mount follows.
func (t *TxTable) ownTable() error {
	if t.base != nil && t.base.Mounted() {
		return fmt.Errorf("%s %w", strings.Join(t.ident, "."), catalog.ErrMounted)
	}
	return nil
}

// writableNamespace refuses a namespace that a mount follows.
func (tx *Tx) writableNamespace(ns icetable.Identifier) error {
	if n, err := tx.cut.Namespace(ns); err == nil && n.Mount() != "" {
		return fmt.Errorf("%s %w", strings.Join(ns, "."), catalog.ErrMounted)
	}
	return nil
}
