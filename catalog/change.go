package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// stage records the new value of an entity, nil for a removed one.
func (a *attempt) stage(key []byte, encode func() []byte) {
	a.writes = append(a.writes, write{seq: a.seq, key: key, encode: encode})
}

func (a *attempt) entry(t TableRecord) { a.entries = append(a.entries, t) }

func (a *attempt) newOID() uint32 {
	oid := a.state.nextOID
	a.state.nextOID++
	return oid
}

func (a *attempt) namespace(ns []string) (*NamespaceState, error) {
	return (&Cut{s: a.state}).Namespace(ns)
}

// free reports whether a relation may take the name.
func (a *attempt) free(ident []string) error {
	if _, ok := a.state.tables.Get(nameKey(ident...)); ok {
		return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, dotted(ident))
	}
	ns, name := ident[:len(ident)-1], ident[len(ident)-1]
	for _, kind := range relationKinds {
		if _, ok := a.state.objects.Get(objectName(kind, ns, name)); ok {
			return fmt.Errorf("%w: %s is a %s", icecat.ErrTableAlreadyExists, dotted(ident), kind)
		}
	}
	return nil
}

func (ch CreateNamespace) apply(_ context.Context, a *attempt) error {
	if err := checkIdent(ch.Ident, 1); err != nil {
		return err
	}
	if _, err := a.namespace(ch.Ident); err == nil {
		return fmt.Errorf("%w: %s", icecat.ErrNamespaceAlreadyExists, dotted(ch.Ident))
	}
	if len(ch.Ident) > 1 {
		if err := a.writableNamespace(ch.Ident[:len(ch.Ident)-1]); err != nil {
			return err
		}
	}
	n := &NamespaceState{
		Ident: cloneIdent(ch.Ident), OID: a.newOID(), Properties: iceberg.Properties{}, CreatedSeq: a.seq, ChangedSeq: a.seq,
	}
	maps.Copy(n.Properties, ch.Props)
	return a.putNamespace(n, OperationCreate)
}

func (a *attempt) putNamespace(n *NamespaceState, operation string) error {
	a.state.setNamespace(n)
	a.stage(namespaceKey(n.Ident), n.encode)
	for k, v := range n.Properties {
		a.size += len(k) + len(v)
	}
	a.entry(TableRecord{Kind: KindNamespace, Ident: n.Ident, Operation: operation})
	return nil
}

func (ch DropNamespace) apply(_ context.Context, a *attempt) error {
	n, err := a.namespace(ch.Ident)
	if err != nil {
		return err
	}
	if err := a.ownNamespace(n); err != nil {
		return err
	}
	if err := a.state.empty(ch.Ident); err != nil {
		return err
	}
	a.state.dropNamespace(n.Ident)
	a.stage(namespaceKey(n.Ident), nil)
	a.entry(TableRecord{Kind: KindNamespace, Ident: n.Ident, Operation: OperationDrop})
	return nil
}

func (ch UpdateNamespace) apply(_ context.Context, a *attempt) error {
	old, err := a.namespace(ch.Ident)
	if err != nil {
		return err
	}
	if err := a.ownNamespace(old); err != nil {
		return err
	}
	n := *old
	n.Properties, n.ChangedSeq = maps.Clone(old.Properties), a.seq
	for _, k := range ch.Removals {
		if _, ok := ch.Updates[k]; ok {
			return fmt.Errorf("%w: property %q is both removed and set", ErrInvalidRequest, k)
		}
		delete(n.Properties, k)
	}
	maps.Copy(n.Properties, ch.Updates)
	if maps.Equal(n.Properties, old.Properties) {
		return nil
	}
	return a.putNamespace(&n, OperationProperties)
}

func (ch RenameTable) apply(_ context.Context, a *attempt) error {
	if err := checkIdent(ch.To, 2); err != nil {
		return err
	}
	old, err := (&Cut{s: a.state}).Table(ch.From)
	if err != nil {
		return err
	}
	if err := old.is(ch.Key); err != nil {
		return err
	}
	if dotted(ch.From) == dotted(ch.To) && len(ch.From) == len(ch.To) {
		return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, dotted(ch.To))
	}
	if err := errors.Join(a.own(old), a.writableNamespace(ch.To[:len(ch.To)-1])); err != nil {
		return err
	}
	if err := a.free(ch.To); err != nil {
		return err
	}
	t := old.with(a.seq)
	t.Ident = cloneIdent(ch.To)
	a.putTable(t)
	a.entry(TableRecord{
		Kind: KindRename, Key: t.Key, UUID: t.UUID, Ident: t.Ident, OldIdent: old.Ident,
		OldMetadata: old.MetadataLocation, NewMetadata: t.MetadataLocation, SchemaID: t.schemaID,
	})
	return nil
}

