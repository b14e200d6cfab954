package changelog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// Plan is for readers of the file level: the files that a window is made of, without reading them. EqualityDeletes gives the keys of
// delete files that other writers (Flink, for example) left to be matched at reading.
func ExampleReader_Plan() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"}, item{2, "bolt"}) // seq 2
	s.upsert(item{2, "brass bolt"})             // seq 3: a data file, and a position delete or a deletion vector of the old row
	s.deleteByKey(1)                            // seq 4: an equality delete

	plan, err := s.changes.Plan(s.ctx, items, changelog.Seq(2), changelog.Now)
	check(err)
	fmt.Println("steps:", plan.Steps, "key:", plan.Kind.Identifier)
	for _, f := range plan.Added {
		fmt.Println("data file of", f.Records, "row, sequence number", f.DataSeq)
	}
	fmt.Println("data files with other live rows:", len(plan.Changed))
	fmt.Println("delete files:", len(plan.PositionDeletes), "of positions,", len(plan.EqualityDeletes), "of keys")

	for d, err := range s.changes.EqualityDeletes(s.ctx, items, changelog.Seq(2), changelog.Now) {
		check(err)
		for keys, err := range d.Keys(s.ctx) {
			check(err)
			fmt.Printf("commit %d deletes %s = %s below sequence number %d\n", d.Seq, d.Fields.Field(0).Name, keys.Column(0).ValueStr(0), d.File.DataSeq)
		}
	}
	// Output:
	// steps: 2 key: [1]
	// data file of 1 row, sequence number 2
	// data files with other live rows: 2
	// delete files: 1 of positions, 1 of keys
	// commit 4 deletes id = 1 below sequence number 3
}

// Read is a window in memory: every change of every commit in it, with the whole row before and after.
func ExampleReader_Read() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"}, item{2, "bolt"})
	s.upsert(item{2, "brass bolt"})
	s.deleteByKey(1)

	b, err := s.changes.Read(s.ctx, items, changelog.Seq(2), changelog.Now)
	check(err)
	fmt.Println("from seq", b.From.Seq, "to seq", b.To.Seq, "log table:", b.Kind.IsLog())
	show(b)
	// Output:
	// from seq 2 to seq 4 log table: false
	// seq 3 row 0 UPDATE_BEFORE 2 bolt
	// seq 3 row 1 UPDATE_AFTER 2 brass bolt
	// seq 4 row 0 DELETE 1 anvil
}

// Collapse folds a window to its net effect, at most one change a key.
func ExampleBatch_Collapse() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"}, item{2, "bolt"})
	s.upsert(item{2, "brass bolt"})
	s.upsert(item{2, "steel bolt"}, item{3, "crate"})
	s.deleteByKey(3)

	b, err := s.changes.Read(s.ctx, items, changelog.Seq(2), changelog.Now)
	check(err)
	net, err := b.Collapse()
	check(err)
	fmt.Println(b.Rows(), "changes, net", net.Rows())
	show(net)
	// Output:
	// 6 changes, net 2
	// seq 3 row 0 UPDATE_BEFORE 2 bolt
	// seq 4 row 1 UPDATE_AFTER 2 steel bolt
}

// Project leaves table columns out. It comes after Collapse, which needs whole rows; the metadata columns always stay.
func ExampleBatch_Project() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"}, item{2, "bolt"})

	b, err := s.changes.Read(s.ctx, items, changelog.Null, changelog.Now)
	check(err)
	names, err := b.Project("name")
	check(err)
	for _, f := range names.Columns.Schema.Fields() {
		fmt.Println(f.Name)
	}
	// Output:
	// name
	// _change_type
	// _change_ordinal
	// _commit_snapshot_id
	// _commit_seq
	// _commit_timestamp
	// _change_row
}

// A Stream from a place in the past begins with one window up to now; from then on every commit is a window, pushed.
func ExampleReader_Stream() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"})
	s.upsert(item{2, "bolt"})

	for b, err := range s.changes.Stream(s.ctx, items, changelog.Seq(0), changelog.StreamOptions{}) {
		check(err)
		fmt.Printf("window (%d, %d]\n", b.From.Seq, b.To.Seq)
		show(b)
		switch b.To.Seq { // what others do meanwhile
		case 3:
			s.upsert(item{3, "crate"})
		case 4:
			return
		}
	}
	// Output:
	// window (0, 3]
	// seq 2 row 0 INSERT 1 anvil
	// seq 3 row 0 INSERT 2 bolt
	// window (3, 4]
	// seq 4 row 0 INSERT 3 crate
}

// StreamPolling needs no broadcast: it looks by itself and gives one window for all that came since.
func ExampleReader_StreamPolling() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"})

	for b, err := range s.changes.StreamPolling(s.ctx, items, changelog.Earliest, time.Millisecond, changelog.StreamOptions{}) {
		check(err)
		show(b)
		if b.To.Seq > 2 {
			return
		}
		s.upsert(item{2, "bolt"})
	}
	// Output:
	// seq 2 row 0 INSERT 1 anvil
	// seq 3 row 0 INSERT 2 bolt
}

