package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog/store"
)

// SequenceState is how far a sequence's values are handed out. It lives beside the commits: reserving a range of values is one small store
// transaction of its own, takes no seq, writes no record and is never rolled back.
type SequenceState struct {
	// Last is the newest value that may have been handed out, or the first one to hand out while Called is false.
	Last   int64
	Called bool
}

func sequenceKey(id uuid.UUID) []byte { return append([]byte{familySequence}, id[:]...) }

func (s SequenceState) encode() []byte {
	w := newWriter(kindSequence)
	w.varint(s.Last)
	if s.Called {
		w.uvarint(1)
	} else {
		w.uvarint(0)
	}
	return w.seal()
}

func decodeSequence(value []byte) (SequenceState, error) {
	r := newReader(kindSequence, value)
	s := SequenceState{Last: r.varint(), Called: r.uvarint() == 1}
	if err := r.done(); err != nil {
		return s, fmt.Errorf("sequence: %w", err)
	}
	return s, nil
}

// Sequence reads a sequence's state; ok is false when no value was reserved yet.
func (c *Catalog) Sequence(ctx context.Context, id uuid.UUID) (s SequenceState, ok bool, err error) {
	value, err := c.store.Get(ctx, sequenceKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, storeError(c.store, sequenceKey(id), err)
	}
	if s, err = decodeSequence(value); err != nil {
		return s, false, storeError(c.store, sequenceKey(id), err)
	}
	return s, true, nil
}

// SetSequence replaces a sequence's state; was is what Sequence gave, nil for none. It returns once the new state is durable. ErrConflict when
// another gateway was faster: read again.
func (c *Catalog) SetSequence(ctx context.Context, id uuid.UUID, was *SequenceState, now SequenceState) error {
	key := sequenceKey(id)
	compare := store.Compare{Key: key, Absent: true}
	if was != nil {
		compare = store.Compare{Key: key, Value: was.encode()}
	}
	_, err := c.store.Apply(ctx, store.Tx{Compares: []store.Compare{compare}, Ops: []store.Op{{Key: key, Value: now.encode()}}})
	switch {
	case errors.Is(err, store.ErrCompareFailed):
		return fmt.Errorf("%w: sequence %s moved", ErrConflict, id)
	case errors.Is(err, store.ErrUnknownOutcome):
		return fmt.Errorf("reserve values of sequence %s: %w: %w", id, ErrUnknownOutcome, err)
	case errors.Is(err, store.ErrFailed):
		return fmt.Errorf("reserve values of sequence %s: %w: %w", id, ErrFailed, err)
	case errors.Is(err, store.ErrClosed):
		return ErrClosed
	case err != nil:
		return fmt.Errorf("reserve values of sequence %s: %w", id, err)
	}
	return nil
}

// ForgetSequences removes the states that keep does not want: those of dropped sequences, and of sequences whose transaction never committed.
func (c *Catalog) ForgetSequences(ctx context.Context, keep func(id uuid.UUID) bool) error {
	from := []byte{familySequence}
	var ops []store.Op
	err := store.All(ctx, c.store, store.RangeRequest{From: from, To: store.PrefixEnd(from), KeysOnly: true}, func(p store.Pair) error {
		id, err := uuid.FromBytes(p.Key[1:])
		if err != nil {
			return storeError(c.store, p.Key, err)
		}
		if !keep(id) {
			ops = append(ops, store.Op{Key: bytes.Clone(p.Key), Delete: true})
		}
		return nil
	})
	for err == nil && len(ops) > 0 {
		n := min(len(ops), c.store.Limits().Ops)
		_, err = c.store.Apply(ctx, store.Tx{Ops: ops[:n]})
		ops = ops[n:]
	}
	return err
}
