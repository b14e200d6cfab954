package changelog

// SetStreamHooks sets what runs between a stream's subscription and its look at the current state, and when an event has come.
func (r *Reader) SetStreamHooks(subscribed, woken func()) { r.hooks = streamHooks{subscribed, woken} }
