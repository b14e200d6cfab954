package lineage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/lineage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	c, err := catalog.Open(context.Background(), catalog.Options{Dir: t.TempDir(), FS: fs, Logger: zerolog.Nop(), NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	commit(t, c, &catalog.Request{Changes: []catalog.Change{catalog.CreateNamespace{Ident: table.Identifier{"s"}}}})
	return c
}

func commit(t *testing.T, c *catalog.Catalog, r *catalog.Request) *catalog.Record {
	t.Helper()
	rec, err := c.Commit(context.Background(), r)
	require.NoError(t, err)
	return rec
}

func createTable(t *testing.T, c *catalog.Catalog, name string, lc *lineage.Context) *catalog.Record {
	t.Helper()
	var context []byte
	if lc != nil {
		var err error
		context, err = lc.Encode()
		require.NoError(t, err)
	}
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64})
	meta, err := table.NewMetadata(sc, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file://"+t.TempDir(), iceberg.Properties{"format-version": "2"})
	require.NoError(t, err)
	return commit(t, c, &catalog.Request{Actor: "ann", ApplicationName: "psql", Context: context,
		Changes: []catalog.Change{catalog.CreateTable{Ident: table.Identifier{"s", name}, Metadata: meta}}})
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestRecorder(t *testing.T) {
	c := openCatalog(t)
	first := createTable(t, c, "before", nil)
	sink := &lineage.CapturingSink{}
	r := lineage.NewRecorder(lineage.Options{Source: c, Sink: sink})
	snap := int64(8744736658442914487)
	createTable(t, c, "off", nil)
	require.Empty(t, sink.Events(), "E3: off until started")
	require.NoError(t, r.Start())
	require.ErrorIs(t, r.Start(), lineage.ErrStarted)
	last := createTable(t, c, "after", &lineage.Context{Job: "load", RunID: "0b6c9f2a-6a3c-4e0b-8f7e-0d9d6f6b1a11",
		Inputs: []lineage.Input{{Table: table.Identifier{"s", "before"}, SnapshotID: &snap}}})
	events, err := sink.Wait(timeout(t), 3)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.Equal(t, last.Seq, r.Done())
	require.ErrorIs(t, r.Start(), lineage.ErrStarted)

	var names []string
	for _, e := range events {
		names = append(names, e.Outputs[0].Name)
	}
	require.Equal(t, []string{"s.before", "s.off", "s.after"}, names, "E1")
	require.True(t, events[0].EventTime.Equal(first.Time))
	require.Equal(t, "psql", events[0].Job.Name)
	require.Equal(t, "load", events[2].Job.Name)
	require.Equal(t, "0b6c9f2a-6a3c-4e0b-8f7e-0d9d6f6b1a11", events[2].Run.RunID)

	// A restart without a saved seq sends the same runs again under the same ids.
	again := &lineage.CapturingSink{}
	r = lineage.NewRecorder(lineage.Options{Source: c, Sink: again, After: first.Seq})
	require.NoError(t, r.Start())
	repeated, err := again.Wait(timeout(t), 2)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, events[1].Run.RunID, repeated[0].Run.RunID)

	text, err := json.Marshal(events[2])
	require.NoError(t, err)
	for _, want := range []string{`"eventType":"COMPLETE"`, `"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"`,
		`"datasetVersion":"8744736658442914487"`, `"lifecycleStateChange":"CREATE"`, `"actor":"ann"`, fmt.Sprintf(`"commitSeq":"%d"`, last.Seq)} {
		require.Contains(t, string(text), want)
	}
}

// failing fails the first n calls and counts them.
type failing struct {
	lineage.CapturingSink
	left atomic.Int64
}

func (f *failing) Emit(ctx context.Context, e *lineage.Event) error {
	if f.left.Add(-1) >= 0 {
		return errors.New("sink is down")
	}
	return f.CapturingSink.Emit(ctx, e)
}

// TestFailingSink: commits go on, the event is sent again, none is lost or doubled (E1, E2).
func TestFailingSink(t *testing.T) {
	c := openCatalog(t)
	sink := &failing{}
	sink.left.Store(3)
	r := lineage.NewRecorder(lineage.Options{Source: c, Sink: sink, FromNow: true, RetryMin: time.Millisecond, RetryMax: 2 * time.Millisecond})
	require.NoError(t, r.Start())
	for i := range 5 {
		createTable(t, c, fmt.Sprint("t", i), nil)
	}
	events, err := sink.Wait(timeout(t), 5)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Len(t, events, 5)
	require.Equal(t, int64(3), r.Failures())
	for i, e := range events {
		require.Equal(t, fmt.Sprint("s.t", i), e.Outputs[0].Name)
	}
}

// gate holds Emit until it is opened.
type gate struct {
	lineage.CapturingSink
	open chan struct{}
}

func (g *gate) Emit(ctx context.Context, e *lineage.Event) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.CapturingSink.Emit(ctx, e)
}

// TestLagged: a sink that is slower than the subscription's ring gets what it lost from the log (E1); writers do not wait.
func TestLagged(t *testing.T) {
	c := openCatalog(t)
	sink := &gate{open: make(chan struct{})}
	r := lineage.NewRecorder(lineage.Options{Source: c, Sink: sink, FromNow: true})
	require.NoError(t, r.Start())
	createTable(t, c, "t", nil)
	const n = 1200
	for i := range n {
		from, to := "t", "u"
		if i%2 == 1 {
			from, to = to, from
		}
		commit(t, c, &catalog.Request{Changes: []catalog.Change{catalog.RenameTable{From: table.Identifier{"s", from}, To: table.Identifier{"s", to}}}})
	}
	close(sink.open)
	events, err := sink.Wait(timeout(t), n+1)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Len(t, events, n+1)
	for i := 1; i < len(events); i++ {
		require.True(t, events[i-1].EventTime.Before(events[i].EventTime))
	}
	f := events[1].Outputs[0].Facets["lifecycleStateChange"].(lineage.LifecycleFacet)
	require.Equal(t, "RENAME", f.Change)
	require.Equal(t, "s.t", f.Previous.Name)
}

// TestCloseWhileEmitting: Close does not wait for a sink that hangs on its context.
func TestCloseWhileEmitting(t *testing.T) {
	c := openCatalog(t)
	r := lineage.NewRecorder(lineage.Options{Source: c, Sink: &gate{open: make(chan struct{})}})
	require.NoError(t, r.Start())
	createTable(t, c, "t", nil)
	require.NoError(t, r.Close())
}

func TestContext(t *testing.T) {
	c, err := lineage.DecodeContext(nil)
	require.NoError(t, err)
	require.Nil(t, c)
	for _, bad := range []string{"x", "OLX", "OLX\x02{}", "OLX\x01{", "{}"} {
		_, err := lineage.DecodeContext([]byte(bad))
		require.ErrorIs(t, err, lineage.ErrMalformedContext, bad)
	}
	_, err = (&lineage.Context{Job: strings.Repeat("x", lineage.MaxContext)}).Encode()
	require.ErrorIs(t, err, lineage.ErrContextTooLarge)
}

func FuzzDecodeContext(f *testing.F) {
	f.Add([]byte("OLX\x01{\"job\":\"a\",\"in\":[{\"t\":[\"s\",\"t\"],\"s\":\"5\"}]}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := lineage.DecodeContext(b); err != nil && !errors.Is(err, lineage.ErrMalformedContext) {
			t.Fatal(err)
		}
	})
}
