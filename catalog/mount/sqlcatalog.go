package mount

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql's driver "pgx"
	_ "modernc.org/sqlite"             // database/sql's driver "sqlite", without cgo

	"github.com/nordisk/skade-pg/internal/storeio"
)

// sqlCatalog is the JDBC catalog's database, as PyIceberg, iceberg-go and Java write it: one row a table, the pointer in it.
type sqlCatalog struct {
	db   *sql.DB
	name string
}

func newSQLCatalog(d Definition, fs *storeio.FS) (Source, error) {
	driver, dsn := "pgx", d.Source
	if d.Kind == KindSQLite {
		path := storeio.PathOf(strings.TrimPrefix(d.Source, "sqlite://"))
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%w: %s is not an absolute path", ErrInvalid, d.Source)
		}
		if err := fs.Allowed(path); err != nil {
			return nil, err
		}
		path, err := fs.Resolve(path)
		if err != nil {
			return nil, err
		}
		driver, dsn = "sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"}).String()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(0) // a file that is exchanged, or a server that restarts, is seen by the next poll
	return &sqlCatalog{db, d.Options["catalog_name"]}, nil
}

func (c *sqlCatalog) Close() error { return c.db.Close() }

// List reads both of the catalog's tables in one transaction: one state.
func (c *sqlCatalog) List(ctx context.Context) (_ *Listing, err error) {
	tx, err := c.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelDefault})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	l := &Listing{}
	names := map[string]bool{}
	err = each(ctx, tx, "SELECT * FROM iceberg_tables", func(row map[string]sql.NullString) error {
		if t := row["iceberg_type"]; t.Valid && !strings.EqualFold(t.String, "TABLE") {
			return nil
		}
		if !c.mine(row["catalog_name"].String, names) {
			return nil
		}
		ident := append(namespaceOf(row["table_namespace"].String), row["table_name"].String)
		return l.add(Table{Ident: ident, MetadataLocation: row["metadata_location"].String})
	})
	if err != nil {
		return nil, err
	}
	if len(names) > 1 {
		return nil, fmt.Errorf("%w: the database holds the catalogs %s: name one by the option catalog_name", ErrInvalid, strings.Join(sorted(names), ", "))
	}
	// Older databases have no namespaces' table.
	_ = each(ctx, tx, "SELECT * FROM iceberg_namespace_properties", func(row map[string]sql.NullString) error {
		if c.mine(row["catalog_name"].String, names) {
			l.Namespaces = append(l.Namespaces, namespaceOf(row["namespace"].String))
		}
		return nil
	})
	return l, ctx.Err()
}

func (c *sqlCatalog) mine(name string, seen map[string]bool) bool {
	if c.name != "" {
		return name == c.name
	}
	seen[name] = true
	return true
}

func sorted(names map[string]bool) []string {
	var out []string
	for n := range names {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// each reads rows as columns by name: which columns there are depends on the catalog's schema version.
func each(ctx context.Context, tx *sql.Tx, query string, do func(map[string]sql.NullString) error) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	vals := make([]sql.NullString, len(cols))
	ptrs := make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		row := make(map[string]sql.NullString, len(cols))
		for i, c := range cols {
			row[strings.ToLower(c)] = vals[i]
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// encodedNamespace starts a namespace that iceberg-go wrote as JSON, because a level has a dot.
const encodedNamespace = "__iceberg_namespace_v1__:"

func namespaceOf(text string) table.Identifier {
	if raw, ok := strings.CutPrefix(text, encodedNamespace); ok {
		var ident table.Identifier
		if json.Unmarshal([]byte(raw), &ident) == nil && len(ident) > 0 {
			return ident
		}
	}
	return strings.Split(text, ".")
}
