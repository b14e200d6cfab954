package engine

// rowName shows a row's key as clients know it.
func rowName(key string) string { return key }
