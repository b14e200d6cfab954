package mount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// KindMount is the kind of the object that keeps a mount, in the namespace of its name.
const KindMount = "mount"

// DefaultInterval is the time between two polls of a mount without one of its own.
const DefaultInterval = 30 * time.Second

// Bounds of polling (M4, M5).
const (
	maxAtOnce   = 2
	pollTimeout = 10 * time.Minute
	maxBackoff  = 10 * time.Minute
)

// Options of NewManager. Catalog and FS are required.
type Options struct {
	Catalog *catalog.Catalog
	FS      *storeio.FS
	Logger  zerolog.Logger
	// Interval is the time between two polls of a mount without one of its own; 0 means DefaultInterval.
	Interval time.Duration
}

// Manager keeps the mounts of a catalog. It ends with Close.
type Manager struct {
	catalog  *catalog.Catalog
	fs       *storeio.FS
	log      zerolog.Logger
	interval time.Duration
	slots    chan struct{} // of polls under way
	ctx      context.Context
	cancel   context.CancelFunc

	mu struct {
		sync.Mutex
		closed bool
		mounts map[string]*mounted
	}
}

// mounted is a mount and its goroutine.
type mounted struct {
	def    Definition
	every  time.Duration
	source Source
	turn   chan struct{} // one poll at a time: holds a token while none runs
	gone   chan struct{} // closed when the mount ends: nobody gets the turn any more
	cancel context.CancelFunc
	done   chan struct{}
	stamps map[string]string // of the tables' metadata files, by name; guarded by turn

	mu struct {
		sync.Mutex
		status Status
	}
}

// Status is what a mount's last poll saw.
type Status struct {
	Definition
	// LastPoll is the end of the last poll, zero before the first one.
	LastPoll time.Time
	// LastError is why the source, or some of its tables, could not be read by it; "" when all is well.
	LastError string
	// Tables is the number of tables that the mount has here.
	Tables int
	// Every is the time between two polls.
	Every time.Duration
}

// NewManager returns a Manager. It polls nothing before Start.
func NewManager(o Options) *Manager {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Manager{catalog: o.Catalog, fs: o.FS, log: o.Logger, interval: o.Interval, slots: make(chan struct{}, maxAtOnce), ctx: ctx, cancel: cancel}
	m.mu.mounts = map[string]*mounted{}
	return m
}

// Start begins to poll the mounts that the catalog keeps. A definition that cannot be used any more is logged and stands in Status.
func (m *Manager) Start() {
	n := 0
	for o := range m.catalog.Cut().Objects(KindMount, nil) {
		def, err := decodeDefinition(o.Name, o.Payload)
		if err != nil {
			m.log.Error().Err(err).Msg("mount")
			continue
		}
		n++
		first := time.Duration(n) * 100 * time.Millisecond // spread
		m.mu.Lock()
		m.startLocked(def, nil, first)
		m.mu.Unlock()
	}
}

// Close ends every poll and waits for it.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.mu.closed = true
	all := m.mu.mounts
	m.mu.mounts = map[string]*mounted{}
	m.mu.Unlock()
	m.cancel()
	var errs []error
	for _, x := range all {
		errs = append(errs, x.end())
	}
	return errors.Join(errs...)
}

func (x *mounted) end() error {
	x.cancel()
	close(x.gone)
	<-x.done
	<-x.turn // a Refresh that runs
	if x.source == nil {
		return nil
	}
	return x.source.Close()
}

// startLocked runs a mount's goroutine; source nil is opened by the first poll.
func (m *Manager) startLocked(def Definition, source Source, first time.Duration) *mounted {
	ctx, cancel := context.WithCancel(m.ctx)
	x := &mounted{def: def, source: source, turn: make(chan struct{}, 1), gone: make(chan struct{}), cancel: cancel, done: make(chan struct{}), stamps: map[string]string{}}
	x.turn <- struct{}{}
	x.every = def.Interval
	if x.every == 0 {
		x.every = m.interval
	}
	x.mu.status = Status{Definition: def, Tables: m.count(def.Name), Every: x.every}
	m.mu.mounts[def.Name] = x
	go func() {
		defer close(x.done)
		m.loop(ctx, x, first)
	}()
	return x
}

