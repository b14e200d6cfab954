package parquetio

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// ArrowSchema is the Arrow schema rows of sc are exchanged in: field ids in the metadata on every level, strings and binaries with 32-bit
// offsets. rowIDs appends the v3 columns _row_id and _last_updated_sequence_number, both nullable longs.
func ArrowSchema(sc *iceberg.Schema, rowIDs bool) (*arrow.Schema, error) {
	if rowIDs {
		sc = iceberg.SchemaWithRowLineage(sc)
	}
	as, err := table.SchemaToArrowSchema(sc, nil, true, false)
	if err != nil {
		return nil, fmt.Errorf("arrow schema: %w", err)
	}
	return arrow.NewSchema(as.Fields(), nil), nil
}

// conform gives rec exactly the schema want when its columns have the same physical layout: names, field ids and nullability
// of nested fields may differ, and an extension type may come as its storage.
func conform(rec arrow.RecordBatch, want *arrow.Schema) (arrow.RecordBatch, error) {
	if rec.Schema().Equal(want) {
		rec.Retain()
		return rec, nil
	}
	if int(rec.NumCols()) != want.NumFields() {
		return nil, fmt.Errorf("parquetio: batch has %d columns, schema %d", rec.NumCols(), want.NumFields())
	}
	cols := make([]arrow.Array, want.NumFields())
	defer releaseAll(cols)
	for i, f := range want.Fields() {
		d, err := relabel(rec.Column(i).Data(), f.Type)
		if err != nil {
			return nil, fmt.Errorf("parquetio: column %s: %w", f.Name, err)
		}
		cols[i] = array.MakeFromData(d)
		d.Release()
	}
	return array.NewRecordBatch(want, cols, rec.NumRows()), nil
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

// relabel returns d as type want without copying; the layouts must agree.
func relabel(d arrow.ArrayData, want arrow.DataType) (arrow.ArrayData, error) {
	if arrow.TypeEqual(d.DataType(), want, arrow.CheckMetadata()) {
		d.Retain()
		return d, nil
	}
	from, to := storage(d.DataType()), storage(want)
	var kids []arrow.ArrayData
	switch t := to.(type) {
	case *arrow.StructType:
		st, ok := from.(*arrow.StructType)
		if !ok || st.NumFields() != t.NumFields() {
			return nil, fmt.Errorf("%s is not %s", from, to)
		}
		for i := range t.NumFields() {
			k, err := relabel(d.Children()[i], t.Field(i).Type)
			if err != nil {
				return nil, err
			}
			defer k.Release()
			kids = append(kids, k)
		}
	case *arrow.ListType, *arrow.MapType:
		if from.ID() != to.ID() {
			return nil, fmt.Errorf("%s is not %s", from, to)
		}
		k, err := relabel(d.Children()[0], to.(arrow.ListLikeType).Elem())
		if err != nil {
			return nil, err
		}
		defer k.Release()
		kids = append(kids, k)
	default:
		if !arrow.TypeEqual(from, to) {
			return nil, fmt.Errorf("%s is not %s", from, to)
		}
	}
	return array.NewData(want, d.Len(), d.Buffers(), kids, d.NullN(), d.Offset()), nil
}

func storage(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// batchBytes is about how many bytes of memory a batch's values take, slices counted by their own rows.
func batchBytes(rec arrow.RecordBatch) (n int64) {
	for _, c := range rec.Columns() {
		n += arrayBytes(c)
	}
	return n
}

func arrayBytes(a arrow.Array) int64 {
	n := int64(a.Len()) / 8
	switch v := a.(type) {
	case array.ExtensionArray:
		return arrayBytes(v.Storage())
	case *array.String:
		n += int64(v.Len()) * 4
		if o := v.ValueOffsets(); len(o) > 0 {
			n += int64(o[len(o)-1] - o[0])
		}
	case *array.Binary:
		n += int64(v.Len()) * 4
		if o := v.ValueOffsets(); len(o) > 0 {
			n += int64(o[len(o)-1] - o[0])
		}
	case *array.Struct:
		for i := range v.NumField() {
			n += arrayBytes(v.Field(i))
		}
	case array.ListLike:
		n += int64(v.Len())*4 + arrayBytes(v.ListValues())
	default:
		if w, ok := a.DataType().(arrow.FixedWidthDataType); ok {
			n += int64(a.Len()) * int64(max(w.BitWidth(), 8)) / 8
		}
	}
	return n
}
