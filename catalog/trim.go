package catalog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/nordisk/skade-pg/catalog/store"
)

// trimStep bounds the records that one store transaction removes.
const trimStep = 64

// TrimLog removes the records of the log before a seq, which stays, with the versions of entities and the entries of COMMITS that only they
// need: every cut from that seq on stays readable. It takes no seq. Windows that begin before it are ErrExpired from then on. The
// caller sees to it that nobody reads them: open transactions and durable feeds. It returns the number of records removed.
func (c *Catalog) TrimLog(ctx context.Context, before uint64) (int, error) {
	// The log's beginning moves first, where every reader sees it: one that finds a record gone looks there.
	if _, err := c.Commit(ctx, &Request{Changes: []Change{beginLog{before}}}); err != nil {
		return 0, fmt.Errorf("trim the log: %w", err)
	}
	removed := 0
	for {
		step := &removeRecords{}
		if _, err := c.Commit(ctx, &Request{Changes: []Change{step}}); err != nil {
			return removed, fmt.Errorf("trim the log: %w", err)
		}
		if removed += step.n; step.n == 0 {
			return removed, nil
		}
	}
}

// beginLog makes seq the oldest that is retained.
type beginLog struct{ seq uint64 }

func (ch beginLog) apply(_ context.Context, a *attempt) error {
	if to := min(ch.seq, a.g.state.seq); to > a.state.first {
		a.state.first, a.quiet = to, true
	}
	return nil
}

// removeRecords removes some records from before the log's beginning, also those that an interrupted trim left.
type removeRecords struct{ n int }

func (ch *removeRecords) apply(ctx context.Context, a *attempt) error {
	r := store.RangeRequest{From: recordKey(0), To: recordKey(a.state.first), Limit: trimStep}
	res, err := a.g.c.store.Range(ctx, r)
	if err != nil {
		return storeError(a.g.c.store, r.From, err)
	}
	for _, p := range res.Pairs {
		rec, err := decodeRecord(p.Value)
		if err != nil {
			return storeError(a.g.c.store, p.Key, err)
		}
		a.unstage(p.Key)
		for i := range rec.Tables {
			if err := a.trimEntry(ctx, rec, &rec.Tables[i]); err != nil {
				return err
			}
		}
	}
	ch.n, a.quiet = len(res.Pairs), len(res.Pairs) > 0
	return nil
}

// unstage removes a key of which there is no history.
func (a *attempt) unstage(key []byte) {
	a.writes = append(a.writes, write{seq: a.seq, key: bytes.Clone(key), latest: true})
	a.size += len(key)
}

// trimEntry removes the versions that the entry's own one replaced, that one too when the entity was dropped, and the way back from a
// snapshot that nobody has any more.
func (a *attempt) trimEntry(ctx context.Context, rec *Record, t *TableRecord) error {
	var entity []byte
	switch {
	case t.Kind == KindPurge:
		return nil
	case t.Key != "":
		entity = tableKey(t.UUID)
	case t.Kind == KindNamespace:
		entity = namespaceKey(t.Ident)
	case len(t.Ident) > 1:
		entity = objectKey(t.Kind, t.Ident[:len(t.Ident)-1], t.Ident[len(t.Ident)-1])
	default:
		return nil
	}
	end := rec.Seq
	if t.Kind == KindDrop || t.Key == "" && t.Operation == OperationDrop {
		end++
	}
	r := store.RangeRequest{From: historyKey(entity, 0), To: historyKey(entity, end), KeysOnly: true}
	err := store.All(ctx, a.g.c.store, r, func(p store.Pair) error {
		a.unstage(p.Key)
		return nil
	})
	if err != nil {
		return storeError(a.g.c.store, r.From, err)
	}
	if t.SnapshotID == nil || t.Key == "" {
		return nil
	}
	if now, ok := a.state.byKey.Get(string(t.Key)); ok {
		meta, _, err := a.base(ctx, now)
		if err != nil {
			return err
		}
		if meta.SnapshotByID(*t.SnapshotID) != nil {
			return nil // who asks for it is told that it expired, not that it is older than the catalog
		}
	}
	a.unstage(commitKey(t.UUID, *t.SnapshotID))
	return nil
}
