package duck

import (
	"fmt"

	bind "github.com/duckdb/duckdb-go-bindings"
)

// bindArg binds one value. The typed calls avoid a heap value; what has none goes through one.
func bindArg(st bind.PreparedStatement, i bind.IdxT, a any) error {
	var s bind.State
	switch v := a.(type) {
	case nil:
		s = bind.BindNull(st, i)
	case bool:
		s = bind.BindBoolean(st, i, v)
	case int8:
		s = bind.BindInt8(st, i, v)
	case int16:
		s = bind.BindInt16(st, i, v)
	case int32:
		s = bind.BindInt32(st, i, v)
	case int64:
		s = bind.BindInt64(st, i, v)
	case int:
		s = bind.BindInt64(st, i, int64(v))
	case uint8:
		s = bind.BindUInt8(st, i, v)
	case uint16:
		s = bind.BindUInt16(st, i, v)
	case uint32:
		s = bind.BindUInt32(st, i, v)
	case uint64:
		s = bind.BindUInt64(st, i, v)
	case float32:
		s = bind.BindFloat(st, i, v)
	case float64:
		s = bind.BindDouble(st, i, v)
	case string:
		s = bind.BindVarchar(st, i, v)
	case []byte:
		s = bind.BindBlob(st, i, v)
	case Hugeint:
		s = bind.BindHugeInt(st, i, bind.NewHugeInt(v.Lo, v.Hi))
	case Decimal:
		s = bind.BindDecimal(st, i, bind.NewDecimal(v.Width, v.Scale, bind.NewHugeInt(v.Value.Lo, v.Value.Hi)))
	case Date:
		s = bind.BindDate(st, i, bind.NewDate(int32(v)))
	case Time:
		s = bind.BindTime(st, i, bind.NewTime(int64(v)))
	case Timestamp:
		s = bind.BindTimestamp(st, i, bind.NewTimestamp(int64(v)))
	case TimestampTZ:
		s = bind.BindTimestampTZ(st, i, bind.NewTimestamp(int64(v)))
	case Interval:
		s = bind.BindInterval(st, i, bind.NewInterval(v.Months, v.Days, v.Micros))
	case UUID, List:
		val, err := newValue(v)
		if err != nil {
			return err
		}
		s = bind.BindValue(st, i, val)
		bind.DestroyValue(&val)
	default:
		return fmt.Errorf("%w: %T", ErrArguments, a)
	}
	if s == bind.StateError {
		return fmt.Errorf("%w: %T refused", ErrArguments, a)
	}
	return nil
}

// newValue makes a DuckDB value, which the caller destroys.
func newValue(a any) (bind.Value, error) {
	switch v := a.(type) {
	case nil:
		return bind.CreateNullValue(), nil
	case bool:
		return bind.CreateBool(v), nil
	case int8:
		return bind.CreateInt8(v), nil
	case int16:
		return bind.CreateInt16(v), nil
	case int32:
		return bind.CreateInt32(v), nil
	case int64:
		return bind.CreateInt64(v), nil
	case int:
		return bind.CreateInt64(int64(v)), nil
	case uint8:
		return bind.CreateUInt8(v), nil
	case uint16:
		return bind.CreateUInt16(v), nil
	case uint32:
		return bind.CreateUInt32(v), nil
	case uint64:
		return bind.CreateUInt64(v), nil
	case float32:
		return bind.CreateFloat(v), nil
	case float64:
		return bind.CreateDouble(v), nil
	case string:
		return bind.CreateVarchar(v), nil
	case []byte:
		return bind.CreateBlob(v), nil
	case Hugeint:
		return bind.CreateHugeInt(bind.NewHugeInt(v.Lo, v.Hi)), nil
	case Decimal:
		return bind.CreateDecimal(bind.NewDecimal(v.Width, v.Scale, bind.NewHugeInt(v.Value.Lo, v.Value.Hi))), nil
	case Date:
		return bind.CreateDate(bind.NewDate(int32(v))), nil
	case Time:
		return bind.CreateTime(bind.NewTime(int64(v))), nil
	case Timestamp:
		return bind.CreateTimestamp(bind.NewTimestamp(int64(v))), nil
	case TimestampTZ:
		return bind.CreateTimestampTZ(bind.NewTimestamp(int64(v))), nil
	case Interval:
		return bind.CreateInterval(bind.NewInterval(v.Months, v.Days, v.Micros)), nil
	case UUID:
		lo, hi := v.halves()
		return bind.CreateUUID(bind.NewUHugeInt(lo, hi)), nil
	case List:
		return newListValue(v)
	}
	return bind.Value{}, fmt.Errorf("%w: %T", ErrArguments, a)
}

func newListValue(l List) (bind.Value, error) {
	lt, err := l.elementType()
	if err != nil {
		return bind.Value{}, err
	}
	defer bind.DestroyLogicalType(&lt)
	vals := make([]bind.Value, 0, len(l.Values))
	defer func() {
		for i := range vals {
			bind.DestroyValue(&vals[i])
		}
	}()
	for _, a := range l.Values {
		v, err := newValue(a)
		if err != nil {
			return bind.Value{}, err
		}
		vals = append(vals, v)
	}
	v := bind.CreateListValue(lt, vals)
	if v.Ptr == nil {
		return v, fmt.Errorf("%w: elements are not %s", ErrArguments, l.Elem)
	}
	return v, nil
}
