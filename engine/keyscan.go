package engine

import (
	"context"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// maxKeyScan bounds the keys of a statement whose rows are found by the key index instead of a scan.
const maxKeyScan = 256

// scanByKey makes the scan of a data change's target from the key index when its conditions name whole keys: an update of one row reads that row's
// pages, not its file. ok is false when they do not.
func (s *session) scanByKey(ctx context.Context, r *rendered, use *pgsql.RelUse, scan *duck.Scan, ref liveset.Ref, set *liveset.Set, sc *iceberg.Schema, args []value) (ok bool, err error) {
	ids := sc.IdentifierFieldIDs
	if !use.Position || len(ids) == 0 || ref.Metadata.CurrentSchema().ID != sc.ID {
		return false, nil
	}
	keys := s.namedKeys(sc, ids, use, args)
	if len(keys) == 0 {
		return false, nil
	}
	hits, err := s.gw.live.Probe(ctx, ref, set, ids, keys)
	if err != nil {
		return false, err
	}
	byFile := map[*liveset.LiveFile][]uint32{}
	var files []*liveset.LiveFile
	for _, h := range hits {
		if byFile[h.File] == nil {
			files = append(files, h.File)
		}
		byFile[h.File] = append(byFile[h.File], h.Pos)
	}
	as, err := scanArrowSchema(sc, true)
	if err != nil {
		return false, err
	}
	for _, lf := range files {
		positions := byFile[lf]
		slices.Sort(positions)
		f := duck.ScanFile{Size: lf.File.Size, Rows: int64(len(positions)), FirstRowID: lf.File.FirstRowID}
		id, release, err := s.gw.duck.RegisterRelation(as, f.Rows, s.rowsAt(ref, lf.File, sc, positions))
		if err != nil {
			return false, err
		}
		r.releases = append(r.releases, release)
		f.Relation = id
		scan.Files, r.files = append(scan.Files, f), append(r.files, lf.File.Path)
	}
	r.scans = append(r.scans, scanPlan{name: use.Relation.Schema + "." + use.Relation.Name, considered: set.NumFiles(), opens: len(files), rows: int64(len(hits))})
	r.stable += "?"
	return true, nil
}

// rowsAt reads rows of a file when DuckDB asks for them.
func (s *session) rowsAt(ref liveset.Ref, f *liveset.File, sc *iceberg.Schema, positions []uint32) duck.RelationFunc {
	return func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			yield(s.gw.live.ReadRows(ctx, ref, f, sc, liveset.MetaColumns{Pos: true}, positions))
		}, nil
	}
}

// namedKeys are the encoded keys that the conditions name, one of which every row has that they let through; nil when they do not, or name too many.
func (s *session) namedKeys(sc *iceberg.Schema, ids []int, use *pgsql.RelUse, args []value) [][]byte {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		return nil
	}
	keys := [][]byte{nil}
	for _, id := range ids {
		col := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if col < 0 {
			return nil
		}
		parts := s.namedValues(as.Field(col).Type, col, use, args)
		if len(parts) == 0 || len(keys)*len(parts) > maxKeyScan {
			return nil
		}
		var next [][]byte
		for _, k := range keys {
			for _, p := range parts {
				next = append(next, slices.Concat(k, p))
			}
		}
		keys = next
	}
	slices.SortFunc(keys, slices.Compare)
	return slices.CompactFunc(keys, slices.Equal)
}

// namedValues are the values, encoded, that an equality or IN gives a column.
func (s *session) namedValues(dt arrow.DataType, col int, use *pgsql.RelUse, args []value) [][]byte {
	for _, p := range use.Preds {
		if p.Column != col || p.Op != "=" && p.Op != "in" || len(p.Values) == 0 {
			continue
		}
		var out [][]byte
		for _, a := range p.Values {
			oid, text, ok := argText(a, s, args)
			if !ok {
				break
			}
			lit, ok := literalOf(dt, oid, text, isInteger(oid))
			if !ok {
				break
			}
			enc, err := keyindex.AppendLiteral(nil, lit)
			if err != nil {
				break
			}
			out = append(out, enc)
		}
		if len(out) == len(p.Values) {
			return out
		}
	}
	return nil
}
