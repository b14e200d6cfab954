package catalog

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// Key families of the store. One key holds one value; the layout is docs/format/catalog.md.
var (
	keyMeta = []byte("m")
	keyHead = []byte("s")
)

const (
	familyNamespace = 'n'
	familyTable     = 't'
	familyObject    = 'o'
	familyRecord    = 'l'
	familyCommit    = 'c'
	familyHistory   = 'h'
	familyFile      = 'w' // of older releases: one file each
	familyRedo      = 'g'
	familyDropped   = 'd'
	familySequence  = 'q'
	familyFeed      = 'f'
)

// maxName bounds one part of a name in bytes, maxLevels the parts of an identifier, maxIdent all of them together.
const (
	maxName   = 1024
	maxLevels = 32
	maxIdent  = 4096
)

// nameKey joins the parts of a name, each ended by NUL, so that names order by part and a prefix of levels is a prefix of
// bytes. Parts hold no NUL (checkIdent).
func nameKey(parts ...string) string {
	n := 0
	for _, p := range parts {
		n += len(p) + 1
	}
	var b strings.Builder
	b.Grow(n)
	for _, p := range parts {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return b.String()
}

func objectName(kind string, ns table.Identifier, name string) string {
	return nameKey(kind) + nameKey(ns...) + nameKey(name)
}

func namespaceKey(ns table.Identifier) []byte {
	return append([]byte{familyNamespace}, nameKey(ns...)...)
}

func tableKey(id uuid.UUID) []byte { return append([]byte{familyTable}, id[:]...) }

func droppedKey(id uuid.UUID) []byte { return append([]byte{familyDropped}, id[:]...) }

func objectKey(kind string, ns table.Identifier, name string) []byte {
	return append([]byte{familyObject}, objectName(kind, ns, name)...)
}

func feedKey(name string) []byte { return append([]byte{familyFeed}, name...) }

func recordKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte{familyRecord}, seq) }

// commitKey flips the sign bit, so that snapshot ids order as numbers.
func commitKey(id uuid.UUID, snapshotID int64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte{familyCommit}, id[:]...), uint64(snapshotID)^(1<<63))
}

func fileKey(path string) []byte { return append([]byte{familyFile}, path...) }

// historyPrefix begins all versions of one entity. The length in front keeps one entity's versions apart from another's
// whose key continues it.
func historyPrefix(entity []byte) []byte {
	b := make([]byte, 0, len(entity)+12)
	b = append(b, familyHistory, entity[0])
	b = binary.BigEndian.AppendUint16(b, uint16(len(entity)-1))
	return append(b, entity[1:]...)
}

func historyKey(entity []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(historyPrefix(entity), seq)
}

// splitHistory takes a history key apart into the entity's own key and the seq.
func splitHistory(key []byte) (entity []byte, seq uint64, err error) {
	if len(key) < 12 || key[0] != familyHistory {
		return nil, 0, fmt.Errorf("history key of %d bytes", len(key))
	}
	n := int(binary.BigEndian.Uint16(key[2:]))
	if len(key) != 4+n+8 {
		return nil, 0, fmt.Errorf("history key of %d bytes for an entity of %d", len(key), n)
	}
	entity = append([]byte{key[1]}, key[4:4+n]...)
	return entity, binary.BigEndian.Uint64(key[4+n:]), nil
}

func checkPart(part string) error {
	switch {
	case part == "":
		return fmt.Errorf("%w: empty name", icecat.ErrInvalidIdentifier)
	case len(part) > maxName:
		return fmt.Errorf("%w: name of %d bytes, at most %d", icecat.ErrInvalidIdentifier, len(part), maxName)
	case !utf8.ValidString(part) || strings.ContainsRune(part, 0):
		return fmt.Errorf("%w: name %q is not text", icecat.ErrInvalidIdentifier, part)
	}
	return nil
}

func checkIdent(id table.Identifier, atLeast int) error {
	if len(id) < atLeast || len(id) > maxLevels {
		return fmt.Errorf("%w: %d levels in %q", icecat.ErrInvalidIdentifier, len(id), strings.Join(id, "."))
	}
	total := 0
	for _, part := range id {
		if err := checkPart(part); err != nil {
			return err
		}
		total += len(part)
	}
	if total > maxIdent {
		return fmt.Errorf("%w: identifier of %d bytes, at most %d", icecat.ErrInvalidIdentifier, total, maxIdent)
	}
	return nil
}

func cloneIdent(id table.Identifier) table.Identifier {
	return append(make(table.Identifier, 0, len(id)), id...)
}

func dotted(id table.Identifier) string { return strings.Join(id, ".") }
