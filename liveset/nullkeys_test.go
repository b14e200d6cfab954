package liveset

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// TestPrefixOfNullKeys: the leading columns find their rows whatever the later ones hold, NULL too, in files that are sorted by the key and others, of keys
// that are packed and of fingerprints, and in memory. The judge is a scan.
func TestPrefixOfNullKeys(t *testing.T) {
	const n = 2000
	for _, ids := range [][]int{{1, 2}, {1, 3}, {1, 2, 3}, {3, 2, 1}} {
		for _, nulls := range []string{"none", "some", "last", "all"} {
			t.Run(fmt.Sprint(ids, nulls), func(t *testing.T) {
				k := newKit(t, 2)
				rows := make([]row, n)
				for i := range rows {
					rows[i] = row{id: int64(i / 5), p: "x"}
					if ids[0] == 3 {
						rows[i].s = ptr(fmt.Sprintf("name %04d", i/5))
					}
					null := nulls == "all" || nulls == "some" && i%3 == 0 || nulls == "last" && i >= n-4
					if !null {
						rows[i].k, rows[i].s = ptr(int32(i%5)), ptr(fmt.Sprintf("name %04d", i/5))
					}
				}
				mixed := slices.Clone(rows)
				newRand(t).Shuffle(n, func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
				sorted, plain := k.dataFile(0, "", rows, 1), k.dataFile(0, "", mixed, 2)
				k.commit(change{add: []iceberg.DataFile{sorted, plain}})
				rec := batch(mustArrow(t), []int{1, 2, 3, 4}, mixed)
				mem, err := NewMemFile("memory", &MemRows{Schema: testSchema(), Batches: []arrow.RecordBatch{rec}, Starts: []int32{0}, Rows: n})
				require.NoError(t, err)
				c := k.cache()
				s := k.at(c, *k.head).With(Overlay{Add: []*File{mem}})
				for v := 0; v < n/5; v += 7 {
					for lead := 1; lead < len(ids); lead++ {
						if lead > 1 && rows[v*5+1].k == nil {
							continue
						}
						key := prefixOf(ids[:lead], rows[v*5+1])
						want := 0
						for _, r := range rows {
							if r.key(ids[:lead]) == rows[v*5+1].key(ids[:lead]) {
								want++
							}
						}
						hits, err := c.ProbePrefix(t.Context(), k.ref, s, ids, lead, [][]byte{key})
						require.NoError(t, err)
						require.Len(t, hits, 3*want, "value %d, %d columns", v, lead)
						seen := map[string]bool{}
						for _, h := range hits {
							of := rows
							if h.File.File.Path != sorted.FilePath() {
								of = mixed
							}
							require.Equal(t, rows[v*5+1].key(ids[:lead]), of[h.Pos].key(ids[:lead]))
							seen[fmt.Sprint(h.File.File.Path, h.Pos)] = true
						}
						require.Len(t, seen, len(hits))
					}
				}
			})
		}
	}
}

func prefixOf(ids []int, r row) (key []byte) {
	for _, id := range ids {
		switch id {
		case 1:
			key = keyindex.AppendLong(key, r.id)
		case 2:
			key = keyindex.AppendLong(key, int64(*r.k))
		case 3:
			key = keyindex.AppendString(key, *r.s)
		}
	}
	return key
}

func mustArrow(t *testing.T) *arrow.Schema {
	as, err := ArrowSchema(testSchema(), MetaColumns{})
	require.NoError(t, err)
	return as
}