func (m *Manager) count(name string) int {
	n := 0
	for t := range m.catalog.Cut().AllTables() {
		if t.Mounted() && t.Ident[0] == name {
			n++
		}
	}
	return n
}

// loop polls until ctx ends. It waits longer after each failure (M5).
func (m *Manager) loop(ctx context.Context, x *mounted, wait time.Duration) {
	every := x.every
	failed := time.Duration(0)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case m.slots <- struct{}{}:
		}
		_, err := m.poll(ctx, x)
		<-m.slots
		if err == nil {
			failed = 0
			timer.Reset(every)
			continue
		}
		failed = min(max(2*failed, every), max(maxBackoff, every))
		timer.Reset(failed)
	}
}

// Mount makes a mount, reads its source once, and follows it from then on. The first read must succeed; tables that cannot be read are in
// Status. ErrInvalid, ErrUnreachable, iceberg-go's ErrNamespaceAlreadyExists, storeio.ErrOutsideRoots.
func (m *Manager) Mount(ctx context.Context, def Definition, actor string) (Status, error) {
	def, err := def.complete()
	if err != nil {
		return Status{}, err
	}
	if _, err := m.catalog.Cut().Namespace(table.Identifier{def.Name}); err == nil {
		return Status{}, fmt.Errorf("%w: %s", icecat.ErrNamespaceAlreadyExists, def.Name)
	}
	source, err := Open(def, m.fs)
	if err != nil {
		return Status{}, err
	}
	list, err := source.List(ctx)
	if err != nil {
		return Status{}, errors.Join(unreachable(ctx, def, err), source.Close())
	}
	if err := m.create(ctx, def, actor); err != nil {
		return Status{}, errors.Join(err, source.Close())
	}
	m.mu.Lock()
	if m.mu.closed {
		m.mu.Unlock()
		return Status{}, errors.Join(ErrClosed, source.Close())
	}
	x := m.startLocked(def, source, cmp.Or(def.Interval, m.interval))
	m.mu.Unlock()
	if err := x.take(ctx); err != nil {
		return x.status(), err
	}
	defer x.give()
	_, err = m.follow(ctx, x, list)
	return x.status(), err
}

// create commits the mount's namespace and its object.
func (m *Manager) create(ctx context.Context, def Definition, actor string) error {
	payload, err := def.encode()
	if err != nil {
		return err
	}
	ns := table.Identifier{def.Name}
	props := iceberg.Properties{catalog.PropertyMount: def.Name}
	if actor != "" {
		props["owner"] = actor
	}
	_, err = m.catalog.Commit(ctx, &catalog.Request{Actor: actor, ApplicationName: application(def.Name), Mount: def.Name, Changes: []catalog.Change{
		catalog.CreateNamespace{Ident: ns, Props: props},
		catalog.PutObject{Object: catalog.Object{Kind: KindMount, Namespace: ns, Name: def.Name, Payload: payload}, MustNotExist: true},
	}})
	return err
}

func application(name string) string { return "mount " + name }

// Unmount forgets a mount with its tables. Nothing of its source changes. ErrNoSuchMount.
func (m *Manager) Unmount(ctx context.Context, name, actor string) error {
	cut := m.catalog.Cut()
	if _, err := cut.Object(KindMount, table.Identifier{name}, name); err != nil {
		return fmt.Errorf("%w: %s", ErrNoSuchMount, name)
	}
	m.mu.Lock()
	x := m.mu.mounts[name]
	delete(m.mu.mounts, name)
	m.mu.Unlock()
	if x != nil {
		if err := x.end(); err != nil {
			m.log.Warn().Err(err).Str("mount", name).Msg("close the source")
		}
	}
	err := m.drop(ctx, name, actor)
	if err != nil && x != nil { // it is still there: go on with it
		m.mu.Lock()
		if !m.mu.closed {
			m.startLocked(x.def, nil, 0)
		}
		m.mu.Unlock()
	}
	return err
}

