package changelog_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
)

// ask reads changes or the net effect, with what the client is told.
func (h *history) ask(net bool, q changelog.Request) (rows []change, warnings []string, sc *iceberg.Schema) {
	h.t.Helper()
	q.Cut, q.Ident = h.cat.Cut(), ident
	open := h.r.Changes
	if net {
		open = h.r.Net
	}
	x, err := open(h.ctx, q)
	require.NoError(h.t, err)
	sc = x.Columns().Table
	rows = readChanges(h.t, x.Batches(h.ctx), sc.NumFields())
	return rows, x.Warnings(), sc
}

func (h *history) window(from, to changelog.Bound, sc *iceberg.Schema) []change {
	h.t.Helper()
	rows, _, _ := h.ask(false, changelog.Request{From: from, To: to, Schema: sc})
	return rows
}

// at is a bound of the log that names a state, in one of its forms.
func (h *history) at(i int) changelog.Bound {
	s := h.states[i]
	switch h.rng.IntN(4) {
	case 0:
		return changelog.Timestamp(s.time)
	case 1:
		if i == len(h.states)-1 {
			return changelog.Now
		}
	}
	return seq(s.seq)
}

// checkWhole follows the table from its beginning, step by step: every prefix of its history gives the state there (L1), and every change is what the
// step's two states differ by.
func (h *history) checkWhole() {
	sc := h.schema()
	all, warnings, got := h.ask(false, changelog.Request{})
	require.Equal(h.t, sc.ID, got.ID, "NULL to NULL asks for the current schema")
	h.checkSteps(all, h.steps(0, len(h.states)-1), sc, "whole history")
	h.checkWarnings(warnings, h.steps(0, len(h.states)-1))
	rows := multiset{}
	for i, s := range h.states {
		n := 0
		for n < len(all) && uint64(all[n].seq) <= s.seq {
			n++
		}
		rows = rows.apply(h.t, all[:n], "L1")
		require.Equal(h.t, h.state(s.head, sc), rows, "L1: the state at seq %d, %s", s.seq, h.states[i].what)
		all = all[n:]
	}
	require.Empty(h.t, all)
}

// checkSteps compares changes with what is expected of the steps they come from.
func (h *history) checkSteps(all []change, steps []modelStep, asked *iceberg.Schema, msg string) {
	h.t.Helper()
	for _, s := range steps {
		n := 0
		for n < len(all) && uint64(all[n].seq) == s.seq && all[n].ordinal == s.ordinal {
			require.Equal(h.t, *s.to, all[n].snapshot, msg)
			n++
		}
		want, got := h.expected(s, asked), h.paired(all[:n], msg)
		h.checkRowIDs(all[:n], s, asked, msg)
		all = all[n:]
		if h.partition > 0 && h.raw.Meta(h.t).Version() >= 3 { // a pair by row id that is cut apart is DELETE and INSERT
			require.Equal(h.t, signed(want), signed(got), "%s: seq %d ordinal %d", msg, s.seq, s.ordinal)
			continue
		}
		require.Equal(h.t, sorted(want), sorted(got), "%s: pairing at seq %d ordinal %d", msg, s.seq, s.ordinal)
	}
	require.Empty(h.t, all, "%s: changes of no step", msg)
}

// checkRowIDs: a removed row has the _row_id that it had before, an added one what it has now.
func (h *history) checkRowIDs(cs []change, s modelStep, asked *iceberg.Schema, msg string) {
	h.t.Helper()
	if h.raw.Meta(h.t).Version() < 3 || len(cs) == 0 {
		return
	}
	had, has := map[string]bool{}, map[string]bool{}
	for _, r := range h.rows(s.from) {
		had[fmt.Sprint(r.RowID, " ", r.Text(asked))] = true
	}
	for _, r := range h.rows(s.to) {
		has[fmt.Sprint(r.RowID, " ", r.Text(asked))] = true
	}
	for _, c := range cs {
		in := has
		if isDelete(c.typ) {
			in = had
		}
		require.True(h.t, in[fmt.Sprint(c.rowID, " ", c.row)], "%s: seq %d: %s %s has _row_id %d", msg, s.seq, c.typ, c.row, c.rowID)
	}
}

// checkWarnings: each replace snapshot that is none is told once (L5).
func (h *history) checkWarnings(warnings []string, steps []modelStep) {
	h.t.Helper()
	for _, s := range steps {
		if h.lies[*s.to] && !s.move {
			n := slices.IndexFunc(warnings, func(w string) bool { return strings.Contains(w, fmt.Sprintf("snapshot %d ", *s.to)) })
			require.GreaterOrEqual(h.t, n, 0, "L5: a warning of snapshot %d", *s.to)
			warnings = slices.Delete(warnings, n, n+1)
		}
	}
	require.Empty(h.t, warnings)
}

