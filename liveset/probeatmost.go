package liveset

import (
	"context"
	"errors"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// errManyHits ends a probe of ProbeAtMost.
var errManyHits = errors.New("probe has too many hits")

// ProbeAtMost is Probe, or with n fewer than the fields keyIDs ProbePrefix, for callers who would rather scan than have more than about most rows: all is
// false, and there are no hits, when there are more. Files that hold nothing but rows of one of the keys are known by their bounds before any index is read.
func (c *Cache) ProbeAtMost(ctx context.Context, ref Ref, s *Set, keyIDs []int, n, most int, keys [][]byte) (hits []Hit, all bool, err error) {
	if len(keys) == 0 || s.NumFiles() == 0 {
		return nil, true, nil
	}
	p, err := c.prober(ref, keyIDs)
	if err != nil {
		return nil, false, err
	}
	defer p.release()
	p.most = most
	if n > 0 && n < len(keyIDs) && p.certain(s, n, keys, int64(most)) > int64(most) {
		return nil, false, nil
	}
	hits, err = p.probe(ctx, nil, s, n, keys)
	if errors.Is(err, errManyHits) {
		return nil, false, nil
	}
	return hits, err == nil, err
}

// certain counts the live rows of files whose bounds leave one of the keys, until there are more than most.
func (p *prober) certain(s *Set, n int, keys [][]byte, most int64) int64 {
	var rows int64
	var buf [8][]byte
	p.filesFor(s, n, keys)
	defer func() { p.firsts = p.firsts[:0] }()
	for _, f := range p.files {
		if f.File.mem != nil {
			continue
		}
		b := p.boundsOf(f.File)
		if !b.exact(n) {
			continue
		}
		for _, k := range keys {
			if parts := keyindex.Split(buf[:0], p.cols[:n], k); len(parts) == n && inBounds(b, parts) {
				if rows += f.Live(); rows > most {
					return rows
				}
				break
			}
		}
	}
	return rows
}
