package mount

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// Kinds of sources.
const (
	KindFolder   = "folder"
	KindSQLite   = "sqlite"
	KindPostgres = "postgres"
	KindREST     = "rest"
)

// Bounds of a source (M4).
const (
	MaxTables = 10_000
	MaxDepth  = 8
)

// MinInterval is the shortest time between two polls.
const MinInterval = 100 * time.Millisecond

// Definition is what a mount is: the payload of its object.
type Definition struct {
	Name     string            `json:"-"`
	Kind     string            `json:"kind"`
	Source   string            `json:"source"`
	Interval time.Duration     `json:"interval,omitempty"` // 0: the Manager's
	Options  map[string]string `json:"options,omitempty"`
}

func (d Definition) encode() ([]byte, error) { return json.Marshal(d) }

func decodeDefinition(name string, payload []byte) (Definition, error) {
	d := Definition{}
	if err := json.Unmarshal(payload, &d); err != nil {
		return d, fmt.Errorf("%w: definition of mount %s: %w", ErrInvalid, name, err)
	}
	d.Name = name
	return d, nil
}

// options lists what each kind understands beside the source.
var options = map[string][]string{
	KindFolder:   nil,
	KindSQLite:   {"catalog_name"},
	KindPostgres: {"catalog_name"},
	KindREST:     {"warehouse", "prefix", "token", "credential", "scope", "oauth2-server-uri"},
}

// complete fills in the kind that a source shows, and checks the rest.
func (d Definition) complete() (Definition, error) {
	switch {
	case d.Name == "" || strings.ContainsAny(d.Name, ".\x00"):
		return d, fmt.Errorf("%w: name %q must be one level", ErrInvalid, d.Name)
	case d.Source == "":
		return d, fmt.Errorf("%w: no source", ErrInvalid)
	case d.Interval < 0 || d.Interval > 0 && d.Interval < MinInterval:
		return d, fmt.Errorf("%w: an interval of %s is too short, the least is %s", ErrInvalid, d.Interval, MinInterval)
	}
	if d.Kind == "" {
		d.Kind = kindOf(d.Source)
	}
	known, ok := options[d.Kind]
	if !ok {
		return d, fmt.Errorf("%w: kind %q is none of folder, sqlite, postgres, rest", ErrInvalid, d.Kind)
	}
	for key := range d.Options {
		if !slices.Contains(known, key) {
			return d, fmt.Errorf("%w: a mount of kind %s has no option %q", ErrInvalid, d.Kind, key)
		}
	}
	return d, nil
}

func kindOf(source string) string {
	scheme, _, ok := strings.Cut(source, "://")
	switch strings.ToLower(scheme) {
	case "http", "https":
		return KindREST
	case "postgres", "postgresql":
		return KindPostgres
	case "sqlite":
		return KindSQLite
	}
	if ext := strings.ToLower(filepath.Ext(source)); (!ok || strings.HasPrefix(source, "file:")) && (ext == ".db" || ext == ".sqlite" || ext == ".sqlite3") {
		return KindSQLite
	}
	return KindFolder
}

// Table is a table as a source lists it.
type Table struct {
	// Ident is its name below the mount.
	Ident            table.Identifier
	MetadataLocation string
	// Stamp tells two files of one name apart, "" where names are never used again.
	Stamp string
}

// Problem is something of a source that cannot be listed: what lies at or below Ident stays as it was last seen.
type Problem struct {
	Ident table.Identifier
	Err   error
}

// Listing is all of a source.
type Listing struct {
	Namespaces []table.Identifier
	Tables     []Table
	Problems   []Problem
}

func (l *Listing) problem(ident table.Identifier, err error) {
	l.Problems = append(l.Problems, Problem{slices.Clone(ident), err})
}

// add notes a table, unless its name cannot be an SQL name here.
func (l *Listing) add(t Table) error {
	for _, level := range t.Ident {
		if level == "" || strings.ContainsRune(level, 0) {
			l.problem(t.Ident, fmt.Errorf("%w: a name with an empty level", ErrInvalid))
			return nil
		}
	}
	if slices.ContainsFunc(t.Ident[:len(t.Ident)-1], func(level string) bool { return strings.Contains(level, ".") }) {
		l.problem(t.Ident, fmt.Errorf("%w: the namespace has a dot in a level", ErrInvalid))
		return nil
	}
	if len(l.Tables) == MaxTables {
		return fmt.Errorf("%w: more than %d", ErrTooMany, MaxTables)
	}
	l.Tables = append(l.Tables, t)
	return nil
}

// Source lists another catalog. List is called by one goroutine at a time and gives all there is: an error means that nothing is known.
type Source interface {
	List(ctx context.Context) (*Listing, error)
	Close() error
}

// Open opens the source of a definition. It reads nothing yet.
func Open(d Definition, fs *storeio.FS) (Source, error) {
	switch d.Kind {
	case KindFolder:
		return newFolder(d, fs)
	case KindSQLite, KindPostgres:
		return newSQLCatalog(d, fs)
	case KindREST:
		return newREST(d)
	}
	return nil, fmt.Errorf("%w: kind %q", ErrInvalid, d.Kind)
}