// drop commits the end of a mount: its tables in batches, the namespaces and the object last.
func (m *Manager) drop(ctx context.Context, name, actor string) error {
	cut := m.catalog.Cut()
	var changes []catalog.Change
	commit := func(all bool) error {
		if len(changes) == 0 || !all && len(changes) < batch {
			return nil
		}
		_, err := m.catalog.Commit(ctx, &catalog.Request{Actor: actor, ApplicationName: application(name), Mount: name, Changes: changes})
		changes = nil
		return err
	}
	for t := range cut.AllTables() {
		if t.Ident[0] != name {
			continue
		}
		changes = append(changes, catalog.DropTable{Ident: t.Ident, Operation: catalog.OperationUnregister})
		if err := commit(false); err != nil {
			return err
		}
	}
	var spaces []table.Identifier
	for n := range cut.Namespaces() {
		if n.Ident[0] == name {
			spaces = append(spaces, n.Ident)
		}
	}
	slices.Reverse(spaces) // children before their parent
	for _, ns := range spaces {
		if len(ns) == 1 {
			changes = append(changes, catalog.DropObject{Kind: KindMount, Namespace: ns, Name: name})
		}
		changes = append(changes, catalog.DropNamespace{Ident: ns})
	}
	return commit(true)
}

// Refresh polls a mount now, and returns the number of tables that changed. ErrNoSuchMount, ErrUnreachable.
func (m *Manager) Refresh(ctx context.Context, name string) (int, error) {
	m.mu.Lock()
	x := m.mu.mounts[name]
	m.mu.Unlock()
	if x == nil {
		return 0, fmt.Errorf("%w: %s", ErrNoSuchMount, name)
	}
	return m.poll(ctx, x)
}

// Status lists the mounts by name.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Status
	for _, x := range m.mu.mounts {
		out = append(out, x.status())
	}
	slices.SortFunc(out, func(a, b Status) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

func (x *mounted) status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.status
}

func (x *mounted) take(ctx context.Context) error {
	select {
	case <-x.turn:
		return nil
	case <-x.gone:
		return fmt.Errorf("%w: %s", ErrNoSuchMount, x.def.Name)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *mounted) give() { x.turn <- struct{}{} }

func unreachable(ctx context.Context, def Definition, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooMany) || errors.Is(err, storeio.ErrOutsideRoots) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, def.Name, err)
}

// poll reads the source once and commits what changed.
func (m *Manager) poll(ctx context.Context, x *mounted) (int, error) {
	if err := x.take(ctx); err != nil {
		return 0, err
	}
	defer x.give()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var list *Listing
	var err error
	if x.source == nil {
		x.source, err = Open(x.def, m.fs)
	}
	if err == nil {
		list, err = x.source.List(ctx)
	}
	if err != nil {
		err = unreachable(ctx, x.def, err)
		if ctx.Err() == nil {
			m.report(x, err)
		}
		return 0, err
	}
	return m.follow(ctx, x, list)
}

// report keeps the outcome of a poll. A new trouble is logged once.
func (m *Manager) report(x *mounted, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	n := m.count(x.def.Name)
	x.mu.Lock()
	before := x.mu.status.LastError
	x.mu.status.LastPoll, x.mu.status.LastError, x.mu.status.Tables = time.Now(), text, n
	x.mu.Unlock()
	switch {
	case text != "" && text != before:
		m.log.Warn().Str("mount", x.def.Name).Msg(text)
	case text == "" && before != "":
		m.log.Info().Str("mount", x.def.Name).Msg("the mount can be read again")
	}
}
