package engine

import (
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// SET skade.branch makes the session read and write, of every table that has a branch of that name, the branch. Reads of other tables are of main; writes to
// them fail, unless the table's property write.wap.enabled lets the write make the branch: as with Spark's spark.wap.branch.

// followBranch tells the transaction the session's branch. A change that the transaction cannot take was refused when it was asked for.
func (t *txn) followBranch() {
	if b := t.s.gucs.now.branch; b != t.wh.Branch() {
		if err := t.wh.SetBranch(b); err != nil {
			t.s.gw.log.Error().Err(err).Msg("set the transaction's branch")
		}
	}
}

// mayChangeBranch refuses a change of skade.branch in a transaction that has written: one transaction writes one branch.
func (s *session) mayChangeBranch(name, value string) error {
	now := s.gucs.now.branch
	if !strings.EqualFold(name, "skade.branch") && (!strings.EqualFold(name, "all") || now == "") {
		return nil
	}
	if s.tx != nil && s.tx.wh != nil && s.tx.wh.Changed() && value != now {
		return pgerr.New(pgerr.ActiveSQLTransaction, "skade.branch cannot be changed in a transaction that has written")
	}
	return nil
}

// branchAllows refuses definitions of tables while a branch is set: all branches of a table share its schema and its name.
func (t *txn) branchAllows(command string) error {
	b := t.s.gucs.now.branch
	if b == "" || b == table.MainBranch {
		return nil
	}
	for _, kind := range []string{"ALTER TABLE", "CREATE TABLE", "DROP TABLE", "SELECT INTO", "DROP SCHEMA", "COMMENT"} {
		if strings.HasPrefix(command, kind) {
			return pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "cannot execute %s while skade.branch is set", command).
				WithDetail("The branches of a table share its definition.").WithHint("RESET skade.branch first.")
		}
	}
	return nil
}

// writeTx is the transaction for a change that a function of schema skade makes.
func (s *session) writeTx(function string) (*warehouse.Tx, error) {
	if s.tx == nil {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "there is no transaction in progress")
	}
	if err := s.tx.writable(function + "()"); err != nil {
		return nil, err
	}
	return s.tx.warehouseTx(), nil
}

// candidates are the identifiers that a name as written in SQL may mean.
func (s *session) candidates(name string) ([]table.Identifier, error) {
	schema, rel, err := pgsql.ParseQualifiedName(name)
	if err != nil {
		return nil, err
	}
	if schema != "" {
		return []table.Identifier{identOf(s.schemaName(schema), rel)}, nil
	}
	var out []table.Identifier
	for _, sch := range s.effectivePath() {
		out = append(out, identOf(sch, rel))
	}
	return out, nil
}

// newName is the identifier of a new relation's name; without a schema it is next to like.
func (s *session) newName(name string, like table.Identifier) (table.Identifier, error) {
	schema, rel, err := pgsql.ParseQualifiedName(name)
	if err != nil {
		return nil, err
	}
	if len(rel) > 63 {
		return nil, pgerr.Newf(pgerr.NameTooLong, "identifier \"%s\" is too long", rel)
	}
	if schema == "" {
		schema = schemaOf(like)
	}
	if reservedSchema(schema) {
		return nil, pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied for schema %s", schema)
	}
	return identOf(schema, rel), nil
}
