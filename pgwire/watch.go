package pgwire

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// hungUp peeks at the socket: true when the peer closed it and nothing is left to read.
func hungUp(nc any) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return err == nil && gone
}
