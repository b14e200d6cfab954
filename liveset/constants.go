package liveset

import "github.com/apache/iceberg-go"

// learnConstants notes which columns a file's partition tells: sources of identity transforms. Where the file has not got such a column, as files that
// were adopted from Hive tables have not, its value is the partition's (spec, "Column Projection", first rule).
func (f *File) learnConstants(ref Ref) {
	if len(f.Data.Partition()) == 0 || f.hot.constants.Load() != nil {
		return
	}
	spec := ref.Metadata.PartitionSpecByID(f.SpecID)
	if spec == nil {
		return
	}
	known := map[int]any{}
	for _, p := range spec.Fields() {
		v, ok := f.Data.Partition()[p.FieldID]
		if _, identity := p.Transform.(iceberg.IdentityTransform); ok && identity && len(p.SourceIDs) == 1 {
			known[p.SourceIDs[0]] = constant(v)
		}
	}
	if len(known) > 0 {
		f.hot.constants.Store(&known)
	}
}

// constant is a partition value as a default is written.
func constant(v any) any {
	switch v := v.(type) {
	case iceberg.Date:
		return int32(v)
	case iceberg.Time:
		return int64(v)
	case iceberg.Timestamp:
		return int64(v)
	case iceberg.TimestampNano:
		return int64(v)
	}
	return v
}
