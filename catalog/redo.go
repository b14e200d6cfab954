package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// redoFile is a file of a group that is not synced when the group commits: the store's transaction says how to make it again.
type redoFile struct {
	path string
	data []byte // the content, unless patch is set
	// patch is the content of a metadata file, by what it adds to the one before.
	patch *patch
	// late: the file may not have been written at all yet, and need not be when a later patch continues it.
	late bool
}

// size is what the file takes of the store's transaction, about.
func (f *redoFile) size() int {
	n := len(f.path) + len(f.data) + 16
	if f.patch != nil {
		n += len(f.patch.base) + 16
		for _, s := range f.patch.parts {
			n += len(s.bytes) + 8
		}
	}
	return n
}

// patch makes a file from parts of another, which the commit before wrote, and from new bytes.
type patch struct {
	base           string // path
	baseSize, size int64  // bytes of both files
	parts          []patchPart
}

// patchPart is bytes, or n bytes of the base at off.
type patchPart struct {
	off, n int64
	bytes  []byte
}

// apply returns the file's content.
func (p *patch) apply(base []byte) ([]byte, error) {
	if int64(len(base)) != p.baseSize {
		return nil, fmt.Errorf("its base %s is %d bytes, not %d", p.base, len(base), p.baseSize)
	}
	out := make([]byte, 0, min(p.size, p.baseSize+1<<20))
	for _, s := range p.parts {
		if s.bytes != nil {
			out = append(out, s.bytes...)
			continue
		}
		if s.off < 0 || s.n < 0 || s.off > p.baseSize || s.n > p.baseSize-s.off || int64(len(out))+s.n > p.size {
			return nil, fmt.Errorf("a part of %d bytes at %d of %s, which has %d", s.n, s.off, p.base, p.baseSize)
		}
		out = append(out, base[s.off:s.off+s.n]...)
	}
	if int64(len(out)) != p.size {
		return nil, fmt.Errorf("%d bytes, not %d", len(out), p.size)
	}
	return out, nil
}

// Flags of a file in a redo value.
const (
	redoPatch = 1
	redoLate  = 2
)

// redoKey is unique to a group that has files: the last seq that it gives.
func redoKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte{familyRedo}, seq) }

func encodeRedo(files []redoFile) []byte {
	size := 64
	for i := range files {
		size += files[i].size() + 32
	}
	w := &writer{b: append(make([]byte, 0, size), kindRedo, formatVersion)}
	w.uvarint(uint64(len(files)))
	for _, f := range files {
		w.string(f.path)
		flags := uint64(0)
		if f.patch != nil {
			flags |= redoPatch
		}
		if f.late {
			flags |= redoLate
		}
		w.uvarint(flags)
		if f.patch == nil {
			w.bytes(f.data)
			continue
		}
		w.string(f.patch.base)
		w.uvarint(uint64(f.patch.baseSize))
		w.uvarint(uint64(f.patch.size))
		w.uvarint(uint64(len(f.patch.parts)))
		for _, s := range f.patch.parts {
			w.bytes(s.bytes)
			if s.bytes == nil {
				w.uvarint(uint64(s.off))
				w.uvarint(uint64(s.n))
			}
		}
	}
	return w.seal()
}

func decodeRedo(value []byte) ([]redoFile, error) {
	r := newReader(kindRedo, value)
	var files []redoFile
	for range r.count() {
		if r.err != nil {
			break
		}
		f := redoFile{path: r.string()}
		flags := r.uvarint()
		if flags > redoPatch|redoLate {
			r.fail("flags %d of a file", flags)
		}
		f.late = flags&redoLate != 0
		if flags&redoPatch == 0 {
			f.data = r.bytes()
		} else {
			p := &patch{base: r.string(), baseSize: int64(r.uvarint()), size: int64(r.uvarint())}
			if p.baseSize < 0 || p.baseSize > maxMetadata || p.size < 0 || p.size > maxMetadata {
				r.fail("a file of %d bytes made from one of %d", p.size, p.baseSize)
			}
			for range r.count() {
				if r.err != nil {
					break
				}
				s := patchPart{bytes: r.bytes()}
				if s.bytes == nil {
					s.off, s.n = int64(r.uvarint()), int64(r.uvarint())
				}
				p.parts = append(p.parts, s)
			}
			f.patch = p
		}
		files = append(files, f)
	}
	return files, r.done()
}

