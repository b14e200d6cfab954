package sqlfuncs

import (
	"context"
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// currentCommitSeq is current_commit_seq(): the seq of the cut that the statement reads. It is not the newest of the
// warehouse inside a transaction, so that commits_since(current_commit_seq()) never skips what the transaction could not see.
var currentCommitSeq = &Function{
	Name: "current_commit_seq", Returns: pgtype.Int8,
	Doc: "The commit seq that the statement reads at.",
	Call: func(_ context.Context, env *Env, _ []*Value) (*Value, error) {
		return &Value{OID: pgtype.Int8, Text: strconv.FormatUint(env.Cut.Seq(), 10)}, nil
	},
}
