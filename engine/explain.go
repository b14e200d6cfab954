package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/pgwire"
)

// explain runs EXPLAIN: what each table scan considers and opens, by our own plan; with ANALYZE the statement runs too.
func (s *session) explain(b binding, u *pgsql.Explain) pgwire.Portal {
	return &streamPortal{s: s, cols: b.cols, tag: func(int64) string { return "EXPLAIN" }, open: func(ctx context.Context, w pgwire.Writer) (rowSource, error) {
		plan, err := s.planOf(ctx, b, u, w)
		if err != nil {
			return nil, err
		}
		switch u.Format {
		case "", "text":
			rows := make([][]string, 0, len(plan.lines))
			for _, l := range plan.lines {
				rows = append(rows, []string{l})
			}
			return &textSource{rows: rows}, nil
		case "json":
			out, err := json.MarshalIndent([]any{plan.tree}, "", "  ")
			return &textSource{rows: [][]string{{string(out)}}}, err
		}
		return nil, pgerr.Newf(pgerr.FeatureNotSupported, "EXPLAIN format \"%s\" is not supported", u.Format).WithHint("Use FORMAT TEXT or FORMAT JSON.")
	}}
}

// explained is a plan as lines and as a tree.
type explained struct {
	lines []string
	tree  map[string]any
}

func (s *session) planOf(ctx context.Context, b binding, u *pgsql.Explain, w pgwire.Writer) (*explained, error) {
	in := b.p.inner
	if in != nil && in.stmt.Kind == pgsql.ExecuteStmt {
		ex, err := s.executed(ctx, b, in.stmt)
		if err != nil {
			return nil, err
		}
		in, b.args = ex.p, ex.args
	}
	if in == nil || in.query == nil {
		return nil, pgerr.Newf(pgerr.FeatureNotSupported, "EXPLAIN %s is not supported", u.Stmt.Tag)
	}
	q := in.query
	ex := &explained{tree: map[string]any{}}
	start := time.Now()
	root := map[string]any{"Node Type": nodeName(q)}
	sc, err := s.explainProbe(ctx, binding{p: in, args: b.args})
	if err != nil {
		return nil, err
	}
	if sc != nil {
		ex.lines, root = s.explainScan(sc, "", b.args)
	} else if d := q.Lookup; d != nil {
		if ex.lines, root, err = s.explainLookup(ctx, q.Relations[d.Rel], b.args); err != nil {
			return nil, err
		}
	} else {
		ex.lines = append(ex.lines, nodeName(q))
		var plans []map[string]any
		for _, part := range append(slices.Clone(q.Parts), q) { // what runs before it reads, too
			if part == nil {
				continue
			}
			nodes, err := s.explainSources(ctx, ex, part, b.args)
			if err != nil {
				return nil, err
			}
			plans = append(plans, nodes...)
		}
		if plans != nil {
			root["Plans"] = plans
		}
	}
	ex.tree["Plan"] = root
	planned := time.Since(start)
	if !u.Analyze {
		return ex, nil
	}
	start = time.Now()
	counters := &liveset.ProbeCounters{}
	n, err := s.runForExplain(liveset.WithProbeCounters(ctx, counters), binding{p: in, args: b.args, cols: in.cols}, w)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	ex.lines = append(ex.lines, fmt.Sprintf("Rows Returned: %d", n))
	root["Actual Rows"] = n
	ex.probes(root, counters.Counts())
	if u.Timing || u.Summary {
		ex.lines = append(ex.lines, fmt.Sprintf("Planning Time: %.3f ms", planned.Seconds()*1000), fmt.Sprintf("Execution Time: %.3f ms", took.Seconds()*1000))
		ex.tree["Planning Time"], ex.tree["Execution Time"] = float64(planned.Microseconds())/1000, float64(took.Microseconds())/1000
	}
	return ex, nil
}

// explainSources shows what the sources of a query consider and open.
func (s *session) explainSources(ctx context.Context, ex *explained, q *pgsql.Query, args []value) (plans []map[string]any, err error) {
	r := &rendered{plan: true}
	if err := s.openInto(ctx, r, q, args, nil, nil); err != nil {
		return nil, err
	}
	defer r.release()
	for _, sc := range r.scans {
		lines, node := s.explainScan(&sc, "  ->  ", args)
		lines = append(lines, sc.join.explain(node)...)
		ex.lines, plans = append(ex.lines, lines...), append(plans, node)
	}
	for _, use := range q.Relations {
		if use.Func != nil && use.Func.Name != "table_at" {
			ex.lines = append(ex.lines, "  ->  Function Scan on "+use.Func.Name)
			more, node, err := s.explainFunction(ctx, use, args)
			if err != nil {
				return nil, err
			}
			ex.lines = append(ex.lines, more...)
			plans = append(plans, node)
		} else if use.Relation.Kind == pgsql.System {
			ex.lines = append(ex.lines, "  ->  Catalog Scan on "+use.Relation.Schema+"."+use.Relation.Name)
			plans = append(plans, map[string]any{"Node Type": "Catalog Scan", "Relation Name": use.Relation.Name})
		}
	}
	return plans, nil
}

func nodeName(q *pgsql.Query) string {
	switch {
	case q.Insert != nil:
		return "Insert on " + q.Insert.Target.Name
	case q.Update != nil:
		return "Update on " + q.Update.Target.Name
	case q.Merge != nil:
		return "Merge on " + q.Merge.Target.Name
	case q.Delete != nil:
		return "Delete on " + q.Delete.Target.Name
	}
	return "DuckDB Query"
}

// runForExplain runs the statement and drops its rows.
func (s *session) runForExplain(ctx context.Context, b binding, w pgwire.Writer) (int64, error) {
	var src rowSource
	if b.p.stmt.Kind == pgsql.Select {
		q := &queryPortal{s: s, b: b}
		var err error
		if src, err = q.open(ctx, w); err != nil {
			return 0, err
		}
	} else {
		res, err := s.runDML(ctx, b, w)
		if err != nil || res.open == nil {
			return 0, err
		}
		if src, err = res.open(ctx); err != nil {
			return 0, err
		}
	}
	defer src.close()
	var rows int64
	var buf []byte
	for {
		out, n, done, err := src.appendRows(ctx, buf[:0], 0)
		if err != nil {
			return 0, err
		}
		buf = out
		rows += int64(n)
		if done {
			return rows, nil
		}
	}
}
