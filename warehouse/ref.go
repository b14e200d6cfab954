package warehouse

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// propWAPEnabled lets a write to a branch that the table has not create it, as Spark's write-audit-publish does.
const propWAPEnabled = "write.wap.enabled"

// RefRetention is how long a ref stays and what of a branch's past does. Zero values are the table's and the server's defaults.
type RefRetention struct {
	MaxRefAge          time.Duration // the ref itself; never for main
	MaxSnapshotAge     time.Duration // branches only
	MinSnapshotsToKeep int           // branches only
}

// NewRef is a branch or tag to be made.
type NewRef struct {
	Name string
	Tag  bool
	// Snapshot is what it names; nil is the table as the transaction sees it: the snapshot of its commit when it wrote to the table.
	Snapshot  *int64
	Retention RefRetention
}

// refOp is one change of a ref. It holds when the ref is at the serial point where the transaction saw it.
type refOp struct {
	name   string
	tag    bool
	expect *int64 // nil: absent
	to     *int64 // nil: removed, or own
	own    bool   // the snapshot that the commit makes
	retain RefRetention
}

// head is where a TxTable's branch stands in the transaction's view, and the set of that snapshot.
type head struct {
	snapshot *int64
	moved    bool // by the transaction: the branch's next snapshot is made on it, not on the newest base
}

// SetBranch makes tables opened from now on be read and written on a branch, those without one on main. Tables that were only read are
// opened anew. ErrRefState when the transaction has changed something.
func (tx *Tx) SetBranch(name string) error {
	if name == icetable.MainBranch {
		name = ""
	}
	if name == tx.branch {
		return nil
	}
	if tx.Changed() {
		return &RefError{Err: ErrRefState, Message: "the branch cannot be changed in a transaction that has written"}
	}
	tx.branch = name
	for key, t := range tx.names.tables {
		if t.base != nil {
			delete(tx.names.tables, key)
		}
	}
	return nil
}

// Branch is the branch that the transaction was told to use, "" for main.
func (tx *Tx) Branch() string { return tx.branch }

// Branch is the branch that the table is read from and written to.
func (t *TxTable) Branch() string { return cmp.Or(t.branch, icetable.MainBranch) }

// OnBranch says that the table is read from another branch than main.
func (t *TxTable) OnBranch() bool { return t.Branch() != icetable.MainBranch }

// AtCut says that the table's rows are those of main at the cut: another branch, a rollback and own writes make others.
func (t *TxTable) AtCut() bool { return !t.Changed() && !t.OnBranch() && !t.head.moved }

// chooseBranch settles a table's branch and head when it is opened.
func (t *TxTable) chooseBranch(state *catalog.TableState) error {
	t.branch = icetable.MainBranch
	if id, ok := state.SnapshotID(); ok {
		t.head.snapshot = &id
	}
	want := t.tx.branch
	if want == "" {
		return nil
	}
	for name, ref := range t.baseMeta.Refs() {
		if name != want {
			continue
		}
		if ref.SnapshotRefType != icetable.BranchRef {
			return &RefError{Err: ErrRefState, Message: fmt.Sprintf("%q is a tag of table %q, not a branch", want, t.name())}
		}
		id := ref.SnapshotID
		t.branch, t.head.snapshot = want, &id
		return nil
	}
	// Reads fall back to main; writes make the branch or are refused.
	if t.baseMeta.Properties().GetBool(propWAPEnabled, false) && t.head.snapshot != nil {
		t.newBranch = want
		return nil
	}
	t.noBranch = &RefError{Err: ErrNoSuchRef, Message: fmt.Sprintf("table %q has no branch %q", t.name(), want),
		Hint: fmt.Sprintf("Make it with skade.create_branch('%s', '%s'), or let writes make it: set the table's property write.wap.enabled to true.", strings.Join(t.ident, "."), want)}
	return nil
}

// writeBranch is the ref that the commit moves.
func (t *TxTable) writeBranch() string {
	return cmp.Or(t.newBranch, t.Branch())
}

// sealed says that a ref of this transaction names the snapshot of its commit, so that the table's rows are settled.
func (t *TxTable) sealed() bool {
	for _, op := range t.refs {
		if op.own {
			return true
		}
	}
	return false
}

