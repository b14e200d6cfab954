package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// metadataOf is metadata of a version with n snapshots and everything that a metadata file can hold.
func metadataOf(t *testing.T, version, n int) table.Metadata {
	var snapshots, log []string
	for i := 1; i <= n; i++ {
		parent, v3 := "", ""
		if i > 1 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, i-1)
		}
		if version == 3 {
			v3 = fmt.Sprintf(`,"first-row-id":%d,"added-rows":10`, 10*(i-1))
		}
		snapshots = append(snapshots, fmt.Sprintf(`{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"s3://b/<&>/snap-%d.avro",
			"summary":{"operation":"append","added-records":"10","k":"v"},"schema-id":0%s}`, i, parent, i, 1700000000000+i, i, v3))
		log = append(log, fmt.Sprintf(`{"snapshot-id":%d,"timestamp-ms":%d}`, i, 1700000000000+i))
	}
	current, refs, next := "", "", ""
	if n > 0 {
		current = fmt.Sprintf(`"current-snapshot-id":%d,`, n)
		refs = fmt.Sprintf(`"refs":{"main":{"snapshot-id":%d,"type":"branch"},"t":{"snapshot-id":1,"type":"tag","max-ref-age-ms":100}},`, n)
	}
	if version == 3 {
		next = fmt.Sprintf(`,"next-row-id":%d`, 10*n)
	}
	doc := fmt.Sprintf(`{"format-version":%d,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":%d,
		"last-updated-ms":1700000001000,"last-column-id":3,"current-schema-id":1,
		"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]},
		 {"type":"struct","schema-id":1,"identifier-field-ids":[1],"fields":[{"id":1,"name":"x","required":true,"type":"long","doc":"a <doc>"},
		  {"id":2,"name":"l","required":false,"type":{"type":"list","element-id":3,"element":"decimal(9, 2)","element-required":false}}]}],
		"default-spec-id":1,"last-partition-id":1000,"partition-specs":[{"spec-id":0,"fields":[]},
		 {"spec-id":1,"fields":[{"name":"x_b","transform":"bucket[16]","source-id":1,"field-id":1000}]}],
		"default-sort-order-id":3,"sort-orders":[{"order-id":3,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}],
		"properties":{"a.b":"c","<":">"},%s%s"snapshots":[%s],"snapshot-log":[%s],
		"metadata-log":[{"metadata-file":"s3://b/t/1.json","timestamp-ms":1700000000000}],
		"statistics":[{"snapshot-id":1,"statistics-path":"s3://b/s.puffin","file-size-in-bytes":413,"file-footer-size-in-bytes":42,
		 "blob-metadata":[{"type":"ndv","snapshot-id":1,"sequence-number":1,"fields":[1]}]}],
		"partition-statistics":[{"snapshot-id":1,"statistics-path":"s3://b/p.parquet","file-size-in-bytes":43}]%s}`,
		version, n, current, refs, strings.Join(snapshots, ","), strings.Join(log, ","), next)
	m, err := table.ParseMetadataString(doc)
	require.NoError(t, err)
	return m
}

// TestMetadataEncoding: what we write is what iceberg-go writes, and reads.
func TestMetadataEncoding(t *testing.T) {
	asMap := func(b []byte) (v map[string]any) {
		require.NoError(t, json.Unmarshal(b, &v))
		return v
	}
	for _, version := range []int{2, 3} {
		for _, n := range []int{0, 1, 5, 6, 3, 0, 4, 4} {
			m := metadataOf(t, version, n)
			want, err := json.Marshal(m)
			require.NoError(t, err)
			got, err := encodeMetadata(m)
			require.NoError(t, err)
			require.Equal(t, asMap(want), asMap(got), "version %d, %d snapshots", version, n)
			back, err := table.ParseMetadataBytes(got)
			require.NoError(t, err)
			require.True(t, m.Equals(back))
		}
	}
}
