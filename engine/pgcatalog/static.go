package pgcatalog

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// pg15 holds PostgreSQL 15's relations and rows, written by gen:
//
//	"SKADECAT" 0x01                        magic and version
//	uint32 LE n, n bytes                   header: JSON list of relations, zstd
//	per relation with rows, in that order  block of "size" bytes, zstd: column by column, row by row, uvarint(length+1) and
//	                                       the value's text as PostgreSQL prints it; 0 is NULL
//
//go:embed pg15.bin
var pg15 []byte

const staticMagic = "SKADECAT\x01"

// The names that the generator's cluster has in place of the server's.
const (
	ownerToken    = "skade_owner_0"
	databaseToken = "skade_db_0"
)

type relationSet struct {
	list   []*SystemRelation
	byName map[string]*SystemRelation
	static map[string]staticBlock
}

// staticBlock is where a relation's rows are in pg15.
type staticBlock struct {
	columns   int
	rows      int
	off, size int
}

// catalogRelations decodes the header. Damage is a fault of the build: it panics.
var catalogRelations = sync.OnceValue(func() *relationSet {
	set, err := decodeHeader(pg15)
	if err != nil {
		panic(err)
	}
	return set
})

func decodeHeader(file []byte) (*relationSet, error) {
	if len(file) < len(staticMagic)+4 || string(file[:len(staticMagic)]) != staticMagic {
		return nil, fmt.Errorf("%w: magic", ErrStatic)
	}
	body := file[len(staticMagic):]
	n := int(binary.LittleEndian.Uint32(body))
	if n > len(body)-4 {
		return nil, fmt.Errorf("%w: header length", ErrStatic)
	}
	raw, err := inflate(body[4 : 4+n])
	if err != nil {
		return nil, err
	}
	var head []struct {
		Schema  string `json:"s"`
		Name    string `json:"n"`
		OID     uint32 `json:"o"`
		Kind    string `json:"k"`
		Columns []struct {
			Name    string `json:"n"`
			Type    uint32 `json:"t"`
			Mod     *int32 `json:"m"`
			Num     int16  `json:"a"`
			NotNull bool   `json:"r"`
		} `json:"c"`
		Rows int `json:"rows"`
		Size int `json:"size"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrStatic, err)
	}
	set := &relationSet{byName: map[string]*SystemRelation{}, static: map[string]staticBlock{}}
	off := len(staticMagic) + 4 + n
	for _, h := range head {
		name := h.Schema + "." + h.Name
		set.static[name] = staticBlock{columns: len(h.Columns), rows: h.Rows, off: off, size: h.Size}
		if off += h.Size; off > len(file) {
			return nil, fmt.Errorf("%w: %s is cut off", ErrStatic, name)
		}
		if h.Kind == "x" {
			continue
		}
		r := &SystemRelation{Schema: h.Schema, Name: h.Name, OID: h.OID, Kind: h.Kind[0]}
		for _, c := range h.Columns {
			mod := int32(0)
			if c.Mod != nil {
				mod = *c.Mod
			}
			r.Columns = append(r.Columns, Column{Name: c.Name, AttNum: c.Num, TypeOID: c.Type, TypeMod: mod, NotNull: c.NotNull,
				DuckType: pgtype.DuckName(c.Type, mod)})
		}
		if r.Kind == 'r' {
			r.Columns = append(r.Columns, systemColumns...)
		}
		set.list = append(set.list, r)
		set.byName[name] = r
	}
	return set, nil
}

// systemColumns are what every table of PostgreSQL has besides its own columns.
var systemColumns = []Column{
	{Name: "tableoid", AttNum: -6, TypeOID: pgtype.OID, TypeMod: -1, DuckType: "BIGINT", NotNull: true, Hidden: true},
	{Name: "cmax", AttNum: -5, TypeOID: pgtype.CID, TypeMod: -1, DuckType: "BIGINT", NotNull: true, Hidden: true},
	{Name: "xmax", AttNum: -4, TypeOID: pgtype.XID, TypeMod: -1, DuckType: "BIGINT", NotNull: true, Hidden: true},
	{Name: "cmin", AttNum: -3, TypeOID: pgtype.CID, TypeMod: -1, DuckType: "BIGINT", NotNull: true, Hidden: true},
	{Name: "xmin", AttNum: -2, TypeOID: pgtype.XID, TypeMod: -1, DuckType: "BIGINT", NotNull: true, Hidden: true},
	{Name: "ctid", AttNum: -1, TypeOID: pgtype.TID, TypeMod: -1, DuckType: "VARCHAR", NotNull: true, Hidden: true},
}

func inflate(block []byte) ([]byte, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStatic, err)
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(block, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStatic, err)
	}
	return raw, nil
}

// textTable is a relation's static rows as text, column by column. A nil value is NULL.
type textTable struct {
	rows    int
	columns [][]*string
}

// value gives a cell, "" for NULL.
func (t *textTable) value(col, row int) string {
	if v := t.columns[col][row]; v != nil {
		return *v
	}
	return ""
}

// decodeStatic reads the static rows of "schema.name" and puts the server's own names in.
func decodeStatic(name string, o Options) (*textTable, error) {
	b, ok := catalogRelations().static[name]
	if !ok {
		return nil, fmt.Errorf("%w: no rows of %s", ErrStatic, name)
	}
	t := &textTable{rows: b.rows, columns: make([][]*string, b.columns)}
	if b.rows == 0 {
		return t, nil
	}
	bytes, err := inflate(pg15[b.off : b.off+b.size])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	raw := string(bytes)
	values := make([]string, 0, b.rows*b.columns)
	for c := range t.columns {
		t.columns[c] = make([]*string, b.rows)
		for r := range t.columns[c] {
			n, used := binary.Uvarint([]byte(raw[:min(len(raw), binary.MaxVarintLen32)]))
			if used <= 0 || n > uint64(len(raw)-used)+1 {
				return nil, fmt.Errorf("%w: %s, column %d, row %d", ErrStatic, name, c, r)
			}
			raw = raw[used:]
			if n == 0 {
				continue
			}
			values = append(values, o.substitute(raw[:n-1]))
			t.columns[c][r] = &values[len(values)-1]
			raw = raw[n-1:]
		}
	}
	return t, nil
}

// substitute puts the server's names where the generator's were.
func (o Options) substitute(v string) string {
	if !strings.Contains(v, "skade_") {
		return v
	}
	return strings.NewReplacer(ownerToken, o.Owner, databaseToken, o.Database).Replace(v)
}
