package duck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// batchesOf is a relation of JSON batches.
func batchesOf(t testing.TB, schema *arrow.Schema, jsons ...string) RelationFunc {
	t.Helper()
	return func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for _, j := range jsons {
				rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(j))
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}, nil
	}
}

func relationTest(t testing.TB, db *DB, schema *arrow.Schema, open RelationFunc) string {
	t.Helper()
	id, release, err := db.RegisterRelation(schema, -1, open)
	require.NoError(t, err)
	t.Cleanup(release)
	return "skade_rel('" + id + "')"
}

func TestRelationTypes(t *testing.T) {
	f := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	schema := arrow.NewSchema([]arrow.Field{
		f("b", arrow.FixedWidthTypes.Boolean), f("i16", arrow.PrimitiveTypes.Int16), f("i64", arrow.PrimitiveTypes.Int64),
		f("f", arrow.PrimitiveTypes.Float64), f("s", arrow.BinaryTypes.String), f("ls", arrow.BinaryTypes.LargeString),
		f("d4", &arrow.Decimal128Type{Precision: 4, Scale: 2}), f("d38", &arrow.Decimal128Type{Precision: 38, Scale: 2}),
		f("dt", arrow.FixedWidthTypes.Date32), f("ts", &arrow.TimestampType{Unit: arrow.Nanosecond}), f("tz", arrow.FixedWidthTypes.Timestamp_us),
		f("l", arrow.ListOf(arrow.BinaryTypes.String)), f("ll", arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32))),
		f("st", arrow.StructOf(f("x", arrow.PrimitiveTypes.Int32), f("y", arrow.ListOf(arrow.PrimitiveTypes.Int32)))),
		f("m", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)),
		f("dict", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}),
	}, nil)
	row := `{"b":true,"i16":-5,"i64":9007199254740993,"f":0.5,"s":"héllo","ls":"a longer string than twelve","d4":"12.34","d38":"-12345678901234567890.12",
		"dt":"2024-02-29","ts":"2020-01-01T00:00:00.123456789","tz":"2020-01-01T00:00:00Z","l":["a",null,"b"],"ll":[[1,2],[3,4]],"st":{"x":1,"y":[7,8]},"m":[{"key":"k","value":1}],"dict":"dd"}`
	null := `{"b":null,"i16":null,"i64":null,"f":null,"s":null,"ls":null,"d4":null,"d38":null,"dt":null,"ts":null,"tz":null,"l":null,"ll":null,"st":null,"m":null,"dict":null}`
	empty := `{"b":false,"i16":0,"i64":0,"f":0,"s":"","ls":"","d4":"0.00","d38":"0.00","dt":"1970-01-01","ts":"1970-01-01T00:00:00","tz":"1970-01-01T00:00:00Z","l":[],"ll":[],"st":{"x":null,"y":[]},"m":[],"dict":""}`
	db := openTest(t, Options{})
	c := connTest(t, db)
	rel := relationTest(t, db, schema, batchesOf(t, schema, "["+row+","+null+"]", "["+empty+","+row+"]", "[]"))
	want := []string{"t", "-5", "9007199254740993", "0.5", "héllo", "a longer string than twelve", "12.34", "-12345678901234567890.12", "2024-02-29", "2020-01-01 00:00:00.123456",
		"2020-01-01 00:00:00+00", "{a,NULL,b}", "{{1,2},{3,4}}", `{"x": 1, "y": [7, 8]}`, `{"k": 1}`, "dd"}
	nulls := strings.Split(strings.Repeat("∅ ", 16), " ")[:16]
	zero := []string{"f", "0", "0", "0", "", "", "0.00", "0.00", "1970-01-01", "1970-01-01 00:00:00", "1970-01-01 00:00:00+00", "{}", "{}", `{"x": null, "y": []}`, "{}", ""}
	require.Equal(t, [][]string{want, nulls, zero, want}, textOf(t, c, "SELECT * FROM "+rel))
	// Projection, aggregates, nested access, a join with itself, no columns.
	require.Equal(t, [][]string{{"8", "1"}, {"∅", "∅"}, {"∅", "∅"}, {"8", "1"}}, textOf(t, c, "SELECT st.y[2], st.x FROM "+rel))
	require.Equal(t, [][]string{{"4"}}, textOf(t, c, "SELECT count(*) FROM "+rel))
	require.Equal(t, [][]string{{"5"}}, textOf(t, c, "SELECT count(*) FROM "+rel+" a JOIN "+rel+" b USING (i64)"))
	// What goes in comes out as Arrow.
	s, err := c.Prepare(context.Background(), "SELECT i64, s, d38, l, st, m FROM "+rel)
	require.NoError(t, err)
	defer s.Close()
	r, err := s.Query(context.Background(), nil)
	require.NoError(t, err)
	defer r.Close()
	rec, err := r.NextBatch(context.Background())
	require.NoError(t, err)
	defer rec.Release()
	out, err := rec.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(out), `"l":["a",null,"b"]`)
	require.Contains(t, string(out), `"st":{"x":1,"y":[7,8]}`)
	require.Contains(t, string(out), `"m":[{"key":"k","value":1}]`)
}

