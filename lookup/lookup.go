package lookup

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/nordisk/skade-pg/liveset"
)

// Options opens a Lookup. Live is required.
type Options struct {
	Live *liveset.Cache
	// CacheBytes bounds the row cache, in bytes of its own reckoning (about 1.5 KiB for a row of three columns). 0 is
	// 128 MiB; negative turns it off.
	CacheBytes int64
}

// Lookup looks up keys. Safe for concurrent use.
type Lookup struct {
	opts Options
	rows *rowCache

	// scratch holds *probeScratch: what a probe needs beside its result.
	scratch sync.Pool

	mu struct {
		sync.Mutex
		prepared map[string]*Lookuper
	}
}

type probeScratch struct {
	keys [1][]byte
	hits []liveset.Hit
	key  []byte // of the row cache
}

// maxPrepared bounds the prepared targets kept; past it they are prepared afresh.
const maxPrepared = 1024

// New returns a Lookup. It starts no goroutine.
func New(o Options) *Lookup {
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	l := &Lookup{opts: o}
	if o.CacheBytes > 0 {
		l.rows = newRowCache(o.CacheBytes)
	}
	l.scratch.New = func() any { return &probeScratch{} }
	l.mu.prepared = make(map[string]*Lookuper)
	return l
}

// Columns describes the rows and the key of a target, without reading data. Errors: iceberg-go's
// catalog.ErrNoSuchTable, ErrNoKey, ErrUnknownColumn, ErrKeyType.
func (l *Lookup) Columns(ctx context.Context, t Target) (*Columns, error) {
	b, err := bind(ctx, t)
	if err != nil {
		return nil, err
	}
	return b.cols, nil
}

// Prepare binds a target. A Lookuper holds no file open and needs no Close; keep it as long as its state is wanted.
// Preparing the same state again is cheap. Errors: as Columns, and liveset's.
func (l *Lookup) Prepare(ctx context.Context, t Target) (*Lookuper, error) {
	b, err := bind(ctx, t)
	if err != nil {
		return nil, err
	}
	id := b.identity(t.Strict)
	if t.Live == nil {
		l.mu.Lock()
		p := l.mu.prepared[id]
		l.mu.Unlock()
		if p != nil {
			return p, nil
		}
	}
	p := &Lookuper{l: l, b: b, set: t.Live, rows: l.rows, strict: t.Strict, double: b.hasDouble(),
		owner: xxh3.HashString(id), shape: xxh3.HashString(b.ref.UUID.String() + b.shape())}
	if p.empty, err = emptyBatch(b.cols.Schema); err != nil {
		return nil, err
	}
	switch {
	case t.Live != nil:
		p.own = true
		return p, nil
	case b.snapshot == nil:
		p.set = liveset.Empty()
	default:
		if p.set, err = l.opts.Live.At(ctx, b.ref, *b.snapshot); err != nil {
			return nil, fmt.Errorf("live set of snapshot %d: %w", *b.snapshot, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.prepared) >= maxPrepared {
		clear(l.mu.prepared)
	}
	l.mu.prepared[id] = p
	return p, nil
}

func emptyBatch(sc *arrow.Schema) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, sc.NumFields())
	for i, f := range sc.Fields() {
		cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, 0)
	}
	return array.NewRecordBatch(sc, cols, 0), nil
}

// Lookuper is one table at one state with one key. Safe for concurrent use.
type Lookuper struct {
	l      *Lookup
	b      *bound
	set    *liveset.Set
	rows   *rowCache
	empty  arrow.RecordBatch
	owner  uint64 // names (table, snapshot, key, rows' schema) in the cache
	shape  uint64 // names (table, rows' schema) in the cache
	own    bool   // a transaction's own writes: nothing is kept under owner
	strict bool
	double bool // the key has a column in which 0 and −0 are equal
}

// Columns returns the shape of rows and key.
func (p *Lookuper) Columns() *Columns { return p.b.cols }

// Get returns the live rows of one key. The batch is the caller's to Release; it has no rows when the key has none. When
// the rows are cached nothing is read and nothing allocated (K6). Errors: ErrKeyType, ErrSeveralRows.
func (p *Lookuper) Get(ctx context.Context, k *Key) (arrow.RecordBatch, error) {
	if k.err != nil {
		return nil, k.err
	}
	if k.null {
		return p.none(), nil
	}
	return p.find(ctx, k.buf, k.parts)
}

// Lookup returns the live rows of one key, given as row 0 of a batch whose columns are the key columns or, for identifier
// fields, a leading part of them. The batch is the caller's to Release. Errors: ErrKeyType, ErrSeveralRows.
func (p *Lookuper) Lookup(ctx context.Context, key arrow.RecordBatch) (arrow.RecordBatch, error) {
	if key.NumRows() == 0 {
		return p.none(), nil
	}
	row := key.NewSlice(0, 1)
	defer row.Release()
	keys, parts, err := p.encodeRows(ctx, row)
	if err != nil {
		return nil, err
	}
	if keys[0] == nil {
		return p.none(), nil
	}
	return p.find(ctx, keys[0], parts)
}

func (p *Lookuper) none() arrow.RecordBatch {
	p.empty.Retain()
	return p.empty
}

