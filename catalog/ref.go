package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"
)

// Ref is a branch or tag of a table at a cut, other than main.
type Ref struct {
	Name       string
	SnapshotID int64
	Tag        bool
}

// Flags of a table's value.
const (
	flagRegistered = 1
	flagRefs       = 2 // refs other than main follow
	flagMounted    = 4
)

// Refs returns the table's branches and tags other than main at this cut, by name. The slice is shared: read it only.
func (t *TableState) Refs() []Ref { return t.refs }

// Ref returns a branch or tag other than main at this cut.
func (t *TableState) Ref(name string) (Ref, bool) {
	for _, r := range t.refs {
		if r.Name == name {
			return r, true
		}
	}
	return Ref{}, false
}

func refsOf(meta table.Metadata) []Ref {
	var out []Ref
	for name, r := range meta.Refs() {
		if name != table.MainBranch {
			out = append(out, Ref{name, r.SnapshotID, r.SnapshotRefType == table.TagRef})
		}
	}
	slices.SortFunc(out, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// refsBack is the refs of metadata with older heads. A ref whose snapshot has expired since is left out: it cannot be read.
func refsBack(meta table.Metadata, main *int64, older []Ref) map[string]table.SnapshotRef {
	now := maps.Collect(meta.Refs())
	out := map[string]table.SnapshotRef{}
	put := func(name string, id int64, kind table.RefType) {
		r, ok := now[name]
		if !ok || r.SnapshotRefType != kind {
			r = table.SnapshotRef{SnapshotRefType: kind}
		}
		r.SnapshotID = id
		out[name] = r
	}
	if main != nil {
		put(table.MainBranch, *main, table.BranchRef)
	}
	for _, r := range older {
		kind := table.BranchRef
		if r.Tag {
			kind = table.TagRef
		}
		if meta.SnapshotByID(r.SnapshotID) != nil {
			put(r.Name, r.SnapshotID, kind)
		}
	}
	return out
}

func appendRefs(w *writer, refs []Ref) {
	w.uvarint(uint64(len(refs)))
	for _, r := range refs {
		w.string(r.Name)
		w.varint(r.SnapshotID)
		kind := uint64(0)
		if r.Tag {
			kind = 1
		}
		w.uvarint(kind)
	}
}

func decodeRefs(r *reader) []Ref {
	var out []Ref
	for range r.count() {
		if r.err != nil {
			return nil
		}
		out = append(out, Ref{Name: r.string(), SnapshotID: r.varint(), Tag: r.uvarint() == 1})
	}
	return out
}
