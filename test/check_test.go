package test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
)

// checkFolder runs the one Check on a folder that no server holds.
func checkFolder(t testing.TB, dir string) {
	t.Helper()
	var problems []string
	err := catalog.Check(context.Background(), dir, func(p catalog.Problem) { problems = append(problems, p.String()) })
	require.NoError(t, err)
	require.Empty(t, problems)
}
