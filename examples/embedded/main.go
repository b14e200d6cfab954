// Command embedded uses the cores of skade-pg as a library, without a server and without cgo: it creates a table with a
// primary key, upserts into it, reads the changes of every commit, folds them to their net effect, and looks keys up,
// now and as of an earlier commit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

func main() {
	dir, err := os.MkdirTemp("", "embedded-")
	if err == nil {
		err = errors.Join(run(context.Background(), dir, os.Stdout), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var ident = table.Identifier{"shop", "items"}

// run works in the folder dir and writes what it sees to out.
func run(ctx context.Context, dir string, out io.Writer) (err error) {
	cat, err := catalog.Open(ctx, catalog.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	fs := cat.FS() // one file system for all: it has the durability and the counters
	live := liveset.NewCache(liveset.Options{FS: fs})
	wh := warehouse.New(warehouse.Options{Catalog: cat, Live: live, FS: fs, TempDir: dir})
	defer func() { err = errors.Join(err, wh.Close()) }()

	// One transaction is one commit seq: the schema, the table and its first rows.
	first, err := wh.Do(ctx, warehouse.TxOptions{Actor: "embedded"}, func(tx *warehouse.Tx) error {
		if err := tx.CreateNamespace(ctx, table.Identifier{"shop"}, nil); err != nil {
			return err
		}
		items, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: iceberg.NewSchemaWithIdentifiers(0, []int{1},
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
		)})
		if err != nil {
			return err
		}
		return items.Append(ctx, batch(items.ArrowSchema(), "anvil", "bolt", "crate"))
	})
	if err != nil {
		return err
	}
	for _, t := range first.Tables { // the namespace has an entry too
		if t.SnapshotID != nil {
			fmt.Fprintf(out, "commit %d: %d rows\n", first.Seq, t.RowsAdded)
		}
	}

	// An upsert: id 2 gets a new name, id 4 is new.
	second, err := wh.Do(ctx, warehouse.TxOptions{Actor: "embedded"}, func(tx *warehouse.Tx) error {
		items, err := tx.Table(ctx, ident)
		if err != nil {
			return err
		}
		rows := batch(items.ArrowSchema(), "-", "brass bolt", "-", "drill")
		_, err = items.Upsert(ctx, pick(rows, 1, 3), warehouse.Replace)
		return err
	})
	if err != nil {
		return err
	}
	if err := changes(ctx, cat, live, out); err != nil {
		return err
	}
	return lookups(ctx, cat, live, first.Seq, second.Seq, out)
}

// changes prints what every commit did, and the net effect of all of them.
func changes(ctx context.Context, cat *catalog.Catalog, live *liveset.Cache, out io.Writer) error {
	r := changelog.New(changelog.Options{Catalog: cat, Live: live})
	all, err := r.Read(ctx, ident, changelog.Null, changelog.Now)
	if err != nil {
		return err
	}
	net, err := all.Collapse()
	if err != nil {
		return err
	}
	for _, b := range []struct {
		title string
		batch *changelog.Batch
	}{{"changes", all}, {"net effect", net}} {
		fmt.Fprintln(out, b.title)
		for _, rec := range b.batch.Records {
			for i := range int(rec.NumRows()) {
				fmt.Fprintf(out, "  seq %s row %s: %-13s %s %s\n", rec.Column(5).ValueStr(i), rec.Column(7).ValueStr(i),
					rec.Column(2).ValueStr(i), rec.Column(0).ValueStr(i), rec.Column(1).ValueStr(i))
			}
		}
	}
	return nil
}

// lookups prints the rows of some keys, now and as of the first commit.
func lookups(ctx context.Context, cat *catalog.Catalog, live *liveset.Cache, first, second uint64, out io.Writer) error {
	r := changelog.New(changelog.Options{Catalog: cat, Live: live})
	l := lookup.New(lookup.Options{Live: live})
	for _, seq := range []uint64{first, second} {
		state, err := r.StateAt(ctx, cat.Cut(), ident, changelog.Seq(seq))
		if err != nil {
			return err
		}
		p, err := l.Prepare(ctx, lookup.Target{Cut: cat.Cut(), Ident: ident,
			AsOf: &lookup.AsOf{Metadata: state.Metadata, Snapshot: state.Snapshot, Schema: state.Schema}})
		if err != nil {
			return err
		}
		key := p.NewKey()
		for _, id := range []int64{2, 4} {
			rows, err := p.Get(ctx, key.Reset().Int(id))
			if err != nil {
				return err
			}
			name := "no row"
			if rows.NumRows() > 0 {
				name = rows.Column(1).ValueStr(0)
			}
			fmt.Fprintf(out, "as of seq %d, id %d: %s\n", seq, id, name)
			rows.Release()
		}
	}
	return nil
}

// batch makes rows with ids 1, 2, … and the names given.
func batch(sc *arrow.Schema, names ...string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i, n := range names {
		b.Field(0).(*array.Int64Builder).Append(int64(i + 1))
		b.Field(1).(*array.StringBuilder).Append(n)
	}
	return b.NewRecordBatch()
}

// pick copies rows of a batch.
func pick(rows arrow.RecordBatch, idx ...int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rows.Schema())
	defer b.Release()
	for _, i := range idx {
		b.Field(0).(*array.Int64Builder).Append(rows.Column(0).(*array.Int64).Value(i))
		b.Field(1).(*array.StringBuilder).Append(rows.Column(1).(*array.String).Value(i))
	}
	return b.NewRecordBatch()
}
