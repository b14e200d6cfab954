package lineage

import "errors"

// Sentinels.
var (
	// ErrStarted is returned by Start when the Recorder runs already or was closed.
	ErrStarted = errors.New("lineage recorder was started before")
	// ErrContextTooLarge is returned by Context.Encode when the encoding exceeds MaxContext bytes (54000).
	ErrContextTooLarge = errors.New("lineage context is too large")
	// ErrMalformedContext is returned by DecodeContext for bytes that Encode did not make.
	ErrMalformedContext = errors.New("malformed lineage context")
)
