package pgerr

import (
	"errors"
	"fmt"
)

// Code is a five-character SQLSTATE.
// Source: PostgreSQL 15, appendix A "PostgreSQL Error Codes".
type Code string

// Severity is the S and V field of an ErrorResponse or NoticeResponse.
type Severity string

// Severities of ErrorResponse (ERROR, FATAL, PANIC) and NoticeResponse (the others).
const (
	SevError   Severity = "ERROR"
	SevFatal   Severity = "FATAL"
	SevWarning Severity = "WARNING"
	SevNotice  Severity = "NOTICE"
	SevInfo    Severity = "INFO"
	SevLog     Severity = "LOG"
	SevDebug   Severity = "DEBUG"
)

// Error is what a client receives. The zero Severity means ERROR.
type Error struct {
	Severity Severity
	Code     Code
	Message  string
	Detail   string
	Hint     string
	// Position is the 1-based place in the query text in characters (not bytes); 0 means none.
	Position   int
	Schema     string
	Table      string
	Column     string
	DataType   string
	Constraint string
	Where      string
	// Cause is logged, never sent.
	Cause error
}

// Error implements error: "message (SQLSTATE code)".
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s (SQLSTATE %s): %v", e.Message, e.Code, e.Cause)
	}
	return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New returns an Error of severity ERROR.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Newf is New with fmt.Sprintf.
func Newf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithDetail returns a copy with the detail set.
func (e *Error) WithDetail(format string, args ...any) *Error {
	c := *e
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// WithHint returns a copy with the hint set.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithPosition returns a copy with the position (1-based, characters) set.
func (e *Error) WithPosition(pos int) *Error {
	c := *e
	c.Position = pos
	return &c
}

// WithCause returns a copy that wraps err, for the log.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Cause = err
	return &c
}

// As returns the *Error in err's chain, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// CodeOf returns the SQLSTATE of err: XX000 when it has none, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Code
	}
	return InternalError
}
