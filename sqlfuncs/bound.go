package sqlfuncs

import (
	"errors"
	"strconv"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// boundArg reads a bound: a bigint snapshot id, a timestamp, or text. NULL and left out are changelog.Null. Errors: 22023 for text that is
// no bound, 42804 for a value of another type.
func boundArg(env *Env, args []*Value, i int) (changelog.Bound, error) {
	if !given(args, i) {
		return changelog.Null, nil
	}
	v := args[i]
	switch v.OID {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		id, err := strconv.ParseInt(v.Text, 10, 64)
		return changelog.SnapshotID(id), err
	case pgtype.Text, pgtype.Varchar, pgtype.BPChar, pgtype.Name, pgtype.Unknown:
		return textBound(env, v.Text)
	case pgtype.Timestamp, pgtype.TimestampTZ, pgtype.Date:
		micros, err := env.Style.ParseTimestampTZ([]byte(v.Text))
		return instant(micros), err
	}
	return changelog.Bound{}, pgerr.Newf(pgerr.DatatypeMismatch, "a bound cannot be of type %s", pgtype.FormatNoTypmod(v.OID)).
		WithHint("A bound is a snapshot id (bigint), a timestamptz, or text: seq:N, tag:x, branch:x, earliest, now.")
}

// textBound reads a bound's text form; what has none is a timestamp as the session writes them.
func textBound(env *Env, text string) (changelog.Bound, error) {
	b, err := changelog.ParseBoundIn(text, env.Style.Loc)
	if !errors.Is(err, changelog.ErrMalformedBound) {
		return b, err
	}
	if micros, terr := env.Style.ParseTimestampTZ([]byte(text)); terr == nil {
		return instant(micros), nil
	}
	return b, err
}

// stateBound is boundArg that also takes the bare name of a branch or tag of the table.
func stateBound(env *Env, st *catalog.TableState, v *Value) (changelog.Bound, error) {
	if _, err := changelog.ParseBoundIn(v.Text, env.Style.Loc); errors.Is(err, changelog.ErrMalformedBound) {
		if v.Text == table.MainBranch {
			return changelog.Branch(v.Text), nil
		}
		if r, ok := st.Ref(v.Text); ok && r.Tag {
			return changelog.Tag(v.Text), nil
		} else if ok {
			return changelog.Branch(v.Text), nil
		}
	}
	return boundArg(env, []*Value{v}, 0)
}

// instant is the bound of a timestamptz.
func instant(micros int64) changelog.Bound {
	switch micros {
	case pgenc.TimestampInfinity:
		return changelog.Now
	case pgenc.TimestampNegInfinity:
		return changelog.Null
	}
	return changelog.Timestamp(time.UnixMicro(micros).UTC())
}