// recoverFiles makes the files again that a power cut may have taken, from what the store's transactions say of them, and forgets that once the
// files are synced.
func recoverFiles(ctx context.Context, s store.Store, f *storeio.FS, log zerolog.Logger) error {
	rec := &recovery{s: s, fs: f, late: map[string][]byte{}}
	for _, family := range []byte{familyFile, familyRedo} { // the former only in folders of older releases
		from := []byte{family}
		if err := store.All(ctx, s, store.RangeRequest{From: from, To: store.PrefixEnd(from)}, rec.pair); err != nil {
			return err
		}
	}
	for path, data := range rec.late {
		if err := rec.restore(path, data); err != nil {
			return err
		}
	}
	rec.restoreCaches(log)
	if err := f.SyncFiles(ctx, rec.there); err != nil {
		return err
	}
	for ops := rec.ops; len(ops) > 0; {
		n := min(len(ops), s.Limits().Ops/2)
		if _, err := s.Apply(ctx, store.Tx{Ops: ops[:n]}); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

type recovery struct {
	s     store.Store
	fs    *storeio.FS
	there []string          // files that are as they should be, perhaps not synced
	late  map[string][]byte // files that need only be written when nothing continues them
	ops   []store.Op

	caches []redoFile // files that only save work: what room the others leave is theirs
}

func (r *recovery) pair(p store.Pair) error {
	var files []redoFile
	var err error
	if p.Key[0] == familyFile {
		var data []byte
		data, err = decodeFile(p.Value)
		files = []redoFile{{path: string(p.Key[1:]), data: data}}
	} else {
		files, err = decodeRedo(p.Value)
	}
	if err != nil {
		return storeError(r.s, p.Key, err)
	}
	for _, f := range files {
		data := f.data
		if f.patch != nil {
			if data, err = r.patched(f); err != nil {
				return err
			}
			if data == nil {
				continue
			}
		}
		if f.late {
			r.late[f.path] = data
			continue
		}
		if storeio.Cache(f.path) {
			r.caches = append(r.caches, redoFile{path: f.path, data: data})
			continue
		}
		if err := r.restore(f.path, data); err != nil {
			return err
		}
	}
	r.ops = append(r.ops, store.Op{Key: p.Key, Delete: true})
	return nil
}

// patched is the content of a file that continues another, which comes before it in the store or is durable.
func (r *recovery) patched(f redoFile) ([]byte, error) {
	base, ok := r.late[f.patch.base]
	delete(r.late, f.patch.base)
	if !ok {
		var err error
		if base, err = r.fs.ReadAtMost(f.patch.base, maxMetadata); errors.Is(err, fs.ErrNotExist) {
			return r.settled(f)
		} else if err != nil {
			return nil, fmt.Errorf("restore %s: %w", f.path, err)
		}
	}
	data, err := f.patch.apply(base)
	if err != nil {
		return nil, &DamagedError{Path: f.path, Detail: "it cannot be made again: " + err.Error()}
	}
	return data, nil
}

// settled is for a file whose base is gone. Bases are removed only when what continues them is synced, so the file is whole, or nobody
// needs it because a later one is.
func (r *recovery) settled(f redoFile) ([]byte, error) {
	data, err := r.fs.ReadAtMost(f.path, maxMetadata)
	switch {
	case err == nil && int64(len(data)) == f.patch.size:
		return data, nil
	case f.late && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("restore %s: %w", f.path, err)
	}
	return nil, &DamagedError{Path: f.path, Detail: fmt.Sprintf("it is to be made again from %s, which is missing", f.patch.base)}
}

func (r *recovery) restore(path string, data []byte) error {
	wrote, err := r.fs.Restore(path, data)
	if err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	if !wrote {
		r.there = append(r.there, path)
	}
	return nil
}

// restoreCaches makes files again that nobody needs to have: those that cannot be written, for a full disk say, are made when somebody wants them.
func (r *recovery) restoreCaches(log zerolog.Logger) {
	lost := 0
	var first error
	for _, f := range r.caches {
		if err := r.restore(f.path, f.data); err != nil {
			lost++
			if first == nil {
				first = err
			}
		}
	}
	if lost > 0 {
		log.Warn().Err(first).Int("files", lost).Msg("key indexes are not restored and will be rebuilt")
	}
}
