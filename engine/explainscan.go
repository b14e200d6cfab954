package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
)

// explainProbe is the plan of a statement that probes alone answer, nil for others.
func (s *session) explainProbe(ctx context.Context, b binding) (*scanPlan, error) {
	k := b.p.query.Keyed
	if k == nil {
		return nil, nil
	}
	run, err := s.planKeyed(ctx, b, k)
	if err != nil || run == nil {
		return nil, err
	}
	use := b.p.query.Relations[k.Rel]
	sc := &scanPlan{name: tableOf(use), use: use, index: len(run.parts), considered: run.look.Files(), counters: &liveset.ProbeCounters{}}
	hits, err := run.look.Hits(liveset.WithProbeCounters(ctx, sc.counters), run.keys, len(run.parts))
	sc.rows, sc.opens = int64(len(hits)), countFiles(hits)
	return sc, err
}

// explainScan shows what a source of a stored table considers and opens. lead begins the first line.
func (s *session) explainScan(sc *scanPlan, lead string, args []value) ([]string, map[string]any) {
	indent := strings.Repeat(" ", max(len(lead), 0)) + "  "
	if sc.index == 0 {
		return []string{
			lead + "Iceberg Scan on " + sc.name,
			fmt.Sprintf("%sFiles: considered=%d opened=%d", indent, sc.considered, sc.opens),
			fmt.Sprintf("%sBytes: %d", indent, sc.bytes),
			fmt.Sprintf("%sRows: live=%d suppressed=%d", indent, sc.rows, sc.suppressed),
		}, map[string]any{"Node Type": "Iceberg Scan", "Relation Name": sc.name, "Files Considered": sc.considered, "Files Opened": sc.opens, "Bytes": sc.bytes, "Live Rows": sc.rows, "Suppressed Rows": sc.suppressed}
	}
	var n liveset.ProbeCounts
	if sc.counters != nil {
		n = sc.counters.Counts()
	}
	on := sc.name
	_, name, _ := strings.Cut(sc.name, ".")
	if a := sc.use.Alias; a != "" && a != name && sc.use.Func == nil {
		on += " " + a
	}
	lines := []string{lead + "Index Scan using " + sc.use.Relation.Constraint + " on " + on}
	node := map[string]any{"Node Type": "Index Scan", "Index Name": sc.use.Relation.Constraint, "Relation Name": sc.name, "Alias": sc.use.Alias,
		"Files Considered": sc.considered, "Files Opened": sc.opens, "Bytes": n.Bytes, "Found Rows": sc.rows}
	if sc.join == nil { // else its keys are those of another source
		cond := s.indexCond(sc, args)
		lines, node["Index Cond"] = append(lines, indent+"Index Cond: "+cond), cond
	}
	return append(lines, fmt.Sprintf("%sFiles: considered=%d opened=%d", indent, sc.considered, sc.opens), fmt.Sprintf("%sBytes: %d", indent, n.Bytes),
		fmt.Sprintf("%sRows: found=%d", indent, sc.rows)), node
}

// probes shows what the probes of an execution cost.
func (ex *explained) probes(root map[string]any, n liveset.ProbeCounts) {
	if n == (liveset.ProbeCounts{}) {
		return
	}
	ex.lines = append(ex.lines,
		fmt.Sprintf("Index Probes: keys=%d cached=%d files=%d probed=%d filtered=%d hits=%d suppressed=%d needless=%d built=%d",
			n.Keys, n.CachedKeys, n.Considered, n.Probed, n.Filtered, n.IndexHits, n.Suppressed, n.Needless, n.Built),
		fmt.Sprintf("Index Reads: reads=%d bytes=%d opens=%d pages=%d decoded=%d groups=%d", n.Reads, n.Bytes, n.Opens, n.Pages, n.Decoded, n.Groups))
	root["Index Probes"] = map[string]any{"Keys": n.Keys, "Cached Keys": n.CachedKeys, "Files": n.Considered, "Files Probed": n.Probed, "Filtered": n.Filtered, "Index Hits": n.IndexHits,
		"Suppressed Hits": n.Suppressed, "Needless Reads": n.Needless, "Indexes Built": n.Built, "Reads": n.Reads, "Bytes": n.Bytes, "Opens": n.Opens, "Pages": n.Pages, "Decoded Values": n.Decoded, "Row Groups": n.Groups}
}

