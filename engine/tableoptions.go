package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Options of CREATE TABLE … WITH and ALTER TABLE … SET. Every other name is an Iceberg property, in double quotes.
const (
	optionFormat       = "format_version"
	optionPartitioning = "partitioning"
	optionSortOrder    = "sort_order"
)

// tableOptions are changes of what rows of a table look like on disk. Columns are named; updates binds them to a schema.
type tableOptions struct {
	format       int // 0: as it is
	partitioning *[]layoutField
	sortOrder    *[]layoutField
	// sortIDs is the sort order that is left of the old one when its columns go or get other field ids.
	sortIDs *[]table.SortField
}

func badOption(name, value, why string) *pgerr.Error {
	return pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"%s\": \"%s\"", name, value).WithDetail("%s", why)
}

// set reads one option; property says that it is a property of the table instead.
func (o *tableOptions) set(name, value string) (property bool, err error) {
	switch name {
	case optionFormat:
		if value != "2" && value != "3" {
			return false, pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"%s\": \"%s\"", optionFormat, value).WithHint("Format versions 2 and 3 are supported.")
		}
		o.format, _ = strconv.Atoi(value)
		return false, nil
	case optionPartitioning:
		fields, err := parseLayout(value, false)
		if err != nil {
			return false, err
		}
		o.partitioning = &fields
		return false, nil
	case optionSortOrder:
		fields, err := parseLayout(value, true)
		if err != nil {
			return false, err
		}
		o.sortOrder = &fields
		return false, nil
	}
	return true, settableProperty(name)
}

// placeProperties say where files go, which is the server's to decide: a client that sets them would write anywhere.
var placeProperties = []string{"write.data.path", "write.metadata.path", "write.folder-storage.path", "write.object-storage.path", "write.location-provider.impl"}

// settableProperty refuses a table property that a client may not set.
func settableProperty(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !strings.ContainsAny(name, ".-") || strings.HasPrefix(lower, "skade."):
		return pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized parameter \"%s\"", name).
			WithHint("Supported: format_version, partitioning, sort_order, and Iceberg table properties in double quotes.")
	case slices.Contains(placeProperties, lower):
		return pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied to set table property \"%s\"", name).WithDetail("The server decides where a table's files are.")
	case lower == "format-version":
		return pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized parameter \"%s\"", name).WithHint("Use format_version.")
	case lower == "schema.name-mapping.default", lower == "write.format.default":
		return pgerr.Newf(pgerr.FeatureNotSupported, "table property \"%s\" cannot be set", name).WithDetail("Data files are Parquet and carry Iceberg's field ids.")
	}
	return nil
}

func fieldNamed(sc *iceberg.Schema, name string) (iceberg.NestedField, bool) {
	for _, f := range sc.Fields() {
		if f.Name == name {
			return f, true
		}
	}
	return iceberg.NestedField{}, false
}

func noSuchColumn(option, column string) error {
	return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" named in option \"%s\" does not exist", column, option)
}

// spec binds the partitioning to a schema. A field that an older spec of md has keeps its id and name; md is nil for a new table.
func (o *tableOptions) spec(sc *iceberg.Schema, md table.Metadata) (iceberg.PartitionSpec, error) {
	var opts []iceberg.PartitionOption
	for _, l := range *o.partitioning {
		f, ok := fieldNamed(sc, l.column)
		if !ok {
			return iceberg.PartitionSpec{}, noSuchColumn(optionPartitioning, l.column)
		}
		if !l.transform.CanTransform(f.Type) {
			return iceberg.PartitionSpec{}, pgerr.Newf(pgerr.InvalidParameterValue, "cannot partition by %s: column \"%s\" is of Iceberg type %s", l.text(), l.column, f.Type)
		}
		if _, float := f.Type.(iceberg.Float32Type); float {
			return iceberg.PartitionSpec{}, floatPartition(l.column)
		}
		if _, float := f.Type.(iceberg.Float64Type); float {
			return iceberg.PartitionSpec{}, floatPartition(l.column)
		}
		name, id := l.partitionName(f.ID, md)
		opts = append(opts, iceberg.AddPartitionFieldBySourceID(f.ID, name, l.transform, sc, id))
	}
	spec, err := iceberg.NewPartitionSpecOpts(opts...)
	if err != nil {
		return spec, pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"%s\"", optionPartitioning).WithDetail("%s", strings.TrimPrefix(err.Error(), "invalid partition spec: "))
	}
	return spec, nil
}

