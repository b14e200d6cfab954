package lineage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
)

// Source is the part of the catalog a Recorder reads.
type Source interface {
	SubscribeCommits() *catalog.Subscription
	CommitsSince(ctx context.Context, after uint64, limit int) ([]*catalog.Record, error)
}

// Options opens a Recorder. Source and Sink are required.
type Options struct {
	Source Source
	Sink   Sink
	// After is the last seq the sink has seen: the Recorder begins with the log behind it. Only FromNow begins with
	// the commits to come.
	After   uint64
	FromNow bool
	// Datasets and Jobs are OpenLineage namespaces. Empty: "skade".
	Datasets, Jobs string
	// RetryMin and RetryMax bound the pause before a failed Emit is repeated. 0: 100 ms and 30 s.
	RetryMin, RetryMax time.Duration
	Logger             zerolog.Logger
}

// Recorder feeds a sink from the commit log. It does nothing until Start. It ends by Close only: a sink that fails is
// tried again, a log that cannot be read too.
type Recorder struct {
	opts  Options
	build builder
	done  atomic.Uint64
	fails atomic.Int64

	mu struct {
		sync.Mutex
		started, closed bool
		cancel          context.CancelFunc
		ended           chan struct{}
	}
}

// logPage is how many log records are read at once.
const logPage = 256

// NewRecorder returns a Recorder that is off.
func NewRecorder(o Options) *Recorder {
	def := func(s string) string {
		if s == "" {
			return "skade"
		}
		return s
	}
	if o.RetryMin <= 0 {
		o.RetryMin = 100 * time.Millisecond
	}
	if o.RetryMax <= 0 {
		o.RetryMax = 30 * time.Second
	}
	return &Recorder{opts: o, build: builder{datasets: def(o.Datasets), jobs: def(o.Jobs)}}
}

// Start subscribes and starts the goroutine that Close ends. Errors: ErrStarted.
func (r *Recorder) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.started || r.mu.closed {
		return ErrStarted
	}
	ctx, cancel := context.WithCancel(context.Background())
	sub := r.opts.Source.SubscribeCommits() // before the cursor is read: no gap
	after := r.opts.After
	if r.opts.FromNow {
		after = sub.Cursor()
	}
	r.done.Store(after)
	r.mu.started, r.mu.cancel, r.mu.ended = true, cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		defer sub.Close()
		r.run(ctx, sub)
	}(r.mu.ended)
	return nil
}

// Close stops the goroutine and waits for it. An Emit under way sees its context end. Close may be called more than once.
func (r *Recorder) Close() error {
	r.mu.Lock()
	cancel, ended := r.mu.cancel, r.mu.ended
	r.mu.closed = true
	r.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	return nil
}

// Done is the last seq whose event the sink has: where a new Recorder goes on.
func (r *Recorder) Done() uint64 { return r.done.Load() }

// Failures counts the calls of Emit, and the readings of the log, that returned an error.
func (r *Recorder) Failures() int64 { return r.fails.Load() }

// run ends when ctx does.
func (r *Recorder) run(ctx context.Context, sub *catalog.Subscription) {
	if !r.catchUp(ctx, sub.Cursor()) {
		return
	}
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.opts.Logger.Warn().Err(err).Msg("lineage: the commit subscription ended")
			}
			return
		}
		if ev.Lagged {
			if !r.catchUp(ctx, ev.To) {
				return
			}
			continue
		}
		if !r.send(ctx, ev.Record) {
			return
		}
	}
}

// catchUp sends what the log holds up to seq. false: ctx ended.
func (r *Recorder) catchUp(ctx context.Context, to uint64) bool {
	for r.done.Load() < to {
		var recs []*catalog.Record
		ok := r.retry(ctx, "read commit log", func() (err error) {
			recs, err = r.opts.Source.CommitsSince(ctx, r.done.Load(), logPage)
			return err
		})
		if !ok {
			return false
		}
		if len(recs) == 0 {
			return true
		}
		for _, rec := range recs {
			if !r.send(ctx, rec) {
				return false
			}
		}
	}
	return true
}

// send emits one record's event, once. false: ctx ended.
func (r *Recorder) send(ctx context.Context, rec *catalog.Record) bool {
	if rec.Seq <= r.done.Load() {
		return true
	}
	if e := r.build.event(rec); e != nil && !r.retry(ctx, "emit event", func() error { return r.opts.Sink.Emit(ctx, e) }) {
		return false
	}
	r.done.Store(rec.Seq)
	return true
}

// retry calls f until it succeeds, with a pause that doubles. false: ctx ended.
func (r *Recorder) retry(ctx context.Context, what string, f func() error) bool {
	for pause := r.opts.RetryMin; ; pause = min(2*pause, r.opts.RetryMax) {
		if ctx.Err() != nil {
			return false
		}
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.fails.Add(1)
		r.opts.Logger.Warn().Err(err).Dur("pause", pause).Msg("lineage: " + what)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
