package changelog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// The laws of change are checked on random histories. Half of the commits are the warehouse's, half are written entry by entry as any other writer may
// (testkit.Raw). What a snapshot shows is asked of a reader that shares no code with ours (testkit.Reference), and checked against what
// the commit was meant to do; what a window says is checked against that.
//
//	laws_test.go          the tests, and which kinds of tables there are
//	laws_model_test.go    states, the steps between them, and the changes expected of a step
//	laws_check_test.go    L1 to L6, pairing, order and bounds
//	laws_ops_test.go      what is committed through the warehouse
//	laws_foreign_test.go  what other writers commit
//	laws_deletes_test.go  their delete files
//	laws_schema_test.go   schemas, specs, versions, refs

// lawCase is one kind of table that the laws are checked on.
type lawCase struct {
	version, partition int
	keyed              bool
}

var lawCases = []lawCase{{2, 0, true}, {2, 0, false}, {3, 0, true}, {3, 0, false}, {2, 3, true}, {2, 3, false}, {3, 3, true}}

func (c lawCase) String() string {
	return fmt.Sprintf("v%d keyed=%t partition=%d", c.version, c.keyed, c.partition)
}

// TestLaws checks L1 to L6 on random histories. SKADE_SEED repeats a history; with SKADE_SOAK, a duration, it goes on with longer histories until that
// time is over.
func TestLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKADE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	soak := time.Duration(0)
	if s := os.Getenv("SKADE_SOAK"); s != "" {
		var err error
		soak, err = time.ParseDuration(s)
		require.NoError(t, err, "SKADE_SOAK")
	}
	for start, n := time.Now(), 0; n == 0 || time.Since(start) < soak && !t.Failed(); seed++ {
		for _, c := range lawCases {
			t.Run(c.String(), func(t *testing.T) { checkHistory(t, c, seed, soak > 0) })
			n++
		}
		if soak > 0 {
			t.Logf("%d histories, %s", n, time.Since(start).Round(time.Second))
		}
	}
}

// checkHistory makes a random history and checks the laws on random windows of it. A long one is made and checked in turns.
func checkHistory(t *testing.T, c lawCase, seed uint64, long bool) {
	t.Logf("seed %d (SKADE_SEED)", seed)
	h := newHistory(t, c, seed)
	ops, windows, turns := 24, 4, 1
	if long {
		ops, windows, turns = 20, 10, 1+h.rng.IntN(4)
	}
	for range turns {
		for range ops {
			h.op()
		}
		h.checkWhole()
		for range windows {
			h.checkWindow()
			h.checkRefs()
		}
	}
	h.checkExpiry()
}

func newHistory(t *testing.T, c lawCase, seed uint64) *history {
	k := openKit(t, changelog.Options{BatchRows: 5, PartitionRows: c.partition, Workers: 2})
	h := &history{kit: k, lawCase: c, rng: rand.New(rand.NewPCG(seed, 11)), live: map[int64][]testkit.LiveRow{},
		raw: &testkit.Raw{Catalog: k.cat, FS: k.fs, Ident: ident}, ref: testkit.NewReference(k.fs)}
	t.Cleanup(func() {
		if t.Failed() {
			for _, l := range h.log {
				t.Log(l)
			}
		}
	})
	prim := iceberg.PrimitiveTypes
	var ids []int
	if c.keyed {
		ids = []int{1, 2}
	}
	_, err := h.wh.CreateTable(h.ctx, warehouse.CreateTable{Ident: ident, FormatVersion: c.version, Schema: iceberg.NewSchemaWithIdentifiers(0, ids,
		iceberg.NestedField{ID: 1, Name: "id", Type: prim.Int64, Required: c.keyed},
		iceberg.NestedField{ID: 2, Name: "part", Type: prim.Int32, Required: c.keyed},
		iceberg.NestedField{ID: 3, Name: "name", Type: prim.String},
		iceberg.NestedField{ID: 4, Name: "v", Type: prim.Float32}),
		Properties: iceberg.Properties{"schema.name-mapping.default": nameMapping}})
	require.NoError(t, err)
	h.done("create")
	return h
}

// nameMapping names the first columns for files without field ids, whatever the columns are called later.
const nameMapping = `[{"field-id":1,"names":["id"]},{"field-id":2,"names":["part"]},{"field-id":3,"names":["name"]},{"field-id":4,"names":["v"]}]`