// floatPartition: -0 and 0, and the NaNs, would be partitions of their own in one engine and one partition in another.
func floatPartition(column string) error {
	return pgerr.Newf(pgerr.FeatureNotSupported, "cannot partition by column \"%s\": partitions of floating-point values are not supported", column)
}

// partitionName is the field's name, and its id when a spec of the table has the field already.
func (f layoutField) partitionName(source int, md table.Metadata) (name string, id *int) {
	plain, numbered := f.column+f.suffix(false), f.column+f.suffix(true)
	if md == nil {
		return plain, nil
	}
	names := map[string]bool{}
	for _, spec := range md.PartitionSpecs() {
		for _, p := range spec.Fields() {
			if slices.Equal(p.SourceIDs, []int{source}) && p.Transform.Equals(f.transform) {
				fieldID := p.FieldID
				return p.Name, &fieldID
			}
			names[p.Name] = true
		}
	}
	switch {
	case !names[plain]:
		return plain, nil
	case !names[numbered]:
		return numbered, nil
	}
	return plain + "_" + strconv.Itoa(source), nil
}

// order binds the sort order to a schema.
func (o *tableOptions) order(sc *iceberg.Schema) ([]table.SortField, error) {
	out := []table.SortField{}
	for _, l := range *o.sortOrder {
		f, ok := fieldNamed(sc, l.column)
		if !ok {
			return nil, noSuchColumn(optionSortOrder, l.column)
		}
		if _, primitive := f.Type.(iceberg.PrimitiveType); !primitive {
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "cannot sort by column \"%s\" of Iceberg type %s", l.column, f.Type.Type())
		}
		s := table.SortField{SourceIDs: []int{f.ID}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsFirst}
		if l.desc {
			s.Direction = table.SortDESC
		}
		if l.nullsLast {
			s.NullOrder = table.NullsLast
		}
		if slices.ContainsFunc(out, func(x table.SortField) bool { return x.SourceID() == f.ID }) {
			return nil, badOption(optionSortOrder, l.column, fmt.Sprintf("Column \"%s\" is there twice.", l.column))
		}
		out = append(out, s)
	}
	return out, nil
}

// layout is the partition spec and the sort order of a new table, nil for none.
func (o *tableOptions) layout(sc *iceberg.Schema) (spec *iceberg.PartitionSpec, order *table.SortOrder, err error) {
	if o.partitioning != nil {
		s, err := o.spec(sc, nil)
		if err != nil {
			return nil, nil, err
		}
		spec = &s
	}
	if o.sortOrder != nil && len(*o.sortOrder) > 0 {
		fields, err := o.order(sc)
		if err != nil {
			return nil, nil, err
		}
		so, err := table.NewSortOrder(table.InitialSortOrderID, fields)
		if err != nil {
			return nil, nil, pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"%s\"", optionSortOrder).WithDetail("%s", err.Error())
		}
		order = &so
	}
	return spec, order, nil
}

// updates are the metadata updates for a table that is there.
func (o *tableOptions) updates(md table.Metadata, sc *iceberg.Schema) ([]table.Update, error) {
	var out []table.Update
	if o.partitioning != nil {
		spec, err := o.spec(sc, md)
		if err != nil {
			return nil, err
		}
		if now := md.PartitionSpec(); !spec.CompatibleWith(&now) {
			out = append(out, table.NewAddPartitionSpecUpdate(&spec, false), table.NewSetDefaultSpecUpdate(-1))
		}
	}
	fields := o.sortIDs
	if o.sortOrder != nil {
		f, err := o.order(sc)
		if err != nil {
			return nil, err
		}
		fields = &f
	}
	if fields == nil {
		return out, nil
	}
	id := 0
	if len(*fields) > 0 {
		id = 1
		for _, s := range md.SortOrders() {
			id = max(id, s.OrderID()+1)
		}
	}
	order, err := table.NewSortOrder(id, *fields)
	if err != nil {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"%s\"", optionSortOrder).WithDetail("%s", err.Error())
	}
	if now := md.SortOrder(); !order.Equals(now) {
		out = append(out, table.NewAddSortOrderUpdate(&order), table.NewSetDefaultSortOrderUpdate(-1))
	}
	return out, nil
}

