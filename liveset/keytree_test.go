package liveset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

// TestKeyTree: the files that a stab finds are those whose interval holds the point, after any insertions and deletions, in every version.
func TestKeyTree(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewSource(seed))
	enc := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	type version struct {
		root  *span
		spans []*span
	}
	var root *span
	var spans []*span
	var versions []version
	for i := range 600 {
		if len(spans) > 0 && rng.Intn(3) == 0 {
			j := rng.Intn(len(spans))
			root = root.del(spans[j].lo, spans[j].file.File.order)
			spans = slices.Delete(slices.Clone(spans), j, j+1)
		} else {
			lo := rng.Intn(500)
			f := &LiveFile{File: &File{order: fmt.Sprintf("%06d", i)}}
			x := &span{lo: enc(lo), hi: enc(lo + rng.Intn(40)), file: f, prio: xxh3.HashString(f.File.order)}
			x.max = x.hi
			root = root.insert(x)
			spans = append(slices.Clone(spans), x)
		}
		if i%50 == 0 {
			versions = append(versions, version{root, spans})
		}
	}
	for _, v := range append(versions, version{root, spans}) {
		for p := range 560 {
			want := map[*LiveFile]bool{}
			for _, s := range v.spans {
				if bytes.Compare(s.lo, enc(p)) <= 0 && bytes.Compare(s.hi, enc(p)) >= 0 {
					want[s.file] = true
				}
			}
			got := v.root.stab(nil, enc(p))
			require.Len(t, got, len(want), "seed %d, point %d", seed, p)
			for _, f := range got {
				require.True(t, want[f])
			}
		}
	}
}
