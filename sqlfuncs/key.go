package sqlfuncs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
)

// keyColumns are a key's columns as SQL knows them. Errors: 42804 for one whose equal values are not equal in storage.
func keyColumns(c *lookup.Columns, types []iceberg.Type, md table.Metadata) ([]KeyColumn, error) {
	out := make([]KeyColumn, len(c.KeyIDs))
	for i, id := range c.KeyIDs {
		f := iceberg.NestedField{ID: id, Type: types[i]}
		k := KeyColumn{Name: c.Key.Field(i).Name, ID: id, Type: types[i]}
		k.OID, k.Mod = pgtype.FromIceberg(f, md.Properties())
		if !k.usable() {
			return nil, k.unusable()
		}
		out[i] = k
	}
	return out, nil
}

func (k *KeyColumn) unusable() error {
	return pgerr.Newf(pgerr.DatatypeMismatch, "column \"%s\" of type %s cannot be a key column", k.Name, pgtype.FormatNoTypmod(k.OID)).WithHint("Compare it in WHERE.")
}

// badKey says in SQL's words what is wrong with the columns that a call names as the key.
func badKey(err error, md table.Metadata, rel string, names []string) error {
	for _, name := range names {
		f, ok := md.CurrentSchema().FindFieldByName(name)
		if !ok && errors.Is(err, lookup.ErrUnknownColumn) {
			return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, rel)
		}
		k := KeyColumn{Name: name, Type: f.Type}
		k.OID, k.Mod = pgtype.FromIceberg(f, md.Properties())
		if ok && errors.Is(err, lookup.ErrKeyType) && !k.usable() {
			return k.unusable()
		}
	}
	return err
}

// usable reports a type whose equal values have one form in storage, or two that lookup knows of (0 and -0).
func (k *KeyColumn) usable() bool {
	switch k.OID {
	case pgtype.Bool, pgtype.Int2, pgtype.Int4, pgtype.Int8, pgtype.Numeric, pgtype.Float4, pgtype.Float8, pgtype.Text, pgtype.Varchar, pgtype.Name, pgtype.BPChar,
		pgtype.Date, pgtype.Time, pgtype.UUID, pgtype.Bytea:
		return true
	case pgtype.Timestamp, pgtype.TimestampTZ:
		switch k.Type.(type) {
		case iceberg.TimestampType, iceberg.TimestampTzType:
			return true
		}
	}
	return false
}

// keyEncoder turns values into keys.
type keyEncoder struct {
	cols  []KeyColumn
	style pgenc.Style
}

func newKeyEncoder(env *Env, p *lookup.Lookuper) (*keyEncoder, error) {
	cols, err := keyColumns(p.Columns(), p.KeyTypes(), p.Metadata())
	return &keyEncoder{cols, env.Style}, err
}

// encode gives the key that is equal to a value or row, nil when there can be none, and how many parts it has. Errors: 42804 with the key's columns, and the
// input functions'.
func (e *keyEncoder) encode(key *Value) (out []byte, parts int, err error) {
	if key == nil || key.Null {
		return nil, 0, nil
	}
	vals := key.Row
	if vals == nil {
		vals = []*Value{key}
	}
	if len(vals) == 0 || len(vals) > len(e.cols) {
		return nil, 0, e.mismatch("key has %d columns, got %d values", len(e.cols), len(vals))
	}
	some := true
	for i, v := range vals {
		if v.Null {
			some = false
			continue
		}
		form, m, err := e.part(&e.cols[i], v)
		if err != nil {
			return nil, 0, err
		}
		out, some = append(out, form...), some && m == KeyKnown
	}
	if !some {
		out = nil
	}
	return out, len(vals), nil
}

func (e *keyEncoder) mismatch(format string, args ...any) error {
	return pgerr.Newf(pgerr.DatatypeMismatch, format, args...).WithHint("The key is %s.", describeKey(e.cols))
}

