package pgwire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the peer has closed its end, whatever it sent before. Source: WaitEventSet's WL_SOCKET_CLOSED.
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
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = n == 1 && err == nil && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return err == nil && gone
}
