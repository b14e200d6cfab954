package pgwire

import (
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

var errLost = fatal(pgerr.ConnectionFailure, "connection to client lost")

// watchClients ends connections whose client went away while a statement runs, so that nobody computes for nobody. Between
// messages the read notices; this looks at the rest once an interval. Source: client_connection_check_interval.
func (s *Server) watchClients() {
	defer s.started.Done()
	t := time.NewTicker(s.o.CheckInterval)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.drained:
			return
		case <-t.C:
		}
		s.mu.Lock()
		conns := s.connsLocked()
		s.mu.Unlock()
		for _, c := range conns {
			c.mu.Lock()
			busy := c.mu.busy && c.mu.session != nil && c.mu.terminate == nil
			c.mu.Unlock()
			if busy && hungUp(c.raw) {
				c.Terminate(errLost)
			}
		}
	}
}
