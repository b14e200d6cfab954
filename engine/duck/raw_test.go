package duck

import (
	"testing"

	bind "github.com/duckdb/duckdb-go-bindings"
	"github.com/stretchr/testify/require"
)

// rawDB is a connection of an instance without the lock, for making files.
func rawDB(t testing.TB) *Conn {
	t.Helper()
	db := &DB{opts: Options{Threads: 2}, slots: newSlots(4)}
	db.mu.byID = map[uint64]*Conn{}
	require.NotEqual(t, bind.StateError, bind.Open(":memory:", &db.db))
	c, err := db.connect()
	require.NoError(t, err)
	t.Cleanup(func() {
		c.discard()
		bind.Close(&db.db)
	})
	return c
}
