package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// name is the session's among all sessions that ever were: the holder of its leases.
func (s *session) name() string {
	return strconv.FormatInt(int64(s.startup.PID), 10) + "@" + s.started.UTC().Format(time.RFC3339Nano)
}

// writableAtOnce refuses a change that does not wait for COMMIT in a read-only transaction.
func (s *session) writableAtOnce(command string) error {
	if s.tx != nil && s.tx.readOnly() {
		return pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", command)
	}
	return nil
}

// releaseFeeds ends the session's leases: whoever takes its work over need not wait for their time.
func (s *session) releaseFeeds() {
	name := s.name()
	s.gw.releaseLeases(func(holder string) bool { return holder == name })
}

// releaseLeases ends the leases of consumers that are gone.
func (gw *Gateway) releaseLeases(gone func(holder string) bool) {
	for f := range gw.catalog.Feeds() {
		if f.Release(time.Now(), gone) == f {
			continue
		}
		err := gw.changeFeed(context.Background(), f, func(now *catalog.Feed) *catalog.Feed { return now.Release(time.Now(), gone) })
		if err != nil {
			gw.log.Warn().Err(err).Str("feed", f.Name).Msg("release leases")
		}
	}
}
