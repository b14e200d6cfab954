package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Kind is the kind of a statement.
type Kind int

// Kinds of statement. Refused ones are 0A000 when analysed, with the statement's name.
const (
	Refused Kind = iota
	Select       // SELECT, VALUES, TABLE, WITH: Analyze
	InsertStmt
	UpdateStmt
	DeleteStmt
	MergeStmt
	CopyStmt
	ExplainStmt
	CreateTableStmt
	CreateTableAsStmt // also SELECT INTO
	CreateViewStmt
	CreateSchemaStmt
	CreateSequenceStmt
	AlterSequenceStmt
	DropStmt
	TruncateStmt
	AlterStmt
	CommentStmt
	TransactionStmt
	SetStmt // SET, RESET, SET TRANSACTION, SET SESSION CHARACTERISTICS
	ShowStmt
	DiscardStmt
	PrepareStmt
	ExecuteStmt
	DeallocateStmt
	DeclareStmt
	FetchStmt // FETCH, MOVE
	CloseStmt
	ListenStmt
	NotifyStmt
	UnlistenStmt
	LockStmt
	VacuumStmt // VACUUM, ANALYZE: accepted, nothing to do
	CheckpointStmt
)

// kindOf is the gate over statement kinds: what is not named here is Refused.
func kindOf(n *pg_query.Node) (Kind, string) {
	switch s := n.GetNode().(type) {
	case *pg_query.Node_SelectStmt:
		if intoOf(s.SelectStmt) != nil {
			return CreateTableAsStmt, "SELECT INTO"
		}
		return Select, "SELECT"
	case *pg_query.Node_InsertStmt:
		return InsertStmt, "INSERT"
	case *pg_query.Node_UpdateStmt:
		return UpdateStmt, "UPDATE"
	case *pg_query.Node_DeleteStmt:
		return DeleteStmt, "DELETE"
	case *pg_query.Node_MergeStmt:
		return MergeStmt, "MERGE"
	case *pg_query.Node_CopyStmt:
		return CopyStmt, "COPY"
	case *pg_query.Node_ExplainStmt:
		return ExplainStmt, "EXPLAIN"
	case *pg_query.Node_CreateStmt:
		return CreateTableStmt, "CREATE TABLE"
	case *pg_query.Node_CreateTableAsStmt:
		if s.CreateTableAsStmt.Objtype != pg_query.ObjectType_OBJECT_TABLE {
			return Refused, "CREATE MATERIALIZED VIEW"
		}
		return CreateTableAsStmt, "CREATE TABLE AS"
	case *pg_query.Node_ViewStmt:
		return CreateViewStmt, "CREATE VIEW"
	case *pg_query.Node_CreateSeqStmt:
		return CreateSequenceStmt, "CREATE SEQUENCE"
	case *pg_query.Node_AlterSeqStmt:
		return AlterSequenceStmt, "ALTER SEQUENCE"
	case *pg_query.Node_CreateSchemaStmt:
		return CreateSchemaStmt, "CREATE SCHEMA"
	case *pg_query.Node_DropStmt:
		if what, ok := dropObjects[s.DropStmt.RemoveType]; ok {
			return DropStmt, "DROP " + strings.ToUpper(what)
		}
		return Refused, "DROP " + objectName(s.DropStmt.RemoveType)
	case *pg_query.Node_TruncateStmt:
		return TruncateStmt, "TRUNCATE TABLE"
	case *pg_query.Node_RenameStmt:
		switch s.RenameStmt.RenameType {
		case pg_query.ObjectType_OBJECT_TABLE, pg_query.ObjectType_OBJECT_VIEW, pg_query.ObjectType_OBJECT_SCHEMA, pg_query.ObjectType_OBJECT_SEQUENCE, pg_query.ObjectType_OBJECT_INDEX:
			return AlterStmt, "ALTER " + objectName(s.RenameStmt.RenameType)
		case pg_query.ObjectType_OBJECT_COLUMN:
			return AlterStmt, "ALTER " + objectName(s.RenameStmt.RelationType)
		case pg_query.ObjectType_OBJECT_TABCONSTRAINT:
			return AlterStmt, "ALTER TABLE"
		}
		return Refused, "ALTER " + objectName(s.RenameStmt.RenameType)
	case *pg_query.Node_AlterTableStmt:
		return AlterStmt, "ALTER " + objectName(s.AlterTableStmt.Objtype)
	case *pg_query.Node_AlterObjectSchemaStmt:
		return AlterStmt, "ALTER " + objectName(s.AlterObjectSchemaStmt.ObjectType)
	case *pg_query.Node_AlterOwnerStmt:
		return AlterStmt, "ALTER " + objectName(s.AlterOwnerStmt.ObjectType)
	case *pg_query.Node_CommentStmt:
		return CommentStmt, "COMMENT"
	case *pg_query.Node_TransactionStmt:
		return transactionKind(s.TransactionStmt)
	case *pg_query.Node_VariableSetStmt:
		if s.VariableSetStmt.Kind == pg_query.VariableSetKind_VAR_RESET || s.VariableSetStmt.Kind == pg_query.VariableSetKind_VAR_RESET_ALL {
			return SetStmt, "RESET"
		}
		return SetStmt, "SET"
	case *pg_query.Node_VariableShowStmt:
		return ShowStmt, "SHOW"
	case *pg_query.Node_DiscardStmt:
		return DiscardStmt, "DISCARD " + strings.TrimPrefix(s.DiscardStmt.Target.String(), "DISCARD_")
	case *pg_query.Node_PrepareStmt:
		return PrepareStmt, "PREPARE"
	case *pg_query.Node_ExecuteStmt:
		return ExecuteStmt, "EXECUTE"
	case *pg_query.Node_DeallocateStmt:
		if s.DeallocateStmt.Name == "" {
			return DeallocateStmt, "DEALLOCATE ALL"
		}
		return DeallocateStmt, "DEALLOCATE"
	case *pg_query.Node_DeclareCursorStmt:
		return DeclareStmt, "DECLARE CURSOR"
	case *pg_query.Node_FetchStmt:
		if s.FetchStmt.Ismove {
			return FetchStmt, "MOVE"
		}
		return FetchStmt, "FETCH"
	case *pg_query.Node_ClosePortalStmt:
		if s.ClosePortalStmt.Portalname == "" {
			return CloseStmt, "CLOSE CURSOR ALL"
		}
		return CloseStmt, "CLOSE CURSOR"
	case *pg_query.Node_ListenStmt:
		return ListenStmt, "LISTEN"
	case *pg_query.Node_NotifyStmt:
		return NotifyStmt, "NOTIFY"
	case *pg_query.Node_UnlistenStmt:
		return UnlistenStmt, "UNLISTEN"
	case *pg_query.Node_LockStmt:
		return LockStmt, "LOCK TABLE"
	case *pg_query.Node_VacuumStmt:
		if s.VacuumStmt.IsVacuumcmd {
			return VacuumStmt, "VACUUM"
		}
		return VacuumStmt, "ANALYZE"
	case *pg_query.Node_CheckPointStmt:
		return CheckpointStmt, "CHECKPOINT"
	}
	return Refused, statementName(n)
}