// refView is one ref as the transaction sees it.
type refView struct {
	snapshot *int64 // nil: the snapshot of this commit
	tag      bool
	retain   RefRetention
}

// refViews are the refs at the cut with this transaction's changes.
func (t *TxTable) refViews() map[string]refView {
	out := map[string]refView{}
	for name, r := range t.baseMeta.Refs() {
		id := r.SnapshotID
		out[name] = refView{&id, r.SnapshotRefType == icetable.TagRef, retentionOf(r)}
	}
	for _, op := range t.refs {
		if op.to == nil && !op.own {
			delete(out, op.name)
		} else {
			out[op.name] = refView{op.to, op.tag, op.retain}
		}
	}
	return out
}

func retentionOf(r icetable.SnapshotRef) RefRetention {
	ms := func(p *int64) time.Duration { return time.Duration(deref(p)) * time.Millisecond }
	return RefRetention{ms(r.MaxRefAgeMs), ms(r.MaxSnapshotAgeMs), deref(r.MinSnapshotsToKeep)}
}

// addRef appends a change of a ref. Savepoints hold prefixes of the slice.
func (t *TxTable) addRef(op refOp) { t.refs = append(t.refs[:len(t.refs):len(t.refs)], op) }

func (tx *Tx) refTable(ctx context.Context, ident icetable.Identifier) (*TxTable, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return nil, err
	}
	if err := t.ownTable(); err != nil {
		return nil, err
	}
	if t.base == nil {
		return nil, &RefError{Err: ErrRefState, Message: fmt.Sprintf("table %q was created by this transaction", t.name()), Hint: "Commit first."}
	}
	return t, nil
}

// CreateRef makes a branch or tag. It returns the snapshot it names; 0 when that is the one the commit makes. ErrRefExists, ErrNoSuchSnapshot, ErrRefState.
func (tx *Tx) CreateRef(ctx context.Context, ident icetable.Identifier, r NewRef) (int64, error) {
	t, err := tx.refTable(ctx, ident)
	if err != nil {
		return 0, err
	}
	if old, ok := t.refViews()[r.Name]; ok || r.Name == icetable.MainBranch {
		kind := "branch"
		if old.tag {
			kind = "tag"
		}
		return 0, &RefError{Err: ErrRefExists, Message: fmt.Sprintf("%s %q of table %q already exists", kind, r.Name, t.name())}
	}
	op := refOp{name: r.Name, tag: r.Tag, to: r.Snapshot, retain: r.Retention}
	switch {
	case r.Snapshot != nil:
		if t.baseMeta.SnapshotByID(*r.Snapshot) == nil {
			return 0, t.noSnapshot(*r.Snapshot)
		}
	case t.Changed():
		op.own = true
	case t.head.snapshot == nil:
		return 0, &RefError{Err: ErrRefState, Message: fmt.Sprintf("table %q has no snapshot yet", t.name()), Hint: "A branch or tag names a snapshot: write a row first."}
	default:
		op.to = t.head.snapshot
	}
	t.addRef(op)
	return deref(op.to), nil
}

func (t *TxTable) noSnapshot(id int64) error {
	return &RefError{Err: ErrNoSuchSnapshot, Message: fmt.Sprintf("table %q has no snapshot %d", t.name(), id),
		Hint: "View skade.snapshots lists the snapshots that are retained."}
}

// DropRef removes a branch or tag and returns the snapshot it named. ErrNoSuchRef; ErrRefState for main and for the branch in use.
func (tx *Tx) DropRef(ctx context.Context, ident icetable.Identifier, name string) (int64, error) {
	t, err := tx.refTable(ctx, ident)
	if err != nil {
		return 0, err
	}
	old, ok := t.refViews()[name]
	switch {
	case name == icetable.MainBranch:
		return 0, &RefError{Err: ErrRefState, Message: "branch \"main\" cannot be dropped"}
	case !ok:
		return 0, t.noRef(name)
	case t.branch == name && t.Changed():
		return 0, &RefError{Err: ErrRefState, Message: fmt.Sprintf("branch %q was written by this transaction", name)}
	}
	t.addRef(refOp{name: name, tag: old.tag, expect: old.snapshot})
	return deref(old.snapshot), nil
}