// counting yields n batches of 2,500 rows and counts what was asked for.
func counting(n int, taken *int) (*arrow.Schema, RelationFunc) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	return schema, func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			defer b.Release()
			for i := range n {
				for j := range 2500 {
					b.Field(0).(*array.Int64Builder).Append(int64(i*2500 + j))
					b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("row %d", j))
				}
				*taken++
				if !yield(b.NewRecordBatch(), ctx.Err()) {
					return
				}
			}
		}, nil
	}
}

// TestRelationOrder: a relation's rows keep their order through filters and expressions.
func TestRelationOrder(t *testing.T) {
	db := openTest(t, Options{Threads: 4})
	c := connTest(t, db)
	taken := 0
	schema, open := counting(40, &taken)
	rel := relationTest(t, db, schema, open)
	rows := textOf(t, c, "SELECT a + 1 FROM "+rel+" WHERE a % 2 = 0")
	require.Len(t, rows, 50_000)
	for i, r := range rows {
		require.Equal(t, fmt.Sprint(2*i+1), r[0])
	}
	require.Equal(t, 40, taken)
	// An early end stops the producer.
	taken = 0
	require.Len(t, textOf(t, c, "SELECT a FROM "+rel+" LIMIT 5"), 5)
	require.Less(t, taken, 40)
}

func TestRelationErrors(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	sentinel := errors.New("files are gone")
	cases := map[string]struct {
		open RelationFunc
		want error
		code pgerr.Code
	}{
		"open": {func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) { return nil, sentinel }, sentinel, pgerr.InternalError},
		"pgerr": {func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
			return nil, pgerr.New("72000", "snapshot is gone")
		}, nil, "72000"},
		"next": {func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
			return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, sentinel) }, nil
		}, sentinel, pgerr.InternalError},
		"panic": {func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
			return func(yield func(arrow.RecordBatch, error) bool) { panic("boom") }, nil
		}, ErrPanic, pgerr.InternalError},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := rowsOf(c, "SELECT sum(a) FROM "+relationTest(t, db, schema, k.open), request{})
			require.Error(t, err)
			if k.want != nil {
				require.ErrorIs(t, err, k.want)
			}
			require.Equal(t, k.code, pgerr.CodeOf(err))
		})
	}
	_, err := rowsOf(c, "SELECT * FROM skade_rel('r999999')", request{})
	require.ErrorIs(t, err, ErrUnknownRelation)
	// A batch that is not what was announced.
	other := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32}}, nil)
	_, err = rowsOf(c, "SELECT sum(a) FROM "+relationTest(t, db, schema, batchesOf(t, other, `[{"a":1}]`)), request{})
	require.ErrorIs(t, err, ErrUnsupportedType)
	// The connection lives on.
	require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
}

// TestRelationCancel: the statement's cancellation reaches a relation that is stuck, and nothing is left behind (goleak).
func TestRelationCancel(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	started := make(chan struct{})
	rel := relationTest(t, db, schema, func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			close(started)
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}, nil
	})
	cause := pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		<-started
		cancel(cause)
	}()
	s, err := c.Prepare(ctx, "SELECT sum(a) FROM "+rel)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Query(ctx, nil)
	require.ErrorIs(t, err, cause)
	require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
}

// TestRelationRunsStatement: a relation may run statements of its own although every slot is taken by its readers.
func TestRelationRunsStatement(t *testing.T) {
	db := openTest(t, Options{Slots: 1})
	c := connTest(t, db)
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	rel := relationTest(t, db, schema, func(ctx context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			inner, err := db.Conn(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			defer inner.Close()
			s, err := inner.Prepare(ctx, "SELECT i AS a FROM range(10000) t(i)")
			if err != nil {
				yield(nil, err)
				return
			}
			defer s.Close()
			r, err := s.Query(ctx, nil)
			if err != nil {
				yield(nil, err)
				return
			}
			defer r.Close()
			for {
				rec, err := r.NextBatch(ctx)
				if err != nil {
					return
				}
				if !yield(rec, nil) {
					return
				}
			}
		}, nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := c.Prepare(ctx, "SELECT sum(a) FROM "+rel)
	require.NoError(t, err)
	defer s.Close()
	r, err := s.Query(ctx, nil)
	require.NoError(t, err)
	defer r.Close()
	_, n, _, err := r.AppendDataRows(nil, nil, nil, nil, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func oneBatch(rec arrow.RecordBatch) RelationFunc {
	return func(context.Context) (iter.Seq2[arrow.RecordBatch, error], error) {
		return func(yield func(arrow.RecordBatch, error) bool) {
			rec.Retain()
			yield(rec, nil)
		}, nil
	}
}
