package mount

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"
)

// restLoads is the number of tables that are asked for at a time.
const restLoads = 4

// restCatalog is an Iceberg REST catalog, spoken to by iceberg-go's client.
type restCatalog struct {
	def Definition
	cat *rest.Catalog // nil until the first poll that reached it
}

func newREST(d Definition) (Source, error) {
	u, err := url.Parse(d.Source)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: %s is no URL", ErrInvalid, d.Source)
	}
	return &restCatalog{def: d}, nil
}

func (c *restCatalog) Close() error {
	if c.cat == nil {
		return nil
	}
	return c.cat.Close()
}

func (c *restCatalog) connect(ctx context.Context) error {
	if c.cat != nil {
		return nil
	}
	o := c.def.Options
	opts := []rest.Option{rest.WithWarehouseLocation(o["warehouse"])}
	if v := o["prefix"]; v != "" {
		opts = append(opts, rest.WithPrefix(v))
	}
	if v := o["token"]; v != "" {
		opts = append(opts, rest.WithOAuthToken(v))
	}
	if v := o["credential"]; v != "" {
		opts = append(opts, rest.WithCredential(v))
	}
	if v := o["scope"]; v != "" {
		opts = append(opts, rest.WithScope(v))
	}
	if v := o["oauth2-server-uri"]; v != "" {
		u, err := url.Parse(v)
		if err != nil {
			return fmt.Errorf("%w: oauth2-server-uri: %w", ErrInvalid, err)
		}
		opts = append(opts, rest.WithAuthURI(u))
	}
	opts = append(opts, rest.WithAdditionalProps(iceberg.Properties{}))
	cat, err := rest.NewCatalog(ctx, c.def.Name, c.def.Source, opts...)
	c.cat = cat
	return err
}

// List asks for every namespace, its tables, and each table's metadata file.
func (c *restCatalog) List(ctx context.Context) (*Listing, error) {
	if err := c.connect(ctx); err != nil {
		c.cat = nil
		return nil, err
	}
	l := &Listing{}
	var idents []table.Identifier
	if err := c.namespaces(ctx, l, nil, &idents); err != nil {
		return nil, err
	}
	if len(idents) > MaxTables {
		return nil, fmt.Errorf("%w: more than %d", ErrTooMany, MaxTables)
	}
	found := make([]Table, len(idents))
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(restLoads)
	for i, ident := range idents {
		g.Go(func() error {
			t, err := c.cat.LoadTable(gctx, ident)
			if cerr := gctx.Err(); cerr != nil {
				return cerr
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				l.problem(ident, err)
				return nil
			}
			found[i] = Table{Ident: ident, MetadataLocation: t.MetadataLocation()}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, t := range found {
		if t.Ident == nil {
			continue
		}
		if err := l.add(t); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (c *restCatalog) namespaces(ctx context.Context, l *Listing, parent table.Identifier, idents *[]table.Identifier) error {
	if len(parent) >= MaxDepth {
		return nil
	}
	list, err := c.cat.ListNamespaces(ctx, parent)
	if err != nil {
		if len(parent) > 0 {
			return nil // a catalog of one level may refuse to look below it
		}
		return err
	}
	for _, ns := range list {
		l.Namespaces = append(l.Namespaces, slices.Clone(ns))
		for ident, err := range c.cat.ListTables(ctx, ns) {
			if err != nil {
				if cerr := ctx.Err(); cerr != nil {
					return cerr
				}
				l.problem(ns, err)
				break
			}
			if *idents = append(*idents, slices.Clone(ident)); len(*idents) > MaxTables {
				return nil
			}
		}
		if err := c.namespaces(ctx, l, ns, idents); err != nil {
			return err
		}
	}
	return nil
}
