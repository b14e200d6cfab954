package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// This file is iceberg-go's Catalog, TransactionalCatalog, PurgeableTable and Closer on top of Commit and Cut.

// CatalogType names this implementation.
func (c *Catalog) CatalogType() icecat.Type { return "skade" }

// one commits a single change.
func (c *Catalog) one(ctx context.Context, ch Change) error {
	_, err := c.Commit(ctx, &Request{Changes: []Change{ch}})
	return commitFailed(err)
}

// commitFailed adds iceberg-go's sentinel to a conflict: its transactions retry on that.
func commitFailed(err error) error {
	if errors.Is(err, ErrConflict) {
		return fmt.Errorf("%w: %w", table.ErrCommitFailed, err)
	}
	return err
}

// CreateTable makes a table with fresh field ids, as every Iceberg catalog does.
func (c *Catalog) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberg.Schema, opts ...icecat.CreateTableOpt) (*table.Table, error) {
	cfg := icecat.NewCreateTableCfg()
	for _, opt := range opts {
		opt(&cfg)
	}
	if _, err := c.Cut().Table(ident); err == nil {
		return nil, fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, dotted(ident))
	}
	id := uuid.New()
	location := cfg.Location
	if location == "" {
		var err error
		if location, err = c.NewTableLocation(c.Cut(), ident, id); err != nil {
			return nil, err
		}
	}
	meta, err := table.NewMetadataWithUUID(schema, cfg.PartitionSpec, cfg.SortOrder, location, cfg.Properties, id)
	if err != nil {
		return nil, err
	}
	if err := c.one(ctx, CreateTable{Ident: ident, Metadata: meta}); err != nil {
		return nil, err
	}
	return c.LoadTable(ctx, ident)
}

// RegisterTable adopts a table by its metadata file.
func (c *Catalog) RegisterTable(ctx context.Context, ident table.Identifier, metadataLocation string) (*table.Table, error) {
	if err := c.one(ctx, RegisterTable{Ident: ident, MetadataLocation: metadataLocation}); err != nil {
		return nil, err
	}
	return c.LoadTable(ctx, ident)
}

// CommitTable commits updates to one table when all requirements hold; table.ErrCommitFailed (and ErrConflict) when one
// does not. The metadata returned holds the commit, and may hold later ones.
func (c *Catalog) CommitTable(ctx context.Context, ident table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if err := c.one(ctx, UpdateTable{Ident: ident, Requirements: requirements, Updates: updates}); err != nil {
		return nil, "", err
	}
	t, err := c.Cut().Table(ident)
	if err != nil {
		return nil, "", err
	}
	meta, err := t.Metadata(ctx)
	return meta, t.MetadataLocation, err
}

// CommitTransaction commits several tables as one seq, or none of them.
func (c *Catalog) CommitTransaction(ctx context.Context, commits []table.TableCommit) error {
	if len(commits) == 0 {
		return icecat.ErrEmptyCommitList
	}
	req := &Request{}
	for _, tc := range commits {
		if len(tc.Identifier) == 0 {
			return icecat.ErrMissingIdentifier
		}
		req.Changes = append(req.Changes, UpdateTable{Ident: tc.Identifier, Requirements: tc.Requirements, Updates: tc.Updates})
	}
	_, err := c.Commit(ctx, req)
	return commitFailed(err)
}

// ListTables yields the identifiers of a namespace's tables, without those of its children.
func (c *Catalog) ListTables(_ context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return func(yield func(table.Identifier, error) bool) {
		cut := c.Cut()
		if _, err := cut.Namespace(namespace); err != nil {
			yield(nil, err)
			return
		}
		for t := range cut.Tables(namespace) {
			if !yield(cloneIdent(t.Ident), nil) {
				return
			}
		}
	}
}

// LoadTable returns the table of the newest cut.
func (c *Catalog) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	t, err := c.Cut().Table(ident)
	if err != nil {
		return nil, err
	}
	return t.IcebergTable(ctx)
}

