package sqlfuncs

import (
	"context"
	"strconv"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// What the functions that change branches and tags share. They run inside the caller's transaction and return snapshot ids.

// maxRefName bounds a ref's name in bytes.
const maxRefName = 255

// nameArg is a branch's or tag's name.
func nameArg(fn string, args []*Value, i int, what string) (string, error) {
	switch {
	case !given(args, i) || args[i].Text == "":
		return "", pgerr.Newf(pgerr.InvalidParameterValue, "%s of %s must not be null or empty", what, fn)
	case len(args[i].Text) > maxRefName:
		return "", pgerr.Newf(pgerr.InvalidParameterValue, "%s of %s is longer than %d bytes", what, fn, maxRefName)
	}
	return args[i].Text, nil
}

// ageArg is a positive interval, 0 when it was left out.
func ageArg(fn string, args []*Value, i int, what string) (time.Duration, error) {
	d, err := intervalArg(args, i, what+" of "+fn, 0)
	if err == nil && given(args, i) && d < time.Millisecond {
		err = pgerr.Newf(pgerr.InvalidParameterValue, "%s of %s must be positive: \"%s\"", what, fn, args[i].Text)
	}
	return d, err
}

// countArg is a positive integer, 0 when it was left out.
func countArg(fn string, args []*Value, i int, what string) (int, error) {
	if !given(args, i) {
		return 0, nil
	}
	n, err := strconv.Atoi(args[i].Text)
	if err != nil || n < 1 {
		return 0, pgerr.Newf(pgerr.InvalidParameterValue, "%s of %s must be positive: \"%s\"", what, fn, args[i].Text)
	}
	return n, nil
}

// snapshotArg is the snapshot at a bound, nil when the bound was left out.
func snapshotArg(ctx context.Context, env *Env, ident table.Identifier, args []*Value, i int) (*int64, error) {
	if !given(args, i) {
		return nil, nil
	}
	st, err := TableStateAt(ctx, env, ident, args[i])
	if err != nil {
		return nil, err
	}
	if st.Snapshot == nil {
		return nil, pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "table \"%s\" has no snapshot at %s", ident[len(ident)-1], args[i].Text)
	}
	return st.Snapshot, nil
}

// snapshotValue is a snapshot id as a result; NULL for the snapshot that the transaction's commit will make.
func snapshotValue(id int64) *Value {
	if id == 0 {
		return &Value{OID: pgtype.Int8, Null: true}
	}
	return &Value{OID: pgtype.Int8, Text: strconv.FormatInt(id, 10)}
}
