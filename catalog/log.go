package catalog

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nordisk/skade-pg/catalog/store"
)

func storePut(key, value []byte) store.Op { return store.Op{Key: key, Value: value} }

// maxRecords bounds the answer of one read of the log when the caller does not.
const maxRecords = 10_000

// retained checks a seq against the log's ends.
func (c *Catalog) retained(seq uint64) error {
	s := c.Cut().s
	if seq == 0 || seq > s.seq {
		return fmt.Errorf("seq %d of %d: %w", seq, s.seq, ErrSeqNotFound)
	}
	if seq < s.first {
		return fmt.Errorf("seq %d, the oldest is %d: %w", seq, s.first, ErrExpired)
	}
	return nil
}

// Record returns the record of a seq. ErrSeqNotFound, ErrExpired.
func (c *Catalog) Record(ctx context.Context, seq uint64) (*Record, error) {
	if err := c.retained(seq); err != nil {
		return nil, err
	}
	key := recordKey(seq)
	value, err := c.store.Get(ctx, key)
	if err != nil {
		if err := c.retained(seq); err != nil { // trimmed since
			return nil, err
		}
		return nil, storeError(c.store, key, err)
	}
	rec, err := decodeRecord(value)
	if err == nil && rec.Seq != seq {
		err = fmt.Errorf("record of seq %d", rec.Seq)
	}
	if err != nil {
		return nil, storeError(c.store, key, err)
	}
	return rec, nil
}

// CommitsSince returns records with seq > after, ascending, at most limit (10,000 when limit is not positive): never more
// than is visible in Cut. ErrExpired when records behind after are gone.
func (c *Catalog) CommitsSince(ctx context.Context, after uint64, limit int) ([]*Record, error) {
	cut := c.Cut()
	if after >= cut.Seq() {
		return nil, nil
	}
	if after+1 < cut.s.first {
		return nil, fmt.Errorf("seq %d, the oldest is %d: %w", after+1, cut.s.first, ErrExpired)
	}
	if limit <= 0 || limit > maxRecords {
		limit = maxRecords
	}
	var recs []*Record
	r := store.RangeRequest{From: recordKey(after + 1), To: recordKey(cut.Seq() + 1), Limit: limit}
	for len(recs) < limit {
		res, err := c.store.Range(ctx, r)
		if err != nil {
			return nil, storeError(c.store, r.From, err)
		}
		for _, p := range res.Pairs {
			rec, err := decodeRecord(p.Value)
			if err == nil && rec.Seq != after+1 {
				if err := c.retained(after + 1); err != nil { // trimmed since
					return nil, err
				}
				err = fmt.Errorf("record of seq %d where %d was due", rec.Seq, after+1)
			}
			if err != nil {
				return nil, storeError(c.store, p.Key, err)
			}
			after++
			recs = append(recs, rec)
		}
		if !res.More || len(res.Pairs) == 0 {
			break
		}
		r.From, r.Limit = recordKey(after+1), limit-len(recs)
	}
	return recs, nil
}

// CommitsOf returns the records that touch a table with after < seq <= to, ascending, at most limit.
func (c *Catalog) CommitsOf(ctx context.Context, key TableKey, after, to uint64, limit int) ([]*Record, error) {
	id, err := key.uuid()
	if err != nil {
		return nil, err
	}
	s := c.Cut().s
	if after+1 < s.first {
		return nil, fmt.Errorf("seq %d, the oldest is %d: %w", after+1, s.first, ErrExpired)
	}
	to = min(to, s.seq)
	if after >= to {
		return nil, nil
	}
	if limit <= 0 || limit > maxRecords {
		limit = maxRecords
	}
	entity := tableKey(id)
	var recs []*Record
	r := store.RangeRequest{From: historyKey(entity, after+1), To: historyKey(entity, to+1), Limit: limit, KeysOnly: true}
	res, err := c.store.Range(ctx, r)
	if err != nil {
		return nil, storeError(c.store, r.From, err)
	}
	for _, p := range res.Pairs {
		_, seq, err := splitHistory(p.Key)
		if err != nil {
			return nil, storeError(c.store, p.Key, err)
		}
		rec, err := c.Record(ctx, seq)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, c.retained(after + 1) // trimmed since: versions may be missing
}

// CommitBySnapshot returns the record that brought a snapshot to a table. ErrNoSuchCommit when no commit of this catalog
// did, ErrExpired when its record is gone.
func (c *Catalog) CommitBySnapshot(ctx context.Context, key TableKey, snapshotID int64) (*Record, error) {
	rec, _, err := c.CommitEntryBySnapshot(ctx, key, snapshotID)
	return rec, err
}

// CommitEntryBySnapshot is CommitBySnapshot with the index of the snapshot's entry in Record.Tables.
func (c *Catalog) CommitEntryBySnapshot(ctx context.Context, key TableKey, snapshotID int64) (*Record, int, error) {
	id, err := key.uuid()
	if err != nil {
		return nil, 0, err
	}
	k := commitKey(id, snapshotID)
	value, err := c.store.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, fmt.Errorf("snapshot %d: %w", snapshotID, ErrNoSuchCommit)
	}
	if err != nil {
		return nil, 0, storeError(c.store, k, err)
	}
	ref, err := decodeCommitRef(value)
	if err != nil {
		return nil, 0, storeError(c.store, k, err)
	}
	rec, err := c.Record(ctx, ref.seq)
	if err != nil {
		return nil, 0, err
	}
	if ref.entry >= len(rec.Tables) {
		return nil, 0, storeError(c.store, k, fmt.Errorf("entry %d of a record with %d", ref.entry, len(rec.Tables)))
	}
	return rec, ref.entry, nil
}

// SeqAt returns the newest seq whose timestamp is not after t: the state at that instant. 0 when t is before the first
// commit. ErrExpired when t is before the oldest retained record and older ones are gone.
func (c *Catalog) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	for {
		s := c.Cut().s
		seq, err := c.seqAt(ctx, s, t)
		if err == nil || c.Cut().s.first == s.first {
			return seq, err
		}
	}
}

// seqAt is SeqAt in the log as one state has it; any error may come of a log that was trimmed since.
func (c *Catalog) seqAt(ctx context.Context, s *state, t time.Time) (uint64, error) {
	if s.seq == 0 || !t.Before(s.time) {
		return s.seq, nil
	}
	var failed error
	n := int(s.seq - s.first + 1)
	i := sort.Search(n, func(i int) bool { // the first record after t
		if failed != nil {
			return true
		}
		key := recordKey(s.first + uint64(i))
		value, err := c.store.Get(ctx, key)
		if err != nil {
			failed = storeError(c.store, key, err)
			return true
		}
		_, at, err := recordTime(value)
		if err != nil {
			failed = storeError(c.store, key, err)
		}
		return at.After(t)
	})
	if failed != nil {
		return 0, failed
	}
	if i == 0 && s.first > 1 {
		return 0, fmt.Errorf("time %s, the oldest seq is %d: %w", t.UTC().Format(time.RFC3339Nano), s.first, ErrExpired)
	}
	return s.first + uint64(i) - 1, nil
}
