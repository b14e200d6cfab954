package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/catalog/store/boltstore"
)

// dbName is the store's file in the folder, warehouseName the directory of the tables made without a location.
const (
	dbName        = "catalog.db"
	warehouseName = "warehouse"
)

// magic is the first field of the folder's meta value.
const magic = "skade-catalog"

// folderMeta is the value at keyMeta, written once.
type folderMeta struct {
	version byte   // 0: folderVersion
	dir     string // where the folder was made, absolute
	id      uuid.UUID
	created time.Time
}

func (m folderMeta) encode() []byte {
	w := newWriter(kindMeta)
	w.b[1] = cmp.Or(m.version, folderVersion)
	w.string(magic)
	w.string(m.dir)
	w.uuid(m.id)
	w.fixed64(uint64(m.created.UnixMicro()))
	return w.seal()
}

func decodeMeta(value []byte) (folderMeta, error) {
	if len(value) > 1 && value[0] == kindMeta && value[1] > folderVersion {
		return folderMeta{}, fmt.Errorf("format %d, this program knows %d: %w", value[1], folderVersion, ErrVersion)
	}
	r := newReader(kindMeta, value)
	if got := r.string(); r.err == nil && got != magic {
		r.fail("magic is %q", got)
	}
	m := folderMeta{dir: r.string(), id: r.uuid(), created: time.UnixMicro(int64(r.fixed64()))}
	if len(value) > 1 {
		m.version = value[1]
	}
	return m, r.done()
}

// encodeHead and decodeHead are the value at keyHead: the compare of every commit.
func (s *state) encodeHead() []byte {
	w := newWriter(kindHead)
	w.fixed64(s.seq)
	micros := int64(0)
	if s.seq > 0 {
		micros = s.time.UnixMicro()
	}
	w.fixed64(uint64(micros))
	w.uvarint(s.first)
	w.uvarint(uint64(s.nextOID))
	return w.seal()
}

func (s *state) decodeHead(value []byte) error {
	r := newReader(kindHead, value)
	seq, micros := r.fixed64(), int64(r.fixed64())
	first, next := r.uvarint(), r.uint32()
	if err := r.done(); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	s.seq, s.first, s.nextOID, s.time = seq, first, next, time.Time{}
	if seq > 0 {
		s.time = time.UnixMicro(micros).UTC()
	}
	return nil
}

// resolveDir makes a folder's path comparable: absolute, symbolic links resolved.
func resolveDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// openStore opens the folder's store and says in the catalog's words what is wrong.
func openStore(dir string, noSync bool) (store.Store, error) {
	s, err := boltstore.Open(filepath.Join(dir, dbName), boltstore.Options{NoSync: noSync})
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, store.ErrLocked):
		return nil, fmt.Errorf("open %s: %w", dir, ErrLocked)
	case errors.Is(err, store.ErrDamaged):
		return nil, &DamagedError{Path: filepath.Join(dir, dbName), Detail: err.Error()}
	case isReadOnly(err):
		return nil, fmt.Errorf("open %s: %w: %w", dir, ErrReadOnly, err)
	}
	return nil, fmt.Errorf("open %s: %w", dir, err)
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// writable proves that files can be made in the folder: its store may be writable when the folder is not.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*.tmp")
	if err == nil {
		_ = f.Close()
		err = os.Remove(f.Name())
	}
	if err != nil && isReadOnly(err) {
		return fmt.Errorf("open %s: %w: %w", dir, ErrReadOnly, err)
	}
	return err
}

// initFolder writes the meta and head values of a new store, or compares the old ones with where the folder is.
func initFolder(ctx context.Context, s store.Store, dir string) error {
	value, err := s.Get(ctx, keyMeta)
	if errors.Is(err, store.ErrNotFound) {
		meta := folderMeta{dir: dir, id: uuid.New(), created: time.Now()}
		_, err := s.Apply(ctx, store.Tx{
			Compares: []store.Compare{{Key: keyMeta, Absent: true}},
			Ops:      []store.Op{{Key: keyMeta, Value: meta.encode()}, {Key: keyHead, Value: newState().encodeHead()}},
		})
		return err
	}
	if err != nil {
		return storeError(s, keyMeta, err)
	}
	meta, err := decodeMeta(value)
	if errors.Is(err, ErrVersion) {
		return err
	}
	if err != nil {
		return storeError(s, keyMeta, err)
	}
	if meta.dir != dir {
		return fmt.Errorf("%w: it was made at %s and is opened at %s; the tables' metadata holds absolute locations, move it back",
			ErrMoved, meta.dir, dir)
	}
	if meta.version < folderVersion { // from now on older programs must stay away: they would not make files again from redo values
		meta.version = folderVersion
		_, err := s.Apply(ctx, store.Tx{Compares: []store.Compare{{Key: keyMeta, Value: value}}, Ops: []store.Op{{Key: keyMeta, Value: meta.encode()}}})
		return err
	}
	return nil
}

// storeError turns an error about a key into the catalog's.
func storeError(s store.Store, key []byte, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrClosed):
		return ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &DamagedError{Path: s.Path(), Key: fmt.Sprintf("%q", key), Detail: err.Error()}
}

// loadState reads the whole catalog: head, namespaces, tables, objects.
func loadState(ctx context.Context, s store.Store) (*state, error) {
	st := newState()
	value, err := s.Get(ctx, keyHead)
	if err == nil {
		err = st.decodeHead(value)
	}
	if err != nil {
		return nil, storeError(s, keyHead, err)
	}
	for _, family := range []byte{familyNamespace, familyTable, familyObject, familyDropped, familyFeed} {
		from := []byte{family}
		err := store.All(ctx, s, store.RangeRequest{From: from, To: store.PrefixEnd(from)}, func(p store.Pair) error {
			if err := st.put(p.Key, p.Value); err != nil {
				return storeError(s, p.Key, err)
			}
			return nil
		})
		if err != nil {
			var damaged *DamagedError
			if errors.As(err, &damaged) {
				return nil, err
			}
			return nil, storeError(s, from, err)
		}
	}
	if st.seq > 0 {
		value, err := s.Get(ctx, recordKey(st.seq))
		if err == nil {
			_, err = decodeRecord(value)
		}
		if err != nil {
			return nil, storeError(s, recordKey(st.seq), err)
		}
	}
	return st, nil
}

func encodeFile(data []byte) []byte {
	w := &writer{b: append(make([]byte, 0, len(data)+16), kindFile, formatVersion)}
	w.bytes(data)
	return w.seal()
}

func decodeFile(value []byte) ([]byte, error) {
	r := newReader(kindFile, value)
	data := r.bytes()
	return data, r.done()
}
