package store

import (
	"context"
	"errors"
)

var (
	// ErrNotFound is returned by Get when the key does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrCompareFailed is returned by Apply when a compare did not hold. Nothing happened.
	ErrCompareFailed = errors.New("compare failed")
	// ErrTooLarge is returned by Apply when the transaction exceeds Limits. Nothing happened.
	ErrTooLarge = errors.New("store transaction is too large")
	// ErrUnknownOutcome is returned by Apply when the store failed at a point where the transaction may or may not be
	// durable. The store accepts no further transaction; opening it again tells.
	ErrUnknownOutcome = errors.New("store transaction outcome is unknown")
	// ErrFailed is returned by Apply after an ErrUnknownOutcome. Nothing happened.
	ErrFailed = errors.New("store stopped after a failed sync")
	// ErrCompacted is returned by a watch whose next revision is no longer kept: read everything again, watch anew.
	ErrCompacted = errors.New("watched revision is no longer kept")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("store is closed")
	// ErrLocked is returned when opening a store that another process, or this one, has open.
	ErrLocked = errors.New("store is locked")
	// ErrDamaged is returned when the store's own structure does not hold together.
	ErrDamaged = errors.New("store is damaged")
)

// Compare is a condition on one key: that it holds Value, or with Absent that it does not exist.
type Compare struct {
	Key    []byte
	Value  []byte
	Absent bool
}

// Op puts Value at Key, or with Delete removes Key (a missing key is fine). Key and Value must not be changed after they
// were given to Apply: watches share them.
type Op struct {
	Key    []byte
	Value  []byte
	Delete bool
	// Quiet: watches need not see it.
	Quiet bool
}

// Tx is one atomic transaction.
type Tx struct {
	Compares []Compare
	Ops      []Op
}

// Size returns the bytes of all keys and values.
func (t *Tx) Size() int {
	n := 0
	for _, c := range t.Compares {
		n += len(c.Key) + len(c.Value)
	}
	for _, o := range t.Ops {
		n += len(o.Key) + len(o.Value)
	}
	return n
}

// Limits bound a transaction. etcd's defaults are 128 operations and 1.5 MiB.
type Limits struct {
	Ops   int
	Bytes int
	// InlineBytes is how many bytes of small files a transaction should carry at most; 0 means files are synced themselves.
	InlineBytes int
}

// Pair is a key and its value.
type Pair struct{ Key, Value []byte }

// RangeRequest asks for keys From <= key < To, ascending or, with Reverse, descending. A nil To is the end of the key space.
type RangeRequest struct {
	From, To []byte
	Reverse  bool
	Limit    int // 0: no limit on the count; the store still bounds the bytes of one answer
	KeysOnly bool
}

// RangeResult is one answer. More says that keys were left out: ask again from behind the last one.
type RangeResult struct {
	Pairs []Pair
	More  bool
}

// Event is the writes of one transaction.
type Event struct {
	Revision uint64
	Ops      []Op
}

// Watch delivers events in order.
type Watch interface {
	// Next waits for the next event. ErrCompacted, ErrClosed, or the context's error.
	Next(ctx context.Context) (Event, error)
	Close()
}

// Store is a key-value store. Returned slices belong to the caller.
type Store interface {
	Get(ctx context.Context, key []byte) ([]byte, error)
	Range(ctx context.Context, r RangeRequest) (RangeResult, error)
	// Apply is honoured once begun: ctx is looked at before.
	Apply(ctx context.Context, tx Tx) (revision uint64, err error)
	// Revision returns the revision of the newest transaction.
	Revision() uint64
	// Watch delivers the transactions after the revision.
	Watch(ctx context.Context, after uint64) (Watch, error)
	Limits() Limits
	// Check reports what is wrong with the store's structure.
	Check(ctx context.Context, report func(detail string)) error
	// Path names the store in messages.
	Path() string
	Close() error
}

// All reads a whole range in bounded steps and calls each for every pair.
func All(ctx context.Context, s Store, r RangeRequest, each func(Pair) error) error {
	for {
		res, err := s.Range(ctx, r)
		if err != nil {
			return err
		}
		for _, p := range res.Pairs {
			if err := each(p); err != nil {
				return err
			}
		}
		if !res.More || len(res.Pairs) == 0 {
			return nil
		}
		last := res.Pairs[len(res.Pairs)-1].Key
		if r.Reverse {
			r.To = last
		} else {
			r.From = append(append(make([]byte, 0, len(last)+1), last...), 0)
		}
	}
}

// PrefixEnd returns the first key behind all keys with the prefix, nil when there is none.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
