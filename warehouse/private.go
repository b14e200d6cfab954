package warehouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// PrivateOptions opens a Private.
type PrivateOptions struct {
	// Namespace is the name of its one namespace, which no namespace of the catalog may have.
	Namespace string
	// Dir is a folder of its own for data files. It is made when rows are first written, and removed by Close.
	Dir string
	// NewOID gives OIDs to what is created.
	NewOID func() uint32
}

// Private is one session's own tables and objects, in one namespace. A transaction that is begun with it (or is given it by Attach) has that namespace
// besides the catalog's: savepoints, RollbackTo, Commit and Rollback are about both. No catalog, no commit log and no other
// transaction ever knows of it, and nothing of it is synced.
//
// It is a transaction that nobody commits: its tables are those that a transaction has created, so they can do what those can. Each
// transaction of the session is a savepoint in it. What a commit does here is to forget that savepoint, which cannot fail; so a transaction over both sides
// is as atomic as its other side.
//
// It belongs to one session, like a Tx; at most one transaction that writes has it at a time. It ends with Close.
type Private struct {
	opts PrivateOptions
	tx   *Tx
	dirs map[catalog.TableKey]string // of tables that were created, to be removed with them
	// folded are the states that fold has seen: there is nothing to do while a table has the same.
	folded map[catalog.TableKey]*state
}

// NewPrivate makes an empty Private. It touches no disk.
func (w *Warehouse) NewPrivate(o PrivateOptions) *Private {
	p := &Private{opts: o, dirs: map[catalog.TableKey]string{}, folded: map[catalog.TableKey]*state{}}
	p.tx = &Tx{w: w, cut: catalog.EmptyCut(), names: newNames(), side: p}
	p.tx.names.namespaces[o.Namespace] = &namespace{}
	return p
}

// Namespace is the name of its namespace.
func (p *Private) Namespace() string { return p.opts.Namespace }

// Version changes with every change of its tables' definitions and of its objects.
func (p *Private) Version() int64 { return p.tx.definitions.Load() }

// Empty says that there is nothing in it.
func (p *Private) Empty() bool {
	for _, key := range p.tx.names.byIdent {
		if key != "" {
			return false
		}
	}
	for _, o := range p.tx.names.objects {
		if o != nil {
			return false
		}
	}
	return true
}

// Close ends it and removes its files.
func (p *Private) Close() error {
	err := p.tx.Rollback()
	if rerr := p.tx.w.opts.FS.RemoveAll(p.opts.Dir); rerr != nil {
		return fmt.Errorf("remove temporary tables: %w", rerr)
	}
	return err
}

// Attach gives a transaction the session's private side, which it did not have before.
func (tx *Tx) Attach(p *Private) {
	tx.private = p
	if !tx.opts.ReadOnly { // a reader leaves no mark that nobody would take away
		tx.privateBegin, tx.privateChanges = p.tx.Savepoint(), p.tx.changes.Load()
	}
}

// Private is the transaction's private side, nil when it has none.
func (tx *Tx) Private() *Private { return tx.private }

// PrivateChanged says whether the transaction has changed something in its private side.
func (tx *Tx) PrivateChanged() bool {
	return tx.private != nil && tx.private.tx.changes.Load() != tx.privateChanges
}

// hidden is the private side's transaction when the namespace or name is in it, else nil.
func (tx *Tx) hidden(ident icetable.Identifier) *Tx {
	if tx.private != nil && len(ident) > 0 && ident[0] == tx.private.opts.Namespace {
		return tx.private.tx
	}
	return nil
}

// endPrivate ends a transaction's part in the private side, once.
func (tx *Tx) endPrivate(ctx context.Context, keep bool) {
	p := tx.private
	if p == nil || tx.opts.ReadOnly {
		return
	}
	changed := tx.PrivateChanged()
	tx.private = nil
	if p.tx.done {
		return
	}
	if changed && !keep {
		if err := p.tx.RollbackTo(tx.privateBegin); err != nil {
			tx.w.opts.Logger.Error().Err(err).Msg("roll back temporary tables")
		}
	}
	if err := p.tx.Release(tx.privateBegin); err != nil {
		tx.w.opts.Logger.Error().Err(err).Msg("release temporary tables")
	}
	if changed {
		p.settle(ctx, keep)
	}
}

