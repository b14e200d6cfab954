package catalog

import (
	"net/url"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// NewTableLocation returns the location of a new table: the namespace's location property or the warehouse with a directory
// a level, and below it the name with eight digits of the uuid, so that a name that is dropped and made again, or renamed
// away, never meets old files. Characters that a URI would escape become '_'.
func (c *Catalog) NewTableLocation(cut *Cut, ident table.Identifier, id uuid.UUID) (string, error) {
	if err := checkIdent(ident, 2); err != nil {
		return "", err
	}
	ns := ident[:len(ident)-1]
	var base string
	if n, err := cut.Namespace(ns); err == nil { // else the request that makes the table makes its namespace too
		base = n.Properties.Get("location", "")
	}
	leaf := plain(ident[len(ident)-1]) + "-" + id.String()[:8]
	if base != "" {
		return url.JoinPath(base, leaf)
	}
	base = strings.TrimRight(c.warehouse, "/")
	for _, level := range ns {
		base += "/" + plain(level)
	}
	return base + "/" + leaf, nil
}

// plain keeps letters, digits, '_' and '-' of a name, up to 64 of them.
func plain(name string) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() == 64 {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}
