// Package pgwire answers one question: what happens on one client's socket. It speaks PostgreSQL's frontend/backend protocol
// 3.0 and 3.2 and turns it into calls on a Session, which it declares (session.go) and does not implement.
//
// # Words
//
// A connection is a socket with one goroutine. A message is one frame of the protocol. A batch is the extended-protocol
// messages up to Sync. A portal is a bound statement. The backend key is the pid and secret that a CancelRequest names.
//
// # Life of a connection
//
//	accept → start-up packets (SSLRequest, GSSENCRequest, CancelRequest, StartupMessage; startup.go)
//	       → authentication (trust, SCRAM-SHA-256[-PLUS], certificate; auth.go, scram.go)
//	       → Backend.NewSession → ParameterStatus, BackendKeyData, ReadyForQuery
//	       → message loop (loop.go): simple query (simple.go), extended query (extended.go), COPY (copy.go)
//	       → Session.Close
//
// A connection ends when: the start-up or authentication fails or takes longer than Options.StartupTimeout (FATAL sent); the
// client sends Terminate or closes; a frame is malformed (FATAL 08P01); the session returns an error of severity FATAL;
// Asyncer.Terminate is called (its cause sent as FATAL); a write fails; Server.Stop drains it (FATAL 57P01). In every case
// the session is closed once and the goroutine ends; Stop waits for it.
//
// # Invariants
//
//	W1  One goroutine reads, calls the session and writes; only Session.Cancel and the wake-ups below come from others.
//	W2  Every message from the client is answered, or skipped up to Sync after an error, exactly as PostgreSQL does;
//	    ReadyForQuery is sent once per Query, FunctionCall and Sync.
//	W3  A slow or stuck client blocks its own goroutine and nobody else. What others queue for it (notifications) is bounded.
//	W4  No client byte makes the server panic or allocate more than what was received, twice over.
//	W5  An error in the middle of COPY leaves the protocol in step: later CopyData, CopyDone and CopyFail are ignored.
//	W6  A connection that waits for its client holds no buffer beyond a small read buffer.
//
// # Concurrency
//
// Notify, Wake, Terminate and Cancel reach a connection that is blocked in a read or write by moving its deadline into the past; the
// goroutine wakes, finds the reason under conn.mu and goes on, with no byte lost. On TLS a timed-out write ends the
// connection, because a TLS record cannot be resumed; a cancelled statement there waits for its write.
//
// # Errors
//
// Errors of the session that hold a *pgerr.Error go to the client as they are; any other becomes XX000 "internal error" and is
// logged. A panic below a message becomes XX000 and a logged stack, and the session goes on with a failed transaction.
//
// # Differences from PostgreSQL
//
// A cancel request interrupts COPY FROM STDIN while it waits for the client. A malformed start-up packet is answered before the
// connection is closed. The fastpath FunctionCall is refused with 0A000.
//
// # What it does not do
//
// It knows no SQL, no types and no values: rows arrive as finished DataRow messages. It keeps no roles: verifiers come from Auth.
package pgwire
