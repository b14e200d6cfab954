package pgsql

import "github.com/nordisk/skade-pg/internal/pgtype"

// coercion contexts, in PostgreSQL's order.
type coercionContext byte

const (
	implicitCoercion   coercionContext = 'i'
	assignmentCoercion coercionContext = 'a'
	explicitCoercion   coercionContext = 'e'
)

// coercePath is find_coercion_pathway: whether a cast exists in that context, and whether it is binary-coercible.
func coercePath(from, to uint32, ctx coercionContext) (ok, relabel bool) {
	if from == to {
		return true, true
	}
	c, found := catalog().casts[[2]uint32{from, to}]
	if found {
		switch c.context {
		case 'i':
			return true, c.binary
		case 'a':
			return ctx != implicitCoercion, c.binary
		default:
			return ctx == explicitCoercion, c.binary
		}
	}
	// Arrays follow their elements.
	if fe, te := elemType(from), elemType(to); fe != 0 && te != 0 {
		return coercePath(fe, te, ctx)
	}
	if te := elemType(to); te != 0 && (from == pgtype.Int2Vector && te == pgtype.Int2 || from == pgtype.OIDVector && te == pgtype.OID) {
		return true, true
	}
	// I/O conversion: to a string type on assignment, from a string type when explicit.
	if ctx != implicitCoercion {
		if cat, _ := category(to); cat == 'S' {
			return true, false
		}
		if cat, _ := category(from); cat == 'S' && ctx == explicitCoercion {
			return true, false
		}
	}
	return false, false
}

// canCoerce is can_coerce_type for one argument.
func canCoerce(from, to uint32, ctx coercionContext) bool {
	switch {
	case from == to, to == pgtype.Any, from == pgtype.Unknown:
		return true
	case isPolymorphic(to):
		return true // checked for consistency later
	case from == pgtype.Record && to == pgtype.Record:
		return true
	case from == pgtype.RecordArray && to == pgtype.RecordArray:
		return true
	}
	ok, _ := coercePath(from, to, ctx)
	return ok
}

// candidate is an operator or function that takes part in resolution. args are per supplied argument (variadic expanded).
type candidate struct {
	args []uint32
	oper *operRow
	proc *procRow
	// order maps declared argument positions to supplied ones (named notation); nil means the identity.
	order    []int
	expanded bool // VARIADIC was expanded
	defaults int
}

