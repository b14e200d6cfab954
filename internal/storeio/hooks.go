package storeio

import (
	"fmt"
	"sync"
)

// Op names an operation that changes the disk.
type Op string

// The operations that hooks see, in the order in which a durable file goes through them.
const (
	OpMkdir   Op = "mkdir"
	OpCreate  Op = "create"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpRename  Op = "rename"
	OpSyncDir Op = "syncdir"
	OpRemove  Op = "remove"
	// OpStore and OpStored are the catalog's: before and after a store transaction.
	OpStore  Op = "store"
	OpStored Op = "stored"
)

// Hooks see every operation that changes the disk, and reads; tests make them fail or record them. All functions are called by many
// goroutines.
type Hooks struct {
	// Before runs ahead of an operation. Its error is returned and the operation does not happen.
	Before func(op Op, path string) error
	// After runs when an operation succeeded.
	After func(op Op, path string)
	// Read runs ahead of every read of a file of the disk; its error is the read's.
	Read func(path string) error
}

func (h *Hooks) read(path string) error {
	if h == nil || h.Read == nil {
		return nil
	}
	return h.Read(path)
}

// Run calls do between Before and After. A nil Hooks only calls do.
func (h *Hooks) Run(op Op, path string, do func() error) error {
	if h != nil && h.Before != nil {
		if err := h.Before(op, path); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if h != nil && h.After != nil {
		h.After(op, path)
	}
	return nil
}

// Injector makes operation k (counted from 0) fail, and with Stop every later one too, as if the process had been killed
// there.
type Injector struct {
	K    int64
	Stop bool

	mu struct {
		sync.Mutex
		seen   int64
		failed int64
		log    []string
	}
}

// Hooks returns the hooks to give to an FS.
func (i *Injector) Hooks() *Hooks { return &Hooks{Before: i.before} }

func (i *Injector) before(op Op, path string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.mu.seen
	i.mu.seen++
	i.mu.log = append(i.mu.log, string(op))
	if n == i.K || (i.Stop && n > i.K) {
		i.mu.failed++
		return fmt.Errorf("%s %s: %w at operation %d", op, path, ErrInjected, n)
	}
	return nil
}

// Seen returns how many operations were tried, Failed how many of them were made to fail.
func (i *Injector) Seen() int64 { i.mu.Lock(); defer i.mu.Unlock(); return i.mu.seen }

// Failed returns how many operations were made to fail.
func (i *Injector) Failed() int64 { i.mu.Lock(); defer i.mu.Unlock(); return i.mu.failed }

// Log returns the operations that were tried, in order.
func (i *Injector) Log() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.mu.log...)
}