func (t *TxTable) noRef(name string) error {
	return &RefError{Err: ErrNoSuchRef, Message: fmt.Sprintf("table %q has no branch or tag %q", t.name(), name),
		Hint: "View skade.refs lists the branches and tags."}
}

// Move says which moves of a branch are allowed.
type Move int

const (
	// MoveBack goes to an ancestor of the branch's head: a rollback.
	MoveBack Move = iota
	// MoveForward goes to a descendant of the branch's head: a fast-forward.
	MoveForward
	// MoveAnywhere goes to any retained snapshot.
	MoveAnywhere
)

// MoveBranch sets a branch ("": the one the transaction uses) to a snapshot, and returns where it was. Later statements of the transaction see the
// rows of that snapshot. At Commit the branch must be where the cut had it, else ErrConflict. ErrNoSuchRef, ErrNoSuchSnapshot,
// ErrNotAncestor, ErrRefState.
func (tx *Tx) MoveBranch(ctx context.Context, ident icetable.Identifier, branch string, to int64, move Move) (int64, error) {
	t, err := tx.refTable(ctx, ident)
	if err != nil {
		return 0, err
	}
	if branch == "" {
		branch = t.branch
	}
	old, ok := t.refViews()[branch]
	switch {
	case !ok && branch == icetable.MainBranch:
		return 0, &RefError{Err: ErrRefState, Message: fmt.Sprintf("table %q has no snapshot yet", t.name())}
	case !ok:
		return 0, t.noRef(branch)
	case old.tag:
		return 0, &RefError{Err: ErrRefState, Message: fmt.Sprintf("%q is a tag of table %q, not a branch", branch, t.name()), Hint: "A tag does not move: drop it and make it again."}
	case old.snapshot == nil || branch == t.branch && t.Changed():
		return 0, &RefError{Err: ErrRefState, Message: fmt.Sprintf("branch %q of table %q was written by this transaction", branch, t.name()), Hint: "Commit or roll back first."}
	case t.baseMeta.SnapshotByID(to) == nil:
		return 0, t.noSnapshot(to)
	case move == MoveBack && !isAncestor(t.baseMeta, to, *old.snapshot):
		return 0, &RefError{Err: ErrNotAncestor, Message: fmt.Sprintf("snapshot %d is not an ancestor of branch %q of table %q", to, branch, t.name()),
			Detail: fmt.Sprintf("The branch is at snapshot %d.", *old.snapshot), Hint: "skade.set_current_snapshot moves a branch to any retained snapshot."}
	case move == MoveForward && !isAncestor(t.baseMeta, *old.snapshot, to):
		return 0, &RefError{Err: ErrNotAncestor, Message: fmt.Sprintf("branch %q of table %q cannot be fast-forwarded: snapshot %d does not descend from it", branch, t.name(), to),
			Detail: fmt.Sprintf("The branch is at snapshot %d.", *old.snapshot)}
	}
	if *old.snapshot == to {
		return to, nil
	}
	if branch == t.branch {
		set, err := tx.w.opts.Live.At(ctx, t.Ref(), to)
		if err != nil {
			return 0, fmt.Errorf("live set of %v: %w", ident, err)
		}
		t.mu.Lock()
		t.baseSet, t.ownSet, t.liveSet = set, nil, nil
		t.head = head{snapshot: &to, moved: true}
		t.mu.Unlock()
	}
	t.addRef(refOp{name: branch, expect: old.snapshot, to: &to, retain: old.retain})
	return *old.snapshot, nil
}

// isAncestor says whether old is tip or one of its ancestors.
func isAncestor(meta icetable.Metadata, old, tip int64) bool {
	for s, n := meta.SnapshotByID(tip), len(meta.Snapshots()); s != nil && n >= 0; n-- {
		if s.SnapshotID == old {
			return true
		}
		if s.ParentSnapshotID == nil {
			return false
		}
		s = meta.SnapshotByID(*s.ParentSnapshotID)
	}
	return false
}

