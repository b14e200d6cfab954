package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// A table that is joined by its key is read by probes when the other side has few keys: the keys are taken first, looked up together in the table's
// live set, and the rows found stand in DuckDB's plan where the scan would. The join itself stays DuckDB's. Everything is pinned already: the
// keys come from the sources that the query itself reads, each at its state; a source that could give other rows the second time is kept (settle).
//
// What decides is numbers of rows (docs/decisions/0011-joins-by-key.md): a probe of one key costs about as much as DuckDB's scan of joinKeyRows
// rows, and taking the keys a query of its own, which a table of minJoinRows is scanned in.
const (
	minJoinRows = 100_000
	joinKeyRows = 64
	// joinHitRows is how many rows DuckDB scans while one that was found is read.
	joinHitRows = 16
	// maxJoinKeys and maxJoinKeyBytes bound what is held of keys.
	maxJoinKeys     = 1 << 20
	maxJoinKeyBytes = 64 << 20
)

// joinKeys are the keys that a source is probed with: encoded values of the first n of the fields ids.
type joinKeys struct {
	ids  []int
	n    int
	keys [][]byte
	size int
	// forced keeps them however many rows they have.
	forced bool
	// plan is what EXPLAIN tells.
	plan *joinPlan
}

// tableOf is the name of the table that a source reads, table_at's too.
func tableOf(use *pgsql.RelUse) string {
	if h, ok := use.Relation.Handle.(*handle); ok && h.table != nil {
		return schemaOf(h.table) + "." + h.table[len(h.table)-1]
	}
	return use.Relation.Schema + "." + use.Relation.Name
}

// explain shows why a source that is joined by its key is read as it is.
func (p *joinPlan) explain(node map[string]any) []string {
	if p == nil || p.why == "" {
		return nil
	}
	how := "hash join"
	if p.probe {
		how = "keys looked up"
	}
	if p.driver != "" {
		how += ", keys of " + p.driver
	}
	node["Join"], node["Join Reason"], node["Keys"] = how, p.why, p.keys
	return []string{"        Join: " + how + ": " + p.why}
}

// joinPlan is for EXPLAIN: how a source that is joined by its key is read.
type joinPlan struct {
	driver, why string
	probe       bool
	keys        int64
}

// keyJoiner opens the sources of a query: those that drive joins first, then those that are joined by their keys.
type keyJoiner struct {
	s      *session
	r      *rendered
	q      *pgsql.Query
	args   []value
	rows   given
	locked lockedRows

	items []string
	// sizes are how many rows an open source has at most, -1 unknown.
	sizes   []int64
	settled map[int]bool
	// waiting are the sources that are not open yet, and what may drive them.
	waiting map[int][]*pgsql.KeyJoin
}

func (s *session) openInto(ctx context.Context, r *rendered, q *pgsql.Query, args []value, rows given, locked lockedRows) error {
	o := &keyJoiner{s: s, r: r, q: q, args: args, rows: rows, locked: locked,
		items: make([]string, len(q.Relations)), sizes: make([]int64, len(q.Relations)), settled: map[int]bool{}, waiting: map[int][]*pgsql.KeyJoin{}}
	if err := o.openAll(ctx); err != nil {
		r.release()
		return err
	}
	r.sql = q.Render(o.item)
	return nil
}

func (o *keyJoiner) item(i int, _ *pgsql.RelUse) string { return o.items[i] }

func (o *keyJoiner) openAll(ctx context.Context) error {
	if err := o.choose(ctx); err != nil {
		return err
	}
	for i := range o.items {
		if o.waiting[i] == nil {
			if err := o.open(ctx, i, nil, nil); err != nil {
				return err
			}
		}
	}
	for len(o.waiting) > 0 {
		i, ready := o.next()
		var keys *joinKeys
		plan := &joinPlan{}
		if ready {
			for _, j := range o.waiting[i] {
				var err error
				if keys, err = o.take(ctx, j, plan); err != nil {
					return err
				}
				if keys != nil {
					break
				}
			}
		}
		delete(o.waiting, i)
		if err := o.open(ctx, i, keys, plan); err != nil {
			return err
		}
	}
	return nil
}

