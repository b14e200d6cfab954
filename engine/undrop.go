package engine

import (
	"context"
	"errors"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// restoreSequences brings back the sequences that a dropped table's columns owned, as they were before the commit that dropped it; their values go on where
// they stood. They go to the schema that the table comes back to, under another name when theirs is taken meanwhile.
func (s *session) restoreSequences(ctx context.Context, d *catalog.DroppedTable, ident table.Identifier) error {
	before, err := s.gw.catalog.CutAt(ctx, d.Seq-1)
	if errors.Is(err, catalog.ErrExpired) {
		return nil // the log does not reach back so far
	}
	if err != nil {
		return err
	}
	for o := range before.Objects(sequenceKind, nil) {
		q, err := decodeSequence(o)
		if err != nil {
			return err
		}
		if q.Owner == nil || q.Owner.Table != d.State.Key {
			continue
		}
		old := q.qualified()
		var lookup error
		name := chooseName(q.name(), "", "", func(name string) bool {
			taken, err := s.exists(ctx, identOf(schemaOf(ident), name))
			if err != nil {
				lookup = err
			}
			return taken
		})
		if lookup != nil {
			return lookup
		}
		q.ident = identOf(schemaOf(ident), name)
		if err := s.putSequence(ctx, q, false); err != nil {
			return err
		}
		if now := q.qualified(); now != old {
			if err := s.redirectDefaults(ctx, ident, old, q); err != nil {
				return err
			}
		}
	}
	s.sequences.statement()
	return nil
}