// checkWindow checks all laws on a random window of the log.
func (h *history) checkWindow() {
	i := h.rng.IntN(len(h.states))
	j := i + h.rng.IntN(len(h.states)-i)
	m := i + h.rng.IntN(j-i+1)
	a, b, mid := h.states[i], h.states[j], h.states[m]
	msg := fmt.Sprintf("(%d, %d]", a.seq, b.seq)

	all, _, sc := h.ask(false, changelog.Request{From: h.at(i), To: h.at(j)})
	require.Equal(h.t, b.schema, sc.ID, "%s: the schema at to", msg)
	require.Equal(h.t, h.state(b.head, sc), h.state(a.head, sc).apply(h.t, all, "L1 "+msg), "L1 "+msg)
	h.checkOrder(all, msg)
	h.checkSteps(all, h.steps(i, j), sc, msg)

	two := append(h.window(h.at(i), h.at(m), sc), h.window(h.at(m), h.at(j), sc)...)
	require.Equal(h.t, nilIfNone(all), nilIfNone(two), "L2 %s at %d", msg, mid.seq)
	// The same rows, under the same numbers, in the window of the whole history.
	now := h.schema()
	var part []change
	for _, c := range h.window(changelog.Null, changelog.Null, now) {
		if uint64(c.seq) > a.seq && uint64(c.seq) <= b.seq {
			part = append(part, c)
		}
	}
	require.Equal(h.t, part, nilIfNone(h.window(h.at(i), h.at(j), now)), "_change_row of %s", msg)

	h.checkNet(h.at(i), h.at(j), a.head, b.head, msg)
	h.checkFold(h.at(i), h.at(j), now, msg)
	h.checkShards(h.at(i), h.at(j), all, sc, msg)
	if len(all) > 0 {
		for range 3 {
			h.checkResume(all, h.rng.IntN(len(all)), h.at(j), sc, msg)
		}
	}
}

func nilIfNone(cs []change) []change {
	if len(cs) == 0 {
		return nil
	}
	return cs
}

// checkNet: net leads from one state to the other (L3), is what the two states differ by, and its inverse leads back (L4).
func (h *history) checkNet(from, to changelog.Bound, a, b *int64, msg string) {
	h.t.Helper()
	sc := h.schema()
	net, _, _ := h.ask(true, changelog.Request{From: from, To: to, Schema: sc})
	require.Equal(h.t, h.state(b, sc), h.state(a, sc).apply(h.t, net, "L3 "+msg), "L3 "+msg)
	want := sorted(h.difference(h.rows(a), h.rows(b), sc, []*iceberg.Schema{sc}, false))
	require.Equal(h.t, want, sorted(h.paired(net, msg)), "L3: net of %s", msg)
	inverse, _, _ := h.ask(true, changelog.Request{From: to, To: from, Schema: sc})
	swap := map[string]string{changelog.Insert: changelog.Delete, changelog.Delete: changelog.Insert,
		changelog.UpdateBefore: changelog.UpdateAfter, changelog.UpdateAfter: changelog.UpdateBefore}
	for k := range inverse {
		inverse[k].typ = swap[inverse[k].typ]
	}
	require.Equal(h.t, sorted(brief(net)), sorted(brief(inverse)), "L4 "+msg)
}

// checkFold: net is the folded form of the changes (L3).
func (h *history) checkFold(from, to changelog.Bound, sc *iceberg.Schema, msg string) {
	h.t.Helper()
	net, _, _ := h.ask(true, changelog.Request{From: from, To: to, Schema: sc})
	x, err := h.r.Changes(h.ctx, changelog.Request{Cut: h.cat.Cut(), Ident: ident, From: from, To: to, Schema: sc})
	require.NoError(h.t, err)
	got, err := x.Collect(h.ctx)
	require.NoError(h.t, err)
	folded, err := got.Collapse()
	require.NoError(h.t, err)
	var fold []change
	for _, r := range folded.Records {
		fold = append(fold, batchChanges(r, sc.NumFields())...)
	}
	require.Equal(h.t, sorted(brief(net)), sorted(brief(fold)), "L3 folded "+msg)
}

// checkOrder: by seq, ordinal, row; rows count from 0; BEFORE directly before AFTER.
func (h *history) checkOrder(all []change, msg string) {
	for k, c := range all {
		require.NotZero(h.t, c.ts, msg)
		if k == 0 || all[k-1].seq != c.seq || all[k-1].ordinal != c.ordinal {
			require.Zero(h.t, c.num, msg)
			switch {
			case k > 0 && all[k-1].seq == c.seq: // a head that goes forward passes several snapshots
				require.Less(h.t, all[k-1].ordinal, c.ordinal, msg)
				require.Equal(h.t, all[k-1].ts, c.ts, msg)
			case k > 0:
				require.Less(h.t, all[k-1].seq, c.seq, msg)
				require.Less(h.t, all[k-1].ts, c.ts, msg)
			}
		} else {
			require.Equal(h.t, all[k-1].num+1, c.num, msg)
		}
		if c.typ == changelog.UpdateBefore {
			require.Equal(h.t, changelog.UpdateAfter, all[k+1].typ, msg)
		}
		if c.typ == changelog.UpdateAfter {
			require.Equal(h.t, changelog.UpdateBefore, all[k-1].typ, msg)
		}
	}
}

