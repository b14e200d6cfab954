package pgcatalog

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// rows collects the dynamic rows of one relation.
type rows struct {
	relation *SystemRelation
	builders []array.Builder
	// order[i] is the column that the i-th value of add goes to; fixed are the values of the other columns.
	order []int
	fixed []any
	rest  []int
	n     int
	first int // row number of the first row, for ctid
	err   error
}

func newRows(r *SystemRelation, first int) *rows {
	w := &rows{relation: r, fixed: make([]any, len(r.Columns)), first: first}
	schema := arrowSchema(r)
	for i, c := range r.Columns {
		w.builders = append(w.builders, array.NewBuilder(memory.DefaultAllocator, schema.Field(i).Type))
		if c.NotNull {
			w.fixed[i] = zeroOf(c)
		}
	}
	return w
}

// zeroOf is the value of a NOT NULL column that nobody sets.
func zeroOf(c Column) any {
	switch arrowType(c.DuckType).ID() {
	case arrow.BOOL:
		return false
	case arrow.STRING:
		return ""
	case arrow.INT16, arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64:
		return 0
	case arrow.LIST:
		return []string{}
	}
	return nil
}

// set fixes a column's value for all rows.
func (w *rows) set(name string, v any) *rows {
	if i := w.column(name); i >= 0 {
		w.fixed[i] = v
	}
	return w
}

func (w *rows) column(name string) int {
	for i, c := range w.relation.Columns {
		if c.Name == name {
			return i
		}
	}
	w.fail(fmt.Errorf("%s has no column %s", w.relation.Name, name))
	return -1
}

// columns names the values of add, in order. The other columns have their fixed value.
func (w *rows) columns(names ...string) *rows {
	taken := make([]bool, len(w.relation.Columns))
	for _, name := range names {
		i := w.column(name)
		if i < 0 {
			return w
		}
		w.order = append(w.order, i)
		taken[i] = true
	}
	for i := range taken {
		if !taken[i] {
			w.rest = append(w.rest, i)
		}
	}
	return w
}

// add appends a row.
func (w *rows) add(values ...any) {
	if w.err != nil {
		return
	}
	if len(values) != len(w.order) {
		w.fail(fmt.Errorf("%s: %d values for %d columns", w.relation.Name, len(values), len(w.order)))
		return
	}
	for i, v := range values {
		w.put(w.order[i], v)
	}
	w.n++
}

// fill sets the columns that add does not, for all rows at once.
func (w *rows) fill() {
	for _, i := range w.rest {
		c := w.relation.Columns[i]
		w.builders[i].Reserve(w.n)
		switch {
		case c.Name == "ctid" && c.Hidden:
			for row := range w.n {
				w.put(i, systemValue(w.relation, c.AttNum, w.first+row))
			}
		case c.Hidden:
			w.repeat(i, systemValue(w.relation, c.AttNum, 0))
		default:
			w.repeat(i, w.fixed[i])
		}
	}
}

// repeat puts one value into every row of a column.
func (w *rows) repeat(i int, v any) {
	switch b := w.builders[i].(type) {
	case *array.BooleanBuilder:
		if v, ok := v.(bool); ok {
			for range w.n {
				b.UnsafeAppend(v)
			}
			return
		}
	case *array.StringBuilder:
		if v, ok := v.(string); ok {
			b.ReserveData(w.n * len(v))
			for range w.n {
				b.Append(v)
			}
			return
		}
	}
	if v == nil {
		w.builders[i].AppendNulls(w.n)
		return
	}
	for range w.n {
		w.put(i, v)
	}
}

func (w *rows) put(i int, v any) {
	if err := appendValue(w.builders[i], v); err != nil {
		w.fail(fmt.Errorf("%s.%s: %w", w.relation.Name, w.relation.Columns[i].Name, err))
	}
}

func (w *rows) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// batch ends the collection.
func (w *rows) batch() (arrow.RecordBatch, error) {
	w.fill()
	if w.err != nil {
		return nil, w.err
	}
	columns := make([]arrow.Array, len(w.builders))
	for i, b := range w.builders {
		columns[i] = b.NewArray()
	}
	return array.NewRecordBatch(arrowSchema(w.relation), columns, int64(w.n)), nil
}

// null gives nil for the empty string: NULL.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
