package lookup

import "errors"

// Sentinels.
var (
	// ErrNoKey is returned when the table has no identifier fields and no key columns are named (42P10).
	ErrNoKey = errors.New("table has no identifier fields")
	// ErrUnknownColumn is returned when a key column is not in the schema (42703).
	ErrUnknownColumn = errors.New("unknown key column")
	// ErrKeyType is returned when a key has too many parts, or a part's type does not fit its column (42804).
	ErrKeyType = errors.New("key does not fit the key columns")
	// ErrReservedColumn is returned when the table has a column named _key_ordinal and LookupMany is asked (42701).
	ErrReservedColumn = errors.New("column name is reserved")
	// ErrSeveralRows is returned by a strict lookup that found more than one row (21000).
	ErrSeveralRows = errors.New("lookup found more than one row")
)