// checkResume: from (seq, ordinal, row) the suffix follows; up to it the prefix (L6).
func (h *history) checkResume(all []change, k int, to changelog.Bound, sc *iceberg.Schema, msg string) {
	h.t.Helper()
	c := all[k]
	at := changelog.Seq(uint64(c.seq), int64(c.ordinal), c.num)
	require.Equal(h.t, nilIfNone(all[k+1:]), nilIfNone(h.window(at, to, sc)), "L6 suffix %s from %s", msg, at)
	if to.Kind == changelog.BoundSeq || to.Kind == changelog.BoundTime || to.Kind == changelog.BoundNow {
		first := changelog.Seq(uint64(all[0].seq) - 1)
		require.Equal(h.t, all[:k+1], h.window(first, at, sc), "L6 prefix %s to %s", msg, at)
	}
}

// checkShards: the shards' rows are the whole's, a pair that hashes apart being DELETE and INSERT (L6).
func (h *history) checkShards(from, to changelog.Bound, all []change, sc *iceberg.Schema, msg string) {
	h.t.Helper()
	n := 1 + h.rng.IntN(4)
	var union []change
	for i := range n {
		part, _, _ := h.ask(false, changelog.Request{From: from, To: to, Schema: sc, Shard: changelog.Shard{Index: i, Count: n}})
		union = append(union, part...)
	}
	place := func(cs []change) []string {
		out := make([]string, len(cs))
		for k, c := range cs {
			out[k] = fmt.Sprint(c.seq, c.ordinal, c.num, isDelete(c.typ), c.row)
		}
		return sorted(out)
	}
	require.Equal(h.t, place(all), place(union), "L6 %d shards of %s", n, msg)
}

// checkRefs checks windows between snapshots of any branch: where one is an ancestor of the other its path, else errors; net between any two.
func (h *history) checkRefs() {
	meta := h.raw.Meta(h.t)
	snaps := meta.Snapshots()
	if len(snaps) == 0 {
		return
	}
	a, b := snaps[h.rng.IntN(len(snaps))].SnapshotID, snaps[h.rng.IntN(len(snaps))].SnapshotID
	from, to := h.named(a), h.named(b)
	msg := fmt.Sprintf("(%s, %s]", from, to)
	path := h.path(&a, b)
	h.checkNet(from, to, &a, &b, msg)
	if path == nil {
		_, err := h.r.Changes(h.ctx, changelog.Request{Cut: h.cat.Cut(), Ident: ident, From: from, To: to})
		if h.path(&b, a) != nil {
			require.ErrorIs(h.t, err, changelog.ErrFromAfterTo, msg)
			return
		}
		require.ErrorIs(h.t, err, changelog.ErrNotAncestor, msg)
		return
	}
	all, warnings, sc := h.ask(false, changelog.Request{From: from, To: to})
	if to.Kind == changelog.BoundBranch {
		require.Equal(h.t, meta.CurrentSchema().ID, sc.ID, msg)
	} else {
		require.Equal(h.t, *meta.SnapshotByID(b).SchemaID, sc.ID, msg)
	}
	require.Equal(h.t, h.state(&b, sc), h.state(&a, sc).apply(h.t, all, "L1 "+msg), "L1 "+msg)
	h.checkOrder(all, msg)
	steps := h.ancestrySteps(a, path)
	h.checkSteps(all, steps, sc, msg)
	h.checkWarnings(warnings, steps)
	if len(all) > 0 {
		k := h.rng.IntN(len(all))
		h.checkResume(all, k, to, sc, msg)
		at := changelog.Seq(uint64(all[k].seq), int64(all[k].ordinal), all[k].num)
		require.Equal(h.t, all[:k+1], h.window(from, at, sc), "L6 prefix %s to %s", msg, at)
	}
	if len(path) > 0 {
		m := path[h.rng.IntN(len(path))]
		two := append(h.window(from, changelog.SnapshotID(m), sc), h.window(changelog.SnapshotID(m), to, sc)...)
		require.Equal(h.t, nilIfNone(all), nilIfNone(two), "L2 %s at %d", msg, m)
	}
}

// named is a bound that names a snapshot, by a ref where one does.
func (h *history) named(id int64) changelog.Bound {
	for name, ref := range h.raw.Meta(h.t).Refs() {
		if ref.SnapshotID == id && h.rng.IntN(2) == 0 {
			if ref.SnapshotRefType == table.TagRef {
				return changelog.Tag(name)
			}
			return changelog.Branch(name)
		}
	}
	return changelog.SnapshotID(id)
}

// ancestrySteps are the steps of a path of snapshots, under the seqs that brought them.
func (h *history) ancestrySteps(from int64, path []int64) []modelStep {
	var out []modelStep
	old := &from
	for _, id := range path {
		rec, err := h.cat.CommitBySnapshot(h.ctx, h.key(), id)
		require.NoError(h.t, err)
		out = append(out, modelStep{seq: rec.Seq, from: old, to: &id})
		old = &id
	}
	return out
}
