package lookup

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/liveset"
)

// KeyTypes are the types in which the key's columns are encoded, in the order of Columns.Key.
func (p *Lookuper) KeyTypes() []iceberg.Type { return p.b.keyTypes }

// Rows is the number of the state's live rows.
func (p *Lookuper) Rows() int64 { return p.set.Rows() }

// RowBytes is about how many bytes a row takes in the state's data files, compressed.
func (p *Lookuper) RowBytes() int64 {
	var rows, bytes int64
	for f := range p.set.Files() {
		if rows, bytes = rows+f.File.Records, bytes+f.File.Size; rows > 1<<20 {
			break
		}
	}
	if rows == 0 {
		return 0
	}
	return bytes / rows
}

// Files is the number of the state's data files.
func (p *Lookuper) Files() int { return p.set.NumFiles() }

// Metadata is the table's.
func (p *Lookuper) Metadata() table.Metadata { return p.b.ref.Metadata }

// Hits are the places of the rows of keys, encoded as for Find, or of the first parts columns of one: what a probe finds before rows are read and compared.
func (p *Lookuper) Hits(ctx context.Context, keys [][]byte, parts int) ([]liveset.Hit, error) {
	return p.probe(ctx, nil, keys, parts)
}

// FindPart is Lookup for a key that the caller has encoded with internal/keyindex, in KeyTypes, of the first parts columns.
func (p *Lookuper) FindPart(ctx context.Context, key []byte, parts int) (arrow.RecordBatch, error) {
	return p.find(ctx, key, parts)
}

// FindEach is LookupMany for encoded keys; a nil one has no rows.
func (p *Lookuper) FindEach(ctx context.Context, keys [][]byte, parts int) (arrow.RecordBatch, error) {
	sc, err := p.ManySchema()
	if err != nil {
		return nil, err
	}
	return p.many(ctx, sc, keys, parts)
}

// Find is Get for a key that the caller has encoded with internal/keyindex, in KeyTypes.
func (p *Lookuper) Find(ctx context.Context, key []byte) (arrow.RecordBatch, error) {
	return p.find(ctx, key, len(p.b.kinds))
}

const (
	// fewKeys are found one by one: each is kept in the row cache, and is there when it comes again.
	fewKeys = 16
	// foundRows is how many rows of many keys are read at a time.
	foundRows = 1024
)

// Found are the rows of several keys, read as they are asked for. It belongs to one goroutine.
type Found struct {
	p      *Lookuper
	keys   [][]byte // to be found one by one
	probed [][]byte // those of hits
	hits   []liveset.Hit
}

// FindMany finds the rows of several keys, encoded as for Find, different from one another. They come in the order of keys, as K3 says within a key.
func (p *Lookuper) FindMany(ctx context.Context, keys [][]byte) (*Found, error) {
	if len(keys) <= fewKeys {
		return &Found{p: p, keys: keys}, nil
	}
	hits, err := p.probe(ctx, nil, keys, len(p.b.kinds))
	return &Found{p: p, probed: keys, hits: hits}, err
}

// Next returns the next rows, nil after the last. The batch is the caller's to Release.
func (f *Found) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for len(f.keys) > 0 {
		key := f.keys[0]
		f.keys = f.keys[1:]
		rec, err := f.p.Find(ctx, key)
		if err != nil || rec.NumRows() > 0 {
			return rec, err
		}
		rec.Release()
	}
	for len(f.hits) > 0 {
		n := min(len(f.hits), foundRows)
		b := f.p.b
		_, rec, err := f.p.l.opts.Live.ReadVerified(ctx, b.ref, b.cols.Table, b.cols.KeyIDs, f.probed, f.hits[:n])
		if err != nil {
			return nil, fmt.Errorf("read found rows: %w", err)
		}
		f.hits = f.hits[n:]
		if rec.NumRows() > 0 {
			return rec, nil
		}
		rec.Release()
	}
	return nil, nil
}
