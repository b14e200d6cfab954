package duck

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// TestBind: every type of argument arrives as itself.
func TestBind(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	cases := []struct {
		typ  string
		arg  any
		want string
	}{
		{"BOOLEAN", true, "t"}, {"SMALLINT", int16(-3), "-3"}, {"INTEGER", int32(5), "5"}, {"BIGINT", int64(1) << 62, "4611686018427387904"},
		{"UBIGINT", uint64(1) << 63, "9223372036854775808"}, {"FLOAT", float32(1.5), "1.5"}, {"DOUBLE", 0.1, "0.1"},
		{"VARCHAR", "it's \x01 é", "it's \x01 é"}, {"VARCHAR", "", ""}, {"BLOB", []byte{0, 255}, `\x00ff`}, {"BLOB", []byte{}, `\x`},
		{"HUGEINT", Hugeint{Hi: -1, Lo: ^uint64(0)}, "-1"}, {"DECIMAL(10,2)", Decimal{Value: Hugeint{Lo: 12345}, Width: 10, Scale: 2}, "123.45"},
		{"DATE", Date(0), "1970-01-01"}, {"TIME", Time(1), "00:00:00.000001"}, {"TIMESTAMP", Timestamp(-1), "1969-12-31 23:59:59.999999"},
		{"TIMESTAMPTZ", TimestampTZ(0), "1970-01-01 00:00:00+00"}, {"INTERVAL", Interval{1, 2, 3_000_000}, "1 mon 2 days 00:00:03"},
		{"UUID", UUID{0: 0xa0, 15: 1}, "a0000000-0000-0000-0000-000000000001"}, {"UUID", UUID{0: 0x01}, "01000000-0000-0000-0000-000000000000"},
		{"INTEGER[]", List{"INTEGER", []any{int32(1), nil, int32(3)}}, "{1,NULL,3}"}, {"VARCHAR[]", List{"VARCHAR", nil}, "{}"},
		{"BIGINT[][]", List{"BIGINT[]", []any{List{"BIGINT", []any{int64(1)}}, List{"BIGINT", []any{int64(2)}}}}, "{{1},{2}}"},
		{"DECIMAL(6,2)[]", List{"DECIMAL(6,2)", []any{Decimal{Value: Hugeint{Lo: 150}, Width: 3, Scale: 2}}}, "{1.50}"},
		{"INTEGER", nil, "∅"}, {"VARCHAR[]", nil, "∅"},
	}
	for _, k := range cases {
		require.Equal(t, [][]string{{k.want}}, textOf(t, c, "SELECT $1::"+k.typ, k.arg), "%s %v", k.typ, k.arg)
	}
	s, err := c.Prepare(context.Background(), "SELECT $1::INTEGER")
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Query(context.Background(), []any{struct{}{}})
	require.ErrorIs(t, err, ErrArguments)
}

