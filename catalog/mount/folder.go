package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// folder is a folder of Iceberg tables: every folder below it with a metadata folder is a table, every other one a namespace.
type folder struct {
	fs   *storeio.FS
	root string
}

func newFolder(d Definition, fs *storeio.FS) (Source, error) {
	if err := fs.Allowed(d.Source); err != nil {
		return nil, err
	}
	root := storeio.PathOf(d.Source)
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("%w: %s is not an absolute path", ErrInvalid, d.Source)
	}
	return &folder{fs, filepath.Clean(root)}, nil
}

func (f *folder) Close() error { return nil }

// List walks the folder. A folder that cannot be read is a problem of its tables alone; the root is the source.
func (f *folder) List(ctx context.Context) (*Listing, error) {
	l := &Listing{}
	entries, err := f.fs.ReadDir(f.root)
	if err != nil {
		return nil, err
	}
	if isTable(f.fs, f.root, entries) {
		return nil, fmt.Errorf("%w: %s is itself a table: skade.register_table adopts it", ErrInvalid, f.root)
	}
	return l, f.walk(ctx, l, f.root, nil, entries)
}

func (f *folder) walk(ctx context.Context, l *Listing, dir string, ident table.Identifier, entries []fs.DirEntry) error {
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A link might lead back up; Iceberg's own names start with neither of these.
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		below, err := f.fs.ReadDir(sub)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name := append(ident[:len(ident):len(ident)], e.Name())
		isTab := err == nil && isTable(f.fs, sub, below)
		if len(ident) == 0 && !isTab {
			name[0] = strings.TrimSuffix(name[0], ".db") // Hive's folder of a database
		}
		switch {
		case err != nil:
			l.problem(name, err)
		case isTab:
			if err := f.table(l, sub, name); err != nil {
				return err
			}
		case len(name) >= MaxDepth:
		default:
			if err := f.walk(ctx, l, sub, name, below); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTable reports whether a folder has metadata files.
func isTable(files *storeio.FS, dir string, entries []fs.DirEntry) bool {
	for _, e := range entries {
		if e.Name() != "metadata" || !e.IsDir() {
			continue
		}
		inside, err := files.ReadDir(filepath.Join(dir, "metadata"))
		if err != nil {
			return true // what is wrong with it is its problem
		}
		for _, m := range inside {
			if _, ok := catalog.IsMetadataFile(m.Name()); ok || m.Name() == hintFile {
				return true
			}
		}
	}
	return false
}

const hintFile = "version-hint.text"

// table finds the newest metadata file of a table's folder.
func (f *folder) table(l *Listing, dir string, ident table.Identifier) error {
	metadata := filepath.Join(dir, "metadata")
	entries, err := f.fs.ReadDir(metadata)
	if err != nil {
		l.problem(ident, err)
		return nil
	}
	var best []fs.DirEntry
	newest := -1
	for _, e := range entries {
		v, ok := catalog.IsMetadataFile(e.Name())
		switch {
		case !ok || e.IsDir() || v < newest:
		case v > newest:
			newest, best = v, []fs.DirEntry{e}
		default:
			best = append(best, e)
		}
	}
	if len(best) == 0 {
		l.problem(ident, fmt.Errorf("%w in %s", catalog.ErrNoMetadata, metadata))
		return nil
	}
	chosen := best[0]
	if len(best) > 1 {
		last := int64(-1)
		for _, e := range best {
			if ms := f.lastUpdated(filepath.Join(metadata, e.Name())); ms > last {
				last, chosen = ms, e
			}
		}
	}
	t := Table{Ident: ident, MetadataLocation: filepath.Join(metadata, chosen.Name())}
	if info, err := chosen.Info(); err == nil && strings.HasPrefix(chosen.Name(), "v") {
		t.Stamp = strconv.FormatInt(info.Size(), 10) + "/" + strconv.FormatInt(info.ModTime().UnixNano(), 10)
	}
	return l.add(t)
}

// lastUpdated reads a metadata file's time; 0 for one that cannot be read.
func (f *folder) lastUpdated(path string) int64 {
	file, err := f.fs.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	var head struct {
		At int64 `json:"last-updated-ms"`
	}
	if err := json.NewDecoder(io.LimitReader(file, catalog.MaxForeignMetadata)).Decode(&head); err != nil {
		return 0
	}
	return head.At
}
