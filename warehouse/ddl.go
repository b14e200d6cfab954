package warehouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
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

// Also adds a change of the catalog that happens with the transaction's own, and by itself when there are none.
func (tx *Tx) Also(c catalog.Change) {
	if f, ok := c.(catalog.ChangeFeed); ok && f.Once != "" {
		for _, o := range tx.ops {
			if have, ok := o.change.(catalog.ChangeFeed); ok && have.Name == f.Name && have.Once == f.Once {
				return
			}
		}
	}
	tx.addOp(c, "")
}

// dropOps takes definitions back.
func (tx *Tx) dropOps(match func(catalog.Change) bool) {
	tx.ops = slices.DeleteFunc(slices.Clone(tx.ops), func(o op) bool { return match(o.change) })
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
	if tx.private != nil {
		out = append(out, tx.private.tx.Tables()...)
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
	if h := tx.hidden(ident); h != nil {
		return h.Table(ctx, ident)
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

// DropTable drops a table; purge removes its files once nothing reads them.
func (tx *Tx) DropTable(ctx context.Context, ident icetable.Identifier, purge bool) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if h := tx.hidden(ident); h != nil {
		return h.DropTable(ctx, ident, purge)
	}
	key, created, err := tx.resolve(ident)
	if err != nil {
		return err
	}
	if state, ok := tx.cut.TableByKey(key); ok && state.Mounted() {
		return fmt.Errorf("%s %w", strings.Join(ident, "."), catalog.ErrMounted)
	}
	tx.names.byIdent[identKey(ident)] = ""
	delete(tx.names.tables, key)
	if created || tx.registered()[key] {
		tx.ops = slices.DeleteFunc(slices.Clone(tx.ops), func(o op) bool { return o.key == key })
		return nil
	}
	tx.addOp(catalog.DropTable{Ident: ident, Key: key, Purge: purge}, key)
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
	if h := tx.hidden(from); h != nil {
		return h.RenameTable(ctx, from, to)
	}
	if tx.hidden(to) != nil {
		return fmt.Errorf("%w: a table cannot move into the private namespace %s", ErrInvalidTable, to[0])
	}
	t, err := tx.Table(ctx, from)
	if err != nil {
		return err
	}
	if err := t.ownTable(); err != nil {
		return err
	}
	ns := to[:len(to)-1]
	if !tx.NamespaceExists(ns) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ns, "."))
	}
	if err := tx.writableNamespace(ns); err != nil {
		return err
	}
	if _, _, err := tx.resolve(to); err == nil || tx.objectNamed(ns, to[len(to)-1]) {
		return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(to, "."))
	}
	tx.names.byIdent[identKey(from)] = ""
	tx.names.byIdent[identKey(to)] = t.key
	t.ident = to
	if t.base != nil {
		tx.addOp(catalog.RenameTable{From: from, To: to, Key: t.key}, t.key)
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
	if h := tx.hidden(ident); h != nil {
		return h.AlterTable(ctx, ident, updates...)
	}
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return err
	}
	if err := t.ownTable(); err != nil {
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
	if t.setMetadata(meta); t.unwritable != nil && before.unwritable == nil {
		err := t.unwritable
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
