package duck

import (
	"strconv"
	"strings"
	"sync"
)

// Errors of Go code that runs inside DuckDB (relations, scalar functions) travel through it as a number in the error text
// and come out as themselves. DuckDB may swallow one (TRY, constant folding), so the table keeps the last ones only.
const (
	carryPrefix = "skade#"
	carrySize   = 1024
)

var carried struct {
	sync.Mutex
	next uint64
	errs [carrySize]error
}

// carry keeps err and returns the text that stands for it.
func carry(err error) string {
	carried.Lock()
	defer carried.Unlock()
	n := carried.next
	carried.next++
	carried.errs[n%carrySize] = err
	return carryPrefix + strconv.FormatUint(n, 10) + ";"
}

// uncarry finds the error that a text stands for, nil when there is none.
func uncarry(text string) error {
	_, rest, ok := strings.Cut(text, carryPrefix)
	if !ok {
		return nil
	}
	num, _, ok := strings.Cut(rest, ";")
	n, err := strconv.ParseUint(num, 10, 64)
	if !ok || err != nil {
		return nil
	}
	carried.Lock()
	defer carried.Unlock()
	if n >= carried.next || carried.next-n > carrySize {
		return nil
	}
	return carried.errs[n%carrySize]
}
