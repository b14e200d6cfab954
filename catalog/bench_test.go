package catalog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// One commit of a data file, a manifest and a manifest list, all small, with every sync: writers on tables of their own.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) { benchCommits(b, writers, true) })
	}
}

// The cost of the catalog alone: metadata-only commits.
func BenchmarkCommitPointer(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) { benchCommits(b, writers, false) })
	}
}

func benchCommits(b *testing.B, writers int, files bool) {
	c, err := Open(ctx, Options{Dir: b.TempDir()})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	t := &testing.T{}
	var keys []TableKey
	for i := range writers {
		keys = append(keys, makeTable(t, c, fmt.Sprint("t", i)).Key)
	}
	before, stats := c.FS().Counters().Snapshot(), c.Stats()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				var ch Change = PutObject{Object: Object{Kind: "view", Namespace: ident("s"), Name: string(key)}}
				if files {
					ch = UpdateTable{Key: key, Build: appendFile(c.FS(), 1)}
				}
				if _, err := c.Commit(ctx, &Request{Changes: []Change{ch}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	after := c.FS().Counters().Snapshot().Sub(before)
	groups := c.Stats().Groups - stats.Groups
	b.ReportMetric(float64(c.Stats().Commits-stats.Commits)/float64(groups), "commits/group")
	b.ReportMetric(float64(2*groups)/float64(b.N), "storesyncs/op")
	b.ReportMetric(float64(after.Creates)/float64(b.N), "creates/op")
}

func BenchmarkCut(b *testing.B) {
	c, err := Open(ctx, Options{Dir: b.TempDir(), NoSync: true})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	makeTable(&testing.T{}, c, "t")
	id := ident("s", "t")
	b.ReportAllocs()
	for b.Loop() {
		st, err := c.Cut().Table(id)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := st.Metadata(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