// TestArg goes from the wire to the statement and back.
func TestArg(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	for _, k := range []struct {
		oid  uint32
		text string
		want string
	}{
		{pgtype.Numeric, "123.4500", "123.4500"}, {pgtype.Numeric, "-0.001", "-0.001"}, {pgtype.Numeric, "0", "0"}, {pgtype.Numeric, "12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
		{pgtype.Int4Array, "{1,2,NULL}", "{1,2,NULL}"}, {pgtype.Int4Array, "{{1,2},{3,4}}", "{{1,2},{3,4}}"}, {pgtype.TextArray, `{"a b",c}`, `{"a b",c}`},
		{pgtype.Interval, "1 day 2 hours", "1 day 02:00:00"}, {pgtype.Timestamp, "2020-01-01 10:00", "2020-01-01 10:00:00"}, {pgtype.Bool, "yes", "t"}, {pgtype.OID, "4000000000", "4000000000"},
		{pgtype.UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {pgtype.JSONB, `{"b":1}`, `{"b": 1}`}, {pgtype.Bytea, `\xab`, `\xab`},
	} {
		v, err := pgenc.Decode(k.oid, pgenc.Text, []byte(k.text), pgenc.Style{})
		require.NoError(t, err)
		a, err := Arg(k.oid, v)
		require.NoError(t, err)
		require.Equal(t, [][]string{{k.want}}, textOf(t, c, "SELECT $1", a), k.text)
	}
	for _, text := range []string{"NaN", "123456789012345678901234567890123456789"} {
		v, err := pgenc.Decode(pgtype.Numeric, pgenc.Text, []byte(text), pgenc.Style{})
		require.NoError(t, err)
		_, err = Arg(pgtype.Numeric, v)
		require.Equal(t, pgerr.NumericValueOutOfRange, pgerr.CodeOf(err))
	}
}

// TestRange: a value that the client's type cannot hold is 22003, and the rows before it are sent.
func TestRange(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	for _, k := range []struct {
		expr string
		oid  uint32
	}{{"3000000000", pgtype.Int4}, {"70000", pgtype.Int2}, {"9223372036854775808::HUGEINT", pgtype.Int8}, {"1e30::DOUBLE", pgtype.Int8}, {"1e39::DOUBLE", pgtype.Float4}, {"(-1)::BIGINT", pgtype.OID}, {"40000.5::DECIMAL(9,1)", pgtype.Int2}} {
		for format := range int16(2) {
			rows, err := rowsOf(c, "SELECT CASE WHEN i = 3 THEN "+k.expr+" ELSE 1 END FROM range(5) t(i)", request{types: []uint32{k.oid}, formats: []int16{format}})
			require.Equal(t, pgerr.NumericValueOutOfRange, pgerr.CodeOf(err), k.expr)
			require.Len(t, rows, 3)
		}
	}
	_, err := rowsOf(c, "SELECT [[1],[2,3]]", request{})
	require.Equal(t, pgerr.Code("2202E"), pgerr.CodeOf(err))
	_, err = rowsOf(c, "SELECT DATE '2020-01-01'", request{types: []uint32{pgtype.Int4}})
	require.Equal(t, pgerr.CannotCoerce, pgerr.CodeOf(err))
}

func TestTrimNumeric(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	s, err := c.Prepare(context.Background(), "SELECT * FROM (VALUES (1.5::DECIMAL(38,9)), (0), (100), (-0.000000001), (1234567890123456789012345.100000000)) t(a)")
	require.NoError(t, err)
	defer s.Close()
	r, err := s.Query(context.Background(), nil)
	require.NoError(t, err)
	defer r.Close()
	r.TrimNumeric([]bool{true})
	buf, _, _, err := r.AppendDataRows(nil, nil, nil, nil, 0)
	require.NoError(t, err)
	rows, err := parseRows(buf)
	require.NoError(t, err)
	var got []string
	for _, row := range rows {
		got = append(got, string(row[0]))
	}
	require.Equal(t, []string{"1.5", "0", "100", "-0.000000001", "1234567890123456789012345.1"}, got)
}

// TestFunctions: Go functions in SQL, by value and by chunk, with NULLs, lists, constants and errors.
func TestFunctions(t *testing.T) {
	oops := pgerr.New(pgerr.InvalidParameterValue, "no good").WithDetail("really")
	db := openTest(t, Options{
		Funcs: []Func{
			{Name: "skade_len", Args: []string{"VARCHAR"}, Ret: "BIGINT", Fn: func(a []Value) (Value, error) { return Value{I: int64(len(a[0].S))}, nil }},
			{Name: "skade_isnull", Args: []string{"INTERVAL"}, Ret: "BOOLEAN", NullIn: true, Fn: func(a []Value) (Value, error) {
				if a[0].Null {
					return Value{I: 1}, nil
				}
				return Value{}, nil
			}},
			{Name: "skade_fail", Args: []string{"BIGINT"}, Ret: "VARCHAR", Fn: func(a []Value) (Value, error) {
				if a[0].I == 2500 {
					return Value{}, oops
				}
				return Value{Null: a[0].I%2 == 0, S: "ok"}, nil
			}},
			{Name: "skade_split", Args: []string{"VARCHAR"}, Ret: "VARCHAR[]", Fn: func(a []Value) (Value, error) {
				var l []Value
				for _, r := range a[0].S {
					l = append(l, Value{S: string(r), Null: r == '-'})
				}
				return Value{L: l}, nil
			}},
			{Name: "skade_panic", Args: []string{"BIGINT"}, Ret: "BIGINT", Fn: func([]Value) (Value, error) { panic("boom") }},
		},
		Scalars: []Scalar{
			{Name: "skade_add", Args: []string{"BIGINT", "BIGINT"}, Result: "BIGINT", Eval: addArrays},
			{Name: "skade_add", Args: []string{"VARCHAR", "VARCHAR"}, Result: "VARCHAR", Eval: func(a []arrow.Array, n int) (arrow.Array, error) {
				a[0].Retain()
				return a[0], nil
			}},
		},
		InitSQL: []string{"CREATE MACRO main.len2(x) AS skade_len(x) * 2"},
	})
	c := connTest(t, db)
	require.Equal(t, [][]string{{"6", "∅", "t", "f"}}, textOf(t, c, "SELECT len2('abc'), skade_len(NULL), skade_isnull(NULL), skade_isnull(INTERVAL '1 day')"))
	require.Equal(t, [][]string{{"{a,NULL,b}", "{}", "∅"}}, textOf(t, c, "SELECT skade_split('a-b'), skade_split(''), skade_split(NULL)"))
	require.Equal(t, [][]string{{"5", "x", "∅"}}, textOf(t, c, "SELECT skade_add(2, 3), skade_add('x', 'y'), skade_add(1, NULL::BIGINT)"))
	require.Equal(t, [][]string{{"49995000"}}, textOf(t, c, "SELECT sum(skade_add(i, 0)) FROM range(10000) t(i)"))
	_, err := rowsOf(c, "SELECT skade_fail(i) FROM range(10000) t(i)", request{})
	require.ErrorIs(t, err, oops)
	_, err = rowsOf(c, "SELECT skade_fail(2500)", request{})
	require.ErrorIs(t, err, oops)
	_, err = rowsOf(c, "SELECT skade_panic(1)", request{})
	require.ErrorIs(t, err, ErrPanic)
	require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
}

func addArrays(a []arrow.Array, n int) (arrow.Array, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	x, y := a[0].(*array.Int64), a[1].(*array.Int64)
	for i := range n {
		if x.IsNull(i) || y.IsNull(i) {
			b.AppendNull()
			continue
		}
		b.Append(x.Value(i) + y.Value(i))
	}
	return b.NewArray(), nil
}
