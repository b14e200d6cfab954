// Package lockmgr answers: may this session have that lock now, who stands in its way, and is anybody waiting in a circle?
//
// Words:
//
//	Tag     what is locked: a table, a table's rows (all of them), one row by its key, an advisory number
//	Mode    how: PostgreSQL's eight table modes; four row modes; what a writer holds on the rows it has written
//	Owner   a session: it holds locks until its transaction ends, or (advisory ones, when asked) until it gives them back
//	waiter  a request in a lock's queue; queues are first in, first out
//
// Rows are locked on two levels. A lock on a row is preceded by an intention on the table's rows, so that one lock on all rows
// can stand for many: an owner with MaxRows row locks on one table locks all its rows instead (escalation), which bounds memory.
//
// Writers of rows hold Write modes, which conflict with the row modes but not with one another: two transactions may change one
// row, and the first to commit wins. So SELECT … FOR UPDATE waits for writers and writers wait for it, as in PostgreSQL.
//
// Invariants:
//
//	K1  two owners never hold conflicting modes of one tag.
//	K2  a request waits only for holders of conflicting modes and for conflicting requests that came earlier; an owner that
//	    already holds the lock goes before those that wait for it.
//	K3  every circle of waiters is found by one of its members after that member's deadlock timeout; it gets *DeadlockError. A
//	    circle that a change of order in a queue dissolves is dissolved.
//	K4  after an error of Acquire the owner holds what it held before.
//	K5  ReleaseTo(m) gives back exactly what was taken since m.
//
// Concurrency: a Manager is safe for concurrent use. An Owner's Acquire and Release calls come from one goroutine at a time; other
// sessions look at it only under the manager's mutex, which is a leaf (docs/locks.md).
//
// Errors: ErrNotAvailable, ErrTimeout, *DeadlockError, the cause of the context's end.
//
// It does not know what a row is, whether it changed meanwhile, or who may lock what.
package lockmgr