func transactionKind(s *pg_query.TransactionStmt) (Kind, string) {
	switch s.Kind {
	case pg_query.TransactionStmtKind_TRANS_STMT_BEGIN:
		return TransactionStmt, "BEGIN"
	case pg_query.TransactionStmtKind_TRANS_STMT_START:
		return TransactionStmt, "START TRANSACTION"
	case pg_query.TransactionStmtKind_TRANS_STMT_COMMIT:
		return TransactionStmt, "COMMIT"
	case pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK, pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		return TransactionStmt, "ROLLBACK"
	case pg_query.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		return TransactionStmt, "SAVEPOINT"
	case pg_query.TransactionStmtKind_TRANS_STMT_RELEASE:
		return TransactionStmt, "RELEASE"
	case pg_query.TransactionStmtKind_TRANS_STMT_PREPARE:
		return Refused, "PREPARE TRANSACTION"
	case pg_query.TransactionStmtKind_TRANS_STMT_COMMIT_PREPARED:
		return Refused, "COMMIT PREPARED"
	case pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK_PREPARED:
		return Refused, "ROLLBACK PREPARED"
	}
	return Refused, "transaction statement"
}

// intoOf is the INTO clause of a SELECT or of the leftmost leg of a set operation.
func intoOf(s *pg_query.SelectStmt) *pg_query.IntoClause {
	for s != nil {
		if s.IntoClause != nil {
			return s.IntoClause
		}
		s = s.Larg
	}
	return nil
}

func objectName(t pg_query.ObjectType) string {
	return strings.ReplaceAll(strings.TrimPrefix(t.String(), "OBJECT_"), "_", " ")
}

