package liveset

import "slices"

// A path stands once in a set, however many live entries name it: "the data files in a snapshot are the union of all files in its manifests" (spec,
// "Snapshots"). Writers that add a file twice, or list a manifest twice, leave several entries of it: it is live as long as one is left, and
// the newest describes it.

// repeated are the live entries of a path that has more than one, newest first. Immutable.
type repeated[T any] struct{ entries []T }

// entry is what File and DeleteFile have in common here.
type entry[T any] interface {
	comparable
	id() string // path, and offset of a deletion vector in it
	same(T) bool
	newer(T) bool
}

func (f *File) id() string         { return f.Path }
func (f *File) newer(g *File) bool { return f.order > g.order }

func (d *DeleteFile) id() string { return d.key }

// same says whether two descriptions are of one entry.
func (d *DeleteFile) same(e *DeleteFile) bool {
	return d == e || d.key == e.key && d.DataSeq == e.DataSeq && d.FileSeq == e.FileSeq && d.part == e.part
}

func (d *DeleteFile) newer(e *DeleteFile) bool {
	return d.DataSeq > e.DataSeq || d.DataSeq == e.DataSeq && d.FileSeq > e.FileSeq
}

// move is what manifests that went and came say of a path: an entry of each side, and whether there are more.
type move[T any] struct {
	went, came T
	many       bool
}

// settle compares the entries of the manifests that went and came with what the set has (old: the entry of a path; multi: paths of several). It returns
// the entries that are another, the zero value where the path is gone, and the next multi.
func settle[T entry[T]](went, came []*manifest, of func(*manifest) []T, old func(string) (T, bool), multi *node[*repeated[T]]) (map[string]T, *node[*repeated[T]]) {
	var none T
	byID := map[string]move[T]{}
	for _, m := range came {
		for _, e := range of(m) {
			v := byID[e.id()]
			v.came, v.many = e, v.many || v.came != none
			byID[e.id()] = v
		}
	}
	for _, m := range went {
		for _, e := range of(m) {
			v := byID[e.id()]
			v.went, v.many = e, v.many || v.went != none
			byID[e.id()] = v
		}
	}
	changed := map[string]T{}
	several := map[string]*[2][]T{}
	for id, v := range byID {
		was, had := old(id)
		if _, ok := multi.get(id); ok || v.many || had && v.went == none {
			several[id] = &[2][]T{}
			continue
		}
		switch {
		case v.came == none && had && was.same(v.went):
			changed[id] = none
		case v.came != none && !(had && was.same(v.came)):
			changed[id] = v.came
		case v.came != none && was != v.came:
			changed[id] = v.came // the same entry, read again: it may have inherited more
		}
	}
	if len(several) == 0 {
		return changed, multi
	}
	for side, list := range [2][]*manifest{went, came} {
		for _, m := range list {
			for _, e := range of(m) {
				if x := several[e.id()]; x != nil {
					x[side] = append(x[side], e)
				}
			}
		}
	}
	for id, x := range several {
		multi = settleSeveral(id, x[0], x[1], old, multi, changed)
	}
	return changed, multi
}

// settleSeveral is settle for one path of several entries.
func settleSeveral[T entry[T]](id string, went, came []T, old func(string) (T, bool), multi *node[*repeated[T]], changed map[string]T) *node[*repeated[T]] {
	var now []T
	was, had := old(id)
	if r, ok := multi.get(id); ok {
		now = slices.Clone(r.entries)
	} else if had {
		now = []T{was}
	}
	for _, e := range went {
		if i := slices.IndexFunc(now, e.same); i >= 0 {
			now = slices.Delete(now, i, i+1)
		}
	}
	now = append(now, came...)
	slices.SortStableFunc(now, func(a, b T) int {
		switch {
		case a.newer(b):
			return -1
		case b.newer(a):
			return 1
		}
		return 0
	})
	var none T
	switch {
	case len(now) == 0:
		changed[id] = none
	case !had || was != now[0]:
		changed[id] = now[0] // another one, or the same entry, read again: it may have inherited more
	}
	if len(now) > 1 {
		return multi.put(id, &repeated[T]{now})
	}
	return multi.del(id)
}

// EntriesOf are all live entries of a file of the set, the newest first: one, but for files that were added again.
func (s *Set) EntriesOf(f *File) []*File {
	if r, ok := s.repeatedFiles.get(f.Path); ok {
		return r.entries
	}
	return []*File{f}
}

// DeleteEntriesOf is EntriesOf for a delete file.
func (s *Set) DeleteEntriesOf(d *DeleteFile) []*DeleteFile {
	if r, ok := s.repeatedDels.get(d.key); ok {
		return r.entries
	}
	return []*DeleteFile{d}
}
