package pgenc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var perValue = map[string]func(dst []byte) []byte{
	"int":             func(dst []byte) []byte { return AppendInt(dst, -1234567) },
	"float8 whole":    func(dst []byte) []byte { return AppendFloat8(dst, 12345) },
	"float8":          func(dst []byte) []byte { return AppendFloat8(dst, 3.14159265358979) },
	"float8 exponent": func(dst []byte) []byte { return AppendFloat8(dst, 1.5e-300) },
	"float4":          func(dst []byte) []byte { return AppendFloat4(dst, 0.1) },
	"decimal 64":      func(dst []byte) []byte { return AppendDecimal(dst, -1, ^uint64(1234567), 2) },
	"decimal 128":     func(dst []byte) []byte { return AppendDecimal(dst, 1<<60, 12345, 9) },
	"decimal binary":  func(dst []byte) []byte { return AppendDecimalBinary(dst, 0, 123456789, 2) },
	"date":            func(dst []byte) []byte { return Style{}.AppendDate(dst, 20000) },
	"timestamp":       func(dst []byte) []byte { return Style{}.AppendTimestamp(dst, 1700000000123456) },
	"timestamptz":     func(dst []byte) []byte { return Style{Loc: berlin}.AppendTimestampTZ(dst, 1700000000123456) },
	"interval":        func(dst []byte) []byte { return Style{}.AppendInterval(dst, IntervalValue{14, 3, 4_000_000}) },
	"interval iso":    func(dst []byte) []byte { return AppendIntervalISO(dst, IntervalValue{14, 3, 4_500_000}) },
	"uuid":            func(dst []byte) []byte { return AppendUUID(dst, [16]byte{1, 2, 3}) },
	"bytea":           func(dst []byte) []byte { return AppendBytea(dst, []byte("0123456789")) },
}

var berlin, _ = time.LoadLocation("Europe/Berlin")

// in keeps inputs outside what is measured.
func in(s string) []byte {
	b, ok := inputs[s]
	if !ok {
		b = []byte(s)
		inputs[s] = b
	}
	return b
}

var inputs = map[string][]byte{}

var perParse = map[string]func() error{
	"int8":        func() error { _, err := ParseInt8(in("-1234567")); return err },
	"float8":      func() error { _, err := ParseFloat8(in("3.14159265")); return err },
	"decimal":     func() error { _, _, err := ParseDecimal(in("123456.789"), 12, 2); return err },
	"numeric":     func() error { _, err := ParseNumeric(in("123456.789")); return err },
	"bool":        func() error { _, err := ParseBool(in("true")); return err },
	"date":        func() error { _, err := Style{}.ParseDate(in("2024-02-29")); return err },
	"timestamp":   func() error { _, err := Style{}.ParseTimestamp(in("2024-02-29 12:34:56.789")); return err },
	"timestamptz": func() error { _, err := Style{Loc: berlin}.ParseTimestampTZ(in("2024-02-29T12:34:56Z")); return err },
	"uuid":        func() error { _, err := ParseUUID(in("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")); return err },
	"utf8":        func() error { return CheckUTF8(in("grüße, 世界")) },
}

// TestNoAllocation: neither encoding nor COPY's common input allocates per value.
func TestNoAllocation(t *testing.T) {
	buf := make([]byte, 0, 128)
	for name, f := range perValue {
		require.Zero(t, testing.AllocsPerRun(100, func() { buf = f(buf[:0]) }), name)
	}
	for name, f := range perParse {
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = f() }), name)
		require.NoError(t, f(), name)
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, f := range perValue {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 128)
			for b.Loop() {
				buf = f(buf[:0])
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, f := range perParse {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = f()
			}
		})
	}
}
