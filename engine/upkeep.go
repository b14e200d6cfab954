package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/warehouse"
)

// upkeep is what maintenance keeps between its runs, and the goroutine that runs it in the background. The goroutine is started by start and ended, and
// waited for, by stop.
type upkeep struct {
	gw     *Gateway
	cancel context.CancelFunc
	done   chan struct{}

	mu struct {
		sync.Mutex
		busy map[catalog.TableKey]*vacuumProgress
		free chan struct{} // closed when a table becomes free
		// expired files wait for the transactions that began before the expiry.
		expired []expiredFiles
	}
	seen map[catalog.TableKey]uint64 // the last change that the background has looked at
}

type expiredFiles struct {
	seq   uint64 // of the commit after which nobody new sees them
	paths []string
}

func newUpkeep(gw *Gateway) *upkeep {
	u := &upkeep{gw: gw, seen: map[catalog.TableKey]uint64{}}
	u.mu.busy, u.mu.free = map[catalog.TableKey]*vacuumProgress{}, make(chan struct{})
	return u
}

// start runs maintenance every interval; 0 never.
func (u *upkeep) start(interval time.Duration) {
	if interval <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.done = cancel, make(chan struct{})
	go func() {
		defer close(u.done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				u.pass(ctx)
			}
		}
	}()
}

func (u *upkeep) stop() {
	if u.cancel != nil {
		u.cancel()
		<-u.done
	}
}

// pass looks after every table once. Tables that did not change are only expired.
func (u *upkeep) pass(ctx context.Context) {
	alive := map[catalog.TableKey]bool{}
	for t := range u.gw.catalog.Cut().AllTables() {
		if t.Mounted() {
			continue
		}
		alive[t.Key] = true
		err := u.maintain(ctx, maintenance{ident: t.Ident, gentle: true}, u.seen[t.Key] == t.ChangedSeq)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, errors.Is(err, errBusy), errors.Is(err, warehouse.ErrConflict), errors.Is(err, warehouse.ErrInvalidTable):
		default:
			u.gw.log.Warn().Err(err).Str("table", strings.Join(t.Ident, ".")).Msg("maintenance")
		}
		if now, ok := u.gw.catalog.Cut().TableByKey(t.Key); ok && err == nil {
			u.seen[t.Key] = now.ChangedSeq
		}
	}
	for key := range u.seen {
		if !alive[key] {
			delete(u.seen, key)
		}
	}
	if err := u.purgeDropped(ctx); err != nil && ctx.Err() == nil {
		u.gw.log.Warn().Err(err).Msg("purge dropped tables")
	}
	if err := u.trimLog(ctx); err != nil && ctx.Err() == nil {
		u.gw.log.Warn().Err(err).Msg("trim the commit log")
	}
	if err := u.removeExpired(ctx); err != nil && ctx.Err() == nil {
		u.gw.log.Warn().Err(err).Msg("remove expired files")
	}
}

var errBusy = errors.New("the table is being maintained")

// maintain runs m when no other run is on its table: the background gives up, VACUUM waits. quiet tables are expired only.
func (u *upkeep) maintain(ctx context.Context, m maintenance, quiet bool) error {
	state, err := u.gw.catalog.Cut().Table(m.ident)
	if err != nil {
		return err
	}
	m.gw, m.key = u.gw, state.Key
	if m.progress == nil {
		m.progress = &vacuumProgress{}
	}
	if err := u.take(ctx, &m); err != nil {
		return err
	}
	defer u.give(m.key)
	if quiet {
		return m.expire(ctx)
	}
	return m.run(ctx)
}

func (u *upkeep) take(ctx context.Context, m *maintenance) error {
	for {
		u.mu.Lock()
		if u.mu.busy[m.key] == nil {
			u.mu.busy[m.key] = m.progress
			m.progress.begin(m.ident)
			u.mu.Unlock()
			return nil
		}
		free := u.mu.free
		u.mu.Unlock()
		if m.gentle {
			return errBusy
		}
		select {
		case <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (u *upkeep) give(key catalog.TableKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.mu.busy, key)
	close(u.mu.free)
	u.mu.free = make(chan struct{})
}

// later takes files to be removed once no transaction reads a cut from before seq.
func (u *upkeep) later(seq uint64, paths []string) {
	if len(paths) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.expired = append(u.mu.expired, expiredFiles{seq, paths})
}

// removeExpired removes the expired files that no open transaction can read. What a server that stops leaves is an orphan, which a later VACUUM removes.
func (u *upkeep) removeExpired(ctx context.Context) error {
	oldest := u.gw.oldestPinned()
	u.mu.Lock()
	var ready []expiredFiles
	u.mu.expired = slices.DeleteFunc(u.mu.expired, func(e expiredFiles) bool {
		if e.seq > oldest {
			return false
		}
		ready = append(ready, e)
		return true
	})
	u.mu.Unlock()
	for i, e := range ready {
		if err := u.gw.warehouse.RemoveFiles(ctx, e.paths); err != nil {
			u.mu.Lock()
			u.mu.expired = append(u.mu.expired, ready[i:]...)
			u.mu.Unlock()
			return err
		}
	}
	return nil
}

// purgeDropped lets go of dropped tables whose time has passed and that no open transaction reads.
func (u *upkeep) purgeDropped(ctx context.Context) error {
	now := time.Now()
	var failed error // one that cannot be purged must not keep the others
	for d := range u.gw.catalog.Cut().DroppedTables() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if now.Sub(d.Time) < u.gw.retention.Dropped || u.gw.oldestPinned() < d.Seq {
			continue
		}
		_, err := u.gw.catalog.Commit(ctx, &catalog.Request{ApplicationName: "purge", Changes: []catalog.Change{catalog.PurgeDropped{Key: d.State.Key}}})
		if err != nil && !errors.Is(err, catalog.ErrNoSuchDropped) {
			failed = errors.Join(failed, fmt.Errorf("purge %s: %w", strings.Join(d.State.Ident, "."), err))
		}
	}
	return failed
}

// vacuumProgress is a row of skade.stat_progress_vacuum. Other sessions read it.
type vacuumProgress struct {
	mu struct {
		sync.Mutex
		p vacuumState
	}
	pid int32 // 0: the background
}

type vacuumState struct {
	ident       table.Identifier
	phase       string
	started     time.Time
	done, total int64
}

func (p *vacuumProgress) begin(ident table.Identifier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.p = vacuumState{ident: ident, phase: "initializing", started: time.Now()}
}

func (p *vacuumProgress) phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.p.phase = name
}

func (p *vacuumProgress) rows(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.p.done, p.mu.p.total = done, total
}