// shownKeys bounds the values that a condition is shown with.
const shownKeys = 32

// indexCond is the part of a source's conditions that the index answers, as PostgreSQL deparses conditions.
func (s *session) indexCond(sc *scanPlan, args []value) string {
	rel := sc.use.Relation
	isKey := func(col int) bool {
		for _, k := range rel.Key {
			if k == col {
				return true
			}
		}
		return len(rel.Key) == 0
	}
	var conds []string
	for _, p := range sc.use.Preds {
		switch {
		case p.Op == "keys":
			var cols, rows []string
			for _, c := range p.Columns {
				cols = append(cols, rel.Columns[c].Name)
			}
			for i, r := range p.Rows {
				if i == shownKeys {
					rows = append(rows, "...")
					break
				}
				rows = append(rows, "("+strings.Join(s.showValues(r, args), ", ")+")")
			}
			conds = append(conds, "(("+strings.Join(cols, ", ")+") IN ("+strings.Join(rows, ", ")+"))")
		case !isKey(p.Column):
		case p.Op == "=":
			conds = append(conds, "("+rel.Columns[p.Column].Name+" = "+s.showValues(p.Values, args)[0]+")")
		case p.Op == "in" || p.Op == "any":
			conds = append(conds, "("+rel.Columns[p.Column].Name+" = ANY (ARRAY["+strings.Join(s.showValues(p.Values, args), ", ")+"]))")
		}
	}
	if len(conds) == 1 {
		return conds[0]
	}
	return "(" + strings.Join(conds, " AND ") + ")"
}

// showValues are values as PostgreSQL deparses constants.
func (s *session) showValues(as []*pgsql.Arg, args []value) []string {
	var out []string
	for _, a := range as {
		if a.Expr != "" {
			out = append(out, "...")
			continue
		}
		_ = s.eachValue(context.Background(), a, args, func(oid uint32, v any) bool {
			if len(out) == shownKeys {
				out = append(out, "...")
				return false
			}
			text, err := pgenc.Append(nil, oid, pgenc.Text, v, s.style())
			out = append(out, deparse(oid, string(text)))
			return err == nil
		})
	}
	if len(out) == 0 {
		return []string{"NULL"}
	}
	return out
}

func deparse(oid uint32, text string) string {
	switch {
	case oid == pgtype.Bool:
		return map[string]string{"t": "true", "f": "false"}[text]
	case (oid == pgtype.Int4 || oid == pgtype.Numeric) && strings.Trim(text, "0123456789.") == "":
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'::" + pgtype.FormatNoTypmod(oid)
}

// explainLookup shows a statement that is a call of lookup and nothing else.
func (s *session) explainLookup(ctx context.Context, use *pgsql.RelUse, args []value) ([]string, map[string]any, error) {
	lines, node, err := s.explainFunction(ctx, use, args)
	if err != nil {
		return nil, nil, err
	}
	name, using := tableOf(use), ""
	node["Node Type"], node["Relation Name"] = "Index Scan", name
	h := use.Relation.Handle.(*handle)
	if t, err := s.table(ctx, h.table); err == nil && (len(use.Args) < 4 || use.Args[3] == nil || use.Args[3].Null) {
		index := constraintName(t.Ident(), t.Metadata().Properties())
		using, node["Index Name"] = " using "+index, index
	}
	out := []string{"Index Scan" + using + " on " + name}
	for _, l := range lines {
		out = append(out, "  "+strings.TrimSpace(l))
	}
	return out, node, nil
}

// explainFunction shows what a call would read.
func (s *session) explainFunction(ctx context.Context, use *pgsql.RelUse, args []value) ([]string, map[string]any, error) {
	node := map[string]any{"Node Type": "Function Scan", "Function Name": use.Func.Name}
	h := use.Relation.Handle.(*handle)
	if h.function.Plan == nil || use.Driver > 0 { // nothing ran that tells what a driven call is about
		return nil, node, nil
	}
	vals, err := s.evaluate(ctx, use.Args, args)
	if err != nil {
		return nil, nil, err
	}
	facts, err := h.function.Plan(ctx, s.env(ctx), h.shape, vals)
	if err != nil {
		return nil, nil, err
	}
	var lines []string
	for _, f := range facts {
		lines = append(lines, "        "+f.Name+": "+strings.TrimSpace(fmt.Sprint(f.Value)))
		node[f.Name] = f.Value
	}
	return lines, node, nil
}
