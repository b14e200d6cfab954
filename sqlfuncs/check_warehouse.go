package sqlfuncs

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// checkWarehouse is check_warehouse(): verifies the catalog, the commit log and every referenced file; one row per problem, none when all is
// sound. It is what `skade-pg check` asks of a running server.
var checkWarehouse = &Function{
	Name: "check_warehouse", Returns: pgtype.Record, SetOf: true,
	Doc: "Verifies the catalog, the commit log and every referenced file: one row per problem.",
	Describe: func(context.Context, *Env, []*Value) (*Shape, error) {
		return &Shape{Columns: checkColumns}, nil
	},
	Open: func(_ context.Context, env *Env, _ *Shape, _ []*Value) (*Rows, error) {
		return &Rows{Schema: checkSchema, N: -1, Batches: func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
			return func(yield func(arrow.RecordBatch, error) bool) {
				b := array.NewRecordBuilder(memory.DefaultAllocator, checkSchema)
				defer b.Release()
				err := env.Catalog.Check(ctx, func(p catalog.Problem) {
					row := rowBuilder{b: b}
					row.text(p.Path)
					row.text(p.Detail)
				})
				if err != nil {
					yield(nil, err)
					return
				}
				rec := b.NewRecordBatch()
				defer rec.Release()
				yield(rec, nil)
			}
		}}, nil
	},
}

var (
	checkColumns = []Column{{"path", pgtype.Text, -1}, {"problem", pgtype.Text, -1}}
	checkSchema  = arrowSchema(checkColumns)
)
