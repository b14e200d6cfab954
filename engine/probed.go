package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
)

// A source whose conditions name keys is read by key probes: only the rows that they find enter DuckDB. The conditions stay in the query.
const (
	// minProbedKeys are probed however small the table is; beyond it a probe has to be cheaper than reading probeRatio rows in a scan.
	minProbedKeys = 256
	probeRatio    = 64
	// minProbedRows of a leading part of a key are read by position; beyond it they have to be fewer than one in probedShare rows of the table.
	minProbedRows = 2048
	probedShare   = 64
	// readHits is how many rows are read at a time.
	readHits = 1024
)

// probeLimit is how many keys are probed rather than scanned for in a table of so many rows.
func probeLimit(rows int64) int { return int(max(minProbedKeys, rows/probeRatio)) }

// rowSlot is a relation whose rows change from one execution of a kept plan to the next.
type rowSlot struct {
	open atomic.Pointer[duck.RelationFunc]
}

// registerSlot registers rows as a relation under a name that a kept plan can go on using.
func (s *session) registerSlot(r *rendered, as *arrow.Schema, n int64, open duck.RelationFunc) (id string, err error) {
	slot := &rowSlot{}
	slot.open.Store(&open)
	id, release, err := s.gw.duck.RegisterRelation(as, n, func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return (*slot.open.Load())(ctx)
	})
	if err != nil {
		return "", err
	}
	r.releases, r.slots = append(r.releases, release), append(r.slots, slot)
	return id, nil
}

// refill gives the slots of a kept plan the rows of the execution that is to use it.
func (r *rendered) refill(from *rendered) {
	for i, slot := range r.slots {
		slot.open.Store(from.slots[i].open.Load())
	}
	r.scans = from.scans
}

// probedItem makes the source of the rows that key probes find. ok is false when the conditions name no keys, or a scan is cheaper.
func (s *session) probedItem(ctx context.Context, r *rendered, use *pgsql.RelUse, st *tableState, args []value) (item string, ok bool, err error) {
	current := st.ref.Metadata.CurrentSchema()
	ids := current.IdentifierFieldIDs
	if len(ids) == 0 || len(use.Preds) == 0 {
		return "", false, nil
	}
	parts := keyPartsOf(use.Relation, st.schema, current, ids)
	if len(parts) == 0 {
		return "", false, nil
	}
	rows := st.set.Rows()
	keys, err := s.keysOf(ctx, parts, use, args, probeLimit(rows))
	if err != nil || keys.parts == 0 {
		return "", false, err
	}
	plan := scanPlan{name: tableOf(use), use: use, index: keys.parts, considered: st.set.NumFiles()}
	if r.plan {
		plan.counters = &liveset.ProbeCounters{}
		ctx = liveset.WithProbeCounters(ctx, plan.counters)
	}
	hits, all, err := s.gw.live.ProbeAtMost(ctx, st.ref, st.set, ids, keys.parts, int(max(minProbedRows, rows/probedShare)), keys.keys)
	if err != nil || !all {
		return "", false, err
	}
	item, err = s.hitsItem(r, use, st, hits, plan)
	return item, err == nil, err
}

// lockedItem makes the source of rows that are known by their places. ok is false when a scan is cheaper.
func (s *session) lockedItem(r *rendered, use *pgsql.RelUse, st *tableState, only fileRows) (item string, ok bool, err error) {
	var n uint64
	for _, bm := range only {
		n += bm.GetCardinality()
	}
	if n > minProbedRows {
		return "", false, nil
	}
	var hits []liveset.Hit
	for f := range st.set.Files() {
		if bm := only[f.File.Path]; bm != nil {
			for _, pos := range bm.ToArray() {
				hits = append(hits, liveset.Hit{File: f, Pos: pos})
			}
		}
	}
	plan := scanPlan{name: tableOf(use), considered: st.set.NumFiles()}
	item, err = s.hitsItem(r, use, st, hits, plan)
	return item, err == nil, err
}

