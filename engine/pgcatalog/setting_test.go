package pgcatalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithUnit(t *testing.T) {
	for _, row := range readAnswers(t, "units.json")[0].Rows {
		require.Equal(t, row[3], withUnit(row[1], row[2], "integer"), row[0])
	}
}