func (o *tableOptions) currentSort(md table.Metadata) []table.SortField {
	if o.sortIDs != nil {
		return *o.sortIDs
	}
	var out []table.SortField
	so := md.SortOrder()
	for _, f := range so.Fields() {
		out = append(out, f)
	}
	return out
}

// setOptions is SET (…) and RESET (…).
func (a *alteration) setOptions(x *pgsql.AlterAction) error {
	names := make([]string, 0, len(x.Options))
	for name := range x.Options {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if x.Do == pgsql.ResetOptions {
			if err := a.resetOption(name); err != nil {
				return err
			}
			continue
		}
		property, err := a.opts.set(name, x.Options[name])
		if err != nil {
			return err
		}
		if property {
			a.gone = slices.DeleteFunc(a.gone, func(k string) bool { return k == name })
			a.props[name] = x.Options[name]
		}
	}
	if v := a.t.Metadata().Version(); a.opts.format != 0 && a.opts.format < v {
		return pgerr.Newf(pgerr.InvalidParameterValue, "cannot change format_version from %d to %d", v, a.opts.format).
			WithDetail("Iceberg's format version can be raised, never lowered.")
	}
	return nil
}

func (a *alteration) resetOption(name string) error {
	none := []layoutField{}
	switch name {
	case optionFormat:
		return pgerr.New(pgerr.InvalidParameterValue, "option \"format_version\" cannot be reset").WithDetail("Iceberg's format version can be raised, never lowered.")
	case optionPartitioning:
		a.opts.partitioning = &none
	case optionSortOrder:
		a.opts.sortOrder = &none
	default:
		if err := settableProperty(name); err != nil {
			return err
		}
		a.unset(name)
	}
	return nil
}

// quietProperties are set on every new table; the options of a table are what differs.
var quietProperties = map[string]string{
	"write.parquet.compression-codec": "zstd", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read", "write.merge.mode": "merge-on-read",
}

// shownOptions are a table's options as pg_class.reloptions has them, so that \d+ shows what WITH would take.
func shownOptions(md table.Metadata) []string {
	var out []string
	if v := md.Version(); v != 2 {
		out = append(out, optionFormat+"="+strconv.Itoa(v))
	}
	sc := md.CurrentSchema()
	name := func(ids []int) string {
		n, _ := sc.FindColumnName(ids[0])
		return n
	}
	var parts []string
	spec := md.PartitionSpec()
	for _, p := range spec.Fields() {
		if _, void := p.Transform.(iceberg.VoidTransform); !void && len(p.SourceIDs) == 1 {
			parts = append(parts, layoutField{transform: p.Transform, column: name(p.SourceIDs)}.text())
		}
	}
	if len(parts) > 0 {
		out = append(out, optionPartitioning+"="+strings.Join(parts, ", "))
	}
	var sorts []string
	so := md.SortOrder()
	for _, f := range so.Fields() {
		if len(f.SourceIDs) != 1 {
			continue
		}
		text := layoutField{transform: f.Transform, column: name(f.SourceIDs)}.text()
		if f.Direction == table.SortDESC {
			text += " DESC"
		}
		switch {
		case f.Direction == table.SortDESC && f.NullOrder == table.NullsLast:
			text += " NULLS LAST"
		case f.Direction == table.SortASC && f.NullOrder == table.NullsFirst:
			text += " NULLS FIRST"
		}
		sorts = append(sorts, text)
	}
	if len(sorts) > 0 {
		out = append(out, optionSortOrder+"="+strings.Join(sorts, ", "))
	}
	var props []string
	for k, v := range md.Properties() {
		if quietProperties[k] != v && settableProperty(k) == nil {
			props = append(props, k+"="+v)
		}
	}
	slices.Sort(props)
	return append(out, props...)
}
