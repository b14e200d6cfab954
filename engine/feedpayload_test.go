package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
)

// TestCommitPayloadSize: whatever a commit touches, its payload is JSON below 8,000 bytes with the seq, and says when tables are left out.
func TestCommitPayloadSize(t *testing.T) {
	snapshot := int64(9_007_199_254_740_993) // more than a JavaScript number can hold
	for _, c := range []struct {
		tables int
		name   string
		more   bool
	}{{0, "t", false}, {1, "t", false}, {80, "t", false}, {2000, "t", true}, {1, strings.Repeat("n", 7000), false}, {1, strings.Repeat("<", 2000), true}, {3, strings.Repeat("ü", 2000), true}} {
		r := &catalog.Record{Seq: 1<<63 + 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}
		for i := range c.tables {
			r.Tables = append(r.Tables, catalog.TableRecord{Key: "k", Ident: []string{"s", fmt.Sprint(c.name, i)}, Kind: catalog.KindCommit, Operation: "append", SnapshotID: &snapshot, RowsAdded: 1})
		}
		text := commitPayload(r)
		require.LessOrEqual(t, len(text), 7999)
		var p struct {
			V       int
			Seq, TS string
			Tables  []struct {
				T, Snap, Op string
				Ins, Del    int64
			}
			More bool
		}
		require.NoError(t, json.Unmarshal([]byte(text), &p), text)
		require.Equal(t, "9223372036854775815", p.Seq)
		require.Equal(t, "2026-01-02T03:04:05.000006Z", p.TS)
		require.Equal(t, c.more, p.More, "%d of %.10s", c.tables, c.name)
		if !c.more {
			require.Len(t, p.Tables, c.tables)
		}
		for i := range p.Tables {
			require.Equal(t, "s."+c.name+fmt.Sprint(i), p.Tables[i].T)
			require.Equal(t, "9007199254740993", p.Tables[i].Snap)
		}
	}
}