// choose finds the sources that are worth it.
func (o *keyJoiner) choose(ctx context.Context) error {
	if len(o.q.KeyJoins) == 0 || o.s.gucs.value("skade.key_joins") == "off" || o.q.Locks != nil {
		return nil
	}
	for k := range o.q.KeyJoins {
		j := &o.q.KeyJoins[k]
		st, err := o.state(ctx, o.q.Relations[j.Target])
		if err != nil {
			return err
		}
		n := st.set.Rows()
		o.sizes[j.Target] = n
		if n > 0 && (n >= minJoinRows || o.always()) {
			o.waiting[j.Target] = append(o.waiting[j.Target], j)
		}
	}
	return nil
}

// always is for tests, and for those who know better.
func (o *keyJoiner) always() bool { return o.s.gucs.value("skade.key_joins") == "always" }

// state is what a source reads; the present where a driven call names the state. schema is the one that its relation's columns are the fields of.
func (o *keyJoiner) state(ctx context.Context, use *pgsql.RelUse) (*tableState, error) {
	h := use.Relation.Handle.(*handle)
	var at *pinnedState
	if use.Func != nil {
		bound := &sqlfuncs.Value{OID: pgtype.Text, Text: "now"}
		if use.Driver == 0 {
			vals, err := o.s.evaluate(ctx, use.Args, o.args)
			if err != nil {
				return nil, err
			}
			bound = vals[1]
		}
		var err error
		if at, err = o.s.stateAt(ctx, h, bound); err != nil {
			return nil, err
		}
	}
	set, ref, sc, err := o.s.liveSet(ctx, h.table, at)
	return &tableState{set, ref, sc}, err
}

// next is a source whose drivers are open; without one, the smallest is to be scanned, and drives the others.
func (o *keyJoiner) next() (i int, ready bool) {
	small := -1
	for i := range o.items {
		js := o.waiting[i]
		if js == nil {
			continue
		}
		waits := false
		for _, j := range js {
			for _, k := range j.Keys {
				waits = waits || k.Driver >= 0 && o.waiting[k.Driver] != nil
			}
		}
		if !waits {
			return i, true
		}
		if small < 0 || o.sizes[i] < o.sizes[small] {
			small = i
		}
	}
	// One of its drivers may be open: two tables that are joined by both their keys, and one of them with a third.
	js := slices.DeleteFunc(slices.Clone(o.waiting[small]), func(j *pgsql.KeyJoin) bool {
		return slices.ContainsFunc(j.Keys, func(k pgsql.KeySource) bool { return k.Driver >= 0 && o.waiting[k.Driver] != nil })
	})
	o.waiting[small] = js
	return small, len(js) > 0
}

func (o *keyJoiner) open(ctx context.Context, i int, keys *joinKeys, plan *joinPlan) (err error) {
	scans := len(o.r.scans)
	o.r.stable += strconv.Itoa(i) + ":" // the order in which sources are opened follows their sizes
	if o.items[i], err = o.s.source(ctx, o.r, i, o.q.Relations[i], o.args, o.rows, o.locked[i], keys); err != nil {
		return err
	}
	o.sizes[i] = -1
	for k := scans; k < len(o.r.scans); k++ {
		o.sizes[i] = max(o.sizes[i], 0) + o.r.scans[k].rows
		o.r.scans[k].join = plan
	}
	if src := o.rows[i]; src != nil && o.q.Relations[i].Relation.Kind == pgsql.Spooled {
		o.sizes[i] = src.N
	}
	return nil
}

