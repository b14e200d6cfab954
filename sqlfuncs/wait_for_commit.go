package sqlfuncs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// waitForCommit is wait_for_commit(seq, timeout): waits until the commit of that seq is there and returns the newest seq, or NULL when
// it did not come in time. It is LISTEN for clients that cannot, behind a transaction pooler; wait_for_commit(saved + 1, …) waits for
// news. Inside a transaction with one cut, statements after it still read at that cut.
var waitForCommit = &Function{
	Name: "wait_for_commit",
	Args: []Arg{
		{Name: "seq", OID: pgtype.Int8},
		{Name: "timeout", OID: pgtype.Interval, Default: "'30 s'"},
	},
	Returns: pgtype.Int8, Strict: true, Volatile: true,
	Doc:  "Waits until a commit seq is there; returns the newest seq, or NULL when time ran out.",
	Call: waitCommit,
}

// errLate ends the wait.
var errLate = errors.New("time ran out")

func waitCommit(ctx context.Context, env *Env, args []*Value) (*Value, error) {
	seq, err := strconv.ParseInt(args[0].Text, 10, 64)
	if err != nil || seq < 0 {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "malformed seq: \"%s\"", args[0].Text)
	}
	timeout, err := intervalArg(args, 1, "timeout", 30*time.Second)
	if err != nil {
		return nil, err
	}
	sub := env.Catalog.SubscribeCommits()
	defer sub.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errLate)
	defer cancel()
	for {
		if now := env.Catalog.CommitSeq(); now >= uint64(seq) {
			return &Value{OID: pgtype.Int8, Text: strconv.FormatUint(now, 10)}, nil
		}
		if _, err := sub.Next(ctx); err != nil {
			if errors.Is(context.Cause(ctx), errLate) {
				return &Value{OID: pgtype.Int8, Null: true}, nil
			}
			return nil, err
		}
	}
}
