package liveset

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// keyColumns says how key columns are read: read are the top-level columns that hold them, structs cut to the key fields; paths lead to each
// key field from there, by index.
type keyColumns struct {
	read  *iceberg.Schema
	paths [][]int
}

// keyColumns finds the fields ids, in the newest schema that has each.
func (r Ref) keyColumns(ids []int) (*keyColumns, error) {
	k := &keyColumns{paths: make([][]int, len(ids))}
	var fields []iceberg.NestedField
	for i, id := range ids {
		sc := r.schemaWith(id)
		if sc == nil {
			return nil, fmt.Errorf("%w: %d", ErrUnknownField, id)
		}
		chain := chainTo(sc.Fields(), id)
		if chain == nil {
			return nil, fmt.Errorf("%w: %d is in a list or a map", ErrUnknownField, id)
		}
		fields, k.paths[i] = graft(fields, chain)
	}
	for i := range fields {
		fields[i].Name = fmt.Sprint("key", fields[i].ID) // columns of two schemas may share a name
	}
	k.read = iceberg.NewSchema(0, fields...)
	return k, nil
}

// chainTo lists the fields from the top level down to id, through structs only; nil when there is no such way.
func chainTo(fields []iceberg.NestedField, id int) []iceberg.NestedField {
	for _, f := range fields {
		f.Required = false
		if f.ID == id {
			return []iceberg.NestedField{f}
		}
		if st, ok := f.Type.(*iceberg.StructType); ok {
			if rest := chainTo(st.FieldList, id); rest != nil {
				return append([]iceberg.NestedField{f}, rest...)
			}
		}
	}
	return nil
}

// graft adds a chain to a tree of fields and returns where it ends.
func graft(fields []iceberg.NestedField, chain []iceberg.NestedField) ([]iceberg.NestedField, []int) {
	f := chain[0]
	at := slices.IndexFunc(fields, func(g iceberg.NestedField) bool { return g.ID == f.ID })
	if len(chain) == 1 {
		if at < 0 {
			return append(fields, f), []int{len(fields)}
		}
		return fields, []int{at}
	}
	var below []iceberg.NestedField
	if at >= 0 {
		below = slices.Clone(fields[at].Type.(*iceberg.StructType).FieldList)
	}
	below, path := graft(below, chain[1:])
	f.Type = &iceberg.StructType{FieldList: below}
	if at < 0 {
		at, fields = len(fields), append(fields, f)
	} else {
		fields[at] = f
	}
	return fields, append([]int{at}, path...)
}

// hasKeys is an error when an equality delete file lacks one of its own key columns: what it deletes cannot be told, and the column's default
// would stand for the key.
func hasKeys(ref Ref, r *parquetio.Reader, ids []int) error {
	for _, id := range ids {
		ok, err := r.HasField(id, ref.Metadata.NameMapping())
		if err != nil {
			return err
		}
		if !ok {
			return &DamagedError{Path: r.Path(), Offset: -1, Err: fmt.Errorf("equality delete without its key column, field id %d", id)}
		}
	}
	return nil
}

// keyArrays yields the key columns of a file, those in structs too, batch by batch. A batch's arrays are valid until the next.
func (r Ref) keyArrays(ctx context.Context, file *parquetio.Reader, ids []int) iter.Seq2[[]arrow.Array, error] {
	return func(yield func([]arrow.Array, error) bool) {
		k, err := r.keyColumns(ids)
		if err != nil {
			yield(nil, err)
			return
		}
		cols := make([]arrow.Array, len(ids))
		for rec, err := range file.Scan(ctx, parquetio.ReadOptions{Schema: k.read, NameMapping: r.Metadata.NameMapping()}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i, path := range k.paths {
				cols[i] = leafOf(rec.Column(path[0]), path[1:])
			}
			more := yield(cols, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// leafOf is a field inside a struct column: NULL where a struct around it is.
func leafOf(col arrow.Array, path []int) arrow.Array {
	for _, i := range path {
		st := col.(*array.Struct)
		child := st.Field(i)
		if st.NullN() > 0 {
			child = maskedBy(child, st)
		}
		col = child
	}
	return col
}

// maskedBy is an array with NULLs also where its struct is NULL.
func maskedBy(a arrow.Array, st *array.Struct) arrow.Array {
	d := a.Data()
	bits := make([]byte, bitutil.BytesForBits(int64(d.Offset()+d.Len())))
	nulls := 0
	for i := range d.Len() {
		if a.IsNull(i) || st.IsNull(i) {
			nulls++
		} else {
			bitutil.SetBit(bits, d.Offset()+i)
		}
	}
	bufs := append([]*memory.Buffer{memory.NewBufferBytes(bits)}, d.Buffers()[1:]...)
	return array.MakeFromData(array.NewData(a.DataType(), d.Len(), bufs, d.Children(), nulls, d.Offset()))
}

// scanKeys calls do with the key (NULLs included) of every row of a file, in order.
func scanKeys(ctx context.Context, ref Ref, r *parquetio.Reader, ids []int, do func(pos uint32, key []byte)) error {
	pos, key := uint32(0), []byte(nil)
	for cols, err := range ref.keyArrays(ctx, r, ids) {
		if err != nil {
			return err
		}
		enc, err := keyindex.NewArrayEncoder(cols, keyindex.WithNulls())
		if err != nil {
			return err
		}
		for row := range cols[0].Len() {
			if key, err = enc.Append(key[:0], row); err != nil {
				return err
			}
			do(pos, key)
			pos++
		}
	}
	return nil
}
