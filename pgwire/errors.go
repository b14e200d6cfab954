package pgwire

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

var (
	// ErrServerStopped is returned by Serve after Stop was called.
	ErrServerStopped = errors.New("server stopped")
	// ErrKilled is returned by Stop when connections had to be closed by force after its deadline.
	ErrKilled = errors.New("connections were closed by force")
	// ErrBadVerifier is returned when a stored password verifier is not SCRAM-SHA-256's.
	ErrBadVerifier = errors.New("malformed SCRAM-SHA-256 verifier")

	// errGone ends a connection whose client is not there any more: nothing can be sent.
	errGone = errors.New("client connection is gone")
	// errTerminate ends a connection at the client's wish.
	errTerminate = errors.New("client terminated the connection")
)

var (
	errShutdown    = fatal(pgerr.AdminShutdown, "terminating connection due to administrator command")
	errUserCancel  = pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	errTooMany     = fatal(pgerr.TooManyConnections, "sorry, too many clients already")
	errBadLength   = fatal(pgerr.ProtocolViolation, "invalid message length")
	errShortMsg    = pgerr.New(pgerr.ProtocolViolation, "insufficient data left in message")
	errBadString   = pgerr.New(pgerr.ProtocolViolation, "invalid string in message")
	errTrailing    = pgerr.New(pgerr.ProtocolViolation, "invalid message format")
	errStartupLen  = fatal(pgerr.ProtocolViolation, "invalid length of startup packet")
	errStartupForm = fatal(pgerr.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
	errNoFastpath  = pgerr.New(pgerr.FeatureNotSupported, "the function call protocol is not supported").WithHint("Use SELECT function(…).")
)

func fatal(code pgerr.Code, message string) *pgerr.Error {
	return &pgerr.Error{Severity: pgerr.SevFatal, Code: code, Message: message}
}

// asFatal returns e with severity FATAL.
func asFatal(e *pgerr.Error) *pgerr.Error {
	c := *e
	c.Severity = pgerr.SevFatal
	return &c
}

// clientError is what the client sees of err. An error without SQLSTATE is not shown.
func clientError(err error) *pgerr.Error {
	if e := pgerr.As(err); e != nil {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errUserCancel
	}
	return pgerr.New(pgerr.InternalError, "internal error").WithCause(err)
}

// appendError appends e as an ErrorResponse, or as a NoticeResponse when its severity is no error's.
func appendError(dst []byte, e *pgerr.Error) []byte {
	sev := e.Severity
	if sev == "" {
		sev = pgerr.SevError
	}
	r := pgproto3.ErrorResponse{
		Severity: string(sev), SeverityUnlocalized: string(sev), Code: string(e.Code), Message: e.Message, Detail: e.Detail, Hint: e.Hint,
		Position: int32(e.Position), Where: e.Where, SchemaName: e.Schema, TableName: e.Table, ColumnName: e.Column,
		DataTypeName: e.DataType, ConstraintName: e.Constraint,
	}
	dropNULs(&r.Message, &r.Detail, &r.Hint, &r.Where, &r.SchemaName, &r.TableName, &r.ColumnName, &r.DataTypeName, &r.ConstraintName)
	switch sev {
	case pgerr.SevError, pgerr.SevFatal, "PANIC":
		return encode(dst, &r)
	}
	n := pgproto3.NoticeResponse(r)
	return encode(dst, &n)
}

// encode appends a backend message. The messages built here are small and valid: Encode fails on sizes only.
func encode(dst []byte, m interface {
	Encode([]byte) ([]byte, error)
}) []byte {
	out, err := m.Encode(dst)
	if err != nil {
		return dst
	}
	return out
}
