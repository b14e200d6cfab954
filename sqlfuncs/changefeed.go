package sqlfuncs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Durable feeds: what the changefeed functions share. The rules of positions and leases are catalog.Feed's.

// changeFeed changes a feed at once, whatever becomes of the transaction, as PostgreSQL does with replication slots.
func changeFeed(ctx context.Context, env *Env, name string, change func(old *catalog.Feed, now time.Time) (*catalog.Feed, error)) error {
	_, err := env.Catalog.Commit(ctx, &catalog.Request{Changes: []catalog.Change{catalog.ChangeFeed{Name: name, Change: change}}})
	return err
}

// existingFeed is changeFeed of a feed that must exist.
func existingFeed(ctx context.Context, env *Env, name string, change func(f *catalog.Feed, now time.Time) (*catalog.Feed, error)) error {
	return changeFeed(ctx, env, name, func(old *catalog.Feed, now time.Time) (*catalog.Feed, error) {
		if old == nil {
			return nil, noFeed(name)
		}
		return change(old, now)
	})
}

func noFeed(name string) error {
	return pgerr.Newf(pgerr.UndefinedObject, "feed \"%s\" does not exist", name).WithHint("View skade.changefeeds lists the feeds.")
}

// feedNamed is the feed of argument 0.
func feedNamed(env *Env, name string) (*catalog.Feed, error) {
	f, err := env.Catalog.Feed(name)
	if errors.Is(err, catalog.ErrNoSuchFeed) {
		return nil, noFeed(name)
	}
	return f, err
}

// lostFeed is the error of reading a lost feed.
func lostFeed(name string) error {
	return pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "feed \"%s\" is lost", name).
		WithDetail("What it had not acknowledged is no longer retained: it waited longer than max_pin.").
		WithHint("Read the tables anew (table_at), then go on with changefeed_seek(name, 'seq:N').")
}

// touched reads the log in (after, to] until it has seen most commits of the feed, and returns the seq it came to and the feed's tables that
// changed, oldest change first. most < 0 is no limit.
func touched(ctx context.Context, env *Env, f *catalog.Feed, after, to uint64, most int64) (uint64, []catalog.TableKey, error) {
	var keys []catalog.TableKey
	seen := map[catalog.TableKey]bool{}
	for after < to {
		records, err := env.Catalog.CommitsSince(ctx, after, logWindow)
		if err != nil {
			return after, nil, err
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			if r.Seq > to {
				return after, keys, nil
			}
			found := false
			for i := range r.Tables {
				t := &r.Tables[i]
				if !f.Tells(t) || !env.Visible(t.Ident) {
					continue
				}
				found = true
				if !seen[t.Key] {
					seen[t.Key] = true
					keys = append(keys, t.Key)
				}
			}
			after = r.Seq
			if found {
				if most--; most == 0 {
					return after, keys, nil
				}
			}
		}
	}
	return after, keys, nil
}

// feedTables are the SQL names of tables; those that were dropped are left out.
func feedTables(env *Env, keys []catalog.TableKey) []string {
	cut := env.Catalog.Cut()
	names := []string{}
	for _, k := range keys {
		if t, ok := cut.TableByKey(k); ok {
			names = append(names, quotedName(t.Ident))
		}
	}
	return names
}

// quotedName is a table's name as SQL text has to write it.
func quotedName(ident []string) string {
	return quoted(strings.Join(ident[:len(ident)-1], ".")) + "." + quoted(ident[len(ident)-1])
}

// quoted is a name as it stands in SQL: in quotes when it would be read differently.
func quoted(name string) string {
	plain := name != "" && (name[0] < '0' || name[0] > '9') && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// intArg reads a number in [from, to].
func intArg(args []*Value, i int, name string, from, to, otherwise int64) (int64, error) {
	if !given(args, i) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(args[i].Text, 10, 64)
	if err != nil || n < from || n > to {
		return 0, pgerr.Newf(pgerr.InvalidParameterValue, "%s must be between %d and %d: \"%s\"", name, from, to, args[i].Text)
	}
	return n, nil
}

// feedNameArg reads a feed's name.
func feedNameArg(args []*Value, fn string) (string, error) {
	if !given(args, 0) {
		return "", pgerr.Newf(pgerr.InvalidParameterValue, "name of %s must not be null", fn)
	}
	return args[0].Text, nil
}

// tablesArg reads the tables of a feed: nil for all.
func tablesArg(ctx context.Context, env *Env, args []*Value, i int) ([]catalog.TableKey, error) {
	if !given(args, i) {
		return nil, nil
	}
	keys := []catalog.TableKey{}
	for _, v := range args[i].Array {
		if v.Null {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "tables of a feed must not hold null")
		}
		ident, err := env.Resolve(v.Text)
		if err != nil {
			return nil, err
		}
		st, err := env.stored(ctx, ident)
		if err != nil {
			return nil, err
		}
		if st == nil { // a feed is made at once, whatever becomes of the transaction
			return nil, noPast(ident)
		}
		if !slices.Contains(keys, st.Key) {
			keys = append(keys, st.Key)
		}
	}
	if len(keys) == 0 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "a feed of no tables tells nothing").WithHint("tables => NULL is every table of the warehouse.")
	}
	return keys, nil
}