// selectCandidate is func_match_argtypes followed by func_select_candidate. ambiguous is set when several remain.
func selectCandidate(in []*candidate, types []uint32) (best *candidate, ambiguous bool) {
	var cands []*candidate
	for _, c := range in {
		if consistent(c.args, types) {
			cands = append(cands, c)
		}
	}
	if len(cands) <= 1 {
		return first(cands), false
	}
	base := make([]uint32, len(types))
	unknowns := 0
	for i, t := range types {
		base[i] = t
		if t == pgtype.Unknown {
			unknowns++
		}
	}
	// Keep those with the most exact matches.
	cands = keepBest(cands, func(c *candidate) int {
		n := 0
		for i := range types {
			if base[i] != pgtype.Unknown && c.args[i] == base[i] {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return cands[0], false
	}
	// Then those with the most exact or preferred types.
	cands = keepBest(cands, func(c *candidate) int {
		n := 0
		for i := range types {
			if base[i] == pgtype.Unknown {
				continue
			}
			cat, _ := category(base[i])
			ccat, pref := category(c.args[i])
			if c.args[i] == base[i] || (cat == ccat && pref) {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return cands[0], false
	}
	if unknowns == 0 {
		return nil, true
	}
	return selectByUnknowns(cands, base, unknowns)
}

func selectByUnknowns(cands []*candidate, base []uint32, unknowns int) (*candidate, bool) {
	slotCat := make([]byte, len(base))
	slotPref := make([]bool, len(base))
	resolved := false
	for i := range base {
		if base[i] != pgtype.Unknown {
			continue
		}
		resolved = true
		conflict := false
		for n, c := range cands {
			cat, pref := category(c.args[i])
			switch {
			case n == 0:
				slotCat[i], slotPref[i] = cat, pref
			case slotCat[i] == cat:
				slotPref[i] = slotPref[i] || pref
			case cat == 'S':
				slotCat[i], slotPref[i] = cat, pref
			case slotCat[i] != 'S':
				conflict = true
			}
		}
		// STRING wins over a conflict seen before it.
		if conflict {
			hasString := false
			for _, c := range cands {
				if cat, _ := category(c.args[i]); cat == 'S' {
					hasString = true
				}
			}
			if hasString {
				slotCat[i], slotPref[i] = 'S', anyPreferred(cands, i, 'S')
			} else {
				resolved = false
			}
		}
		if !resolved {
			break
		}
	}
	if resolved {
		var keep []*candidate
		for _, c := range cands {
			ok := true
			for i := range base {
				if base[i] != pgtype.Unknown {
					continue
				}
				cat, pref := category(c.args[i])
				if cat != slotCat[i] || (slotPref[i] && !pref) {
					ok = false
				}
			}
			if ok {
				keep = append(keep, c)
			}
		}
		if len(keep) > 0 {
			cands = keep
		}
		if len(cands) == 1 {
			return cands[0], false
		}
	}
	// Last chance: all known arguments have one type; try it for the unknown ones.
	if unknowns < len(base) {
		var known uint32
		for _, t := range base {
			if t == pgtype.Unknown {
				continue
			}
			if known != 0 && known != t {
				return nil, true
			}
			known = t
		}
		same := make([]uint32, len(base))
		for i := range same {
			same[i] = known
		}
		var match []*candidate
		for _, c := range cands {
			if consistent(c.args, same) {
				match = append(match, c)
			}
		}
		if len(match) == 1 {
			return match[0], false
		}
	}
	return nil, true
}

func anyPreferred(cands []*candidate, i int, cat byte) bool {
	for _, c := range cands {
		if cc, pref := category(c.args[i]); cc == cat && pref {
			return true
		}
	}
	return false
}

func first(c []*candidate) *candidate {
	if len(c) == 0 {
		return nil
	}
	return c[0]
}

func keepBest(cands []*candidate, score func(*candidate) int) []*candidate {
	best := -1
	var keep []*candidate
	for _, c := range cands {
		switch n := score(c); {
		case n > best:
			best, keep = n, []*candidate{c}
		case n == best:
			keep = append(keep, c)
		}
	}
	return keep
}

// consistent is can_coerce_type over an argument list in implicit context, polymorphic arguments included.
func consistent(declared, actual []uint32) bool {
	poly := false
	for i, d := range declared {
		if !canCoerce(actual[i], d, implicitCoercion) {
			return false
		}
		poly = poly || isPolymorphic(d)
	}
	return !poly || polymorphicConsistent(declared, actual)
}

// polymorphicConsistent is check_generic_type_consistency.
func polymorphicConsistent(declared, actual []uint32) bool {
	var elem, arr uint32
	var compat []uint32
	for i, d := range declared {
		a := actual[i]
		switch d {
		case pgtype.AnyElement, tAnyNonArray, tAnyEnum:
			if a == pgtype.Unknown {
				continue
			}
			if elem != 0 && elem != a {
				return false
			}
			if d == tAnyEnum {
				return false
			}
			elem = a
		case pgtype.AnyArray:
			if a == pgtype.Unknown {
				continue
			}
			if arr != 0 && arr != a {
				return false
			}
			arr = a
		case tAnyRange, tAnyMultirange, tAnyCompatibleRange, tAnyCompatibleMultirange:
			return false
		case tAnyCompatible, tAnyCompatibleNonArray:
			if a != pgtype.Unknown {
				compat = append(compat, a)
			}
		case tAnyCompatibleArray:
			if a == pgtype.Unknown {
				continue
			}
			e := arrayElem(a)
			if e == 0 {
				return false
			}
			compat = append(compat, e)
		}
	}
	if arr != 0 {
		e := arrayElem(arr)
		if e == 0 {
			return false
		}
		if elem != 0 && elem != e {
			return false
		}
	}
	for i, d := range declared {
		if d == tAnyNonArray && elem != 0 && elemType(elem) != 0 || d == tAnyCompatibleNonArray && elemType(actual[i]) != 0 {
			return false
		}
	}
	if len(compat) > 0 {
		if _, ok := commonTypeOf(compat); !ok {
			return false
		}
	}
	return true
}

// arrayElem is the element type of an array or vector.
func arrayElem(oid uint32) uint32 {
	switch oid {
	case pgtype.Int2Vector:
		return pgtype.Int2
	case pgtype.OIDVector:
		return pgtype.OID
	case pgtype.RecordArray:
		return pgtype.Record
	}
	return elemType(oid)
}

// resolvePolymorphic is enforce_generic_type_consistency: the declared types made concrete, and the result type. 0 result means it could not be determined.
func resolvePolymorphic(declared, actual []uint32, ret uint32) (args []uint32, result uint32) {
	args = append([]uint32(nil), declared...)
	var elem, arr uint32
	var compat []uint32
	usesElem, usesCompat := false, false
	for i, d := range declared {
		a := actual[i]
		switch d {
		case pgtype.AnyElement, tAnyNonArray:
			usesElem = true
			if a != pgtype.Unknown {
				elem = a
			}
		case pgtype.AnyArray:
			usesElem = true
			if a != pgtype.Unknown {
				arr = a
			}
		case tAnyCompatible, tAnyCompatibleNonArray:
			usesCompat = true
			if a != pgtype.Unknown {
				compat = append(compat, a)
			}
		case tAnyCompatibleArray:
			usesCompat = true
			if a != pgtype.Unknown {
				compat = append(compat, arrayElem(a))
			}
		}
	}
	if usesElem {
		if elem == 0 && arr != 0 {
			elem = arrayElem(arr)
		}
		if arr == 0 && elem != 0 {
			arr = arrayType(elem)
		}
	}
	var common uint32
	if usesCompat {
		common = pgtype.Text
		if len(compat) > 0 {
			common, _ = commonTypeOf(compat)
		}
	}
	concrete := func(t uint32) uint32 {
		switch t {
		case pgtype.AnyElement, tAnyNonArray:
			return elem
		case pgtype.AnyArray:
			return arr
		case tAnyCompatible, tAnyCompatibleNonArray:
			return common
		case tAnyCompatibleArray:
			return arrayType(common)
		}
		return t
	}
	for i := range args {
		args[i] = concrete(args[i])
		// int2vector stays itself where anyarray took it.
		if declared[i] == pgtype.AnyArray && actual[i] != pgtype.Unknown {
			args[i] = actual[i]
		}
		if declared[i] == tAnyCompatibleArray && (actual[i] == pgtype.Int2Vector || actual[i] == pgtype.OIDVector) {
			args[i] = arrayType(common)
		}
	}
	return args, concrete(ret)
}

// commonTypeOf is select_common_type over known types (no unknowns). ok is false when they have no common type.
func commonTypeOf(types []uint32) (uint32, bool) {
	p := types[0]
	pcat, ppref := category(p)
	for _, t := range types[1:] {
		if t == p || t == pgtype.Unknown {
			continue
		}
		if p == pgtype.Unknown {
			p = t
			pcat, ppref = category(p)
			continue
		}
		cat, pref := category(t)
		if cat != pcat {
			return 0, false
		}
		if !ppref && canCoerce(p, t, implicitCoercion) && !canCoerce(t, p, implicitCoercion) {
			p, pcat, ppref = t, cat, pref
		}
	}
	for _, t := range types {
		if !canCoerce(t, p, implicitCoercion) {
			return 0, false
		}
	}
	return p, true
}

// selectOperator is oper(): the operator for these operand types. left is 0 for a prefix operator.
func selectOperator(name string, left, right uint32) (op *operRow, ambiguous bool) {
	rows := catalog().opers[name]
	l, r := left, right
	if left != 0 {
		// binary_oper_exact: an unknown operand is assumed to have the other's type.
		if l == pgtype.Unknown && r != pgtype.Unknown {
			l = r
		} else if r == pgtype.Unknown && l != pgtype.Unknown {
			r = l
		}
	}
	for _, o := range rows {
		if o.left == l && o.right == r && (l != pgtype.Unknown || r != pgtype.Unknown) {
			return o, false
		}
	}
	var cands []*candidate
	var types []uint32
	for _, o := range rows {
		if (o.left == 0) != (left == 0) {
			continue
		}
		if left == 0 {
			cands = append(cands, &candidate{args: []uint32{o.right}, oper: o})
		} else {
			cands = append(cands, &candidate{args: []uint32{o.left, o.right}, oper: o})
		}
	}
	if left == 0 {
		types = []uint32{right}
	} else {
		types = []uint32{left, right}
	}
	best, amb := selectCandidate(cands, types)
	if best == nil {
		return nil, amb
	}
	return best.oper, false
}