func (ch DropTable) apply(ctx context.Context, a *attempt) error {
	t, err := (&Cut{s: a.state}).Table(ch.Ident)
	if err != nil {
		return err
	}
	if err := t.is(ch.Key); err != nil {
		return err
	}
	if err := a.own(t); err != nil {
		return err
	}
	if ch.MetadataLocation != "" && ch.MetadataLocation != t.MetadataLocation {
		return fmt.Errorf("%w: %s changed meanwhile", ErrConflict, dotted(ch.Ident))
	}
	if ch.Purge {
		if err := a.planPurge(ctx, t); err != nil {
			return err
		}
	}
	a.state.dropTable(t.Key)
	a.stage(tableKey(t.UUID), nil)
	if !ch.Purge && ch.Operation != OperationUnregister && !t.mounted { // another catalog has the files
		a.stageDropped(t, &DroppedTable{State: t, Seq: a.seq, Time: a.time})
	}
	a.entry(TableRecord{
		Kind: KindDrop, Key: t.Key, UUID: t.UUID, Ident: t.Ident, OldMetadata: t.MetadataLocation, SchemaID: t.schemaID,
		Operation: cmp.Or(ch.Operation, OperationDrop),
	})
	return nil
}

// is refuses a table that only has the name of the one that a request was made for.
func (t *TableState) is(key TableKey) error {
	if key != "" && key != t.Key {
		return fmt.Errorf("%w: table %s was replaced", ErrConflict, dotted(t.Ident))
	}
	return nil
}

// planPurge marks the table's directory for removal after the commit, when the table owns it.
func (a *attempt) planPurge(ctx context.Context, t *TableState) error {
	meta, _, err := a.base(ctx, t)
	if err != nil {
		return err
	}
	dir := storeio.PathOf(meta.Location())
	if !meta.Properties().GetBool("gc.enabled", true) || len(dir) < 2 || strings.Contains(dir, "://") {
		return nil
	}
	shared := false
	a.state.byKey.Scan(func(_ string, o *TableState) bool {
		shared = o.Key != t.Key && strings.HasPrefix(storeio.PathOf(o.MetadataLocation), dir+"/")
		return !shared
	})
	a.state.dropped.Scan(func(_ string, o *DroppedTable) bool {
		shared = shared || o.State.Key != t.Key && strings.HasPrefix(storeio.PathOf(o.State.MetadataLocation), dir+"/")
		return !shared
	})
	if !shared {
		a.purges = append(a.purges, dir)
	}
	return nil
}

func (ch PutObject) apply(_ context.Context, a *attempt) error {
	o := ch.Object
	if err := errors.Join(checkPart(o.Kind), checkPart(o.Name), checkIdent(o.Namespace, 1)); err != nil {
		return err
	}
	if len(o.Payload) > maxPayload {
		return fmt.Errorf("%w: payload of %d bytes, at most %d", ErrInvalidRequest, len(o.Payload), maxPayload)
	}
	if err := a.writableNamespace(o.Namespace); err != nil {
		return err
	}
	o.Namespace = cloneIdent(o.Namespace)
	o.Payload = append([]byte(nil), o.Payload...)
	o.ChangedSeq = a.seq
	operation := OperationReplace
	old, err := (&Cut{s: a.state}).Object(o.Kind, o.Namespace, o.Name)
	switch {
	case err == nil && ch.MustNotExist:
		return fmt.Errorf("%s %s.%s: %w", o.Kind, dotted(o.Namespace), o.Name, ErrObjectAlreadyExists)
	case err == nil:
		o.OID, o.CreatedSeq = old.OID, old.CreatedSeq
	default:
		if isRelation(o.Kind) {
			if err := a.free(append(cloneIdent(o.Namespace), o.Name)); err != nil {
				return err
			}
		}
		o.OID, o.CreatedSeq, operation = a.newOID(), a.seq, OperationCreate
	}
	a.state.setObject(&o)
	a.stage(objectKey(o.Kind, o.Namespace, o.Name), o.encode)
	a.size += 2 * len(o.Payload)
	a.entry(TableRecord{Kind: o.Kind, Ident: append(cloneIdent(o.Namespace), o.Name), Operation: operation})
	return nil
}

func (ch DropObject) apply(_ context.Context, a *attempt) error {
	o, err := (&Cut{s: a.state}).Object(ch.Kind, ch.Namespace, ch.Name)
	if err != nil {
		return err
	}
	if err := a.writableNamespace(o.Namespace); err != nil {
		return err
	}
	a.state.dropObject(o.Kind, o.Namespace, o.Name)
	a.stage(objectKey(o.Kind, o.Namespace, o.Name), nil)
	a.entry(TableRecord{Kind: o.Kind, Ident: append(cloneIdent(o.Namespace), o.Name), Operation: OperationDrop})
	return nil
}
