package engine

import (
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// A table's own properties stand above the server's retention; what is no number does not count; a minute always stays.
func TestRetention(t *testing.T) {
	server := Retention{Snapshots: 100, Age: time.Hour}
	for name, c := range map[string]struct {
		props iceberg.Properties
		want  Retention
	}{
		"none":           {nil, server},
		"both":           {iceberg.Properties{propMinSnapshots: "3", propMaxSnapshotAge: "120000"}, Retention{Snapshots: 3, Age: 2 * time.Minute}},
		"below a minute": {iceberg.Properties{propMaxSnapshotAge: "0"}, Retention{Snapshots: 100, Age: time.Minute}},
		"no numbers":     {iceberg.Properties{propMinSnapshots: "many", propMaxSnapshotAge: "1 day"}, server},
		"out of range":   {iceberg.Properties{propMinSnapshots: "0", propMaxSnapshotAge: "9223372036854775807"}, server},
	} {
		require.Equal(t, c.want, server.of(c.props), name)
	}
	require.Equal(t, Retention{Snapshots: 0, Age: time.Minute}, Retention{}.of(nil))
}