// DropTable drops a table and keeps its files.
func (c *Catalog) DropTable(ctx context.Context, ident table.Identifier) error {
	return c.one(ctx, DropTable{Ident: ident})
}

// PurgeTable drops a table and removes its directory as far as that is possible.
func (c *Catalog) PurgeTable(ctx context.Context, ident table.Identifier) error {
	return c.one(ctx, DropTable{Ident: ident, Purge: true})
}

// RenameTable gives a table another name.
func (c *Catalog) RenameTable(ctx context.Context, from, to table.Identifier) (*table.Table, error) {
	if err := c.one(ctx, RenameTable{From: from, To: to}); err != nil {
		return nil, err
	}
	return c.LoadTable(ctx, to)
}

// CheckTableExists reports whether the newest cut has the table.
func (c *Catalog) CheckTableExists(_ context.Context, ident table.Identifier) (bool, error) {
	_, err := c.Cut().Table(ident)
	return err == nil, nil
}

// ListNamespaces returns the direct children of parent, those of the top level for nil.
func (c *Catalog) ListNamespaces(_ context.Context, parent table.Identifier) ([]table.Identifier, error) {
	cut := c.Cut()
	if len(parent) > 0 {
		if _, err := cut.Namespace(parent); err != nil {
			return nil, err
		}
	}
	list := []table.Identifier{}
	for n := range cut.Namespaces() {
		if len(n.Ident) == len(parent)+1 && nameKey(n.Ident[:len(parent)]...) == nameKey(parent...) {
			list = append(list, cloneIdent(n.Ident))
		}
	}
	return list, nil
}

// CreateNamespace creates a namespace.
func (c *Catalog) CreateNamespace(ctx context.Context, namespace table.Identifier, props iceberg.Properties) error {
	return c.one(ctx, CreateNamespace{Ident: namespace, Props: props})
}

// DropNamespace drops an empty namespace.
func (c *Catalog) DropNamespace(ctx context.Context, namespace table.Identifier) error {
	return c.one(ctx, DropNamespace{Ident: namespace})
}

// CheckNamespaceExists reports whether the newest cut has the namespace.
func (c *Catalog) CheckNamespaceExists(_ context.Context, namespace table.Identifier) (bool, error) {
	_, err := c.Cut().Namespace(namespace)
	return err == nil, nil
}

// LoadNamespaceProperties returns a copy of a namespace's properties.
func (c *Catalog) LoadNamespaceProperties(_ context.Context, namespace table.Identifier) (iceberg.Properties, error) {
	return c.Cut().NamespaceProperties(namespace)
}

// UpdateNamespaceProperties removes and sets properties; the summary says what that meant for the cut before.
func (c *Catalog) UpdateNamespaceProperties(ctx context.Context, namespace table.Identifier, removals []string, updates iceberg.Properties) (icecat.PropertiesUpdateSummary, error) {
	var sum icecat.PropertiesUpdateSummary
	before, err := c.Cut().NamespaceProperties(namespace)
	if err != nil {
		return sum, err
	}
	if err := c.one(ctx, UpdateNamespace{Ident: namespace, Removals: removals, Updates: updates}); err != nil {
		return sum, err
	}
	for _, k := range removals {
		if _, ok := before[k]; ok {
			sum.Removed = append(sum.Removed, k)
		} else {
			sum.Missing = append(sum.Missing, k)
		}
	}
	for k, v := range updates {
		if old, ok := before[k]; !ok || old != v {
			sum.Updated = append(sum.Updated, k)
		}
	}
	return sum, nil
}

var (
	_ icecat.Catalog              = (*Catalog)(nil)
	_ icecat.TransactionalCatalog = (*Catalog)(nil)
	_ icecat.PurgeableTable       = (*Catalog)(nil)
	_ icecat.Closer               = (*Catalog)(nil)
	_ TableProvider               = (*TableState)(nil)
)
