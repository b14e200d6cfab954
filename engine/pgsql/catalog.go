package pgsql

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// The tables of PostgreSQL 15 that analysis needs, written by testdata/gen/catalog.sh.
var (
	//go:embed pgdata/types.tsv
	typesTSV string
	//go:embed pgdata/casts.tsv
	castsTSV string
	//go:embed pgdata/operators.tsv
	operatorsTSV string
	//go:embed pgdata/functions.tsv
	functionsTSV string
)

type typeRow struct {
	oid       uint32
	name      string
	category  byte
	preferred bool
	elem      uint32
	array     uint32
	kind      byte // typtype: b, p, r, m …
}

type castRow struct {
	context byte // i, a, e
	binary  bool
}

type operRow struct {
	name                string
	left, right, result uint32
}

type procRow struct {
	name     string
	kind     byte // f, a, w
	setOf    bool
	variadic uint32 // element type of a VARIADIC last argument
	defaults int
	ret      uint32
	args     []uint32
	argNames []string
	strict   bool
	volatile bool
	// immutable functions give one result for one argument for ever.
	immutable bool
	engine    *EngineFunc // set for the caller's functions
}

// sysCatalog is PostgreSQL's system tables in memory, immutable after load.
type sysCatalog struct {
	types  map[uint32]*typeRow
	byName map[string]*typeRow
	casts  map[[2]uint32]castRow
	opers  map[string][]*operRow
	procs  map[string][]*procRow
}

// catalog loads the embedded tables on first use.
var catalog = sync.OnceValue(func() *sysCatalog {
	c := &sysCatalog{
		types: map[uint32]*typeRow{}, byName: map[string]*typeRow{}, casts: map[[2]uint32]castRow{},
		opers: map[string][]*operRow{}, procs: map[string][]*procRow{},
	}
	eachLine(typesTSV, func(f []string) {
		t := &typeRow{oid: oidOf(f[0]), name: f[1], category: f[2][0], preferred: f[3] == "t", elem: oidOf(f[4]), array: oidOf(f[5]), kind: f[6][0]}
		c.types[t.oid], c.byName[t.name] = t, t
	})
	eachLine(castsTSV, func(f []string) {
		c.casts[[2]uint32{oidOf(f[0]), oidOf(f[1])}] = castRow{context: f[2][0], binary: f[3] == "b"}
	})
	eachLine(operatorsTSV, func(f []string) {
		o := &operRow{name: f[0], left: oidOf(f[1]), right: oidOf(f[2]), result: oidOf(f[3])}
		c.opers[o.name] = append(c.opers[o.name], o)
	})
	eachLine(functionsTSV, func(f []string) {
		p := &procRow{
			name: f[0], kind: f[1][0], setOf: f[2] == "t", variadic: oidOf(f[3]), ret: oidOf(f[5]),
			strict: strings.HasPrefix(f[8], "s") && len(f[8]) > 1, volatile: strings.HasSuffix(f[8], "v"),
			immutable: strings.HasSuffix(f[8], "i"),
		}
		p.defaults, _ = strconv.Atoi(f[4])
		for _, a := range strings.Fields(f[6]) {
			p.args = append(p.args, oidOf(a))
		}
		p.argNames = strings.Fields(f[7])
		c.procs[p.name] = append(c.procs[p.name], p)
	})
	return c
})

func eachLine(tsv string, fn func(fields []string)) {
	for line := range strings.Lines(tsv) {
		fn(strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
}

func oidOf(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// Pseudo-types that resolution knows.
const (
	tAnyNonArray             = 2776
	tAnyEnum                 = 3500
	tAnyRange                = 3831
	tAnyMultirange           = 4537
	tAnyCompatible           = 5077
	tAnyCompatibleArray      = 5078
	tAnyCompatibleNonArray   = 5079
	tAnyCompatibleRange      = 5080
	tAnyCompatibleMultirange = 4538
)

func isPolymorphic(oid uint32) bool {
	switch oid {
	case pgtype.AnyElement, pgtype.AnyArray, tAnyNonArray, tAnyEnum, tAnyRange, tAnyMultirange,
		tAnyCompatible, tAnyCompatibleArray, tAnyCompatibleNonArray, tAnyCompatibleRange, tAnyCompatibleMultirange:
		return true
	}
	return false
}

func category(oid uint32) (cat byte, preferred bool) {
	if oid == pgtype.Unknown {
		return 'X', false
	}
	if t := catalog().types[oid]; t != nil {
		return t.category, t.preferred
	}
	return 'U', false
}

// elemType is the element type of a true array (not int2vector, oidvector, name), else 0.
func elemType(oid uint32) uint32 {
	if oid == pgtype.Int2Vector || oid == pgtype.OIDVector {
		return 0
	}
	if t := catalog().types[oid]; t != nil && t.category == 'A' && t.elem != 0 {
		return t.elem
	}
	return 0
}

func arrayType(elem uint32) uint32 {
	if elem == pgtype.Record {
		return pgtype.RecordArray
	}
	if t := catalog().types[elem]; t != nil {
		return t.array
	}
	return 0
}

func typeName(oid uint32) string { return pgtype.Format(oid, -1) }

// typeNameNoMod is the spelling in messages such as "function f(character varying) does not exist".
func typeNameNoMod(oid uint32) string { return pgtype.FormatNoTypmod(oid) }
