package pgsql

// Kind is the kind of a statement.
type Kind int

// Kinds of statement. Refused ones are 0A000 (or 42501) when analysed, with the statement's name.
const (
	Refused Kind = iota
	Select       // SELECT, VALUES, TABLE, WITH: Analyze
	InsertStmt
	UpdateStmt
	DeleteStmt
	CopyStmt
	ExplainStmt
	CreateTableStmt
	CreateTableAsStmt // also SELECT INTO
	CreateViewStmt
	CreateSchemaStmt
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