// take takes the keys of a join; nil when a scan is cheaper.
func (o *keyJoiner) take(ctx context.Context, j *pgsql.KeyJoin, plan *joinPlan) (*joinKeys, error) {
	use := o.q.Relations[j.Target]
	st, err := o.state(ctx, use)
	if err != nil {
		return nil, err
	}
	ids, cols, types := joinFields(st, j)
	if ids == nil {
		return nil, nil
	}
	most := int(min(max(o.sizes[j.Target]/joinKeyRows, 1), maxJoinKeys))
	if o.always() {
		most = maxJoinKeys
	}
	found := &joinKeys{ids: ids, n: len(cols), forced: o.always(), plan: plan}
	for k := range j.Keys {
		src := &j.Keys[k]
		if src.Driver >= 0 {
			plan.driver = o.q.Relations[src.Driver].Alias
			if why, err := o.settle(ctx, src, o.sizes[j.Target]); err != nil || why != "" {
				plan.why = why
				return nil, err
			}
		}
		sql := distinctKeys(src.Render(o.q, o.item), cols, types, most+1)
		err := o.s.readBatches(ctx, sql, src.Binds, o.args, nil, func(rec arrow.RecordBatch) error { return found.add(rec, most) })
		if plan.keys = int64(len(found.keys)); errors.Is(err, errManyKeys) {
			plan.why = fmt.Sprintf("more than %d keys", min(most, len(found.keys)-1))
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if len(j.Keys) > 1 {
		slices.SortFunc(found.keys, bytes.Compare)
		found.keys = slices.CompactFunc(found.keys, bytes.Equal)
	}
	plan.probe, plan.keys = true, int64(len(found.keys))
	plan.why = fmt.Sprintf("%d keys, of at most %d", len(found.keys), most)
	return found, nil
}

// errManyKeys ends the taking of keys.
var errManyKeys = errors.New("too many keys")

// add encodes a batch of keys. Errors: errManyKeys past most keys or maxJoinKeyBytes.
func (k *joinKeys) add(rec arrow.RecordBatch, most int) error {
	enc, err := keyindex.NewEncoder(rec, counting(k.n))
	if err != nil {
		return err
	}
	var buf []byte // of the batch: a key keeps its slice where the buffer grows
	for row := range int(rec.NumRows()) {
		start := len(buf)
		if buf, err = enc.Append(buf, row); err != nil {
			return err
		}
		k.keys = append(k.keys, buf[start:len(buf):len(buf)])
	}
	if k.size += len(buf); len(k.keys) > most || k.size > maxJoinKeyBytes {
		return errManyKeys
	}
	return nil
}

func counting(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// distinctKeys is the query for keys of the types that the key is stored in. A value that its type cannot hold is the key of no row.
func distinctKeys(from string, cols []int, types []string, limit int) string {
	var list, where []string
	for i, c := range cols {
		name := "k" + strconv.Itoa(i)
		list = append(list, "TRY_CAST(k."+"k"+strconv.Itoa(c)+" AS "+types[i]+") AS "+name)
		where = append(where, name+" IS NOT NULL")
	}
	return "SELECT DISTINCT * FROM (SELECT " + strings.Join(list, ", ") + " FROM (" + from + ") AS k) WHERE " + strings.Join(where, " AND ") + " LIMIT " + strconv.Itoa(limit)
}

// joinFields are the fields of the key that a join gives: ids is the whole key of the state that is read, cols the places of its first fields in the join, types
// what keys hold them as. nil when the join does not give the first field, or a field's values cannot be compared as they are encoded.
func joinFields(st *tableState, j *pgsql.KeyJoin) (ids, cols []int, types []string) {
	for _, id := range st.schema.IdentifierFieldIDs {
		at := slices.IndexFunc(j.Columns, func(c int) bool { return c < st.schema.NumFields() && st.schema.Field(c).ID == id })
		typ, ok := st.ref.KeyType(id)
		if at < 0 || !ok || !encodesValue(typ) {
			break
		}
		f := st.schema.Field(j.Columns[at])
		f.Type = typ
		oid, mod := pgtype.FromIceberg(f, st.ref.Metadata.Properties())
		cols, types = append(cols, at), append(types, pgtype.DuckStorageName(oid, mod))
	}
	if len(cols) == 0 {
		return nil, nil, nil
	}
	return st.schema.IdentifierFieldIDs, cols, types
}

// encodesValue: SQL shows timestamps of nanoseconds in microseconds.
func encodesValue(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.StringType, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.UUIDType, iceberg.BooleanType, iceberg.BinaryType, iceberg.DecimalType:
		return true
	}
	return false
}

// settle makes sure that a driver may be read twice, and is worth it: why says why not.
func (o *keyJoiner) settle(ctx context.Context, k *pgsql.KeySource, target int64) (why string, err error) {
	i := k.Driver
	use := o.q.Relations[i]
	kind := use.Relation.Kind
	switch {
	case o.r.plan && (kind == pgsql.Spooled || kind == pgsql.Rows || use.Driver > 0 || use.Func != nil && use.Relation.Handle.(*handle).function.Volatile):
		return "decided when " + use.Alias + " has run", nil
	case kind == pgsql.Table, kind == pgsql.Spooled, kind == pgsql.Rows, use.Func != nil && use.Func.Name == sqlfuncs.TableAt:
		// A stored state, or rows that are kept: what costs is to read them twice.
		most := target / 4
		if k.Filtered {
			most = 2 * target
		}
		if kind != pgsql.Spooled && o.sizes[i] > most && !o.always() {
			return fmt.Sprintf("%s has %d rows", use.Alias, o.sizes[i]), nil
		}
		return "", nil
	case o.settled[i]:
		return "", nil
	}
	sp := &spool{gw: o.s.gw, on: true}
	var cols []string
	for n := range use.Columns {
		cols = append(cols, "c"+strconv.Itoa(n))
	}
	err = o.s.readBatches(ctx, "SELECT * FROM "+o.items[i]+" AS t("+strings.Join(cols, ", ")+")", nil, nil,
		func(schema *arrow.Schema) { sp.begin(schema, 0) }, func(rec arrow.RecordBatch) error { return sp.add(rec, 0) })
	if err != nil {
		sp.free()
		return "", err
	}
	o.r.releases = append(o.r.releases, sp.free)
	rows := sp.source()
	kept := *use
	rel := *use.Relation
	kept.Relation, rel.Columns = &rel, nil
	for n, c := range use.Columns {
		rel.Columns, kept.Columns = append(rel.Columns, use.Relation.Columns[c]), append(kept.Columns[:n:n], n)
	}
	o.items[i], err = o.s.registerRows(o.r, &kept, rows.Schema, rows.N, opener(rows), "k", spooledCast)
	o.settled[i], o.sizes[i] = true, sp.rows
	return "", err
}

// joinedItem makes the source of the rows that the keys of a join have; ok is false when they are so many that a scan of all is cheaper.
func (s *session) joinedItem(ctx context.Context, r *rendered, use *pgsql.RelUse, st *tableState, k *joinKeys) (item string, ok bool, err error) {
	most := max(minProbedRows, st.set.Rows()/joinHitRows)
	if k.forced {
		most = math.MaxInt32
	}
	plan := scanPlan{name: tableOf(use), use: use, index: k.n, considered: st.set.NumFiles()}
	if r.plan {
		plan.counters = &liveset.ProbeCounters{}
		ctx = liveset.WithProbeCounters(ctx, plan.counters)
	}
	hits, all, err := s.gw.live.ProbeAtMost(ctx, st.ref, st.set, k.ids, k.n, int(most), k.keys)
	if err != nil || !all {
		k.plan.probe, k.plan.why = false, fmt.Sprintf("%d keys have more than %d rows", len(k.keys), most)
		return "", false, err
	}
	// By file and position, so that each page is read once.
	files := map[*liveset.LiveFile]int{}
	for _, h := range hits {
		if _, ok := files[h.File]; !ok {
			files[h.File] = len(files)
		}
	}
	slices.SortFunc(hits, func(a, b liveset.Hit) int { return cmp.Or(files[a.File]-files[b.File], cmp.Compare(a.Pos, b.Pos)) })
	hits = slices.CompactFunc(hits, func(a, b liveset.Hit) bool { return a.File == b.File && a.Pos == b.Pos })
	item, err = s.hitsItem(r, use, st, hits, plan)
	return item, err == nil, err
}

// readBatches runs a DuckDB query to its end; begin, when not nil, gets the schema first.
func (s *session) readBatches(ctx context.Context, sql string, bs []pgsql.Bind, args []value, begin func(*arrow.Schema), f func(rec arrow.RecordBatch) error) error {
	vals, err := s.binds(ctx, bs, args)
	if err != nil {
		return err
	}
	conn, err := s.conns.take(ctx)
	if err != nil {
		return err
	}
	defer s.conns.give(conn)
	st, err := conn.Prepare(ctx, sql)
	if err != nil {
		return err
	}
	defer st.Close()
	rows, err := st.Query(ctx, vals)
	if err != nil {
		return err
	}
	defer rows.Close()
	if begin != nil {
		schema, err := rows.Schema()
		if err != nil {
			return err
		}
		begin(schema)
	}
	for {
		rec, err := rows.NextBatch(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = f(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
}
