package engine

import (
	"context"
	"strings"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// ddlMode is what a statement that changes or drops a table takes. PostgreSQL takes AccessExclusive; here readers keep the table as it
// was at their cut, so they need not wait.
const ddlMode = lockmgr.Exclusive

// lockDefined takes the locks of a DDL statement on the tables it names. Afterwards it works on the newest cut, when it may.
func (s *session) lockDefined(ctx context.Context, util any) error {
	var names []pgsql.QName
	mode := ddlMode
	switch u := util.(type) {
	case *pgsql.Drop:
		switch u.What {
		case "schema":
			return s.lockSchemas(ctx, u)
		case "table":
			names = u.Names
		}
	case *pgsql.Truncate:
		names = u.Tables
	case *pgsql.Alter:
		if u.What == "schema" && u.Action == "rename" {
			tables, err := s.tablesIn(ctx, strings.Split(u.Name.Name, "."))
			if err != nil {
				return err
			}
			return s.lockAll(ctx, tables, mode)
		}
		if u.What == "table" {
			names = []pgsql.QName{u.Name}
		}
	case *pgsql.AlterTable:
		names = []pgsql.QName{u.Name}
	case *pgsql.Comment:
		if u.What == "table" || u.What == "column" {
			names, mode = []pgsql.QName{u.Name}, lockmgr.ShareUpdateExclusive
		}
	}
	var tables []*warehouse.TxTable
	for _, n := range names {
		t, _, err := s.findRelation(ctx, n)
		if e := pgerr.As(err); e != nil && e.Code == pgerr.InvalidSchemaName {
			continue
		}
		if err != nil {
			return err
		}
		if t != nil { // what is missing is the statement's to say
			tables = append(tables, t)
		}
	}
	return s.lockAll(ctx, tables, mode)
}

// lockSchemas locks the tables in the schemas that DROP SCHEMA takes along.
func (s *session) lockSchemas(ctx context.Context, u *pgsql.Drop) error {
	if !u.Cascade {
		return nil
	}
	var tables []*warehouse.TxTable
	for _, n := range u.Names {
		in, err := s.tablesIn(ctx, strings.Split(n.Name, "."))
		if err != nil {
			return err
		}
		tables = append(tables, in...)
	}
	return s.lockAll(ctx, tables, ddlMode)
}

func (s *session) lockAll(ctx context.Context, tables []*warehouse.TxTable, mode lockmgr.Mode) error {
	any := false
	for _, t := range tables {
		waited, err := s.lockTable(ctx, t, mode, s.lockOptions())
		if err != nil {
			return err
		}
		any = any || waited
	}
	if !any {
		return nil
	}
	moved, err := s.freshen(ctx)
	if err == nil && !moved && !s.tx.queried {
		s.tx.unpin() // the transaction's first statement: it has seen nothing yet
	}
	return err
}