// describeKey are a key's columns with their types: (id integer, line smallint).
func describeKey(cols []KeyColumn) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name + " " + pgtype.FormatNoTypmod(c.OID)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// part gives the stored form of the values of a column that are equal to v.
func (e *keyEncoder) part(c *KeyColumn, v *Value) ([]byte, KeyMatch, error) {
	oid := v.OID
	if oid == pgtype.Unknown { // a literal without a type is the column's
		oid = c.OID
	}
	unlike := func() error {
		return e.mismatch("key of type %s does not match column type %s", pgtype.FormatNoTypmod(oid), pgtype.FormatNoTypmod(c.OID))
	}
	if v.Row != nil || v.Array != nil {
		return nil, KeyUnknown, unlike()
	}
	native := v.Native
	if native == nil {
		var err error
		if native, err = pgenc.Decode(oid, pgenc.Text, []byte(v.Text), e.style); err != nil {
			return nil, KeyUnknown, err
		}
	}
	enc, m := c.Encode(nil, oid, native)
	if m != KeyUnknown {
		return enc, m, nil
	}
	if f, ok := doubleKey(native); ok && f == 0 && isDouble(c.Type) {
		return keyindex.AppendDouble(nil, 0), KeyKnown, nil // lookup finds -0 with it
	}
	if enc, m = e.zoned(c, v, native); m == KeyUnknown {
		return nil, m, unlike()
	}
	return enc, m, nil
}

// zoned compares values with and without a zone, as the session's TimeZone reads them.
func (e *keyEncoder) zoned(c *KeyColumn, v *Value, native any) ([]byte, KeyMatch) {
	text := []byte(v.Text)
	switch x := native.(type) {
	case pgenc.Timestamp, pgenc.Date:
		if c.OID == pgtype.TimestampTZ {
			if tz, err := e.style.ParseTimestampTZ(text); err == nil {
				return c.Encode(nil, pgtype.TimestampTZ, pgenc.TimestampTZ(tz))
			}
		}
	case pgenc.TimestampTZ:
		if c.OID == pgtype.Timestamp || c.OID == pgtype.Date {
			// What the clock shows is what is before the zone.
			local, err := e.style.ParseTimestamp(pgenc.Style{Loc: e.style.Loc}.AppendTimestampTZ(nil, int64(x)))
			if err != nil {
				break
			}
			// Of two instants with one local time, when clocks go back, one is what the local time means.
			back, err := e.style.ParseTimestampTZ(pgenc.Style{}.AppendTimestamp(nil, local))
			if err != nil || pgenc.TimestampTZ(back) != x {
				return nil, KeyNone
			}
			return c.Encode(nil, pgtype.Timestamp, pgenc.Timestamp(local))
		}
	}
	return nil, KeyUnknown
}

// keyBatch are encoded keys of a list of values.
type keyBatch struct {
	keys   [][]byte
	parts  int
	places []int64 // of each key's value in the list
}

// batch encodes a list of values, the first of which has the place first.
func (e *keyEncoder) batch(list []*Value, first int64) (*keyBatch, error) {
	b := &keyBatch{}
	for i, v := range list {
		key, parts, err := e.encode(v)
		if err != nil {
			return nil, err
		}
		if key == nil {
			continue
		}
		if b.parts != 0 && parts != b.parts {
			return nil, e.mismatch("keys have %d and %d values", b.parts, parts)
		}
		b.parts = parts
		b.keys, b.places = append(b.keys, key), append(b.places, first+int64(i))
	}
	return b, nil
}

// KeyTypes are the types of the columns of the key that a call of lookup or lookup_many names, as far as its arguments are known: what parameters in their
// places stand for.
func KeyTypes(ctx context.Context, env *Env, fn string, args []*Value) ([]uint32, error) {
	shape, cols, err := lookupColumns(ctx, env, fn, args)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for i, id := range cols.KeyIDs {
		at := slices.IndexFunc(shape.Table.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if at < 0 {
			return nil, errors.New("key column " + cols.Key.Field(i).Name + " is not among the rows' columns")
		}
		out = append(out, shape.Columns[at].OID)
	}
	return out, nil
}
