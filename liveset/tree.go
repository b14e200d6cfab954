package liveset

import (
	"iter"

	"github.com/zeebo/xxh3"
)

// node is a persistent treap: an update copies the path to the root and shares the rest. A key's priority is its hash, so the shape is a
// function of the keys alone: trees that hold the same, however they came about, look the same, and comparing two trees that
// share structure skips what they share. nil is the empty tree.
type node[V comparable] struct {
	key         string
	prio        uint64
	val         V
	left, right *node[V]
	count       int
}

func (n *node[V]) size() int {
	if n == nil {
		return 0
	}
	return n.count
}

func (n *node[V]) get(key string) (v V, ok bool) {
	for n != nil {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.val, true
		}
	}
	return v, false
}

// above says whether n belongs above m in a treap.
func (n *node[V]) above(m *node[V]) bool {
	return n.prio > m.prio || n.prio == m.prio && n.key < m.key
}

func join[V comparable](n *node[V], left, right *node[V]) *node[V] {
	return &node[V]{key: n.key, prio: n.prio, val: n.val, left: left, right: right, count: left.size() + right.size() + 1}
}

// put returns the tree with key set to v.
func (n *node[V]) put(key string, v V) *node[V] {
	return n.insert(&node[V]{key: key, prio: xxh3.HashString(key), val: v, count: 1})
}

func (n *node[V]) insert(x *node[V]) *node[V] {
	switch {
	case n == nil:
		return x
	case x.key == n.key:
		if x.val == n.val {
			return n
		}
		return join(x, n.left, n.right)
	case x.above(n):
		l, r := n.split(x.key)
		return join(x, l, r)
	case x.key < n.key:
		l := n.left.insert(x)
		if l == n.left {
			return n
		}
		return join(n, l, n.right)
	}
	r := n.right.insert(x)
	if r == n.right {
		return n
	}
	return join(n, n.left, r)
}

// split cuts the tree into keys below and above key, which it does not hold.
func (n *node[V]) split(key string) (l, r *node[V]) {
	switch {
	case n == nil:
		return nil, nil
	case n.key < key:
		a, b := n.right.split(key)
		if b == nil {
			return n, nil
		}
		return join(n, n.left, a), b
	}
	a, b := n.left.split(key)
	if a == nil {
		return nil, n
	}
	return a, join(n, b, n.right)
}

// merge joins two trees, all keys of l below those of r.
func mergeTrees[V comparable](l, r *node[V]) *node[V] {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	case l.above(r):
		return join(l, l.left, mergeTrees(l.right, r))
	}
	return join(r, mergeTrees(l, r.left), r.right)
}

// del returns the tree without key.
func (n *node[V]) del(key string) *node[V] {
	switch {
	case n == nil:
		return nil
	case key == n.key:
		return mergeTrees(n.left, n.right)
	case key < n.key:
		l := n.left.del(key)
		if l == n.left {
			return n
		}
		return join(n, l, n.right)
	}
	r := n.right.del(key)
	if r == n.right {
		return n
	}
	return join(n, n.left, r)
}

// all yields the entries in key order.
func (n *node[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { n.walk(yield) }
}

func (n *node[V]) walk(yield func(string, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.val) && n.right.walk(yield)
}

// diffTrees calls do, in key order, for every key whose values differ; a missing value is the zero value. Shared subtrees are not visited.
func diffTrees[V comparable](a, b *node[V], do func(key string, a, b V)) {
	var zero V
	switch {
	case a == b:
	case a == nil:
		b.walk(func(k string, v V) bool { do(k, zero, v); return true })
	case b == nil:
		a.walk(func(k string, v V) bool { do(k, v, zero); return true })
	case a.key == b.key:
		diffTrees(a.left, b.left, do)
		if a.val != b.val {
			do(a.key, a.val, b.val)
		}
		diffTrees(a.right, b.right, do)
	case a.above(b):
		l, r := b.split(a.key)
		diffTrees(a.left, l, do)
		do(a.key, a.val, zero)
		diffTrees(a.right, r, do)
	default:
		l, r := a.split(b.key)
		diffTrees(l, b.left, do)
		do(b.key, zero, b.val)
		diffTrees(r, b.right, do)
	}
}