// hitsItem makes the source of found rows. They are read when DuckDB asks for them.
func (s *session) hitsItem(r *rendered, use *pgsql.RelUse, st *tableState, hits []liveset.Hit, plan scanPlan) (string, error) {
	proj := s.gw.projected.of(st.schema, use.Columns)
	stored, err := liveset.ArrowSchema(proj, liveset.MetaColumns{})
	if err != nil {
		return "", err
	}
	rd := &hitReader{live: s.gw.live, ref: st.ref, proj: proj, hits: hits, places: use.Position || len(use.Columns) == 0}
	var fields []arrow.Field
	for i, f := range stored.Fields() {
		f.Name = "c" + strconv.Itoa(i)
		fields = append(fields, f)
	}
	if rd.places {
		rd.files = map[*liveset.File]int64{}
		for _, h := range hits {
			if _, ok := rd.files[h.File.File]; !ok {
				rd.files[h.File.File] = int64(len(rd.files))
				if use.Position {
					r.files = append(r.files, h.File.File.Path)
				}
			}
		}
		fields = append(fields, arrow.Field{Name: "kf", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "kp", Type: arrow.PrimitiveTypes.Int64})
	}
	rd.schema = arrow.NewSchema(fields, nil)
	id, err := s.registerSlot(r, rd.schema, int64(len(hits)), rd.open)
	if err != nil {
		return "", err
	}
	plan.opens, plan.rows = countFiles(hits), int64(len(hits))
	r.scans = append(r.scans, plan)
	r.stable += fmt.Sprintf("hits %d;", st.schema.ID)
	return selectHits(use, stored, id), nil
}

// selectHits is the FROM item over the relation of a hitReader.
func selectHits(use *pgsql.RelUse, stored *arrow.Schema, id string) string {
	var cols []string
	for k, c := range use.Columns {
		col, expr := use.Relation.Columns[c], "c"+strconv.Itoa(k)
		if col.Type == pgtype.JSONB && arrow.IsNested(stored.Field(k).Type.ID()) {
			expr = nestedToSQL(expr)
		}
		cols = append(cols, storedToSQL(expr, col.Type, col.Mod)+" AS c"+strconv.Itoa(k))
	}
	if use.Position || len(cols) == 0 {
		cols = append(cols, "kf", "kp")
	}
	return "(SELECT " + strings.Join(cols, ", ") + " FROM skade_rel('" + id + "'))"
}

func countFiles(hits []liveset.Hit) int {
	seen := map[*liveset.LiveFile]struct{}{}
	for _, h := range hits {
		seen[h.File] = struct{}{}
	}
	return len(seen)
}

// hitReader reads found rows: the projected columns, then (places) the file's number and the position.
type hitReader struct {
	live   *liveset.Cache
	ref    liveset.Ref
	proj   *iceberg.Schema
	schema *arrow.Schema
	hits   []liveset.Hit
	places bool
	files  map[*liveset.File]int64
}

func (rd *hitReader) open(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for part := range slices.Chunk(rd.hits, readHits) {
			rec, err := rd.read(ctx, part)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}, nil
}

func (rd *hitReader) read(ctx context.Context, hits []liveset.Hit) (arrow.RecordBatch, error) {
	var cols []arrow.Array
	if rd.proj.NumFields() > 0 {
		rec, err := rd.live.ReadHits(ctx, rd.ref, rd.proj, liveset.MetaColumns{}, hits)
		if err != nil {
			return nil, err
		}
		defer rec.Release()
		cols = append(cols, rec.Columns()...)
	}
	if rd.places {
		files, places := make([]int64, len(hits)), make([]int64, len(hits))
		for i, h := range hits {
			files[i], places[i] = rd.files[h.File.File], int64(h.Pos)
		}
		for _, v := range [][]int64{files, places} {
			a := parquetio.LongArray(v)
			defer a.Release()
			cols = append(cols, a)
		}
	}
	return array.NewRecordBatch(rd.schema, cols, int64(len(hits))), nil
}

// projections are schemas of some columns of a schema, the same pointer for the same columns: readers remember their plans by it.
type projections struct {
	mu sync.Mutex
	m  map[projection]*iceberg.Schema
}

type projection struct {
	sc   *iceberg.Schema
	cols string
}

const maxProjections = 256

func (p *projections) of(sc *iceberg.Schema, cols []int) *iceberg.Schema {
	var name []byte
	for _, c := range cols {
		name = strconv.AppendInt(append(name, ' '), int64(c), 10)
	}
	k := projection{sc, string(name)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if out := p.m[k]; out != nil {
		return out
	}
	fields := make([]iceberg.NestedField, len(cols))
	for i, c := range cols {
		fields[i] = sc.Field(c)
	}
	out := iceberg.NewSchema(sc.ID, fields...)
	if p.m == nil || len(p.m) >= maxProjections {
		p.m = map[projection]*iceberg.Schema{}
	}
	p.m[k] = out
	return out
}
