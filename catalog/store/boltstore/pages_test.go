package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog/store"
)

// grown is a closed store of a few hundred pages, some of them free, with a branch page at the root; its page size is returned.
func grown(t testing.TB) (path string, pageSize int) {
	path = filepath.Join(t.TempDir(), "x.db")
	s, err := Open(path, Options{NoSync: true})
	require.NoError(t, err)
	for i := range 40 {
		var ops []store.Op
		for j := range 40 {
			ops = append(ops, put(fmt.Sprintf("%04d-%02d", j*40+i, i), string(make([]byte, 100+i*j%700))))
		}
		ops = append(ops, store.Op{Key: []byte(fmt.Sprintf("%04d-%02d", i*20, i/2)), Delete: true}, put("large", string(make([]byte, 20_000+i))))
		_, err := s.Apply(ctx, store.Tx{Ops: ops})
		require.NoError(t, err)
	}
	pageSize = s.db.Info().PageSize
	require.NoError(t, s.Check(ctx, func(d string) { t.Error(d) }))
	require.NoError(t, s.Close())
	return path, pageSize
}

// TestDamagedPages: whatever is in the file, Open refuses it or every call returns; nothing kills the process.
func TestDamagedPages(t *testing.T) {
	path, size := grown(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 200 {
		b := bytes.Clone(whole)
		page := rnd.IntN(len(b)/size) * size
		switch i % 4 {
		case 0: // a header, or the first elements
			for range 1 + rnd.IntN(3) {
				b[page+rnd.IntN(48)] ^= byte(1 << rnd.IntN(8))
			}
		case 1: // a page in another's place
			copy(b[page:page+size], whole[rnd.IntN(len(b)/size)*size:])
		case 2: // a lost page
			for j := range size {
				b[page+j] = byte(rnd.Uint32())
			}
		default: // a cut file
			b = b[:rnd.IntN(len(b))]
		}
		require.NoError(t, os.WriteFile(path, b, 0o644))
		s, err := Open(path, Options{NoSync: true})
		if err != nil {
			require.ErrorIs(t, err, store.ErrDamaged)
			refused++
			continue
		}
		_, _ = s.Range(ctx, store.RangeRequest{})
		_, _ = s.Apply(ctx, store.Tx{Ops: []store.Op{put("0400-x", "v")}})
		require.NoError(t, s.Check(ctx, func(string) {}))
		require.NoError(t, s.Close())
	}
	require.Greater(t, refused, 50)
	require.NoError(t, os.WriteFile(path, whole, 0o644))
}

// TestPageProblems: each kind of damage is named.
func TestPageProblems(t *testing.T) {
	path, size := grown(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := Open(path, Options{NoSync: true, ReadOnly: true})
	require.NoError(t, err)
	m, err := readMeta(bytes.NewReader(whole), s.Revision())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	le := binary.LittleEndian
	at := func(b []byte, id uint64) []byte { return b[id*uint64(size):] }
	// The root page of the file holds one bucket; its root is the branch page.
	root := at(whole, m.root)
	element := root[pageHeaderSize:]
	branch := le.Uint64(element[le.Uint32(element[4:])+le.Uint32(element[8:]):])
	require.Equal(t, uint16(flagBranch), le.Uint16(at(whole, branch)[8:]))
	child := func(b []byte, i int) []byte { return at(b, branch)[pageHeaderSize+elementSize*i+8:] }
	for le.Uint16(at(whole, le.Uint64(child(whole, 0)))[8:]) == flagBranch { // down to the last branch page
		branch = le.Uint64(child(whole, 0))
	}
	first := le.Uint64(child(whole, 0))
	for name, c := range map[string]struct {
		damage func(b []byte)
		says   string
	}{
		"a circle":        {func(b []byte) { le.PutUint64(child(b, 0), branch) }, "is in use"},
		"two parents":     {func(b []byte) { le.PutUint64(child(b, 1), first) }, "is in use"},
		"outside":         {func(b []byte) { le.PutUint64(child(b, 1), m.high+7) }, "outside the file"},
		"overflow":        {func(b []byte) { le.PutUint32(at(b, first)[12:], 1<<31) }, "outside the file"},
		"another id":      {func(b []byte) { le.PutUint64(at(b, first), 1) }, "says that it is page 1"},
		"flags":           {func(b []byte) { le.PutUint16(at(b, first)[8:], 0x44) }, "neither branch nor leaf"},
		"count":           {func(b []byte) { le.PutUint16(at(b, first)[10:], 60_000) }, "more than fit"},
		"a long key":      {func(b []byte) { le.PutUint32(at(b, first)[pageHeaderSize+8:], 1<<28) }, "is outside it"},
		"order":           {func(b []byte) { copy(at(b, first)[pageHeaderSize+4:], at(b, first)[pageHeaderSize+elementSize:][4:12]) }, ""},
		"a used page":     {func(b []byte) { le.PutUint64(at(b, m.freelist)[pageHeaderSize:], branch) }, ""},
		"freelist length": {func(b []byte) { le.PutUint16(at(b, m.freelist)[10:], 60_000) }, "more than fit"},
	} {
		b := bytes.Clone(whole)
		c.damage(b)
		require.NoError(t, os.WriteFile(path, b, 0o644))
		_, err := Open(path, Options{NoSync: true})
		require.ErrorIs(t, err, store.ErrDamaged, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
