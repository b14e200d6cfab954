package pgenc

import (
	"testing"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// FuzzDecode is E2 and E3: no parameter panics, every error has a SQLSTATE, and what was decoded survives its own text and
// binary forms.
func FuzzDecode(f *testing.F) {
	for i, v := range readValues(f) {
		if i%97 != 0 || len(v.in) > 200 {
			continue
		}
		typ, _ := pgtype.ByName(v.typ)
		f.Add(typ.OID, false, []byte(v.in))
		f.Add(typ.OID, true, []byte(v.bin))
	}
	f.Add(pgtype.Int4Array, true, []byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 23, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, oid uint32, binary bool, data []byte) {
		format := Text
		if binary {
			format = Binary
		}
		v, err := Decode(oid, format, data, Style{})
		if err != nil {
			if pgerr.As(err) == nil {
				t.Fatalf("no SQLSTATE: %v", err)
			}
			return
		}
		bin, err := Append(nil, oid, Binary, v, Style{})
		if err != nil {
			t.Fatal(err)
		}
		if _, known := pgtype.ByOID(oid); !known {
			return
		}
		back, err := Decode(oid, Binary, bin, Style{})
		if err != nil {
			t.Fatalf("decode own binary of %v: %v", v, err)
		}
		one, _ := Append(nil, oid, Text, v, Style{})
		two, _ := Append(nil, oid, Text, back, Style{})
		if string(one) != string(two) {
			t.Fatalf("text %q before and %q after binary", one, two)
		}
	})
}
