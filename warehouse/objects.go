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

// NamespaceExists says whether ns exists in the transaction's view.
func (tx *Tx) NamespaceExists(ns icetable.Identifier) bool {
	if h := tx.hidden(ns); h != nil {
		return len(ns) == 1
	}
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
	if tx.private != nil {
		out = append(out, icetable.Identifier{tx.private.opts.Namespace})
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
	for n := range len(ns) - 1 {
		if err := tx.writableNamespace(ns[:n+1]); err != nil {
			return err
		}
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
	if err := tx.writableNamespace(ns); err != nil {
		return err
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

// objectNamed says whether an object of any kind that shares the tables' name space has the name.
func (tx *Tx) objectNamed(ns icetable.Identifier, name string) bool {
	for _, kind := range relationKinds {
		if _, err := tx.Object(kind, ns, name); err == nil {
			return true
		}
	}
	return false
}

// KindView and KindSequence are the kinds of objects that share one name space with tables.
const (
	KindView     = "view"
	KindSequence = "sequence"
)

var relationKinds = []string{KindView, KindSequence}

// Object finds an object in the transaction's view. catalog.ErrNoSuchObject when there is none.
func (tx *Tx) Object(kind string, ns icetable.Identifier, name string) (*catalog.Object, error) {
	if h := tx.hidden(ns); h != nil {
		return h.Object(kind, ns, name)
	}
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
	if tx.private != nil {
		out = append(out, tx.private.tx.Objects(kind)...)
	}
	slices.SortFunc(out, func(a, b *catalog.Object) int {
		return strings.Compare(objectKey(a.Kind, a.Namespace, a.Name), objectKey(b.Kind, b.Namespace, b.Name))
	})
	return out
}

// OwnObjects are the objects of a kind that this transaction made or replaced. Like Object it may be called while another goroutine writes rows.
func (tx *Tx) OwnObjects(kind string) []*catalog.Object {
	var out []*catalog.Object
	for _, o := range tx.names.objects {
		if o != nil && o.Kind == kind {
			out = append(out, o)
		}
	}
	if tx.private != nil {
		out = append(out, tx.private.tx.OwnObjects(kind)...)
	}
	return out
}

// PutObject creates an object, or replaces one when replace is set. ErrObjectAlreadyExists, ErrTableAlreadyExists for a
// view named like a table.
func (tx *Tx) PutObject(ctx context.Context, o catalog.Object, replace bool) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if h := tx.hidden(o.Namespace); h != nil {
		return h.PutObject(ctx, o, replace)
	}
	if !tx.NamespaceExists(o.Namespace) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(o.Namespace, "."))
	}
	if err := tx.writableNamespace(o.Namespace); err != nil {
		return err
	}
	old, err := tx.Object(o.Kind, o.Namespace, o.Name)
	if err == nil {
		if !replace {
			return fmt.Errorf("%w: %s", catalog.ErrObjectAlreadyExists, o.Name)
		}
		o.OID = old.OID
	}
	if slices.Contains(relationKinds, o.Kind) {
		ident := append(slices.Clone(o.Namespace), o.Name)
		if _, _, err := tx.resolve(ident); err == nil {
			return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, o.Name)
		}
		for _, kind := range relationKinds {
			if _, err := tx.Object(kind, o.Namespace, o.Name); err == nil && kind != o.Kind {
				return fmt.Errorf("%w: %s is a %s", catalog.ErrObjectAlreadyExists, o.Name, kind)
			}
		}
	}
	if tx.side != nil {
		if o.OID == 0 {
			o.OID = tx.side.opts.NewOID()
		}
		o.ChangedSeq = uint64(tx.changes.Load())
	}
	tx.names.objects[objectKey(o.Kind, o.Namespace, o.Name)] = &o
	tx.addOp(catalog.PutObject{Object: o, MustNotExist: !replace}, "")
	return nil
}

// DropObject drops an object: ErrNoSuchObject.
func (tx *Tx) DropObject(ctx context.Context, kind string, ns icetable.Identifier, name string) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if h := tx.hidden(ns); h != nil {
		return h.DropObject(ctx, kind, ns, name)
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
