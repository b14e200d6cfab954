package lineage

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/apache/iceberg-go/table"
)

// MaxContext is how many bytes of context a commit carries.
const MaxContext = 64 << 10

// contextMagic begins every encoded context; the byte after it is the version.
const contextMagic = "OLX"

const contextVersion = 1

// Context is what a writer tells lineage about a commit, stored in the commit's own transaction.
type Context struct {
	Job    string  `json:"job,omitempty"`
	RunID  string  `json:"run,omitempty"` // a UUID
	Inputs []Input `json:"in,omitempty"`
}

// Input is a table a commit read, at a snapshot (nil: it was empty).
type Input struct {
	Table      table.Identifier `json:"t"`
	SnapshotID *int64           `json:"s,omitempty,string"`
}

// Encode returns the bytes for a commit's context: "OLX", a version byte, JSON. Errors: ErrContextTooLarge.
func (c *Context) Encode() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode lineage context: %w", err)
	}
	out := append(append([]byte(contextMagic), contextVersion), body...)
	if len(out) > MaxContext {
		return nil, fmt.Errorf("%w: %d bytes, %d are allowed", ErrContextTooLarge, len(out), MaxContext)
	}
	return out, nil
}

// DecodeContext reads Encode's bytes; nil for no bytes. Errors: ErrMalformedContext.
func DecodeContext(b []byte) (*Context, error) {
	if len(b) == 0 {
		return nil, nil
	}
	body, ok := bytes.CutPrefix(b, []byte(contextMagic))
	if !ok || len(body) == 0 || body[0] != contextVersion {
		return nil, fmt.Errorf("%w: unknown magic or version", ErrMalformedContext)
	}
	c := &Context{}
	if err := json.Unmarshal(body[1:], c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformedContext, err)
	}
	return c, nil
}