// settle is what follows a transaction that changed something: no savepoint is left, so what only earlier states had can go. An error
// of fold costs nothing but disk or memory; the next transaction tries again.
func (p *Private) settle(ctx context.Context, fold bool) {
	tx := p.tx
	tx.ops = nil
	for ident, key := range tx.names.byIdent {
		if key == "" {
			delete(tx.names.byIdent, ident)
		}
	}
	for k, o := range tx.names.objects {
		if o == nil {
			delete(tx.names.objects, k)
		}
	}
	for key, t := range tx.names.tables {
		t.mu.Lock()
		if fold && p.folded[key] != t.st {
			if err := t.foldLocked(ctx); err != nil {
				tx.w.opts.Logger.Debug().Err(err).Msg("fold a temporary table")
			}
		}
		t.baseMeta, t.alters = t.meta, nil
		t.shown = nil // places of rows end with the transaction
		p.folded[key] = t.st
		t.mu.Unlock()
	}
	p.collect()
}

// collect removes the files that no table has any more.
func (p *Private) collect() {
	tx, used := p.tx, map[string]struct{}{}
	for _, t := range tx.names.tables {
		for _, o := range t.st.own {
			used[o.written.DataFile.FilePath()] = struct{}{}
		}
	}
	tx.mu.Lock()
	all := tx.files
	tx.files = slices.DeleteFunc(slices.Clone(all), func(f parquetio.WrittenFile) bool {
		_, ok := used[f.DataFile.FilePath()]
		return !ok
	})
	tx.mu.Unlock()
	tx.w.removeFiles(all, used)
	for key, dir := range p.dirs {
		if tx.names.tables[key] != nil {
			continue
		}
		if err := tx.w.opts.FS.RemoveAll(dir); err != nil {
			tx.w.opts.Logger.Debug().Err(err).Str("dir", dir).Msg("remove the folder of a temporary table")
		}
		delete(p.dirs, key)
		delete(p.folded, key)
	}
}

// location is where a new table's files go.
func (p *Private) location(id uuid.UUID) string {
	dir := strings.TrimRight(p.opts.Dir, "/") + "/" + id.String()
	p.dirs[catalog.TableKey(id.String())] = dir
	return storeio.LocationOf(dir)
}

const (
	// foldFiles is the number of small files from which they are put into one.
	foldFiles = 8
	// foldDead is the share of a large file's rows, one in so many, from which the file is written anew without the dead ones.
	foldDead = 2
)

// Fold puts the small files of a private table into one when there are many, and writes files anew that have lost many rows. It is for the
// end of a statement: places of rows (RowRef) do not hold after it. Savepoints keep the files that they know.
func (t *TxTable) Fold(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Private() || len(t.st.own) < foldFiles {
		return nil
	}
	return t.foldLocked(ctx)
}

// foldLocked is Fold, and takes rows beyond sharedLogLimit out of memory.
func (t *TxTable) foldLocked(ctx context.Context) error {
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	if len(t.tx.marks) == 0 && t.st.rows > 0 && liveRows(t.st.rows, t.st.dead) == 0 {
		t.dropLogLocked()
	}
	if t.st.log.bytes() > sharedLogLimit {
		if err := t.flushLocked(ctx); err != nil {
			return err
		}
	}
	st := t.st.clone()
	small := 0
	for _, o := range st.own {
		if o.file.Size < keepOwnBytes {
			small++
		}
	}
	var keep, again []*ownFile
	at, dead := -1, 0 // again's rows go where its first file was
	for _, o := range st.own {
		gone := int64(0)
		if b := st.suppress[o.file.Path]; b != nil {
			gone = card(b)
		}
		switch {
		case gone == o.file.Records:
			dead++
			delete(st.suppress, o.file.Path)
		case o.file.Size < keepOwnBytes && small >= foldFiles, o.file.Size >= keepOwnBytes && gone*foldDead >= o.file.Records:
			if at < 0 {
				at = len(keep)
			}
			again = append(again, o)
		default:
			keep = append(keep, o)
		}
	}
	if len(again)+dead > 0 {
		own := keep
		if len(again) > 0 {
			w, err := t.newFileWriter(t.v3())
			if err != nil {
				return err
			}
			if err := t.rewriteLocked(ctx, w, again); err != nil {
				w.abort()
				return err
			}
			files, err := w.close(ctx)
			if err != nil {
				return err
			}
			own = append(append(append([]*ownFile{}, keep[:at]...), files...), keep[at:]...)
			for _, o := range again {
				delete(st.suppress, o.file.Path)
			}
		}
		st.own = own
		t.st, t.ownSet, t.liveSet = st, nil, nil
	}
	return nil
}
