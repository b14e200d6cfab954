package parquetio

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// maxPlans is how many projections a reader remembers.
const maxPlans = 8

// plan maps a projected schema to the file's columns.
type plan struct {
	schema  *iceberg.Schema
	mapping iceberg.NameMapping
	arrow   *arrow.Schema
	cols    []planColumn
	flat    []int // columns that are read flat
	nested  *nestedPlan
}

type source8 uint8

const (
	fromFlat source8 = iota + 1
	fromNested
	fromNowhere // NULL or the initial default
)

type planColumn struct {
	from source8
	leaf int
	conv conversion
	nth  int         // among the nested columns
	def  arrow.Array // one value, nil = NULL
}

// nestedPlan reads columns that have structure through pqarrow and iceberg-go's projection.
type nestedPlan struct {
	want   *iceberg.Schema // the nested fields only
	file   *iceberg.Schema // the same fields as the file has them
	leaves []int
}

// planFor is the mapping of sc, remembered by the schema's identity.
func (r *Reader) planFor(ctx context.Context, sc *iceberg.Schema, nm iceberg.NameMapping) (*plan, error) {
	r.mu.Lock()
	for i, p := range r.plans {
		if p.schema == sc && (r.hasIDs || sameMapping(p.mapping, nm)) {
			if i > 0 {
				copy(r.plans[1:i+1], r.plans[:i])
				r.plans[0] = p
			}
			r.mu.Unlock()
			return p, nil
		}
	}
	r.mu.Unlock()
	p, err := r.makePlan(ctx, sc, nm)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.plans = append([]*plan{p}, r.plans[:min(len(r.plans), maxPlans-1)]...)
	r.mu.Unlock()
	return p, nil
}

func sameMapping(a, b iceberg.NameMapping) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// fieldByID finds the file's column for a field id: by the id the file carries, else by name mapping.
func (r *Reader) fieldByID(id int, nm iceberg.NameMapping) *fileField {
	for i := range r.fields {
		f := &r.fields[i]
		if r.hasIDs {
			if f.id == id {
				return f
			}
			continue
		}
		for _, m := range nm {
			if m.FieldID != nil && *m.FieldID == id && slices.Contains(m.Names, f.name) {
				return f
			}
		}
	}
	return nil
}

// HasField says whether the file holds a field, at any depth: by the ids it carries, else by name mapping; ErrNoFieldIDs when there is neither.
func (r *Reader) HasField(id int, nm iceberg.NameMapping) (bool, error) {
	if !r.hasIDs && len(nm) == 0 {
		return false, fmt.Errorf("%w: %s", ErrNoFieldIDs, r.path)
	}
	if r.fieldByID(id, nm) != nil {
		return true, nil
	}
	if !r.hasIDs { // inside the top-level column that the mapping leads through
		return slices.ContainsFunc(nm, func(m iceberg.MappedField) bool {
			return m.FieldID != nil && maps(m.Fields, id) && r.fieldByID(*m.FieldID, nm) != nil
		}), nil
	}
	for i := range r.meta.Schema.NumColumns() {
		if int(r.meta.Schema.Column(i).SchemaNode().FieldID()) == id {
			return true, nil
		}
	}
	return false, nil
}

// maps says whether a name mapping has an id, at any depth.
func maps(nm []iceberg.MappedField, id int) bool {
	return slices.ContainsFunc(nm, func(m iceberg.MappedField) bool {
		return m.FieldID != nil && *m.FieldID == id || maps(m.Fields, id)
	})
}

