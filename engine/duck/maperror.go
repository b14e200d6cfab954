package duck

import "github.com/nordisk/skade-pg/internal/pgerr"

// MapError turns any error of this package into what a client may see; nil for nil.
func MapError(err error) *pgerr.Error {
	if err == nil {
		return nil
	}
	if e := pgerr.As(err); e != nil {
		return e
	}
	return pgerr.New(pgerr.InternalError, "internal error").WithCause(err)
}
