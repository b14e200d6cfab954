package pgsql

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// decimal is a numeric as PostgreSQL's numeric.c sees it: coefficient × 10^-scale, scale being the display scale.
type decimal struct {
	c     *big.Int
	scale int
}

func parseDecimal(s string) (decimal, error) {
	whole, frac, _ := strings.Cut(s, ".")
	c, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		n, err := pgenc.ParseNumeric([]byte(s))
		if err != nil {
			return decimal{}, err
		}
		if n.Form != pgenc.Finite {
			return decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "numeric value is out of range")
		}
		return parseDecimal(string(pgenc.AppendNumeric(nil, n)))
	}
	return decimal{c, len(frac)}, nil
}

func (d decimal) String() string {
	s := new(big.Int).Abs(d.c).String()
	if d.scale > 0 {
		if len(s) <= d.scale {
			s = strings.Repeat("0", d.scale-len(s)+1) + s
		}
		s = s[:len(s)-d.scale] + "." + s[len(s)-d.scale:]
	}
	if d.c.Sign() < 0 {
		s = "-" + s
	}
	return s
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// rescale rounds half away from zero to a scale.
func (d decimal) rescale(scale int) decimal {
	if scale >= d.scale {
		return decimal{new(big.Int).Mul(d.c, pow10(scale-d.scale)), scale}
	}
	return decimal{divRound(d.c, pow10(d.scale-scale)), scale}
}

// trunc cuts at a scale.
func (d decimal) trunc(scale int) decimal {
	if scale >= d.scale {
		return d.rescale(scale)
	}
	return decimal{new(big.Int).Quo(d.c, pow10(d.scale-scale)), scale}
}

func divRound(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	r.Abs(r).Lsh(r, 1)
	if r.Cmp(new(big.Int).Abs(b)) >= 0 {
		if a.Sign()*b.Sign() < 0 {
			q.Sub(q, big.NewInt(1))
		} else {
			q.Add(q, big.NewInt(1))
		}
	}
	return q
}

// weight is numeric.c's weight and first digit in base 10000; ok is false for zero.
func (d decimal) weight() (weight, first int, ok bool) {
	if d.c.Sign() == 0 {
		return 0, 0, false
	}
	s := new(big.Int).Abs(d.c).String()
	// exponent of the leading decimal digit
	lead := len(s) - 1 - d.scale
	weight = int(math.Floor(float64(lead) / 4))
	n := lead - weight*4 + 1 // decimal digits in the leading base-10000 digit
	for len(s) < n {
		s += "0"
	}
	first, _ = strconv.Atoi(s[:n])
	return weight, first, true
}

// selectDivScale is select_div_scale.
func selectDivScale(a, b decimal) int {
	w1, f1, _ := a.weight()
	w2, f2, _ := b.weight()
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return max(0, min(1000, max(16-q*4, a.scale, b.scale)))
}

func divDecimal(a, b decimal) (decimal, error) {
	if b.c.Sign() == 0 {
		return decimal{}, pgerr.New(pgerr.DivisionByZero, "division by zero")
	}
	rs := selectDivScale(a, b)
	num := new(big.Int).Mul(a.c, pow10(rs+b.scale))
	den := new(big.Int).Mul(b.c, pow10(a.scale))
	return decimal{divRound(num, den), rs}, nil
}

func (d decimal) float() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64)
	return f
}

// bigFloat has 60 digits more than what is asked.
func (d decimal) bigFloat(prec uint) *big.Float {
	f, _, _ := big.ParseFloat(d.String(), 10, prec, big.ToNearestEven)
	return f
}

func fromBigFloat(f *big.Float, scale int) (decimal, error) {
	text := f.Text('f', scale+20)
	d, err := parseDecimal(text)
	if err != nil {
		return d, err
	}
	return d.rescale(scale), nil
}

// sqrtDecimal is sqrt_var with numeric_sqrt's scale.
func sqrtDecimal(a decimal) (decimal, error) {
	if a.c.Sign() < 0 {
		return decimal{}, pgerr.New("2201F", "cannot take square root of a negative number")
	}
	w, _, _ := a.weight()
	sweight := (w+1)*4/2 - 1
	rs := max(16-sweight, a.scale, 0)
	rs = min(rs, 1000)
	n := new(big.Int).Mul(a.c, pow10(2*rs+2-a.scale))
	if 2*rs+2-a.scale < 0 {
		n = a.trunc((2*rs + 2)).c
	}
	s := decimal{n.Sqrt(n), rs + 1}
	return s.rescale(rs), nil
}

