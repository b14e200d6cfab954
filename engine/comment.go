package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// comment runs COMMENT ON TABLE, COLUMN, VIEW and SCHEMA.
func (s *session) comment(ctx context.Context, u *pgsql.Comment) error {
	switch u.What {
	case "table", "column":
	case "view":
		return s.commentView(ctx, u)
	default:
		return pgerr.Newf(pgerr.FeatureNotSupported, "COMMENT ON %s is not supported", strings.ToUpper(u.What))
	}
	t, err := s.findTable(ctx, u.Name)
	if err != nil {
		return err
	}
	if u.What == "table" {
		update := table.Update(table.NewRemovePropertiesUpdate([]string{propComment}))
		if u.Text != nil {
			update = table.NewSetPropertiesUpdate(iceberg.Properties{propComment: *u.Text})
		}
		return s.tx.warehouseTx().AlterTable(ctx, t.Ident(), update)
	}
	sc := t.Schema()
	fields := slices.Clone(sc.Fields())
	i := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == u.Column })
	if i < 0 {
		return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", u.Column, u.Name.Name)
	}
	fields[i].Doc = ""
	if u.Text != nil {
		fields[i].Doc = *u.Text
	}
	next := 0
	for _, old := range t.Metadata().Schemas() {
		next = max(next, old.ID+1)
	}
	now := iceberg.NewSchemaWithIdentifiers(next, sc.IdentifierFieldIDs, fields...)
	return s.tx.warehouseTx().AlterTable(ctx, t.Ident(), table.NewAddSchemaUpdate(now), table.NewSetCurrentSchemaUpdate(-1))
}

func (s *session) commentView(ctx context.Context, u *pgsql.Comment) error {
	_, ident, err := s.findRelation(ctx, u.Name)
	if err != nil {
		return err
	}
	if ident == nil {
		return undefinedTable(u.Name)
	}
	v, err := s.view(ident)
	if err != nil {
		return err
	}
	v.Comment = ""
	if u.Text != nil {
		v.Comment = *u.Text
	}
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	return s.tx.warehouseTx().PutObject(ctx, catalog.Object{Kind: viewKind, Namespace: ident[:len(ident)-1], Name: ident[len(ident)-1], Payload: payload}, true)
}