// branchHead is the snapshot that a commit to the table is made on: the newest of its branch, or where the transaction moved it.
func (c *tableCommit) branchHead(base icetable.Metadata) (*icetable.Snapshot, error) {
	t := c.t
	if t.head.moved || t.newBranch != "" {
		if t.newBranch != "" && base.SnapshotByName(t.newBranch) != nil {
			return nil, fmt.Errorf("%w: branch %q was created", ErrConflict, t.newBranch)
		}
		s := base.SnapshotByID(deref(t.head.snapshot))
		if s == nil {
			return nil, fmt.Errorf("%w: snapshot %d expired", ErrConflict, deref(t.head.snapshot))
		}
		return s, nil
	}
	if !t.OnBranch() {
		return base.CurrentSnapshot(), nil
	}
	for name, r := range base.Refs() {
		if name == t.branch && r.SnapshotRefType == icetable.BranchRef {
			return base.SnapshotByID(r.SnapshotID), nil
		}
	}
	return nil, fmt.Errorf("%w: branch %q was dropped", ErrConflict, t.branch)
}

// refUpdates checks the ref changes against the newest base and makes their updates: those that come before the commit's snapshot, and
// those that name it.
func (c *tableCommit) refUpdates(base icetable.Metadata) (before, after []icetable.Update, err error) {
	now := maps.Collect(base.Refs())
	for _, op := range c.t.refs {
		var at *int64
		if r, ok := now[op.name]; ok {
			id := r.SnapshotID
			at = &id
		}
		if op.expect == nil && at != nil {
			return nil, nil, &RefError{Err: ErrRefExists, Message: fmt.Sprintf("branch or tag %q of table %q already exists", op.name, c.t.name())}
		}
		if op.expect != nil && (at == nil || *at != *op.expect) {
			return nil, nil, fmt.Errorf("%w: %q of table %q was moved", ErrConflict, op.name, c.t.name())
		}
		if op.to == nil && !op.own {
			delete(now, op.name)
			before = append(before, icetable.NewRemoveSnapshotRefUpdate(op.name))
			continue
		}
		id := c.snapshotID
		if !op.own {
			if id = *op.to; base.SnapshotByID(id) == nil {
				return nil, nil, fmt.Errorf("%w: snapshot %d of table %q expired", ErrConflict, id, c.t.name())
			}
		}
		kind := icetable.BranchRef
		if op.tag {
			kind = icetable.TagRef
		}
		now[op.name] = icetable.SnapshotRef{SnapshotID: id, SnapshotRefType: kind}
		u := icetable.NewSetSnapshotRefUpdate(op.name, id, kind, op.retain.MaxRefAge.Milliseconds(), op.retain.MaxSnapshotAge.Milliseconds(), op.retain.MinSnapshotsToKeep)
		if op.own {
			after = append(after, u)
		} else {
			before = append(before, u)
		}
	}
	return before, after, nil
}

// Undropped says that this transaction brought the table back: nobody else sees it yet.
func (t *TxTable) Undropped() bool { return t.undropped }

// UndropTable brings a dropped table back under ident, a free name. The transaction can use it at once.
func (tx *Tx) UndropTable(ctx context.Context, d *catalog.DroppedTable, ident icetable.Identifier) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if !tx.NamespaceExists(ident[:len(ident)-1]) {
		return fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, strings.Join(ident[:len(ident)-1], "."))
	}
	if _, _, err := tx.resolve(ident); err == nil || tx.objectNamed(ident[:len(ident)-1], ident[len(ident)-1]) {
		return fmt.Errorf("%w: %s", icecat.ErrTableAlreadyExists, strings.Join(ident, "."))
	}
	for _, o := range tx.ops {
		if u, ok := o.change.(catalog.UndropTable); ok && u.Key == d.State.Key {
			return fmt.Errorf("%w: %s", catalog.ErrNoSuchDropped, d.State.Key)
		}
	}
	t, err := tx.openTable(ctx, d.State)
	if err != nil {
		return err
	}
	t.ident, t.undropped = ident, true
	tx.names.tables[t.key] = t
	tx.names.byIdent[identKey(ident)] = t.key
	tx.addOp(catalog.UndropTable{Key: t.key, Ident: ident}, t.key)
	return nil
}
