package duck

// #include "relation.h"
import "C"

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	bind "github.com/duckdb/duckdb-go-bindings"
)

// RelationFunc opens a relation's rows. ctx is that of the statement that reads them. It is called once per scan of the
// relation: a statement that mentions it twice opens it twice. Batches have the registered schema; the reader releases them.
type RelationFunc func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error)

// relation is a registered source of rows.
type relation struct {
	schema *arrow.Schema
	types  []bind.LogicalType // by column
	rows   int64
	open   RelationFunc
	refs   atomic.Int64 // the registration and every bound plan
}

func (r *relation) unref() {
	if r.refs.Add(-1) == 0 {
		for i := range r.types {
			bind.DestroyLogicalType(&r.types[i])
		}
	}
}

// relations are the registered relations of a DB. handle is the DB's number on the C side.
type relations struct {
	handle uint64
	mu     struct {
		sync.Mutex
		next uint64
		byID map[string]*relation
	}
}

// handles is the one table behind every number that C holds (D7).
var handles struct {
	next atomic.Uint64
	m    sync.Map // uint64 → any
}

func newHandle(v any) uint64 {
	h := handles.next.Add(1)
	handles.m.Store(h, v)
	return h
}

func handleValue(h uint64) any {
	v, _ := handles.m.Load(h)
	return v
}

func (db *DB) initRelations() {
	db.rels.mu.byID = make(map[string]*relation)
	db.rels.handle = newHandle(db)
}

// closeRelations forgets all relations and returns how many were still registered.
func (db *DB) closeRelations() int {
	handles.m.Delete(db.rels.handle)
	db.rels.mu.Lock()
	defer db.rels.mu.Unlock()
	n := len(db.rels.mu.byID)
	for id, r := range db.rels.mu.byID {
		delete(db.rels.mu.byID, id)
		r.unref()
	}
	return n
}

// RegisterRelation makes rows of Go readable in SQL as skade_rel('<id>') until release is called. Keep it until the statements
// that name it are closed: DuckDB plans again at every Query. A running stream keeps what it needs. rows is the expected number of rows for the planner, -1 when unknown. The rows keep their order
// wherever DuckDB keeps the order of a scan. ErrUnsupportedType when a column's type has no counterpart.
func (db *DB) RegisterRelation(schema *arrow.Schema, rows int64, open RelationFunc) (id string, release func(), err error) {
	r := &relation{schema: schema, rows: rows, open: open}
	r.refs.Store(1)
	for _, f := range schema.Fields() {
		lt, err := duckType(f.Type)
		if err != nil {
			r.unref()
			return "", nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		r.types = append(r.types, lt)
	}
	db.rels.mu.Lock()
	db.rels.mu.next++
	id = "r" + strconv.FormatUint(db.rels.mu.next, 10)
	db.rels.mu.byID[id] = r
	db.rels.mu.Unlock()
	return id, func() {
		db.rels.mu.Lock()
		_, ok := db.rels.mu.byID[id]
		delete(db.rels.mu.byID, id)
		db.rels.mu.Unlock()
		if ok {
			r.unref()
		}
	}, nil
}

// boundRelation is a relation in a plan of one connection.
type boundRelation struct {
	rel  *relation
	conn *Conn
}

// freer is what stands behind a number that DuckDB gives back.
type freer interface{ free() }

func (b *boundRelation) free() { b.rel.unref() }

//export skadeFree
func skadeFree(h C.uint64_t) {
	if v, ok := handles.m.LoadAndDelete(uint64(h)); ok {
		v.(freer).free()
	}
}

//export skadeRelBind
func skadeRelBind(h, connID C.uint64_t, infoPtr unsafe.Pointer) {
	info := bind.BindInfo{Ptr: infoPtr}
	db := handleValue(uint64(h)).(*DB)
	v := bind.BindGetParameter(info, 0)
	id := bind.GetVarchar(v)
	bind.DestroyValue(&v)
	db.rels.mu.Lock()
	r := db.rels.mu.byID[id]
	if r != nil {
		r.refs.Add(1)
	}
	db.rels.mu.Unlock()
	db.mu.Lock()
	conn := db.mu.byID[uint64(connID)]
	db.mu.Unlock()
	if r == nil || conn == nil {
		bind.BindSetError(info, carry(fmt.Errorf("%w: %s", ErrUnknownRelation, id)))
		if r != nil {
			r.unref()
		}
		return
	}
	for i, f := range r.schema.Fields() {
		bind.BindAddResultColumn(info, f.Name, r.types[i])
	}
	if r.rows >= 0 {
		bind.BindSetCardinality(info, bind.IdxT(r.rows), false)
	}
	C.skade_bind_data(C.duckdb_bind_info(infoPtr), C.uint64_t(newHandle(&boundRelation{rel: r, conn: conn})))
}

//export skadeRelInit
func skadeRelInit(infoPtr unsafe.Pointer) {
	info := bind.InitInfo{Ptr: infoPtr}
	b := handleValue(uint64(C.skade_init_bind_data(C.duckdb_init_info(infoPtr)))).(*boundRelation)
	ctx := context.Background()
	if p := b.conn.ctx.Load(); p != nil {
		ctx = *p
	}
	s := newRelationScan(ctx, b.rel)
	n := bind.InitGetColumnCount(info)
	s.columns = make([]int, n)
	for i := range n {
		s.columns[i] = int(bind.InitGetColumnIndex(info, i))
	}
	bind.InitSetMaxThreads(info, bind.IdxT(b.conn.db.opts.Threads))
	C.skade_init_data(C.duckdb_init_info(infoPtr), C.uint64_t(newHandle(s)))
}

//export skadeRelNext
func skadeRelNext(h C.uint64_t, infoPtr, chunkPtr unsafe.Pointer) {
	s := handleValue(uint64(h)).(*relationScan)
	chunk := bind.DataChunk{Ptr: chunkPtr}
	err := func() (err error) {
		defer recovered(&err)
		return s.fill(chunk)
	}()
	if err != nil {
		bind.DataChunkSetSize(chunk, 0)
		bind.FunctionSetError(bind.FunctionInfo{Ptr: infoPtr}, carry(err))
	}
}
