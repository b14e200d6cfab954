package test

import (
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recorded history of list-append transactions, and a checker of snapshot isolation over it, in the style of Elle (Kingsbury and
// Alvaro, VLDB 2020): every appended value is unique, so that a read tells which transactions came before it, and in which order.

// listOp appends a value to a key's list, or has read it.
type listOp struct {
	read  bool
	key   int
	value int   // appended
	list  []int // read
}

type txStatus int

const (
	committed txStatus = iota
	aborted
	unknown // COMMIT was sent, no answer came
)

// listTx is a transaction: begin and end are places in one order of all begins and ends.
type listTx struct {
	ops        []listOp
	status     txStatus
	begin, end int
}

// anomalies returns what snapshot isolation (with real time: a transaction sees all that was committed before it began) forbids and
// the history shows, named as Adya and Elle do.
func anomalies(history []listTx) []string {
	c := &historyCheck{history: history, writer: map[[2]int]int{}, last: map[[2]int]bool{}, order: map[int][]int{}}
	c.writers()
	c.versions()
	if len(c.found) == 0 { // else the order of versions means nothing
		c.cycles()
	}
	return c.found
}

type historyCheck struct {
	history []listTx
	writer  map[[2]int]int  // (key, value) → transaction
	last    map[[2]int]bool // the transaction's last append to the key
	order   map[int][]int   // key → values as the longest read shows them
	found   []string
}

func (c *historyCheck) fail(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *historyCheck) writers() {
	for t, tx := range c.history {
		final := map[int]int{}
		for _, op := range tx.ops {
			if !op.read {
				c.writer[[2]int{op.key, op.value}] = t
				final[op.key] = op.value
			}
		}
		for k, v := range final {
			c.last[[2]int{k, v}] = true
		}
	}
}

// versions checks every read by itself: values of aborted transactions (G1a), half of a transaction (G1b), own appends, and that all reads
// of a key are prefixes of one list.
func (c *historyCheck) versions() {
	for t, tx := range c.history {
		own := map[int][]int{}
		for _, op := range tx.ops {
			if !op.read {
				own[op.key] = append(own[op.key], op.value)
				continue
			}
			if tx.status == aborted {
				continue // what it saw was not relied on
			}
			n := len(op.list) - len(own[op.key])
			if n < 0 || !slices.Equal(op.list[n:], own[op.key]) {
				c.fail("internal: transaction %d reads %v of key %d after appending %v", t, op.list, op.key, own[op.key])
				continue
			}
			c.external(t, op.key, op.list[:n])
		}
	}
	for t, tx := range c.history {
		for _, op := range tx.ops {
			if op.read && tx.status != aborted {
				if o := c.order[op.key]; !slices.Equal(op.list[:min(len(op.list), len(o))], o[:min(len(op.list), len(o))]) {
					c.fail("incompatible-order: transaction %d reads %v of key %d, others %v", t, op.list, op.key, o)
				}
			}
		}
	}
}

// external looks at the part of a read that others wrote.
func (c *historyCheck) external(t, key int, list []int) {
	seen := map[int]bool{}
	for _, v := range list {
		w, ok := c.writer[[2]int{key, v}]
		switch {
		case !ok:
			c.fail("garbage: transaction %d reads %d of key %d, which nobody wrote", t, v, key)
		case seen[v]:
			c.fail("duplicate: transaction %d reads %d of key %d twice", t, v, key)
		case c.history[w].status == aborted:
			c.fail("G1a: transaction %d reads %d of key %d, written by transaction %d, which aborted", t, v, key, w)
		}
		seen[v] = true
	}
	if n := len(list); n > 0 {
		if v := list[n-1]; !c.last[[2]int{key, v}] && c.writer[[2]int{key, v}] != t {
			c.fail("G1b: transaction %d reads %d of key %d, which its transaction overwrote", t, v, key)
		}
	}
	if len(list) > len(c.order[key]) {
		c.order[key] = list
	}
}

// edge is a dependency; rw says that from read what to overwrote.
type edge struct {
	to int
	rw bool
}

// cycles looks for dependency cycles without two adjacent anti-dependencies: those are what snapshot isolation forbids (G0, G1c, G-single,
// G-nonadjacent). Write skew has two in a row and is allowed.
func (c *historyCheck) cycles() {
	n := len(c.history)
	graph := make([][]edge, n)
	add := func(from, to int, rw bool) {
		if from != to {
			graph[from] = append(graph[from], edge{to, rw})
		}
	}
	next := func(key, i int) (int, bool) { // the writer of a key's version i
		o := c.order[key]
		if i >= len(o) {
			return 0, false
		}
		return c.writer[[2]int{key, o[i]}], true
	}
	for key, o := range c.order {
		for i := 1; i < len(o); i++ {
			add(c.writer[[2]int{key, o[i-1]}], c.writer[[2]int{key, o[i]}], false) // ww
		}
	}
	for t, tx := range c.history {
		own := map[int]int{}
		for _, op := range tx.ops {
			if !op.read {
				own[op.key]++
				continue
			}
			if tx.status == aborted {
				continue
			}
			at := len(op.list) - own[op.key]
			if at > 0 {
				add(c.writer[[2]int{op.key, op.list[at-1]}], t, false) // wr
			}
			if w, ok := next(op.key, at); ok {
				add(t, w, true) // rw
			}
		}
	}
	graph = c.realTime(graph)
	if path := forbiddenCycle(graph); path != nil {
		var tx []int
		for _, p := range path {
			if p < n {
				tx = append(tx, p)
			}
		}
		c.fail("cycle: %s through transactions %v", cycleName(graph, path), tx)
	}
}

// realTime adds a chain of instants: a committed transaction points to the instant of its end, an instant to the transactions that begin
// after it and to the next instant.
func (c *historyCheck) realTime(graph [][]edge) [][]edge {
	var ends []int
	for t, tx := range c.history {
		if tx.status == committed {
			ends = append(ends, t)
		}
	}
	sort.Slice(ends, func(i, j int) bool { return c.history[ends[i]].end < c.history[ends[j]].end })
	first := len(graph)
	for i, t := range ends {
		graph = append(graph, nil)
		if i > 0 {
			graph[first+i-1] = append(graph[first+i-1], edge{first + i, false})
		}
		graph[t] = append(graph[t], edge{first + i, false})
	}
	for t, tx := range c.history {
		i := sort.Search(len(ends), func(i int) bool { return c.history[ends[i]].end > tx.begin })
		if i > 0 {
			graph[first+i-1] = append(graph[first+i-1], edge{t, false})
		}
	}
	return graph
}

// forbiddenCycle finds a cycle in which no two rw edges follow each other: a cycle of the graph of (node, came by rw).
func forbiddenCycle(graph [][]edge) []int {
	state := make([]byte, 2*len(graph)) // 0 new, 1 on the stack, 2 done
	var stack []int
	var visit func(x int) []int
	visit = func(x int) []int {
		state[x] = 1
		stack = append(stack, x)
		for _, e := range graph[x/2] {
			if e.rw && x%2 == 1 {
				continue
			}
			y := 2 * e.to
			if e.rw {
				y++
			}
			switch state[y] {
			case 0:
				if p := visit(y); p != nil {
					return p
				}
			case 1:
				var path []int
				for _, s := range stack[slices.Index(stack, y):] {
					path = append(path, s/2)
				}
				return path
			}
		}
		stack = stack[:len(stack)-1]
		state[x] = 2
		return nil
	}
	for x := range state {
		if state[x] == 0 {
			if p := visit(x); p != nil {
				return p
			}
		}
	}
	return nil
}

func cycleName(graph [][]edge, path []int) string {
	rw := 0
	for i, x := range path {
		y := path[(i+1)%len(path)]
		if !slices.Contains(graph[x], edge{y, false}) {
			rw++
		}
	}
	switch rw {
	case 0:
		return "G0 or G1c"
	case 1:
		return "G-single"
	}
	return "G-nonadjacent"
}

// bankAnomalies checks what transfers between accounts leave: every read of all accounts in one transaction has the same total.
func bankAnomalies(total int, reads [][]int) (out []string) {
	for i, r := range reads {
		sum := 0
		for _, b := range r {
			sum += b
		}
		if sum != total {
			out = append(out, fmt.Sprintf("read %d: %v is %d, not %d", i, r, sum, total))
		}
	}
	return out
}

func appendTo(key, v int) listOp                 { return listOp{key: key, value: v} }
func readOf(key int, list ...int) listOp         { return listOp{read: true, key: key, list: list} }
func transaction(b, e int, ops ...listOp) listTx { return listTx{ops: ops, begin: b, end: e} }

// TestHistoryChecker: the checker finds what is planted, and nothing in what snapshot isolation allows.
func TestHistoryChecker(t *testing.T) {
	abort := func(tx listTx) listTx { tx.status = aborted; return tx }
	final := func(key int, list ...int) listTx { return transaction(98, 99, readOf(key, list...)) }
	cases := []struct {
		name, want string
		history    []listTx
	}{
		{"serial", "", []listTx{transaction(0, 1, appendTo(1, 1)), transaction(2, 3, readOf(1, 1), appendTo(1, 2)), final(1, 1, 2)}},
		{"write skew", "", []listTx{
			transaction(0, 2, readOf(1), appendTo(2, 1)), transaction(1, 3, readOf(2), appendTo(1, 2)), final(1, 2), final(2, 1)}},
		{"old snapshot", "", []listTx{transaction(0, 9, readOf(1), readOf(2)), transaction(1, 2, appendTo(1, 1), appendTo(2, 1)), final(1, 1), final(2, 1)}},
		{"own writes", "", []listTx{transaction(0, 1, appendTo(1, 1), readOf(1, 1), appendTo(1, 2), readOf(1, 1, 2)), final(1, 1, 2)}},
		{"unknown outcome", "", []listTx{{ops: []listOp{appendTo(1, 1)}, status: unknown, begin: 0, end: 1}, final(1, 1)}},
		{"lost update", "G-single", []listTx{
			transaction(0, 2, readOf(1), appendTo(1, 1)), transaction(1, 3, readOf(1), appendTo(1, 2)), final(1, 1, 2)}},
		{"lost write", "G-single", []listTx{transaction(0, 1, appendTo(1, 1)), transaction(2, 3, appendTo(1, 2)), final(1, 2), transaction(96, 97, readOf(1, 2, 1))}},
		{"read skew", "G-single", []listTx{
			transaction(0, 3, readOf(1), readOf(2, 1)), transaction(1, 2, appendTo(1, 1), appendTo(2, 1)), final(1, 1), final(2, 1)}},
		{"stale read", "G-single", []listTx{transaction(0, 1, appendTo(1, 1)), transaction(2, 3, readOf(1)), final(1, 1)}},
		{"G1a", "G1a", []listTx{abort(transaction(0, 1, appendTo(1, 1))), final(1, 1)}},
		{"G1b", "G1b", []listTx{transaction(0, 3, appendTo(1, 1), appendTo(1, 2)), transaction(1, 2, readOf(1, 1)), final(1, 1, 2)}},
		{"G1c", "G0 or G1c", []listTx{
			transaction(0, 2, appendTo(1, 1), readOf(2, 1)), transaction(1, 3, appendTo(2, 1), readOf(1, 1)), final(1, 1), final(2, 1)}},
		{"G0", "G0 or G1c", []listTx{
			transaction(0, 2, appendTo(1, 1), appendTo(2, 1)), transaction(1, 3, appendTo(1, 2), appendTo(2, 2)), final(1, 1, 2), final(2, 2, 1)}},
		{"long fork", "G-nonadjacent", []listTx{
			transaction(0, 9, appendTo(1, 1)), transaction(0, 9, appendTo(2, 1)),
			transaction(0, 9, readOf(1, 1), readOf(2)), transaction(0, 9, readOf(1), readOf(2, 1))}},
		{"two orders", "incompatible-order", []listTx{
			transaction(0, 9, appendTo(1, 1)), transaction(0, 9, appendTo(1, 2)), transaction(0, 9, readOf(1, 1, 2)), final(1, 2, 1)}},
		{"twice", "duplicate", []listTx{transaction(0, 1, appendTo(1, 1)), final(1, 1, 1)}},
		{"nobody's", "garbage", []listTx{final(1, 7)}},
		{"own write unseen", "internal", []listTx{transaction(0, 1, appendTo(1, 1), readOf(1))}},
	}
	for _, c := range cases {
		got := anomalies(c.history)
		if c.want == "" {
			require.Empty(t, got, c.name)
			continue
		}
		require.NotEmpty(t, got, c.name)
		if c.name != "lost write" { // any of several names fits
			require.Contains(t, got[0], c.want, c.name)
		}
	}
	require.Empty(t, bankAnomalies(10, [][]int{{5, 5}, {1, 9}}))
	require.Len(t, bankAnomalies(10, [][]int{{5, 5}, {5, 6}}), 1)
}
