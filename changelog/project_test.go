package changelog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apache/iceberg-go"
)

// TestProject: the named columns in their order, then all metadata columns; a projected batch is not collapsed.
func TestProject(t *testing.T) {
	long, text := iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.String
	b := keyBatch(t, 1, []iceberg.Type{long, text, long}, []any{Delete, 1, "a", 2}, []any{Insert, 1, "b", 3})
	net, err := b.Collapse()
	require.NoError(t, err)
	p, err := net.Project("k2", "k1", "k2", ColCommitSeq)
	require.NoError(t, err)
	var names []string
	for _, f := range p.Columns.Schema.Fields() {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"k2", "k1", ColChangeType, ColChangeOrdinal, ColCommitSnapshot, ColCommitSeq, ColCommitTimestamp, ColChangeRow}, names)
	require.Equal(t, []string{`UPDATE_BEFORE "2"|"a" #0`, `UPDATE_AFTER "3"|"b" #0`}, foldTexts(t, p))
	require.True(t, p.Columns.Schema.Equal(p.Records[0].Schema()))

	none, err := net.Project()
	require.NoError(t, err)
	require.Equal(t, ColChangeType, none.Columns.Schema.Field(0).Name, "_change_type always stays")
	require.EqualValues(t, 2, none.Rows())

	_, err = net.Project("k1", "K1")
	require.ErrorIs(t, err, ErrUnknownColumn)
	require.ErrorContains(t, err, `"K1"`)
	_, err = p.Collapse()
	require.ErrorIs(t, err, ErrUnknownColumn)
}
