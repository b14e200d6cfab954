package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

func main() {
	dir := flag.String("dir", "", "folder of the table, made when it does not exist")
	rows := flag.Int("rows", 0, "rows of the first commit")
	from := flag.Int("from", 0, "first key that the second commit changes")
	step := flag.Int("step", 1, "distance of the changed keys")
	changed := flag.Int("changed", 0, "how many keys it changes")
	flag.Parse()
	line, err := write(context.Background(), *dir, *rows, keys{*from, *step, *changed})
	if err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(1)
	}
	fmt.Println(line)
}

// keys are n keys from first on, step apart.
type keys struct{ first, step, n int }

func write(ctx context.Context, dir string, rows int, changed keys) (string, error) {
	sc := iceberg.NewSchemaWithIdentifiers(0, []int{1},
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "a", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 3, Name: "b", Type: iceberg.PrimitiveTypes.String})
	meta, err := table.NewMetadata(sc, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, dir, iceberg.Properties{table.PropertyFormatVersion: "2"})
	if err != nil {
		return "", err
	}
	f := &folder{dir: dir}
	for _, sub := range []string{"metadata", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", err
		}
	}
	if err := f.save(meta); err != nil {
		return "", err
	}
	if err := f.commit(ctx, keys{0, 1, rows}, 0, false); err != nil {
		return "", err
	}
	first := f.meta.CurrentSnapshot().SnapshotID
	if err := f.commit(ctx, changed, 1, true); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %d", f.location, first, f.meta.CurrentSnapshot().SnapshotID), nil
}

// folder is a table and, for iceberg-go, its catalog.
type folder struct {
	dir, location string
	meta          table.Metadata
	version       int
}

func (f *folder) save(meta table.Metadata) error {
	f.version++
	f.meta, f.location = meta, filepath.Join(f.dir, "metadata", fmt.Sprintf("v%d.metadata.json", f.version))
	data, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	return os.WriteFile(f.location, data, 0o644)
}

func (f *folder) load() *table.Table {
	return table.New(table.Identifier{"bench", "t"}, f.meta, f.location,
		func(context.Context) (icebergio.IO, error) { return icebergio.LocalFS{}, nil }, f)
}

// LoadTable is for iceberg-go.
func (f *folder) LoadTable(context.Context, table.Identifier) (*table.Table, error) {
	return f.load(), nil
}

// CommitTable is for iceberg-go.
func (f *folder) CommitTable(_ context.Context, _ table.Identifier, _ []table.Requirement, ups []table.Update) (table.Metadata, string, error) {
	meta, err := table.UpdateTableMetadata(f.meta, ups, f.location)
	if err != nil {
		return nil, "", err
	}
	return meta, f.location, f.save(meta)
}

// commit appends the rows of k, and deletes their keys before when they replace older ones.
func (f *folder) commit(ctx context.Context, k keys, plus int64, replace bool) error {
	t := f.load()
	tx := t.NewTransaction()
	delta := tx.NewRowDelta(nil)
	as, err := table.SchemaToArrowSchema(t.Schema(), nil, true, false)
	if err != nil {
		return err
	}
	if replace {
		key := arrow.NewSchema(as.Fields()[:1], nil)
		dels, err := tx.WriteEqualityDeletes(ctx, []int{1}, batches(key, k, plus))
		if err != nil {
			return err
		}
		delta.AddDeletes(dels...)
	}
	for df, err := range table.WriteRecords(ctx, t, as, batches(as, k, plus)) {
		if err != nil {
			return err
		}
		delta.AddRows(df)
	}
	if err := delta.Commit(ctx); err != nil {
		return err
	}
	_, err = tx.Commit(ctx)
	return err
}

// batches are the rows of k in batches, cut to the columns of as.
func batches(as *arrow.Schema, k keys, plus int64) iter.Seq2[arrow.RecordBatch, error] {
	const size = 100_000
	return func(yield func(arrow.RecordBatch, error) bool) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, as)
		defer b.Release()
		for at := 0; at < k.n; at += size {
			for i := at; i < min(at+size, k.n); i++ {
				id := int64(k.first + i*k.step)
				b.Field(0).(*array.Int64Builder).Append(id)
				if as.NumFields() > 1 {
					b.Field(1).(*array.Int64Builder).Append(7*id + plus)
					b.Field(2).(*array.StringBuilder).Append("row " + strconv.FormatInt(id, 10))
				}
			}
			if !yield(b.NewRecordBatch(), nil) {
				return
			}
		}
	}
}