// find answers from the cache, else probes, reads and keeps. A prefix never shares an entry with a full key: its number
// of parts is added to the cache's key.
func (p *Lookuper) find(ctx context.Context, key []byte, parts int) (arrow.RecordBatch, error) {
	s := p.l.scratch.Get().(*probeScratch)
	defer p.l.scratch.Put(s)
	cacheKey := key
	if parts < len(p.b.kinds) {
		s.key = append(append(s.key[:0], key...), byte(parts))
		cacheKey = s.key
	}
	if !p.own {
		if rows := p.rows.get(p.owner, cacheKey); rows != nil {
			p.l.opts.Live.CountCached(ctx, 1)
			return rows, nil
		}
	}
	s.keys[0] = key
	keys := s.keys[:]
	if p.double {
		keys = p.b.zeros(key)
	}
	hits, err := p.probe(ctx, s.hits[:0], keys, parts)
	if len(keys) > 1 {
		inOrder(hits, make([]int64, len(keys)))
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		clear(hits) // a pooled hit must not hold a file's description
		s.hits = hits[:0]
	}()
	rows, err := p.read(ctx, key, keys, hits)
	s.keys[0] = nil
	if err != nil {
		return nil, err
	}
	if n := rows.NumRows(); p.strict && n > 1 {
		rows.Release()
		return nil, fmt.Errorf("%w: %d rows", ErrSeveralRows, n)
	}
	if !p.own {
		p.rows.put(p.owner, cacheKey, rows)
	}
	return rows, nil
}

// probe appends the candidates for keys of the given number of parts.
func (p *Lookuper) probe(ctx context.Context, dst []liveset.Hit, keys [][]byte, parts int) ([]liveset.Hit, error) {
	ids := p.b.cols.KeyIDs
	if p.b.prefixOf != nil {
		ids = p.b.prefixOf
	}
	dst, err := p.l.opts.Live.AppendCandidates(ctx, dst, p.b.ref, p.set, ids, parts, keys)
	if err != nil {
		return nil, fmt.Errorf("probe keys: %w", err)
	}
	return dst, nil
}

// read returns the rows of the candidates for one key. A single row is kept by its place, which no commit changes (K5), and by its key when it was compared.
func (p *Lookuper) read(ctx context.Context, key []byte, keys [][]byte, hits []liveset.Hit) (arrow.RecordBatch, error) {
	if len(hits) == 0 {
		return p.none(), nil
	}
	single := len(hits) == 1 && p.rows != nil && !p.own
	var place []byte
	if single {
		var buf [256]byte
		place = rowKey(buf[:0], hits[0].File.File.Path, hits[0].Pos)
		if hits[0].Unverified() {
			place = append(append(place, 0), key...)
		}
		if rows := p.rows.get(p.shape, place); rows != nil {
			return rows, nil
		}
	}
	hits, rows, err := p.l.opts.Live.ReadVerified(ctx, p.b.ref, p.b.cols.Table, p.b.cols.KeyIDs, keys, hits)
	if err != nil {
		return nil, fmt.Errorf("read found rows: %w", err)
	}
	if single && len(hits) == 1 {
		p.rows.put(p.shape, place, rows)
	}
	return rows, nil
}

// LookupMany returns the live rows of every key of a batch, with _key_ordinal as last column, ordered by it; duplicates
// of a key are kept, a key with a NULL part has no rows. Pages are read once for all keys. Errors: ErrKeyType,
// ErrReservedColumn, ErrSeveralRows.
func (p *Lookuper) LookupMany(ctx context.Context, keys arrow.RecordBatch) (arrow.RecordBatch, error) {
	sc, err := p.ManySchema()
	if err != nil {
		return nil, err
	}
	encoded, parts, err := p.encodeRows(ctx, keys)
	if err != nil {
		return nil, err
	}
	return p.many(ctx, sc, encoded, parts)
}

func (p *Lookuper) many(ctx context.Context, sc *arrow.Schema, encoded [][]byte, parts int) (arrow.RecordBatch, error) {
	probes, ordinals := make([][]byte, 0, len(encoded)), make([]int64, 0, len(encoded))
	for i, k := range encoded {
		switch {
		case k == nil:
		case p.double:
			for _, k := range p.b.zeros(k) {
				probes, ordinals = append(probes, k), append(ordinals, int64(i))
			}
		default:
			probes, ordinals = append(probes, k), append(ordinals, int64(i))
		}
	}
	hits, err := p.probe(ctx, nil, probes, parts)
	if err != nil {
		return nil, err
	}
	if p.double {
		inOrder(hits, ordinals)
	}
	rows := p.empty
	if len(hits) > 0 {
		if hits, rows, err = p.l.opts.Live.ReadVerified(ctx, p.b.ref, p.b.cols.Table, p.b.cols.KeyIDs, probes, hits); err != nil {
			return nil, fmt.Errorf("read found rows: %w", err)
		}
		defer rows.Release()
	}
	out := make([]int64, len(hits))
	for i, h := range hits {
		out[i] = ordinals[h.KeyOrdinal]
		if p.strict && i > 0 && out[i] == out[i-1] {
			return nil, fmt.Errorf("%w: key %d", ErrSeveralRows, out[i])
		}
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(out, nil)
	cols := append(append([]arrow.Array(nil), rows.Columns()...), b.NewArray())
	return array.NewRecordBatch(sc, cols, int64(len(hits))), nil
}

// ManySchema is the shape of LookupMany's batches. Errors: ErrReservedColumn.
func (p *Lookuper) ManySchema() (*arrow.Schema, error) {
	fields := p.b.cols.Schema.Fields()
	for _, f := range fields {
		if f.Name == ColKeyOrdinal {
			return nil, fmt.Errorf("%w: %q", ErrReservedColumn, ColKeyOrdinal)
		}
	}
	return arrow.NewSchema(append(append([]arrow.Field(nil), fields...),
		arrow.Field{Name: ColKeyOrdinal, Type: arrow.PrimitiveTypes.Int64}), nil), nil
}