// statementNames are the statements that are refused, where PostgreSQL's word differs from the node's name.
var statementNames = map[string]string{
	"CreateFunctionStmt": "CREATE FUNCTION", "AlterFunctionStmt": "ALTER FUNCTION", "DoStmt": "DO",
	"CallStmt": "CALL", "LoadStmt": "LOAD", "CreatedbStmt": "CREATE DATABASE", "DropdbStmt": "DROP DATABASE",
	"AlterDatabaseStmt": "ALTER DATABASE", "AlterDatabaseSetStmt": "ALTER DATABASE", "AlterSystemStmt": "ALTER SYSTEM",
	"CreateExtensionStmt": "CREATE EXTENSION", "AlterExtensionStmt": "ALTER EXTENSION", "GrantStmt": "GRANT", "GrantRoleStmt": "GRANT ROLE",
	"AlterDefaultPrivilegesStmt": "ALTER DEFAULT PRIVILEGES", "CreateRoleStmt": "CREATE ROLE", "AlterRoleStmt": "ALTER ROLE",
	"AlterRoleSetStmt": "ALTER ROLE", "DropRoleStmt": "DROP ROLE",
	"CreateDomainStmt": "CREATE DOMAIN", "AlterDomainStmt": "ALTER DOMAIN", "CompositeTypeStmt": "CREATE TYPE", "CreateEnumStmt": "CREATE TYPE",
	"CreateRangeStmt": "CREATE TYPE", "AlterEnumStmt": "ALTER TYPE", "AlterTypeStmt": "ALTER TYPE", "IndexStmt": "CREATE INDEX", "ReindexStmt": "REINDEX",
	"ClusterStmt": "CLUSTER", "RefreshMatViewStmt": "REFRESH MATERIALIZED VIEW", "CreateTrigStmt": "CREATE TRIGGER",
	"CreateEventTrigStmt": "CREATE EVENT TRIGGER", "AlterEventTrigStmt": "ALTER EVENT TRIGGER", "RuleStmt": "CREATE RULE",
	"CreatePolicyStmt": "CREATE POLICY", "AlterPolicyStmt": "ALTER POLICY", "CreateForeignTableStmt": "CREATE FOREIGN TABLE",
	"CreateForeignServerStmt": "CREATE SERVER", "CreateFdwStmt": "CREATE FOREIGN DATA WRAPPER", "ImportForeignSchemaStmt": "IMPORT FOREIGN SCHEMA",
	"CreateUserMappingStmt": "CREATE USER MAPPING", "CreateTableSpaceStmt": "CREATE TABLESPACE", "DropTableSpaceStmt": "DROP TABLESPACE",
	"CreatePublicationStmt": "CREATE PUBLICATION", "AlterPublicationStmt": "ALTER PUBLICATION", "CreateSubscriptionStmt": "CREATE SUBSCRIPTION",
	"AlterSubscriptionStmt": "ALTER SUBSCRIPTION", "DropSubscriptionStmt": "DROP SUBSCRIPTION", "CreatePlangStmt": "CREATE LANGUAGE",
	"CreateCastStmt": "CREATE CAST", "CreateTransformStmt": "CREATE TRANSFORM", "CreateConversionStmt": "CREATE CONVERSION",
	"CreateOpClassStmt": "CREATE OPERATOR CLASS", "CreateOpFamilyStmt": "CREATE OPERATOR FAMILY", "CreateStatsStmt": "CREATE STATISTICS",
	"CreateAmStmt": "CREATE ACCESS METHOD", "DropOwnedStmt": "DROP OWNED", "ReassignOwnedStmt": "REASSIGN OWNED",
	"ConstraintsSetStmt": "SET CONSTRAINTS", "SecLabelStmt": "SECURITY LABEL", "DefineStmt": "CREATE AGGREGATE, OPERATOR, TYPE, COLLATION or TEXT SEARCH",
}

func statementName(n *pg_query.Node) string {
	name := nodeName(n)
	if s, ok := statementNames[name]; ok {
		return s
	}
	// CamelCaseStmt -> CAMEL CASE
	var b strings.Builder
	for i, r := range strings.TrimSuffix(name, "Stmt") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// nodeName is the Go name of a node's type without its prefix: "SelectStmt".
func nodeName(n *pg_query.Node) string {
	m := n.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil {
		return "nothing"
	}
	return string(fd.Message().Name())
}

// refusedHints say what to do instead.
var refusedHints = map[string]string{
	"DO":               "skade-pg has no procedural languages: send the statements from the client.",
	"CREATE FUNCTION":  "skade-pg has no user-defined functions.",
	"CALL":             "skade-pg has no procedures.",
	"CREATE INDEX":     "Tables are indexed by their PRIMARY KEY; nothing else is needed.",
	"CREATE EXTENSION": "skade-pg has no extensions.",
	"LOAD":             "skade-pg loads no libraries.",
	"CREATE DOMAIN":    "Use the base type, with a CHECK constraint on the column.",
	"CREATE TYPE":      "Use text with a CHECK constraint, such as CHECK (status IN ('new', 'done')).",
}

// refusedError is what a Refused statement gives.
func refusedError(st *Stmt) error {
	e := pgerr.Newf(pgerr.FeatureNotSupported, "%s is not supported", st.Tag)
	e.Hint = refusedHints[st.Tag]
	return e
}
