package liveset

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

// keyTreeFiles is the number of files from which probes of few keys ask a key tree; below it walking over all is as fast. A variable for tests.
var keyTreeFiles = 24

// keyTreeKeys is the number of keys up to which they are looked for one by one.
const keyTreeKeys = 32

// keyTrees is the newest key tree of the sets that were derived from one another. Probing another of them updates it by what differs.
type keyTrees struct {
	mu struct {
		sync.Mutex
		newest *keyTree
	}
}

// keyTree finds the files of a set whose bounds of the first key column hold a key, in the logarithm of the number of files. Immutable.
type keyTree struct {
	sub   string // the key columns
	files *node[*LiveFile]
	root  *span
	loose *node[*LiveFile] // files without bounds, by order
}

// of returns the tree for a set.
func (k *keyTrees) of(p *prober, s *Set) *keyTree {
	k.mu.Lock()
	was := k.mu.newest
	k.mu.Unlock()
	if was != nil && was.sub == p.sub && was.files == s.files {
		return was
	}
	if was == nil || was.sub != p.sub {
		was = &keyTree{sub: p.sub}
	}
	now := &keyTree{sub: p.sub, files: s.files, root: was.root, loose: was.loose}
	diffTrees(was.files, s.files, func(order string, a, b *LiveFile) {
		if a != nil {
			if bd := p.spanOf(a.File); bd.lo[0] == nil {
				now.loose = now.loose.del(order)
			} else {
				now.root = now.root.del(bd.lo[0], order)
			}
		}
		if b != nil {
			if bd := p.spanOf(b.File); bd.lo[0] == nil {
				now.loose = now.loose.put(order, b)
			} else {
				now.root = now.root.insert(&span{lo: bd.lo[0], hi: bd.hi[0], max: bd.hi[0], file: b, prio: xxh3.HashString(order)})
			}
		}
	})
	k.mu.Lock()
	k.mu.newest = now
	k.mu.Unlock()
	return now
}

// spanOf is a file's bounds; rows in memory have none.
func (p *prober) spanOf(f *File) *fileBounds {
	if f.mem != nil {
		return &fileBounds{lo: make([][]byte, 1)}
	}
	return p.boundsOf(f)
}

// find appends the files that may hold a key whose first column is part, in no order.
func (t *keyTree) find(dst []*LiveFile, part []byte) []*LiveFile { return t.root.stab(dst, part) }

// candidates appends the files that may hold any of the keys, in file order, to an empty list; firsts are the keys' first columns.
func (t *keyTree) candidates(out []*LiveFile, firsts [][]byte) []*LiveFile {
	for _, part := range firsts {
		out = t.find(out, part)
	}
	t.loose.walk(func(_ string, f *LiveFile) bool {
		out = append(out, f)
		return true
	})
	if len(out) < 2 {
		return out
	}
	slices.SortFunc(out, func(a, b *LiveFile) int { return strings.Compare(a.File.order, b.File.order) })
	return slices.Compact(out)
}

// span is a persistent treap of intervals, by lower bound and file order, with the largest upper bound of each subtree.
type span struct {
	lo, hi, max []byte
	file        *LiveFile
	prio        uint64
	left, right *span
}

// compare orders (lo, order) against the node.
func (n *span) compare(lo []byte, order string) int {
	if c := bytes.Compare(lo, n.lo); c != 0 {
		return c
	}
	return strings.Compare(order, n.file.File.order)
}

func (n *span) with(left, right *span) *span {
	out := &span{lo: n.lo, hi: n.hi, max: n.hi, file: n.file, prio: n.prio, left: left, right: right}
	for _, c := range [2]*span{left, right} {
		if c != nil && bytes.Compare(c.max, out.max) > 0 {
			out.max = c.max
		}
	}
	return out
}

func (n *span) insert(x *span) *span {
	if n == nil {
		return x
	}
	c := n.compare(x.lo, x.file.File.order)
	switch {
	case c == 0:
		return x.with(n.left, n.right)
	case x.prio > n.prio:
		l, r := n.split(x.lo, x.file.File.order)
		return x.with(l, r)
	case c < 0:
		return n.with(n.left.insert(x), n.right)
	}
	return n.with(n.left, n.right.insert(x))
}

// split cuts the tree below and above a place that it does not hold.
func (n *span) split(lo []byte, order string) (l, r *span) {
	if n == nil {
		return nil, nil
	}
	if n.compare(lo, order) > 0 {
		a, b := n.right.split(lo, order)
		return n.with(n.left, a), b
	}
	a, b := n.left.split(lo, order)
	return a, n.with(b, n.right)
}

func (n *span) del(lo []byte, order string) *span {
	if n == nil {
		return nil
	}
	switch c := n.compare(lo, order); {
	case c == 0:
		return mergeSpans(n.left, n.right)
	case c < 0:
		return n.with(n.left.del(lo, order), n.right)
	}
	return n.with(n.left, n.right.del(lo, order))
}

func mergeSpans(l, r *span) *span {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	case l.prio > r.prio:
		return l.with(l.left, mergeSpans(l.right, r))
	}
	return r.with(mergeSpans(l, r.left), r.right)
}

// stab appends the files whose interval holds the point.
func (n *span) stab(dst []*LiveFile, at []byte) []*LiveFile {
	if n == nil || bytes.Compare(n.max, at) < 0 {
		return dst
	}
	dst = n.left.stab(dst, at)
	if bytes.Compare(n.lo, at) > 0 {
		return dst
	}
	if bytes.Compare(n.hi, at) >= 0 {
		dst = append(dst, n.file)
	}
	return n.right.stab(dst, at)
}