func (r *Reader) makePlan(ctx context.Context, sc *iceberg.Schema, nm iceberg.NameMapping) (*plan, error) {
	if !r.hasIDs && len(nm) == 0 && len(r.fields) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoFieldIDs, r.path)
	}
	as, err := ArrowSchema(sc, false)
	if err != nil {
		return nil, err
	}
	p := &plan{schema: sc, mapping: nm, arrow: as}
	var nestedFields []iceberg.NestedField
	var leaves []int
	for i, f := range sc.Fields() {
		ff := r.fieldByID(f.ID, nm)
		switch {
		case ff == nil:
			c := planColumn{from: fromNowhere}
			r.mu.Lock()
			v, known := r.constants[f.ID]
			r.mu.Unlock()
			if known {
				f.InitialDefault = v
			}
			if f.InitialDefault != nil {
				if c.def, err = defaultValue(f, as.Field(i).Type); err != nil {
					return nil, fmt.Errorf("value of %s, which is not in the file: %w", f.Name, err)
				}
			}
			p.cols = append(p.cols, c)
		case ff.flat != nil && isPrimitive(f.Type):
			conv, ok := conversionOf(ff.flat, f.Type)
			if !ok {
				return nil, &TypeError{Path: r.path, FieldID: f.ID, From: ff.flat.String(), To: f.Type.String()}
			}
			p.cols = append(p.cols, planColumn{from: fromFlat, leaf: ff.first, conv: conv})
			p.flat = append(p.flat, i)
		default:
			p.cols = append(p.cols, planColumn{from: fromNested, nth: len(nestedFields)})
			nestedFields = append(nestedFields, f)
			for l := ff.first; l < ff.last; l++ {
				leaves = append(leaves, l)
			}
		}
	}
	if len(nestedFields) > 0 {
		if p.nested, err = r.planNested(nestedFields, leaves, nm); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func isPrimitive(t iceberg.Type) bool {
	_, nested := t.(iceberg.NestedType)
	_, variant := t.(iceberg.VariantType)
	return !nested && !variant
}

func (r *Reader) planNested(fields []iceberg.NestedField, leaves []int, nm iceberg.NameMapping) (*nestedPlan, error) {
	as, err := pqarrow.FromParquet(r.meta.Schema, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("nested columns: %w", err)
	}
	var sub []arrow.Field
	for i := range r.fields {
		if slices.Contains(leaves, r.fields[i].first) {
			sub = append(sub, as.Field(i))
		}
	}
	var mapping iceberg.NameMapping
	if !r.hasIDs {
		mapping = nm
	}
	fs, err := table.ArrowSchemaToIceberg(arrow.NewSchema(sub, nil), false, mapping)
	if err != nil {
		return nil, fmt.Errorf("nested columns: %w", err)
	}
	slices.Sort(leaves)
	return &nestedPlan{want: iceberg.NewSchema(0, fields...), file: fs, leaves: leaves}, nil
}

// defaultValue is a field's initial default as an array of one value.
func defaultValue(f iceberg.NestedField, dt arrow.DataType) (a arrow.Array, err error) {
	defer func() { // a literal of another type than the field's
		if r := recover(); r != nil {
			a, err = nil, fmt.Errorf("%v", r)
		}
	}()
	if a, err = defaultArray(f.Type, f.InitialDefault, dt); a == nil && err == nil {
		err = fmt.Errorf("a column of type %s cannot have one", f.Type)
	}
	return a, err
}

func nestedOptions() table.SchemaOptions {
	return table.SchemaOptions{FormatVersion: 3, IncludeFieldIDs: true, AllowMissingRequired: true}
}

// absent is n rows of a column that the file has not.
func (c *planColumn) absent(ctx context.Context, dt arrow.DataType, n int) (arrow.Array, error) {
	if c.def == nil {
		return array.MakeArrayOfNull(memory.DefaultAllocator, dt, n), nil
	}
	a, err := takeArray(ctx, c.def, zeroIndices(n))
	if err != nil {
		return nil, err
	}
	defer a.Release()
	return asType(a, dt)
}

func asType(a arrow.Array, dt arrow.DataType) (arrow.Array, error) {
	d, err := relabel(a.Data(), dt)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

func zeroIndices(n int) arrow.Array {
	return uint32Array(make([]uint32, n))
}

func uint32Array(v []uint32) arrow.Array {
	buf := memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(v))
	data := array.NewData(arrow.PrimitiveTypes.Uint32, len(v), []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	return array.NewUint32Data(data)
}
