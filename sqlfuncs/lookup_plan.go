package sqlfuncs

import (
	"context"
	"fmt"

	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
)

// planLookup says for EXPLAIN what a call of lookup or lookup_many finds, and what finding it reads. list gives the keys of its second argument.
func planLookup(list func(*Value) ([]*Value, error)) func(context.Context, *Env, *Shape, []*Value) ([]Fact, error) {
	return func(ctx context.Context, env *Env, shape *Shape, args []*Value) ([]Fact, error) {
		p, enc, err := prepareLookup(ctx, env, shape, args)
		if err != nil {
			return nil, err
		}
		keys, err := list(args[1])
		if err != nil {
			return nil, err
		}
		counters := &liveset.ProbeCounters{}
		files, rows, err := hitsOfKeys(liveset.WithProbeCounters(ctx, counters), p, enc, keys)
		return []Fact{
			{"Key", describeKey(enc.cols)},
			{"Keys", len(keys)},
			{"Files", fmt.Sprintf("considered=%d opened=%d", p.Files(), files)},
			{"Bytes", counters.Counts().Bytes},
			{"Rows", fmt.Sprintf("found=%d", rows)},
		}, err
	}
}

// hitsOfKeys counts the files and rows that keys are found in.
func hitsOfKeys(ctx context.Context, p *lookup.Lookuper, enc *keyEncoder, keys []*Value) (files, rows int, err error) {
	seen := map[*liveset.LiveFile]struct{}{}
	for at := 0; at < len(keys); at += manyKeys {
		b, err := enc.batch(keys[at:min(at+manyKeys, len(keys))], 0)
		if err != nil {
			return 0, 0, err
		}
		if len(b.keys) == 0 {
			continue
		}
		hits, err := p.Hits(ctx, b.keys, b.parts)
		if err != nil {
			return 0, 0, err
		}
		for _, h := range hits {
			seen[h.File] = struct{}{}
		}
		rows += len(hits)
	}
	return len(seen), rows, nil
}
