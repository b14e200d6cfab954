package parquetio

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// OrderField is a field of a sort order: a top-level column of a primitive type.
type OrderField struct {
	ID        int
	Desc      bool
	NullsLast bool
}

// orderColumn is an OrderField by its place in the schema.
type orderColumn struct {
	col       int
	desc      bool
	nullsLast bool
}

// orderEncoder gives rows keys whose bytes compare as the rows do.
type orderEncoder interface {
	Append(dst []byte, row int) ([]byte, error)
}

// orderColumns finds the columns of a sort order.
func orderColumns(sc *iceberg.Schema, fields []OrderField) ([]orderColumn, error) {
	var out []orderColumn
	for _, f := range fields {
		col := -1
		for i, sf := range sc.Fields() {
			if sf.ID == f.ID {
				col = i
			}
		}
		if col < 0 {
			return nil, fmt.Errorf("%w: sort field %d is no column", keyindex.ErrUnsupportedType, f.ID)
		}
		if _, err := keyindex.ColumnsOf(sc, []int{f.ID}); err != nil {
			return nil, err
		}
		out = append(out, orderColumn{col, f.Desc, f.NullsLast})
	}
	return out, nil
}

// encoder is the order of a batch's rows: the sort order's, else the key's.
func (w *Writer) encoder(rec arrow.RecordBatch) (orderEncoder, error) {
	if len(w.order) == 0 {
		return keyindex.NewEncoder(rec, w.sortCols)
	}
	out := make(columnOrders, len(w.order))
	for i, c := range w.order {
		enc, err := keyindex.NewEncoder(rec, []int{c.col})
		if err != nil {
			return nil, err
		}
		out[i] = columnOrder{c, enc, rec.Column(c.col)}
	}
	return out, nil
}

type columnOrder struct {
	orderColumn
	enc *keyindex.Encoder
	arr arrow.Array
}

type columnOrders []columnOrder

// A key is, per column, a byte that places NULLs and then the value's key encoding, inverted when the column descends. No key encoding is a
// prefix of another, so inverting one reverses the order.
const (
	orderNullFirst = 0x00
	orderValue     = 0x01
	orderNullLast  = 0x02
)

func (o columnOrders) Append(dst []byte, row int) ([]byte, error) {
	for _, c := range o {
		if c.arr.IsNull(row) {
			if c.nullsLast {
				dst = append(dst, orderNullLast)
			} else {
				dst = append(dst, orderNullFirst)
			}
			continue
		}
		dst = append(dst, orderValue)
		from := len(dst)
		var err error
		if dst, err = c.enc.Append(dst, row); err != nil {
			return dst, err
		}
		if c.desc {
			for i := from; i < len(dst); i++ {
				dst[i] = ^dst[i]
			}
		}
	}
	return dst, nil
}
