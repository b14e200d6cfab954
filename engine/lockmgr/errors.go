package lockmgr

import (
	"errors"
	"fmt"
)

var (
	// ErrNotAvailable is returned when a lock that must not be waited for is taken (SQLSTATE 55P03).
	ErrNotAvailable = errors.New("lock is not available")
	// ErrTimeout is returned when a wait lasted longer than the request allowed (SQLSTATE 55P03).
	ErrTimeout = errors.New("lock timeout")
)

// DeadlockError is returned to the one of a circle of waiters that finds it (SQLSTATE 40P01).
type DeadlockError struct {
	// Edges go around the circle, beginning with the one who got the error.
	Edges []Edge
}

// Edge is one wait of a circle.
type Edge struct {
	Waiter  int32 // pid
	Mode    Mode
	Tag     Tag
	Blocker int32 // pid
}

func (e *DeadlockError) Error() string { return fmt.Sprintf("deadlock of %d sessions", len(e.Edges)) }
