package duck

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	bind "github.com/duckdb/duckdb-go-bindings"
)

const vectorSize = 2048

// relationScan is one scan of a relation. A goroutine runs the iterator, one batch ahead; DuckDB's threads take turns at
// cutting batches into chunks and copy them side by side. It ends by free, which stops the goroutine and waits for it.
//
// The iterator needs a goroutine of its own: DuckDB calls from changing threads, and a coroutine (iter.Pull) that is
// resumed inside a C callback must stay on its thread.
type relationScan struct {
	rel     *relation
	columns []int // projected, by output column; beyond the schema's columns: DuckDB wants rows only
	ctx     context.Context
	cancel  context.CancelFunc
	batches chan relationBatch
	done    chan struct{}
	start   sync.Once

	mu struct {
		sync.Mutex
		batch arrow.RecordBatch
		next  int
		err   error
		eof   bool
	}
}

type relationBatch struct {
	rec arrow.RecordBatch
	err error
}

func newRelationScan(ctx context.Context, r *relation) *relationScan {
	s := &relationScan{rel: r, batches: make(chan relationBatch, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	r.refs.Add(1)
	return s
}

// produce runs the iterator to its end, or until the scan is freed.
func (s *relationScan) produce() {
	defer close(s.done)
	defer close(s.batches)
	if err := s.run(); err != nil {
		s.send(relationBatch{err: err})
	}
}

func (s *relationScan) run() (err error) {
	defer recovered(&err)
	seq, err := s.rel.open(s.ctx)
	if err != nil {
		return err
	}
	for rec, err := range seq {
		if err != nil {
			return err
		}
		if !s.send(relationBatch{rec: rec}) {
			return nil
		}
	}
	return nil
}

func (s *relationScan) send(b relationBatch) bool {
	select {
	case s.batches <- b:
		return true
	case <-s.ctx.Done():
		if b.rec != nil {
			b.rec.Release()
		}
		return false
	}
}

// take cuts the next at most 2,048 rows. A nil record is the end. The caller releases it.
func (s *relationScan) take() (arrow.RecordBatch, error) {
	s.start.Do(func() { go s.produce() })
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.mu.batch == nil || s.mu.next >= int(s.mu.batch.NumRows()) {
		if s.mu.batch != nil {
			s.mu.batch.Release()
			s.mu.batch = nil
		}
		if s.mu.err != nil || s.mu.eof {
			return nil, s.mu.err
		}
		select {
		case b, ok := <-s.batches:
			switch {
			case !ok && s.ctx.Err() != nil:
				s.mu.err = context.Cause(s.ctx)
			case !ok:
				s.mu.eof = true
			case b.err != nil:
				s.mu.err = b.err
			default:
				s.mu.batch, s.mu.next = b.rec, 0
			}
		case <-s.ctx.Done():
			s.mu.err = context.Cause(s.ctx)
		}
	}
	from, to := s.mu.next, min(s.mu.next+vectorSize, int(s.mu.batch.NumRows()))
	s.mu.next = to
	return s.mu.batch.NewSlice(int64(from), int64(to)), nil
}

func (s *relationScan) fill(chunk bind.DataChunk) error {
	rec, err := s.take()
	if err != nil || rec == nil {
		bind.DataChunkSetSize(chunk, 0)
		return err
	}
	defer rec.Release()
	if int(rec.NumCols()) != len(s.rel.types) {
		return fmt.Errorf("%w: a batch of %d columns in a relation of %d", ErrUnsupportedType, rec.NumCols(), len(s.rel.types))
	}
	for i, c := range s.columns {
		if c < 0 || c >= int(rec.NumCols()) {
			continue
		}
		want, got := s.rel.schema.Field(c).Type, rec.Column(c).DataType()
		if !arrow.TypeEqual(want, got) && !sameDuckType(want, got) {
			return fmt.Errorf("%w: column %q is %s, a batch has %s", ErrUnsupportedType, s.rel.schema.Field(c).Name, want, got)
		}
		if err := fillVector(bind.DataChunkGetVector(chunk, bind.IdxT(i)), rec.Column(c), 0); err != nil {
			return err
		}
	}
	bind.DataChunkSetSize(chunk, bind.IdxT(rec.NumRows()))
	return nil
}

func (s *relationScan) free() {
	s.cancel()
	// When the scan never ran there is no goroutine to wait for.
	s.start.Do(func() { close(s.batches); close(s.done) })
	<-s.done
	for b := range s.batches {
		if b.rec != nil {
			b.rec.Release()
		}
	}
	s.mu.Lock()
	if s.mu.batch != nil {
		s.mu.batch.Release()
		s.mu.batch = nil
	}
	s.mu.Unlock()
	s.rel.unref()
}
