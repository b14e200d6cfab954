package engine

import (
	"io"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

var arrowAllocator = memory.DefaultAllocator

// appendTextRow appends a DataRow message of text fields.
func appendTextRow(dst []byte, row []string) []byte {
	dst, start := pgenc.BeginDataRow(dst, len(row))
	for _, f := range row {
		dst = pgenc.AppendStringField(dst, f)
	}
	return pgenc.EndDataRow(dst, start)
}

// bigDivMod10 divides by ten.
func bigDivMod10(v *big.Int) (*big.Int, int64) {
	q, r := new(big.Int).QuoRem(v, big.NewInt(10), new(big.Int))
	return q, r.Int64()
}

// bigHiLo is a 128-bit integer in two's complement.
func bigHiLo(v *big.Int) (hi int64, lo uint64) {
	mask := new(big.Int).SetUint64(^uint64(0))
	lo = new(big.Int).And(v, mask).Uint64()
	return new(big.Int).Rsh(v, 64).Int64(), lo
}

// discardWriter takes what a statement without a client sends.
type discardWriter struct{}

func (discardWriter) Rows([]byte, int) error                        { return nil }
func (discardWriter) Describe([]pgwire.Column) error                { return nil }
func (discardWriter) Notice(*pgerr.Error)                           {}
func (discardWriter) ParameterStatus(string, string)                {}
func (discardWriter) CopyIn(byte, []int16) (io.Reader, error)       { return nil, io.EOF }
func (discardWriter) CopyOut(byte, []int16) (io.WriteCloser, error) { return nil, io.EOF }

var _ pgwire.Writer = discardWriter{}

// goFunctions are the Go functions that DuckDB gets: the rewriter's and the storage's.
func goFunctions() []pgsql.GoFunc { return append(pgsql.GoFuncs(), intervalFunctions()...) }

// catalogScalars hands the system catalogs' functions to DuckDB.
func catalogScalars(c *pgcatalog.Catalog) []duck.Scalar {
	var out []duck.Scalar
	for _, f := range c.Scalars() {
		out = append(out, duck.Scalar{Name: f.Name, Args: f.Args, Result: f.Result, Eval: f.Eval})
	}
	return out
}
