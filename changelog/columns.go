package changelog

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// metadataFields are the columns that follow the table's; int8 and int4 of the documentation are int64 and int32 here.
var metadataFields = []arrow.Field{
	{Name: ColChangeType, Type: arrow.BinaryTypes.String},
	{Name: ColChangeOrdinal, Type: arrow.PrimitiveTypes.Int32},
	{Name: ColCommitSnapshot, Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: ColCommitSeq, Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: ColCommitTimestamp, Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: ColChangeRow, Type: arrow.PrimitiveTypes.Int64},
}

var rowIDField = arrow.Field{Name: ColRowID, Type: arrow.PrimitiveTypes.Int64, Nullable: true}

// Columns describes the change relation of a table with its current schema, without reading data: what Describe needs
// when to is a parameter. Errors: iceberg-go's catalog.ErrNoSuchTable, ErrReservedColumn.
func (r *Reader) Columns(ctx context.Context, cut *catalog.Cut, ident table.Identifier) (*Columns, error) {
	h, err := r.openHistory(ctx, cut, ident)
	if err != nil {
		return nil, err
	}
	return describeColumns(h.meta.CurrentSchema(), h.meta.Version())
}

// ColumnsAt is Columns for a window whose to is a constant. Errors: also those of StateAt.
func (r *Reader) ColumnsAt(ctx context.Context, cut *catalog.Cut, ident table.Identifier, to Bound) (*Columns, error) {
	h, err := r.openHistory(ctx, cut, ident)
	if err != nil {
		return nil, err
	}
	p, err := h.resolve(ctx, to, false)
	if err != nil {
		return nil, err
	}
	st, err := h.describe(ctx, p)
	if err != nil {
		return nil, err
	}
	return describeColumns(st.Schema, h.meta.Version())
}

// ColumnsOf is Columns for a table of that schema and format version which no commit knows yet. Errors: ErrReservedColumn.
func ColumnsOf(sc *iceberg.Schema, version int) (*Columns, error) {
	return describeColumns(sc, version)
}

func describeColumns(sc *iceberg.Schema, version int) (*Columns, error) {
	base, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		return nil, fmt.Errorf("convert table schema: %w", err)
	}
	meta := metadataFields
	if version >= 3 {
		meta = append(slices.Clone(meta), rowIDField)
	}
	for _, f := range base.Fields() {
		for _, m := range meta {
			if f.Name == m.Name {
				return nil, &Error{Err: ErrReservedColumn, Message: fmt.Sprintf("column %q of the table has the name of a change column", f.Name),
					Hint: "Rename the column; the table's data need not be rewritten."}
			}
		}
	}
	// A row may be missing in a column that is required today: what a change shows is nullable.
	fields := make([]arrow.Field, 0, len(base.Fields())+len(meta))
	for _, f := range base.Fields() {
		f.Nullable = true
		fields = append(fields, f)
	}
	return &Columns{
		Schema: arrow.NewSchema(append(fields, meta...), nil),
		Table:  sc, Kind: kindOf(sc), FormatVersion: version,
	}, nil
}

// identifierIDs maps column names of the asked schema to field ids.
func identifierIDs(sc *iceberg.Schema, names []string) ([]int, error) {
	var ids []int
	for _, name := range names {
		i := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		if i < 0 {
			return nil, &Error{Err: ErrUnknownColumn, Message: fmt.Sprintf("identifier names column %q, which the table does not have", name)}
		}
		ids = append(ids, sc.Field(i).ID)
	}
	return ids, nil
}
