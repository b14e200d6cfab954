package engine

import (
	"context"
	"errors"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// lockedRows are the rows that a statement's locking clauses locked, by source number and file: what those sources show.
type lockedRows map[int]fileRows

// fileRows are positions by data file.
type fileRows map[string]*roaring.Bitmap

func (f fileRows) add(r warehouse.RowRef) {
	bm := f[r.Path]
	if bm == nil {
		bm = roaring.New()
		f[r.Path] = bm
	}
	bm.Add(r.Pos)
}

// lockRows runs the locking clauses of a query. A *lockWait says that a row has to be waited for, and that the statement must
// run again; the locks it took until then stay.
func (s *session) lockRows(ctx context.Context, q *pgsql.Query, args []value) (lockedRows, error) {
	if len(q.Locks) == 0 {
		return nil, nil
	}
	if s.tx.readOnly() {
		return nil, pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute SELECT %s in a read-only transaction", q.LockRows)
	}
	if s.gucs.now.asOf != "" {
		return nil, pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute SELECT %s while skade.as_of is set", q.LockRows).WithHint("RESET skade.as_of reads and writes the present.")
	}
	out := lockedRows{}
	for _, block := range q.Locks {
		op := &lockOp{s: s, block: block, rows: out}
		if err := op.run(ctx, args); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lockOp is one locking clause at work.
type lockOp struct {
	s     *session
	block *pgsql.LockBlock
	rows  lockedRows
	rels  []*lockRel
	// left is how many rows are still wanted, -1 for all.
	left int64
}

// lockRel is one of its sources.
type lockRel struct {
	pgsql.RelLock
	t     *warehouse.TxTable
	oid   uint32
	name  string
	files []string
}

var rowModes = map[pgsql.LockStrength]lockmgr.Mode{
	pgsql.ForKeyShare: lockmgr.ForKeyShare, pgsql.ForShare: lockmgr.ForShare, pgsql.ForNoKeyUpdate: lockmgr.ForNoKeyUpdate, pgsql.ForUpdate: lockmgr.ForUpdate,
}

func (op *lockOp) run(ctx context.Context, args []value) error {
	s, q := op.s, op.block.Query
	var err error
	if op.left, err = op.limit(ctx, args); err != nil {
		return err
	}
	for _, l := range op.block.Rels {
		use := q.Relations[l.Inner]
		t, err := s.table(ctx, use.Relation.Handle.(*handle).table)
		if err != nil {
			return err
		}
		if _, err := s.lockTable(ctx, t, lockmgr.RowShare, s.lockOptions()); err != nil {
			return err
		}
		op.rels = append(op.rels, &lockRel{RelLock: l, t: t, oid: tableOID(t), name: use.Relation.Name})
		op.rows[l.Rel] = fileRows{}
	}
	d, err := s.startWrapped(ctx, binding{args: args}, q, nil, func(sql string) string { return sql })
	if err != nil {
		return err
	}
	defer d.close()
	for _, r := range op.rels {
		r.files = d.posFiles[r.Inner]
	}
	if err := d.eachBatch(ctx, func(rec arrow.RecordBatch) error { return op.batch(ctx, rec) }); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, r := range op.rels {
		if r.t.State() == nil {
			continue
		}
		if err := s.checkStale(ctx, r.t, op.rows[r.Rel]); err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends a stream of candidates.
var errEnough = errors.New("enough rows are locked")

// limit is how many rows the block wants: LIMIT and what OFFSET passes over.
func (op *lockOp) limit(ctx context.Context, args []value) (int64, error) {
	n := int64(-1)
	for _, a := range []*pgsql.Arg{op.block.Limit, op.block.Offset} {
		if a == nil {
			continue
		}
		v, err := op.s.evaluateArg(ctx, a, args)
		if err != nil {
			return 0, err
		}
		if v.Null {
			if a == op.block.Limit {
				return -1, nil
			}
			continue
		}
		k, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil {
			return 0, pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type bigint: \"%s\"", v.Text)
		}
		n = max(n, 0) + max(k, 0)
	}
	return n, nil
}

func (op *lockOp) batch(ctx context.Context, rec arrow.RecordBatch) error {
	if op.left == 0 {
		return errEnough
	}
	n := int(rec.NumRows())
	refs := make([][]warehouse.RowRef, len(op.rels))
	keys := make([][]string, len(op.rels))
	for i, r := range op.rels {
		f, ok1 := rec.Column(2 * i).(*array.Int64)
		p, ok2 := rec.Column(2*i + 1).(*array.Int64)
		if !ok1 || !ok2 {
			return pgerr.New(pgerr.InternalError, "row positions are not integers")
		}
		refs[i] = make([]warehouse.RowRef, n)
		for row := range n {
			if f.IsValid(row) {
				refs[i][row] = warehouse.RowRef{Path: r.files[f.Value(row)], Pos: uint32(p.Value(row))}
			}
		}
		if r.t.State() != nil && !op.s.owner.LocksAllRows(r.oid, rowModes[r.Strength]) {
			var err error
			if keys[i], err = op.s.rowKeys(ctx, r.t, refs[i]); err != nil {
				return err
			}
		}
	}
	for row := range n {
		if op.left == 0 {
			return errEnough
		}
		locked, err := op.lockRow(ctx, refs, keys, row)
		if err != nil {
			return err
		}
		if locked && op.left > 0 {
			op.left--
		}
	}
	return nil
}

// lockRow locks what one row of the block is made of; false when it is to be skipped.
func (op *lockOp) lockRow(ctx context.Context, refs [][]warehouse.RowRef, keys [][]string, row int) (bool, error) {
	for i, r := range op.rels {
		if keys[i] == nil || keys[i][row] == "" {
			continue
		}
		mode := rowModes[r.Strength]
		_, err := op.s.owner.AcquireRow(ctx, r.oid, keys[i][row], mode, lockmgr.Options{NoWait: true})
		switch {
		case err == nil:
		case !errors.Is(err, lockmgr.ErrNotAvailable):
			return false, err
		case r.Wait == pgsql.WaitSkip:
			return false, nil
		case r.Wait == pgsql.WaitError:
			return false, pgerr.Newf(pgerr.LockNotAvailable, "could not obtain lock on row in relation \"%s\"", r.name)
		default:
			w := newLockWait(r.t)
			w.key, w.mode = keys[i][row], mode
			return false, w
		}
	}
	for i, r := range op.rels {
		ref := refs[i][row]
		if ref.Path == "" {
			continue
		}
		op.rows[r.Rel].add(ref)
	}
	return true, nil
}

// lockingCursor refuses what cannot be combined with a locking clause (transformDeclareCursorStmt).
func lockingCursor(u *pgsql.Declare, lock string) error {
	switch {
	case lock == "":
	case u.Hold:
		return pgerr.Newf(pgerr.FeatureNotSupported, "DECLARE CURSOR WITH HOLD ... %s is not supported", lock).WithDetail("Holdable cursors must be READ ONLY.")
	case u.Scroll:
		return pgerr.Newf(pgerr.FeatureNotSupported, "DECLARE SCROLL CURSOR ... %s is not supported", lock).WithDetail("Scrollable cursors must be READ ONLY.")
	case u.Insensitive:
		return pgerr.Newf("42P11", "DECLARE INSENSITIVE CURSOR ... %s is not valid", lock).WithDetail("Insensitive cursors must be READ ONLY.")
	}
	return nil
}