// expDecimal is numeric_exp.
func expDecimal(a decimal) (decimal, error) {
	v := a.float() * 0.434294481903252
	v = math.Max(math.Min(v, 2000), -2000)
	rs := max(16-int(v), a.scale, 0)
	rs = min(rs, 1000)
	if v > 131072 {
		return decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	}
	prec := uint(float64(rs+int(math.Abs(v))+40) * 3.33)
	return fromBigFloat(bigExp(a.bigFloat(prec), prec), rs)
}

// bigExp is e^x by halving and Taylor's series.
func bigExp(x *big.Float, prec uint) *big.Float {
	prec += 64
	k := 0
	y := new(big.Float).SetPrec(prec).Set(x)
	for half := new(big.Float).Abs(y); half.Cmp(big.NewFloat(0.01)) > 0; k++ {
		half.Quo(half, big.NewFloat(2))
		y.Quo(y, big.NewFloat(2))
	}
	sum := new(big.Float).SetPrec(prec).SetInt64(1)
	term := new(big.Float).SetPrec(prec).SetInt64(1)
	for i := int64(1); i < 10000; i++ {
		term.Mul(term, y)
		term.Quo(term, new(big.Float).SetPrec(prec).SetInt64(i))
		sum.Add(sum, term)
		if term.Sign() == 0 || term.MantExp(nil) < sum.MantExp(nil)-int(prec) {
			break
		}
	}
	for ; k > 0; k-- {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLn is ln x by Newton's method on bigExp.
func bigLn(x *big.Float, prec uint) *big.Float {
	prec += 64
	m := new(big.Float).SetPrec(prec)
	e := x.MantExp(m)
	f, _ := m.Float64()
	y := new(big.Float).SetPrec(prec).SetFloat64(math.Log(f))
	for range 12 {
		ey := bigExp(y, prec)
		num := new(big.Float).SetPrec(prec).Sub(m, ey)
		den := new(big.Float).SetPrec(prec).Add(m, ey)
		step := new(big.Float).SetPrec(prec).Quo(num, den)
		step.Mul(step, big.NewFloat(2))
		y.Add(y, step)
		if step.Sign() == 0 || step.MantExp(nil) < -int(prec)+32 {
			break
		}
	}
	if e != 0 {
		ln2 := new(big.Float).SetPrec(prec)
		two := new(big.Float).SetPrec(prec).SetInt64(2)
		half := new(big.Float).SetPrec(prec).Quo(new(big.Float).SetInt64(1), two)
		// ln 2 = -ln(1/2), and 1/2 has mantissa 1/2 and exponent 0.
		ln2.Neg(lnHalf(half, prec))
		y.Add(y, new(big.Float).SetPrec(prec).Mul(ln2, new(big.Float).SetPrec(prec).SetInt64(int64(e))))
	}
	return y
}

func lnHalf(half *big.Float, prec uint) *big.Float {
	y := new(big.Float).SetPrec(prec).SetFloat64(-math.Ln2)
	for range 12 {
		ey := bigExp(y, prec)
		num := new(big.Float).SetPrec(prec).Sub(half, ey)
		den := new(big.Float).SetPrec(prec).Add(half, ey)
		step := new(big.Float).SetPrec(prec).Quo(num, den)
		step.Mul(step, big.NewFloat(2))
		y.Add(y, step)
		if step.Sign() == 0 || step.MantExp(nil) < -int(prec)+32 {
			break
		}
	}
	return y
}

func checkLog(a decimal) error {
	switch a.c.Sign() {
	case 0:
		return pgerr.New("2201E", "cannot take logarithm of zero")
	case -1:
		return pgerr.New("2201E", "cannot take logarithm of a negative number")
	}
	return nil
}

// estimateLnDWeight is estimate_ln_dweight.
func estimateLnDWeight(a decimal) int {
	if a.c.Sign() <= 0 {
		return 0
	}
	f := a.float()
	if f >= 0.9 && f <= 1.1 {
		x := a.rescale(max(a.scale, 1))
		x.c = new(big.Int).Sub(x.c, pow10(x.scale))
		if x.c.Sign() == 0 {
			return 0
		}
		s := new(big.Int).Abs(x.c).String()
		return len(s) - 1 - x.scale
	}
	s := new(big.Int).Abs(a.c).String()
	digits, _ := strconv.ParseFloat("0."+s[:min(len(s), 15)], 64)
	ln := math.Log(digits) + float64(len(s)-a.scale)*math.Ln10
	return int(math.Log10(math.Abs(ln)))
}

func lnDecimal(a decimal) (decimal, error) {
	if err := checkLog(a); err != nil {
		return decimal{}, err
	}
	rs := min(1000, max(16-estimateLnDWeight(a), a.scale, 0))
	prec := uint(float64(rs+60) * 3.33)
	return fromBigFloat(bigLn(a.bigFloat(prec), prec), rs)
}

// logDecimal is log_var: the logarithm of a to a base.
func logDecimal(base, a decimal) (decimal, error) {
	if err := checkLog(base); err != nil {
		return decimal{}, err
	}
	if err := checkLog(a); err != nil {
		return decimal{}, err
	}
	rs := min(1000, max(16-(estimateLnDWeight(a)-estimateLnDWeight(base)), base.scale, a.scale, 0))
	prec := uint(float64(rs+80) * 3.33)
	lb := bigLn(base.bigFloat(prec), prec)
	if lb.Sign() == 0 {
		return decimal{}, pgerr.New(pgerr.DivisionByZero, "division by zero")
	}
	q := new(big.Float).SetPrec(prec).Quo(bigLn(a.bigFloat(prec), prec), lb)
	return fromBigFloat(q, rs)
}

// powerDecimal is power_var and numeric_power's special cases.
func powerDecimal(a, b decimal) (decimal, error) {
	bi := b.trunc(0)
	isInt := bi.rescale(b.scale).c.Cmp(b.c) == 0
	switch {
	case a.c.Sign() == 0 && b.c.Sign() < 0:
		return decimal{}, pgerr.New("2201F", "zero raised to a negative power is undefined")
	case a.c.Sign() < 0 && !isInt:
		return decimal{}, pgerr.New("2201F", "a negative number raised to a non-integer power yields a complex result")
	case a.c.Sign() == 0:
		if b.c.Sign() == 0 {
			return decimal{big.NewInt(1), 0}.rescale(16), nil
		}
		return decimal{new(big.Int), 16}, nil
	}
	if isInt && bi.c.IsInt64() && abs64(bi.c.Int64()) <= math.MaxInt32 {
		return powerInt(a, bi.c.Int64(), b.scale)
	}
	ln := math.Log(math.Abs(a.float()))
	val := ln * b.float() * 0.434294481903252
	if val > 131072 {
		return decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	}
	rs := min(1000, max(16-int(val), a.scale, b.scale, 0))
	prec := uint(float64(rs+int(math.Abs(val))+80) * 3.33)
	x := bigLn(decimal{new(big.Int).Abs(a.c), a.scale}.bigFloat(prec), prec)
	x.Mul(x, b.bigFloat(prec))
	return fromBigFloat(bigExp(x, prec), rs)
}

func abs64(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// powerInt is power_var_int's choice of scale with exact arithmetic.
func powerInt(a decimal, n int64, bscale int) (decimal, error) {
	w, first, _ := a.weight()
	f := float64(first)
	p := w * 4
	s := new(big.Int).Abs(a.c).String()
	if len(s) > 0 {
		d := min(len(s), 17)
		v, _ := strconv.ParseFloat(s[:d], 64)
		f = v
		p = len(s) - d - a.scale
	}
	f = float64(n) * (math.Log10(f) + float64(p))
	if f > 131072 {
		return decimal{}, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	}
	if f+1 < -16383*4 {
		return decimal{new(big.Int), 16}, nil
	}
	rs := min(1000, max(16, a.scale, bscale))
	if n >= 0 && n*int64(len(s)) < 20000 {
		r := decimal{new(big.Int).Exp(a.c, big.NewInt(n), nil), a.scale * int(n)}
		return r.rescale(rs), nil
	}
	prec := uint(float64(rs+int(math.Abs(f))+80) * 3.33)
	x := bigLn(decimal{new(big.Int).Abs(a.c), a.scale}.bigFloat(prec), prec)
	x.Mul(x, new(big.Float).SetPrec(prec).SetInt64(n))
	r := bigExp(x, prec)
	if a.c.Sign() < 0 && n%2 != 0 {
		r.Neg(r)
	}
	return fromBigFloat(r, rs)
}

// varDecimal is numeric_stddev_internal: from count, sum and sum of squares.
func varDecimal(kind string, n int64, sum, sum2 decimal) (decimal, bool, error) {
	sample := strings.HasSuffix(kind, "samp")
	if n == 0 || sample && n == 1 {
		return decimal{}, false, nil
	}
	rs := max(sum.scale*2, sum2.scale)
	// N·ΣX² − (ΣX)²
	num := new(big.Int).Mul(big.NewInt(n), sum2.rescale(rs).c)
	num.Sub(num, new(big.Int).Mul(sum.c, sum.rescale(rs-sum.scale).c))
	if num.Sign() <= 0 {
		return decimal{new(big.Int), 0}, true, nil
	}
	den := new(big.Int).Mul(big.NewInt(n), big.NewInt(n))
	if sample {
		den = new(big.Int).Mul(big.NewInt(n), big.NewInt(n-1))
	}
	v, err := divDecimal(decimal{num, rs}, decimal{den, 0})
	if err != nil {
		return v, false, err
	}
	if strings.HasPrefix(kind, "stddev") {
		scale := v.scale
		x := v.bigFloat(uint(float64(scale+60) * 3.33))
		v, err = fromBigFloat(new(big.Float).SetPrec(x.Prec()).Sqrt(x), scale)
	}
	return v, true, err
}

func numFn(name string, n int, f func(a []decimal) (decimal, error)) GoFunc {
	return textFn(name, n, func(a []Value) (string, error) {
		ds := make([]decimal, len(a))
		for i := range a {
			d, err := parseDecimal(a[i].S)
			if err != nil {
				return "", err
			}
			ds[i] = d
		}
		d, err := f(ds)
		if err != nil {
			return "", err
		}
		return d.String(), nil
	})
}

var numericFuncs = []GoFunc{
	numFn("skade_num_div", 2, func(a []decimal) (decimal, error) { return divDecimal(a[0], a[1]) }),
	numFn("skade_num_power", 2, func(a []decimal) (decimal, error) { return powerDecimal(a[0], a[1]) }),
	numFn("skade_num_log", 2, func(a []decimal) (decimal, error) { return logDecimal(a[0], a[1]) }),
	numFn("skade_num_ln", 1, func(a []decimal) (decimal, error) { return lnDecimal(a[0]) }),
	numFn("skade_num_exp", 1, func(a []decimal) (decimal, error) { return expDecimal(a[0]) }),
	numFn("skade_num_sqrt", 1, func(a []decimal) (decimal, error) { return sqrtDecimal(a[0]) }),
	numFn("skade_num_neg", 1, func(a []decimal) (decimal, error) {
		return decimal{new(big.Int).Neg(a[0].c), a[0].scale}, nil
	}),
	numFn("skade_num_idiv", 2, func(a []decimal) (decimal, error) {
		if a[1].c.Sign() == 0 {
			return decimal{}, pgerr.New(pgerr.DivisionByZero, "division by zero")
		}
		s := max(a[0].scale, a[1].scale)
		return decimal{new(big.Int).Quo(a[0].rescale(s).c, a[1].rescale(s).c), 0}, nil
	}),
	fn("skade_num_round", types(dV, dI), dV, scaleFn(decimal.rescale)),
	fn("skade_num_trunc", types(dV, dI), dV, scaleFn(decimal.trunc)),
	fn("skade_num_factorial", types(dI), dV, func(a []Value) (Value, error) {
		if a[0].I < 0 {
			return Value{}, pgerr.New(pgerr.NumericValueOutOfRange, "factorial of a negative number is undefined")
		}
		if a[0].I > 32177 {
			return Value{}, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
		}
		return Value{S: new(big.Int).MulRange(1, a[0].I).String()}, nil
	}),
	fn("skade_num_var", types(dV, dI, dV, dV), dV, func(a []Value) (Value, error) {
		sum, err := parseDecimal(a[2].S)
		if err != nil {
			return Value{}, err
		}
		sum2, err := parseDecimal(a[3].S)
		if err != nil {
			return Value{}, err
		}
		v, ok, err := varDecimal(a[0].S, a[1].I, sum, sum2)
		if err != nil || !ok {
			return sqlNull, err
		}
		return Value{S: v.String()}, nil
	}),
	textFn("skade_num_in", 1, func(a []Value) (string, error) {
		n, err := pgenc.ParseNumeric([]byte(a[0].S))
		if err != nil {
			return "", err
		}
		if n.Form != pgenc.Finite {
			return "", pgerr.Newf(pgerr.NumericValueOutOfRange, "numeric value %q is out of range", strings.TrimSpace(a[0].S))
		}
		return string(pgenc.AppendNumeric(nil, n)), nil
	}),
	textFn("skade_num_store", 2, func(a []Value) (string, error) {
		d, err := parseDecimal(a[0].S)
		if err != nil {
			return "", err
		}
		r := d.rescale(DefaultNumericScale)
		if d.scale > DefaultNumericScale && r.rescale(d.scale).c.Cmp(d.c) != 0 {
			return "", pgerr.Newf(pgerr.NumericValueOutOfRange, "value does not fit column %q: too many digits after the decimal point", a[1].S)
		}
		return r.String(), nil
	}),
	fn("skade_num_from_float8", types(dD), dV, floatNumeric(15)),
	fn("skade_num_from_float4", types(dD), dV, floatNumeric(6)),
	fn("skade_float8_out", types(dD), dV, func(a []Value) (Value, error) { return Value{S: string(pgenc.AppendFloat8(nil, a[0].F))}, nil }),
	fn("skade_float4_out", types(dD), dV, func(a []Value) (Value, error) { return Value{S: string(pgenc.AppendFloat4(nil, float32(a[0].F)))}, nil }),
	fn("skade_float8_in", types(dV), dD, func(a []Value) (Value, error) {
		f, err := pgenc.ParseFloat8([]byte(a[0].S))
		return Value{F: f}, err
	}),
	fn("skade_int_in", types(dV, dI), dI, func(a []Value) (Value, error) {
		in := []byte(a[0].S)
		switch a[1].I {
		case 16:
			v, err := pgenc.ParseInt2(in)
			return Value{I: int64(v)}, err
		case 32:
			v, err := pgenc.ParseInt4(in)
			return Value{I: int64(v)}, err
		case 64:
			v, err := pgenc.ParseInt8(in)
			return Value{I: v}, err
		}
		v, err := pgenc.ParseOID(in)
		return Value{I: int64(v)}, err
	}),
	fn("skade_bool_in", types(dV), dB, func(a []Value) (Value, error) {
		b, err := pgenc.ParseBool([]byte(a[0].S))
		return boolValue(b), err
	}),
	fn("skade_shl", types(dI, dI, dI), dI, func(a []Value) (Value, error) {
		n := uint(a[1].I) & uint(a[2].I-1)
		switch a[2].I {
		case 16:
			return Value{I: int64(int16(a[0].I) << n)}, nil
		case 32:
			return Value{I: int64(int32(a[0].I) << n)}, nil
		}
		return Value{I: a[0].I << n}, nil
	}),
	fn("skade_round_to", types(dI, dI), dI, func(a []Value) (Value, error) {
		v, u := a[0].I, a[1].I
		if v < 0 {
			return Value{I: -((-v + u/2) / u * u)}, nil
		}
		return Value{I: (v + u/2) / u * u}, nil
	}),
	fn("skade_width_bucket", types(dD, dD, dD, dI), "INTEGER", func(a []Value) (Value, error) {
		op, lo, hi, n := a[0].F, a[1].F, a[2].F, a[3].I
		switch {
		case n <= 0:
			return Value{}, pgerr.New("2201G", "count must be greater than zero")
		case lo == hi:
			return Value{}, pgerr.New("2201G", "lower bound cannot equal upper bound")
		case lo < hi && op < lo, lo > hi && op > lo:
			return Value{I: 0}, nil
		case lo < hi && op >= hi, lo > hi && op <= hi:
			return Value{I: n + 1}, nil
		}
		return Value{I: int64(math.Floor((op-lo)/(hi-lo)*float64(n))) + 1}, nil
	}),
	fn("skade_to_hex", types(dI, dB), dV, func(a []Value) (Value, error) {
		if a[1].I == 0 {
			return Value{S: strconv.FormatUint(uint64(uint32(a[0].I)), 16)}, nil
		}
		return Value{S: strconv.FormatUint(uint64(a[0].I), 16)}, nil
	}),
}

func scaleFn(f func(decimal, int) decimal) func([]Value) (Value, error) {
	return func(a []Value) (Value, error) {
		d, err := parseDecimal(a[0].S)
		if err != nil {
			return Value{}, err
		}
		n := int(max(-1000, min(1000, a[1].I)))
		if n < 0 {
			r := f(d, n)
			return Value{S: new(big.Int).Mul(r.c, pow10(-n)).String()}, nil
		}
		return Value{S: f(d, n).String()}, nil
	}
}

// floatNumeric is float8_numeric and float4_numeric: by way of DBL_DIG or FLT_DIG significant digits.
func floatNumeric(digits int) func([]Value) (Value, error) {
	return func(a []Value) (Value, error) {
		if math.IsNaN(a[0].F) || math.IsInf(a[0].F, 0) {
			return Value{}, pgerr.New(pgerr.NumericValueOutOfRange, "cannot convert this value to numeric")
		}
		text := strconv.FormatFloat(a[0].F, 'e', digits-1, 64)
		f, _, err := big.ParseFloat(text, 10, 200, big.ToNearestEven)
		if err != nil {
			return Value{}, err
		}
		mant, exp, _ := strings.Cut(text, "e")
		e, _ := strconv.Atoi(exp)
		scale := max(0, digits-1-e)
		_ = mant
		s := f.Text('f', scale)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return Value{S: s}, nil
	}
}
