package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog/store"
)

// recentCuts is how many of the newest cuts are kept for CutAt.
const recentCuts = 64

// mirror is the catalog in memory. One goroutine runs it from the store's watch: it applies an event, publishes the cut,
// then wakes whoever waits. Commits of this process and of others arrive the same way.
type mirror struct {
	c    *Catalog
	done chan struct{}

	mu struct {
		sync.Mutex
		state    *state // owned by mu: copied under it
		revision uint64
		err      error // why the mirror stopped
		wake     chan struct{}
		recent   [recentCuts]*Cut
	}
}

// put applies one key of the families that make up a state; others are ignored.
func (s *state) put(key, value []byte) error {
	switch key[0] {
	case familyNamespace:
		n, err := decodeNamespace(value)
		if err != nil {
			return err
		}
		if !bytes.Equal(namespaceKey(n.Ident), key) {
			return fmt.Errorf("namespace %s under another key", dotted(n.Ident))
		}
		s.setNamespace(n)
	case familyTable:
		t, err := decodeTable(value)
		if err != nil {
			return err
		}
		if !bytes.Equal(tableKey(t.UUID), key) {
			return fmt.Errorf("table %s under another key", dotted(t.Ident))
		}
		s.setTable(t)
	case familyObject:
		o, err := decodeObject(value)
		if err != nil {
			return err
		}
		if !bytes.Equal(objectKey(o.Kind, o.Namespace, o.Name), key) {
			return fmt.Errorf("object %s under another key", o.Name)
		}
		s.setObject(o)
	case familyDropped:
		d, err := decodeDropped(value)
		if err != nil {
			return err
		}
		if !bytes.Equal(droppedKey(d.State.UUID), key) {
			return fmt.Errorf("dropped table %s under another key", dotted(d.State.Ident))
		}
		s.dropped.Set(string(d.State.Key), d)
	case familyFeed:
		f, err := decodeFeed(value)
		if err != nil {
			return err
		}
		if !bytes.Equal(feedKey(f.Name), key) {
			return fmt.Errorf("feed %s under another key", f.Name)
		}
		s.feeds.Set(f.Name, f)
	case keyHead[0]:
		return s.decodeHead(value)
	}
	return nil
}

// remove applies the deletion of one key.
func (s *state) remove(key []byte) error {
	parts := strings.Split(strings.TrimSuffix(string(key[1:]), "\x00"), "\x00")
	switch key[0] {
	case familyNamespace:
		s.dropNamespace(parts)
	case familyTable:
		id, err := uuid.FromBytes(key[1:])
		if err != nil {
			return err
		}
		s.dropTable(keyOf(id))
	case familyDropped:
		id, err := uuid.FromBytes(key[1:])
		if err != nil {
			return err
		}
		s.dropped.Delete(string(keyOf(id)))
	case familyFeed:
		s.feeds.Delete(string(key[1:]))
	case familyObject:
		if len(parts) < 3 {
			return fmt.Errorf("object key of %d parts", len(parts))
		}
		s.dropObject(parts[0], parts[1:len(parts)-1], parts[len(parts)-1])
	}
	return nil
}

// adopt gives the tables of a state their catalog.
func (s *state) adopt(c *Catalog) {
	s.byKey.Scan(func(_ string, t *TableState) bool {
		t.cat = c
		return true
	})
	s.dropped.Scan(func(_ string, d *DroppedTable) bool {
		d.State.cat = c
		return true
	})
}

// start publishes the loaded state and runs the goroutine that follows the store. It ends when ctx does.
func (m *mirror) start(ctx context.Context, st *state, revision uint64) error {
	w, err := m.c.store.Watch(ctx, revision)
	if err != nil {
		return err
	}
	st.adopt(m.c)
	m.mu.state, m.mu.revision = st, revision
	m.mu.wake = make(chan struct{})
	m.publishLocked()
	m.done = make(chan struct{})
	go m.run(ctx, w)
	return nil
}

func (m *mirror) run(ctx context.Context, w store.Watch) {
	defer close(m.done)
	defer w.Close()
	for {
		e, err := w.Next(ctx)
		if err == nil {
			err = m.apply(e)
		}
		if errors.Is(err, store.ErrCompacted) {
			w.Close()
			if w, err = m.reload(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			m.stop(err)
			return
		}
	}
}

// apply takes one transaction over, all of it or (on an error) none that anybody sees (C1).
func (m *mirror) apply(e store.Event) error {
	m.mu.Lock()
	st := m.mu.state
	before, first := st.seq, st.first
	var records int
	var quiet bool // something changed without a seq
	for _, op := range e.Ops {
		var err error
		quiet = quiet || op.Key[0] == familyFeed
		switch {
		case op.Key[0] == familyRecord && !op.Delete:
			records++
		case op.Delete:
			err = st.remove(op.Key)
		default:
			err = st.put(op.Key, op.Value)
			if err == nil && op.Key[0] == familyTable {
				t, _ := st.byKey.Get(uuid.UUID(op.Key[1:]).String())
				t.cat = m.c
			}
			if err == nil && op.Key[0] == familyDropped {
				d, _ := st.dropped.Get(uuid.UUID(op.Key[1:]).String())
				d.State.cat = m.c
			}
		}
		if err != nil {
			m.mu.Unlock()
			return storeError(m.c.store, op.Key, err)
		}
	}
	m.mu.revision = e.Revision
	if st.seq != before || st.first != first || quiet {
		m.publishLocked()
	}
	close(m.mu.wake)
	m.mu.wake = make(chan struct{})
	m.mu.Unlock()
	if records > 0 {
		m.c.subs.deliver(e.Ops)
	}
	return nil
}

func (m *mirror) publishLocked() {
	cut := &Cut{s: m.mu.state.copy()}
	m.mu.recent[cut.s.seq%recentCuts] = cut
	m.c.cut.Store(cut)
}

// reload starts over from the store: the watch lost events. Subscribers see a gap and read the log.
func (m *mirror) reload(ctx context.Context) (store.Watch, error) {
	revision := m.c.store.Revision()
	st, err := loadState(ctx, m.c.store)
	if err != nil {
		return nil, err
	}
	w, err := m.c.store.Watch(ctx, revision)
	if err != nil {
		return nil, err
	}
	st.adopt(m.c)
	m.mu.Lock()
	m.mu.state, m.mu.revision = st, revision
	m.publishLocked()
	close(m.mu.wake)
	m.mu.wake = make(chan struct{})
	m.mu.Unlock()
	m.c.subs.skip(st.seq)
	return w, nil
}

func (m *mirror) stop(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(err, context.Canceled) || errors.Is(err, store.ErrClosed) {
		err = ErrClosed
	} else {
		m.c.log.Error().Err(err).Msg("catalog mirror stopped")
	}
	m.mu.err = err
	close(m.mu.wake)
	m.mu.wake = make(chan struct{})
}

// wait returns once everything up to the revision is visible.
func (m *mirror) wait(revision uint64) error {
	for {
		m.mu.Lock()
		at, err, wake := m.mu.revision, m.mu.err, m.mu.wake
		m.mu.Unlock()
		if at >= revision {
			return nil
		}
		if err != nil {
			return err
		}
		<-wake
	}
}

// fork returns a private copy of the newest state.
func (m *mirror) fork() (*state, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.err != nil {
		return nil, m.mu.err
	}
	return m.mu.state.copy(), nil
}

// recentCut returns the cut of a seq when it is one of the newest.
func (m *mirror) recentCut(seq uint64) (*Cut, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cut := m.mu.recent[seq%recentCuts]
	if cut == nil || cut.s.seq != seq {
		return nil, false
	}
	return cut, true
}
