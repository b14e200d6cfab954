package pgsql

import (
	"math"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// floatFuncs check results of DuckDB's float functions as PostgreSQL's do; the operators are engine/duck's. The first argument is the result.
var floatFuncs = []GoFunc{
	fn("skade_over", types(dD, dD), dD, func(a []Value) (Value, error) { return checkFloat(a[0].F, false, a[1].F) }),
	fn("skade_exp_check", types(dD, dD), dD, func(a []Value) (Value, error) { return checkFloat(a[0].F, true, a[1].F) }),
	fn("skade_power_check", types(dD, dD, dD), dD, func(a []Value) (Value, error) { return checkFloat(a[0].F, a[1].F != 0, a[1].F, a[2].F) }),
}

// checkFloat refuses an infinity out of finite arguments and, when under is set, a zero.
func checkFloat(r float64, under bool, args ...float64) (Value, error) {
	for _, x := range args {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return Value{F: r}, nil
		}
	}
	switch {
	case math.IsInf(r, 0):
		return Value{}, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
	case under && r == 0:
		return Value{}, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
	}
	return Value{F: r}, nil
}
