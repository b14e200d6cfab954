package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"

	icecatalog "github.com/apache/iceberg-go/catalog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

const missingFile = "file \"%s\" is missing"

// sqlstates maps every exported sentinel of the cores to what a client sees. message "" keeps the error's own text.
var sqlstates = []struct {
	err     error
	code    pgerr.Code
	message string
	hint    string
}{
	{storeio.ErrOutsideRoots, pgerr.InsufficientPrivilege, "", "The server reads files of its own folder, and of the folders it was started with by --allow-root."},
	{storeio.ErrNotLocal, pgerr.FeatureNotSupported, "", ""},
	{catalog.ErrMounted, pgerr.ReadOnlySQLTransaction, "", "The tables of a mount are written by their own catalog; skade.unmount lets go of them."},
	{catalog.ErrNoMetadata, pgerr.InvalidParameterValue, "", ""},
	{catalog.ErrTooLarge, pgerr.ProgramLimitExceeded, "", "Expire snapshots where the table is written: metadata holds one entry for each."},
	{catalog.ErrUnsupportedTable, pgerr.FeatureNotSupported, "", ""},
	{catalog.ErrNotMetadata, pgerr.InvalidParameterValue, "", ""},
	{mount.ErrNoSuchMount, pgerr.UndefinedObject, "", ""},
	{mount.ErrInvalid, pgerr.InvalidParameterValue, "", ""},
	{mount.ErrTooMany, pgerr.ProgramLimitExceeded, "", ""},
	{mount.ErrUnreachable, pgerr.FDWUnableToEstablishConnection, "", "The mount's tables stay readable as they were last seen."},
	{mount.ErrClosed, pgerr.AdminShutdown, "the server is shutting down", ""},
	{changelog.ErrUnknown, pgerr.UndefinedObject, "", ""},
	{changelog.ErrMalformedBound, pgerr.InvalidParameterValue, "", ""},
	{changelog.ErrFromAfterTo, pgerr.InvalidParameterValue, "", ""},
	{changelog.ErrMalformedShard, pgerr.InvalidParameterValue, "", ""},
	{changelog.ErrExpired, pgerr.SnapshotTooOld, "", ""},
	{changelog.ErrNotAncestor, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{changelog.ErrReservedColumn, pgerr.DuplicateColumn, "", ""},
	{changelog.ErrNoKey, pgerr.InvalidColumnReference, "", ""},
	{changelog.ErrUnknownColumn, pgerr.UndefinedColumn, "", ""},
	{changelog.ErrOutOfRange, pgerr.NumericValueOutOfRange, "", ""},
	{changelog.ErrTooLarge, pgerr.ProgramLimitExceeded, "", "A smaller window has fewer changed rows."},
	{lookup.ErrNoKey, pgerr.InvalidColumnReference, "", "Name the key with key_columns => ARRAY['column']."},
	{lookup.ErrUnknownColumn, pgerr.UndefinedColumn, "", ""},
	{lookup.ErrKeyType, pgerr.DatatypeMismatch, "", ""},
	{lookup.ErrReservedColumn, pgerr.DuplicateColumn, "", ""},
	{lookup.ErrSeveralRows, pgerr.CardinalityViolation, "", ""},
	{warehouse.ErrDuplicateTarget, pgerr.CardinalityViolation, "command cannot affect row a second time", ""},
	{warehouse.ErrNotLive, pgerr.SerializationFailure, "could not serialize access due to concurrent update", ""},
	{warehouse.ErrConflict, pgerr.SerializationFailure, "could not serialize access due to concurrent update", "Retry the transaction."},
	{warehouse.ErrReadOnly, pgerr.ReadOnlySQLTransaction, "cannot write in a read-only transaction", ""},
	{warehouse.ErrTxDone, pgerr.NoActiveSQLTransaction, "the transaction has already ended", ""},
	{warehouse.ErrNoKey, pgerr.InvalidColumnReference, "", ""},
	{warehouse.ErrSchemaMismatch, pgerr.DatatypeMismatch, "", ""},
	{warehouse.ErrInvalidTable, pgerr.InvalidTableDefinition, "", ""},
	{warehouse.ErrNoMark, pgerr.InvalidSavepointSpec, "", ""},
	{warehouse.ErrNoSuchRef, pgerr.UndefinedObject, "", ""},
	{warehouse.ErrNoSuchSnapshot, pgerr.UndefinedObject, "", ""},
	{warehouse.ErrRefExists, pgerr.DuplicateObject, "", ""},
	{warehouse.ErrNotAncestor, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{warehouse.ErrRefState, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{catalog.ErrNoSuchDropped, pgerr.UndefinedTable, "no such dropped table", "View skade.dropped_tables lists the tables that can come back."},
	{warehouse.ErrClosed, pgerr.AdminShutdown, "the warehouse is closed", ""},
	{catalog.ErrConflict, pgerr.SerializationFailure, "could not serialize access due to concurrent update", "Retry the transaction."},
	{catalog.ErrUnknownOutcome, pgerr.StatementCompletionUnknown, "the outcome of the commit is unknown: the disk failed while it was made durable", "Look for the commit's rows after the server was started again."},
	{catalog.ErrFailed, pgerr.IOError, "commits are refused after a disk failure", "Restart the server once the disk is sound."},
	{catalog.ErrSeqNotFound, pgerr.UndefinedObject, "", ""},
	{catalog.ErrExpired, pgerr.SnapshotTooOld, "", "View skade.commits begins at the oldest commit that is retained (--retain-log)."},
	{catalog.ErrReadOnly, pgerr.ReadOnlySQLTransaction, "the warehouse folder is read-only", ""},
	{catalog.ErrInvalidRequest, pgerr.InvalidParameterValue, "", ""},
	{catalog.ErrNoSuchFeed, pgerr.UndefinedObject, "", "View skade.changefeeds lists the feeds and their shards."},
	{catalog.ErrFeedLeased, pgerr.ObjectInUse, "", "Wait, or work on another shard."},
	{catalog.ErrFeedFenced, pgerr.SerializationFailure, "", ""},
	{catalog.ErrFeedLost, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{catalog.ErrNoSuchCommit, pgerr.UndefinedObject, "", ""},
	{catalog.ErrVersion, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{catalog.ErrLocked, pgerr.ObjectInUse, "", ""},
	{catalog.ErrMoved, pgerr.ObjectNotInPrerequisiteState, "", ""},
	{catalog.ErrNoSuchObject, pgerr.UndefinedTable, "", ""},
	{catalog.ErrObjectAlreadyExists, pgerr.DuplicateTable, "", ""},
	{catalog.ErrDamaged, pgerr.DataCorrupted, "file \"%s\" is damaged", "skade-pg check lists what is damaged."},
	{catalog.ErrClosed, pgerr.AdminShutdown, "the catalog is closed", ""},
	{icecatalog.ErrNoSuchTable, pgerr.UndefinedTable, "", ""},
	{icecatalog.ErrNoSuchNamespace, pgerr.InvalidSchemaName, "", ""},
	{icecatalog.ErrTableAlreadyExists, pgerr.DuplicateTable, "", ""},
	{icecatalog.ErrNamespaceAlreadyExists, pgerr.DuplicateSchema, "", ""},
	{icecatalog.ErrNamespaceNotEmpty, pgerr.DependentObjectsStillExist, "", ""},
	{icecatalog.ErrInvalidIdentifier, pgerr.InvalidName, "", ""},
	{liveset.ErrMissingFile, pgerr.UndefinedFile, missingFile, "The file is named by the table's metadata but is not there; nothing was skipped."},
	{liveset.ErrNoFieldIDs, pgerr.DataCorrupted, "file \"%s\" has no field ids", "The file carries no Iceberg field ids and the table has no name mapping."},
	{liveset.ErrUnknownField, pgerr.DataCorrupted, "", ""},
	{liveset.ErrUnsupportedFormat, pgerr.FeatureNotSupported, "", "Data files must be Parquet."},
	{liveset.ErrConflictingDVs, pgerr.DataCorrupted, "file \"%s\" has two deletion vectors", "A deletion vector has to hold those before it."},
	{liveset.ErrSnapshotNotFound, pgerr.SnapshotTooOld, "", ""},
	{parquetio.ErrMissingFile, pgerr.UndefinedFile, missingFile, "The file is named by the table's metadata but is not there; nothing was skipped."},
	{parquetio.ErrNoFieldIDs, pgerr.DataCorrupted, "file \"%s\" has no field ids", "The file carries no Iceberg field ids and the table has no name mapping."},
	{syscall.ENOSPC, pgerr.DiskFull, "could not write: no space left on device", "Nothing was committed."},
	{syscall.EDQUOT, pgerr.DiskFull, "could not write: disk quota exceeded", "Nothing was committed."},
	{syscall.EFBIG, pgerr.DiskFull, "could not write: file too large", "Nothing was committed. The limit is that of the server's process (ulimit -f) or of its file system."},
	{syscall.EROFS, pgerr.ReadOnlySQLTransaction, "the warehouse folder is on a read-only file system", ""},
	{os.ErrNotExist, pgerr.UndefinedFile, missingFile, "The file is named by the table's metadata but is not there; nothing was skipped."},
	{os.ErrPermission, pgerr.InsufficientPrivilege, "the server may not write its warehouse folder", ""},
	{context.DeadlineExceeded, pgerr.QueryCanceled, "canceling statement due to statement timeout", ""},
	{context.Canceled, pgerr.QueryCanceled, "canceling statement due to user request", ""},
}

// MapError turns any error into what a client sees: an *pgerr.Error as it is, a sentinel by the table, DuckDB's by its own
// mapping, anything else as XX000 without its text, which goes to the log.
func MapError(err error) error {
	if err == nil {
		return nil
	}
	if e := pgerr.As(err); e != nil {
		if e.Code == pgerr.InternalError && e.Cause != nil {
			// A layer that does not know the cores' sentinels passed one on.
			if inner := pgerr.As(MapError(e.Cause)); inner.Code != pgerr.InternalError {
				return inner
			}
		}
		return e
	}
	var dup *warehouse.DuplicateKeyError
	if errors.As(err, &dup) && !errors.Is(err, warehouse.ErrConflict) {
		e := pgerr.Newf(pgerr.UniqueViolation, "duplicate key value violates unique constraint \"%s\"", dup.Constraint).WithDetail("%s", dup.Detail())
		e.Constraint, e.Schema, e.Table = dup.Constraint, dup.Schema, dup.Table
		return e
	}
	if e := conflictError(err); e != nil {
		return e
	}
	var nn *warehouse.NotNullError
	if errors.As(err, &nn) {
		e := pgerr.Newf(pgerr.NotNullViolation, "null value in column \"%s\" of relation \"%s\" violates not-null constraint", nn.Column, nn.Table)
		e.Column, e.Schema, e.Table, e.Detail = nn.Column, nn.Schema, nn.Table, nn.Detail()
		return e
	}
	var inf *warehouse.InfiniteError
	if errors.As(err, &inf) {
		e := pgerr.Newf(pgerr.DatetimeFieldOverflow, "%s cannot be stored in column \"%s\"", inf.Value, inf.Column).
			WithHint("Iceberg has no infinite dates and timestamps.")
		e.Column, e.Schema, e.Table = inf.Column, inf.Schema, inf.Table
		return e
	}
	var ce *changelog.Error
	if errors.As(err, &ce) {
		e := pgerr.New(codeOf(ce.Err), ce.Message)
		e.Detail, e.Hint = ce.Detail, ce.Hint
		return e
	}
	var re *warehouse.RefError
	if errors.As(err, &re) {
		e := pgerr.New(codeOf(re.Err), re.Message)
		e.Detail, e.Hint = re.Detail, re.Hint
		return e
	}
	var damaged *parquetio.DamagedError
	if errors.As(err, &damaged) {
		return pgerr.Newf(pgerr.DataCorrupted, "file \"%s\" is damaged", warehouseFile(damaged.Path)).
			WithHint("Nothing was skipped. skade-pg check lists what is damaged.").WithCause(err)
	}
	var typ *parquetio.TypeError
	if errors.As(err, &typ) {
		return pgerr.Newf(pgerr.DataCorrupted, "file \"%s\" does not hold the type of its column", warehouseFile(typ.Path)).
			WithDetail("Field %d is of type %s in the table.", typ.FieldID, typ.To).WithHint("Nothing was skipped.").WithCause(err)
	}
	for _, m := range sqlstates {
		if errors.Is(err, m.err) {
			msg := m.message
			switch file := fileIn.FindString(err.Error()); {
			case msg == "":
				msg = err.Error()
			case strings.Contains(msg, "%s"):
				msg = fmt.Sprintf(msg, warehouseFile(file))
			}
			e := pgerr.New(m.code, msg).WithCause(err)
			e.Hint = m.hint
			return e
		}
	}
	if e := duck.MapError(err); e != nil {
		return e
	}
	return pgerr.New(pgerr.InternalError, "internal error").WithCause(err)
}

// conflictError tells which table a transaction lost a race for, and how; nil when err is no such error.
func conflictError(err error) *pgerr.Error {
	var lost *warehouse.ConflictError
	if errors.As(err, &lost) {
		e := pgerr.New(pgerr.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail("Table \"%s.%s\": %s.", lost.Schema, lost.Table, lost.Reason).WithHint("Retry the transaction.").WithCause(err)
		e.Schema, e.Table = lost.Schema, lost.Table
		return e
	}
	var read *catalog.ChangedError
	if errors.As(err, &read) {
		schema, name := schemaOf(read.Ident), read.Ident[len(read.Ident)-1]
		e := pgerr.New(pgerr.SerializationFailure, "could not serialize access due to read/write dependencies among transactions").
			WithDetail("Table \"%s.%s\", which the transaction read, %s meanwhile.", schema, name, read.Reason).
			WithHint("The transaction might succeed if retried.").WithCause(err)
		e.Schema, e.Table = schema, name
		return e
	}
	return nil
}

// fileIn finds the file that an error names.
var fileIn = regexp.MustCompile(`(file:)?/[^\s:"']+\.(parquet|avro|json|puffin|keyidx)`)

// warehouseFile is a file's name below the warehouse folder: where the server keeps it is not for clients.
func warehouseFile(name string) string {
	if name == "" {
		return "catalog.db"
	}
	if _, rest, ok := strings.Cut(name, "/warehouse/"); ok {
		return rest
	}
	return path.Base(name)
}

func codeOf(sentinel error) pgerr.Code {
	for _, m := range sqlstates {
		if errors.Is(sentinel, m.err) {
			return m.code
		}
	}
	return pgerr.InternalError
}
