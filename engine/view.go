package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

func (s *session) createView(ctx context.Context, w pgwire.Writer, u *pgsql.CreateView) error {
	text, cols, err := pgsql.NormalizeView(u, &resolver{ctx: ctx, s: s})
	if err != nil {
		return s.sqlError(ctx, err)
	}
	temp := u.Temp
	if !temp {
		if temp, err = s.usesTemp(ctx, text); err != nil {
			return s.sqlError(ctx, err)
		}
		if temp {
			w.Notice(notice(fmt.Sprintf("view \"%s\" will be a temporary view", u.Name)))
		}
	}
	ident, err := s.createWhere(temp, u.Schema, u.Name)
	if err != nil {
		return err
	}
	if _, err := s.table(ctx, ident); err == nil {
		if u.Replace {
			return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", u.Name)
		}
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", u.Name)
	}
	old, err := s.view(ident)
	if err != nil {
		return err
	}
	if old != nil && !u.Replace {
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", u.Name)
	}
	v := storedView{SQL: text, Text: u.Text}
	for _, c := range cols {
		oid := c.Type
		if oid == pgtype.Unknown {
			oid = pgtype.Text
		}
		if slices.ContainsFunc(v.Columns, func(o viewColumn) bool { return o.Name == c.Name }) {
			return pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", c.Name)
		}
		v.Columns = append(v.Columns, viewColumn{Name: c.Name, OID: oid, Mod: c.Mod})
	}
	if old != nil {
		if err := sameViewColumns(old.Columns, v.Columns); err != nil {
			return err
		}
	}
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	return s.tx.warehouseTx().PutObject(ctx, catalog.Object{Kind: viewKind, Namespace: ident[:len(ident)-1], Name: u.Name, Payload: payload}, u.Replace)
}

// sameViewColumns is CREATE OR REPLACE VIEW's rule: the old columns stay, new ones may follow.
func sameViewColumns(old, now []viewColumn) error {
	if len(now) < len(old) {
		return pgerr.New(pgerr.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, c := range old {
		if now[i].Name != c.Name {
			return pgerr.Newf(pgerr.InvalidTableDefinition, "cannot change name of view column \"%s\" to \"%s\"", c.Name, now[i].Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if now[i].OID != c.OID {
			return pgerr.Newf(pgerr.InvalidTableDefinition, "cannot change data type of view column \"%s\" from %s to %s", c.Name, pgtype.Format(c.OID, c.Mod), pgtype.Format(now[i].OID, now[i].Mod))
		}
	}
	return nil
}
