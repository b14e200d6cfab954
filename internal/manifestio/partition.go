package manifestio

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// partitionField is one field of the partition tuple.
type partitionField struct {
	id  int
	typ iceberg.Type
	// size is the length of a fixed, in bytes.
	size    int
	summary iceberg.FieldSummary
	nan     bool
	low, up any
}

func partitionFields(spec iceberg.PartitionSpec, sc *iceberg.Schema) ([]partitionField, error) {
	var out []partitionField
	for _, f := range spec.PartitionType(sc).FieldList {
		p := partitionField{id: f.ID, typ: f.Type}
		switch t := f.Type.(type) {
		case iceberg.DecimalType:
			p.size = decimalSize(t.Precision())
		case iceberg.FixedType:
			p.size = t.Len()
		case iceberg.UUIDType:
			p.size = 16
		case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.Float32Type, iceberg.Float64Type, iceberg.DateType, iceberg.TimeType,
			iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.StringType, iceberg.BinaryType:
		default:
			return nil, fmt.Errorf("partition field %d: type %s cannot be written", f.ID, f.Type)
		}
		out = append(out, p)
	}
	return out, nil
}

// decimalSize is the spec's: the least bytes that hold every value of the precision.
func decimalSize(precision int) int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	n := 1
	for new(big.Int).Lsh(big.NewInt(1), uint(8*n-1)).Cmp(limit) < 0 {
		n++
	}
	return n
}

// normal turns what a DataFile holds into one of bool, int64, float64, string, []byte, *big.Int, nil.
func (p *partitionField) normal(v any) (any, error) {
	if l, ok := v.(iceberg.Literal); ok {
		v = l.Any()
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		return v, nil
	case int:
		return int64(v), nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case iceberg.Date:
		return int64(v), nil
	case iceberg.Time:
		return int64(v), nil
	case iceberg.Timestamp:
		return int64(v), nil
	case iceberg.TimestampNano:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		return v, nil
	case []byte:
		return v, nil
	case uuid.UUID:
		return v[:], nil
	case [16]byte:
		return v[:], nil
	case iceberg.Decimal:
		return v.Val.BigInt(), nil
	case decimal128.Num:
		return v.BigInt(), nil
	}
	return nil, fmt.Errorf("partition field %d (%s): unexpected value of type %T", p.id, p.typ, v)
}

// append writes the value, and counts it in the summary.
func (p *partitionField) append(b []byte, v any) ([]byte, error) {
	v, err := p.normal(v)
	if err != nil {
		return nil, err
	}
	if v == nil {
		p.summary.ContainsNull = true
		return appendNull(b), nil
	}
	b = appendSome(b)
	switch p.typ.(type) {
	case iceberg.BooleanType:
		if x, ok := v.(bool); ok {
			p.count(x)
			return appendBool(b, x), nil
		}
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if x, ok := v.(int64); ok {
			p.count(x)
			return appendLong(b, x), nil
		}
	case iceberg.Float32Type:
		if x, ok := v.(float64); ok {
			p.count(x)
			return appendFloat(b, float32(x)), nil
		}
	case iceberg.Float64Type:
		if x, ok := v.(float64); ok {
			p.count(x)
			return appendDouble(b, x), nil
		}
	case iceberg.StringType:
		if x, ok := v.(string); ok {
			p.count(x)
			return appendBytes(b, x), nil
		}
	case iceberg.BinaryType:
		if x, ok := v.([]byte); ok {
			p.count(x)
			return appendBytes(b, x), nil
		}
	case iceberg.FixedType, iceberg.UUIDType:
		if x, ok := v.([]byte); ok && len(x) == p.size {
			p.count(x)
			return append(b, x...), nil
		}
	case iceberg.DecimalType:
		if x, ok := v.(*big.Int); ok {
			p.count(x)
			return append(b, twosComplement(x, p.size)...), nil
		}
	}
	return nil, fmt.Errorf("partition field %d: a %T is no %s", p.id, v, p.typ)
}

func (p *partitionField) count(v any) {
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		p.nan = true
		return
	}
	if p.low == nil || compare(v, p.low) < 0 {
		p.low = v
	}
	if p.up == nil || compare(v, p.up) > 0 {
		p.up = v
	}
}

func compare(a, b any) int {
	switch a := a.(type) {
	case bool:
		return cmp.Compare(boolInt(a), boolInt(b.(bool)))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case *big.Int:
		return a.Cmp(b.(*big.Int))
	}
	return 0
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// twosComplement is big-endian, in size bytes; 0 is as few as hold the value.
func twosComplement(v *big.Int, size int) []byte {
	if size == 0 {
		size = 1
		for {
			limit := new(big.Int).Lsh(big.NewInt(1), uint(8*size-1))
			if v.Cmp(limit) < 0 && v.Cmp(new(big.Int).Neg(limit)) >= 0 {
				break
			}
			size++
		}
	}
	x := v
	if v.Sign() < 0 {
		x = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return x.FillBytes(make([]byte, size))
}

// bound is a summary's bound by the spec's single-value serialization.
func (p *partitionField) bound(v any) *[]byte {
	if v == nil {
		return nil
	}
	var b []byte
	switch p.typ.(type) {
	case iceberg.BooleanType:
		b = appendBool(nil, v.(bool))
	case iceberg.Int32Type, iceberg.DateType:
		x := uint32(int32(v.(int64)))
		b = []byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)}
	case iceberg.Float32Type:
		b = appendFloat(nil, float32(v.(float64)))
	case iceberg.Float64Type:
		b = appendDouble(nil, v.(float64))
	case iceberg.StringType:
		b = []byte(v.(string))
	case iceberg.BinaryType, iceberg.FixedType, iceberg.UUIDType:
		b = v.([]byte)
	case iceberg.DecimalType:
		b = twosComplement(v.(*big.Int), 0)
	default:
		b = make([]byte, 8)
		x := uint64(v.(int64))
		for i := range b {
			b[i] = byte(x >> (8 * i))
		}
	}
	return &b
}

// done returns the field's summary.
func (p *partitionField) done() iceberg.FieldSummary {
	s := p.summary
	s.ContainsNaN = &p.nan
	s.LowerBound, s.UpperBound = p.bound(p.low), p.bound(p.up)
	return s
}

// SpecSchema is the current schema, with the source columns of the spec's fields that were dropped since: in the type they had last. A manifest of
// files from before the drop is written again with the partition values it has.
func SpecSchema(current *iceberg.Schema, all []*iceberg.Schema, spec iceberg.PartitionSpec) *iceberg.Schema {
	var gone []iceberg.NestedField
	for _, f := range spec.Fields() {
		for _, id := range f.SourceIDs {
			if _, ok := current.FindFieldByID(id); ok || slices.ContainsFunc(gone, func(f iceberg.NestedField) bool { return f.ID == id }) {
				continue
			}
			for _, sc := range slices.Backward(all) {
				if old, ok := sc.FindFieldByID(id); ok {
					old.Name = fmt.Sprintf("dropped_%d", id) // its name may be another column's now
					old.Required, old.InitialDefault, old.WriteDefault = false, nil, nil
					gone = append(gone, old)
					break
				}
			}
		}
	}
	if gone == nil {
		return current
	}
	return iceberg.NewSchemaWithIdentifiers(current.ID, current.IdentifierFieldIDs, append(slices.Clone(current.Fields()), gone...)...)
}
