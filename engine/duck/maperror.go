package duck

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// engineError is what DuckDB says about a failure, from its JSON form (errors_as_json). No client sees its text: it is the
// Cause of the *pgerr.Error made from it.
type engineError struct {
	Type     string `json:"exception_type"`
	Message  string `json:"exception_message"`
	Subtype  string `json:"error_subtype"`
	Entry    string `json:"type"` // kind of a missing catalog entry
	Name     string `json:"name"`
	Call     string `json:"call"`
	Position string `json:"position"`
}

func (e *engineError) Error() string { return "duckdb: " + e.Type + ": " + e.Message }

// Unwrap gives every engine error one identity.
func (e *engineError) Unwrap() error { return ErrEngine }

// parseEngineError reads an error text: JSON, JSON after "… Error: ", or plain text with the class in front.
func parseEngineError(text string) *engineError {
	e := &engineError{}
	if i := strings.IndexByte(text, '{'); i >= 0 && strings.Contains(text, `"exception_type"`) {
		if json.Unmarshal([]byte(text[i:]), e) == nil && e.Type != "" {
			return e
		}
	}
	class, msg, ok := strings.Cut(text, " Error: ")
	if !ok {
		return &engineError{Message: text}
	}
	return &engineError{Type: class, Message: msg}
}

// resultError is the error of a failed result, mapped.
func resultError(ctx context.Context, res *bind.Result) error {
	return engineFailure(ctx, bind.ResultError(res))
}

// prepareError is the error of a statement that did not compile, mapped.
func prepareError(ctx context.Context, text string) error { return engineFailure(ctx, text) }

func engineFailure(ctx context.Context, text string) error {
	e := parseEngineError(text)
	if e.Type == "INTERRUPT" || e.Type == "Interrupt" {
		if ctx.Err() != nil {
			return MapError(context.Cause(ctx))
		}
		return mapEngine(e).WithCause(ErrErrorLost)
	}
	return MapError(e)
}

// MapError turns any error of this package into what a client may see; nil for nil. Errors of relations and functions
// keep their identity for errors.Is and errors.As; an *pgerr.Error anywhere in the chain wins.
func MapError(err error) *pgerr.Error {
	if err == nil {
		return nil
	}
	if e := pgerr.As(err); e != nil {
		return e
	}
	var e *engineError
	switch {
	case errors.As(err, &e):
		return mapEngine(e)
	case errors.Is(err, context.DeadlineExceeded):
		return pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout").WithCause(err)
	case errors.Is(err, context.Canceled):
		return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request").WithCause(err)
	case errors.Is(err, ErrUnsupportedType):
		return pgerr.New(pgerr.FeatureNotSupported, strings.TrimPrefix(err.Error(), "duck: ")).WithCause(err)
	case errors.Is(err, ErrOutOfMemory):
		return outOfMemory().WithCause(err)
	}
	return pgerr.New(pgerr.InternalError, "internal error").WithCause(err)
}

func mapEngine(e *engineError) *pgerr.Error {
	if inner := uncarry(e.Message); inner != nil {
		if p := MapError(inner); p.Code != pgerr.InternalError || pgerr.As(inner) != nil {
			return p
		}
		return pgerr.New(pgerr.InternalError, "internal error").WithCause(inner)
	}
	if p := raised(e.Message); p != nil {
		return p.WithCause(e)
	}
	return classify(e).WithCause(e)
}

// raised reads "skade:<SQLSTATE> message[|detail][|hint]", which SQL and functions of ours put into an error text.
func raised(text string) *pgerr.Error {
	m := raisedText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	msg, _, _ := strings.Cut(m[2], "\n\nLINE ")
	return pgerr.New(pgerr.Code(m[1]), strings.TrimSpace(msg))
}

var raisedText = regexp.MustCompile(`(?s)skade:([0-9A-Z]{5}) (.*)$`)

func outOfMemory() *pgerr.Error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "out of memory").
		WithDetail("The statement needs more memory than the server's memory_limit leaves.").
		WithHint("Reduce what the statement sorts, joins or groups at once, or raise memory_limit.")
}

func tempLimit() *pgerr.Error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "temporary file size exceeds the server's limit").
		WithHint("Reduce what the statement sorts, joins or groups at once, or raise temp_limit.")
}

func rowTooLarge() *pgerr.Error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "row is too large to be sent")
}

func numericTooWide() *pgerr.Error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
		WithDetail("Values of type numeric are limited to 38 digits.")
}

func invalidTimeZone(name string, err error) error {
	if e := pgerr.As(err); e != nil && e.Code == pgerr.QueryCanceled {
		return e
	}
	return pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for parameter \"TimeZone\": %q", name).WithCause(err)
}
