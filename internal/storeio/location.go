package storeio

import (
	"net/url"
	"path/filepath"
	"strings"
)

// PathOf returns the local path of a location: "file:///a/b%20c", "file:/a/b", "file://localhost/a" or a bare path, which
// is returned as it is (a bare path is never unescaped).
func PathOf(location string) string {
	if len(location) < 5 || !strings.EqualFold(location[:5], "file:") {
		return location
	}
	p := location[5:]
	if strings.HasPrefix(p, "//") {
		p = p[2:]
		slash := strings.IndexByte(p, '/')
		if slash < 0 {
			return p
		}
		p = p[slash:]
	}
	if strings.IndexByte(p, '%') < 0 {
		return p
	}
	if u, err := url.PathUnescape(p); err == nil {
		return u
	}
	return p
}

// LocationOf returns the file URI of an absolute path, escaped so that PathOf gives the path back.
func LocationOf(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}
