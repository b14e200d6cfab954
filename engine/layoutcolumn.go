package engine

import (
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// partitionsBy says whether a spec of the table, the current or an older one, has a field from a column.
func partitionsBy(md table.Metadata, id int) bool {
	for _, spec := range md.PartitionSpecs() {
		for _, p := range spec.Fields() {
			if _, void := p.Transform.(iceberg.VoidTransform); !void && slices.Contains(p.SourceIDs, id) {
				return true
			}
		}
	}
	return false
}

// currentPartitioning is the current spec as the option has it. It names columns.
func currentPartitioning(md table.Metadata) (fields []layoutField, sources []int) {
	spec, sc := md.PartitionSpec(), md.CurrentSchema()
	for _, p := range spec.Fields() {
		if _, void := p.Transform.(iceberg.VoidTransform); void || len(p.SourceIDs) != 1 {
			continue
		}
		if name, ok := sc.FindColumnName(p.SourceIDs[0]); ok {
			fields, sources = append(fields, layoutField{transform: p.Transform, column: name}), append(sources, p.SourceIDs[0])
		}
	}
	return fields, sources
}

// forgetColumn takes a column that goes out of the layout: its partition fields, and the sort order from it on, which means nothing without it. Files
// that are there keep their spec; other engines read one whose column is gone, too.
func (o *tableOptions) forgetColumn(md table.Metadata, id int) {
	if fields, sources := currentPartitioning(md); o.partitioning == nil && slices.Contains(sources, id) {
		o.partitioning = &fields
	}
	if o.partitioning != nil {
		name, _ := md.CurrentSchema().FindColumnName(id)
		left := slices.DeleteFunc(slices.Clone(*o.partitioning), func(l layoutField) bool { return l.column == name })
		o.partitioning = &left
	}
	if o.sortOrder != nil {
		return
	}
	fields := o.currentSort(md)
	for i, f := range fields {
		if slices.Contains(f.SourceIDs, id) {
			cut := slices.Clone(fields[:i])
			o.sortIDs = &cut
			return
		}
	}
}

// replaceColumn keeps the layout of a column that gets a new field id: a new spec has it as its source.
func (o *tableOptions) replaceColumn(md table.Metadata, old, now int) {
	if fields, sources := currentPartitioning(md); o.partitioning == nil && slices.Contains(sources, old) {
		o.partitioning = &fields
	}
	fields := slices.Clone(o.currentSort(md))
	for i, f := range fields {
		if slices.Equal(f.SourceIDs, []int{old}) {
			fields[i].SourceIDs = []int{now}
			o.sortIDs = &fields
		}
	}
}