// A ConsumerCursor is what a consumer stores with what it made of a batch. Resume goes on from it, in another process too, and
// finds the table when it was renamed.
func ExampleConsumerCursor() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"})

	cursor := changelog.ConsumerCursor{Table: items} // nothing read yet: from the beginning
	for b, err := range s.changes.Resume(s.ctx, cursor, changelog.StreamOptions{}) {
		check(err)
		show(b)
		cursor = cursor.After(b) // store it
		break                    // the consumer stops here
	}

	s.upsert(item{2, "bolt"})
	s.rename(table.Identifier{"shop", "goods"})
	for b, err := range s.changes.Resume(s.ctx, cursor, changelog.StreamOptions{}) {
		check(err)
		show(b)
		fmt.Println("of", b.Table)
		break
	}
	// Output:
	// seq 2 row 0 INSERT 1 anvil
	// seq 3 row 0 INSERT 2 bolt
	// of [shop goods]
}

// When the history behind a cursor has expired, a stream ends with ErrExpired; with ReloadExpired it begins anew with all rows of the table.
func ExampleStreamOptions() {
	s := openShop()
	defer s.close()
	s.upsert(item{1, "anvil"}, item{2, "bolt"})
	cursor := changelog.ConsumerCursor{Table: items, CommitSeq: 2}
	s.upsert(item{2, "brass bolt"})
	s.upsert(item{3, "crate"})
	s.expire() // all but the newest snapshot

	for _, err := range s.changes.Resume(s.ctx, cursor, changelog.StreamOptions{}) {
		fmt.Println("expired:", errors.Is(err, changelog.ErrExpired))
	}
	for b, err := range s.changes.Resume(s.ctx, cursor, changelog.StreamOptions{ReloadExpired: true}) {
		check(err)
		fmt.Println("full reload:", b.FullReload)
		show(b)
		break
	}
	// Output:
	// expired: true
	// full reload: true
	// seq 5 row 0 INSERT 1 anvil
	// seq 5 row 1 INSERT 2 brass bolt
	// seq 5 row 2 INSERT 3 crate
}

// What the examples have in common: a warehouse in a temporary folder with the table shop.items (id, name).

var items = table.Identifier{"shop", "items"}

type item struct {
	id   int64
	name string
}

type shop struct {
	ctx     context.Context
	dir     string
	catalog *catalog.Catalog
	store   *warehouse.Warehouse
	changes *changelog.Reader
	table   table.Identifier
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// openShop makes the schema and the table in commit 1.
func openShop() *shop {
	dir, err := os.MkdirTemp("", "shop-")
	check(err)
	s := &shop{ctx: context.Background(), dir: dir, table: items}
	s.catalog, err = catalog.Open(s.ctx, catalog.Options{Dir: dir, NoSync: true})
	check(err)
	live := liveset.NewCache(liveset.Options{FS: s.catalog.FS()})
	s.store = warehouse.New(warehouse.Options{Catalog: s.catalog, Live: live, FS: s.catalog.FS(), TempDir: dir})
	s.changes = changelog.New(changelog.Options{Catalog: s.catalog, Live: live, TempDir: dir})
	_, err = s.store.Do(s.ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		if err := tx.CreateNamespace(s.ctx, items[:1], nil); err != nil {
			return err
		}
		_, err := tx.CreateTable(s.ctx, warehouse.CreateTable{Ident: items, FormatVersion: 2, Schema: iceberg.NewSchemaWithIdentifiers(0, []int{1},
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String})})
		return err
	})
	check(err)
	return s
}

func (s *shop) close() {
	check(errors.Join(s.store.Close(), s.catalog.Close(), os.RemoveAll(s.dir)))
}

// commit is one transaction on the table.
func (s *shop) commit(change func(t *warehouse.TxTable) error) {
	_, err := s.store.Do(s.ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		t, err := tx.Table(s.ctx, s.table)
		if err != nil {
			return err
		}
		return change(t)
	})
	check(err)
}

func (s *shop) upsert(rows ...item) {
	s.commit(func(t *warehouse.TxTable) error {
		b := array.NewRecordBuilder(memory.DefaultAllocator, t.ArrowSchema())
		defer b.Release()
		for _, r := range rows {
			b.Field(0).(*array.Int64Builder).Append(r.id)
			b.Field(1).(*array.StringBuilder).Append(r.name)
		}
		_, err := t.Upsert(s.ctx, b.NewRecordBatch(), warehouse.Replace)
		return err
	})
}

// deleteByKey writes an equality delete, as writers do that do not look for the row.
func (s *shop) deleteByKey(id int64) {
	s.commit(func(t *warehouse.TxTable) error {
		b := array.NewRecordBuilder(memory.DefaultAllocator, t.KeySchema())
		defer b.Release()
		b.Field(0).(*array.Int64Builder).Append(id)
		return t.DeleteEquality(s.ctx, []int{1}, b.NewRecordBatch())
	})
}

func (s *shop) rename(to table.Identifier) {
	_, err := s.catalog.RenameTable(s.ctx, s.table, to)
	check(err)
	s.table = to
}

func (s *shop) expire() {
	time.Sleep(2 * time.Millisecond) // older than 1 ms
	_, err := s.store.ExpireSnapshots(s.ctx, s.table, warehouse.Retain{Min: 1, MaxAge: time.Millisecond})
	check(err)
}

// show prints the rows of a batch.
func show(b *changelog.Batch) {
	column := func(rec arrow.RecordBatch, name string) arrow.Array {
		return rec.Column(b.Columns.Schema.FieldIndices(name)[0])
	}
	for _, rec := range b.Records {
		for i := range int(rec.NumRows()) {
			fmt.Println("seq", column(rec, changelog.ColCommitSeq).ValueStr(i), "row", column(rec, changelog.ColChangeRow).ValueStr(i),
				column(rec, changelog.ColChangeType).ValueStr(i), column(rec, "id").ValueStr(i), column(rec, "name").ValueStr(i))
		}
	}
}
