package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// changePrinter writes rows of table_changes. An UPDATE_BEFORE is held until its UPDATE_AFTER comes, which is the next row.
type changePrinter struct {
	json, color bool
	before      [][]byte
	b           bytes.Buffer
}

// Colors of a terminal.
const (
	colorReset  = "\x1b[0m"
	colorDim    = "\x1b[2m"
	colorRed    = "\x1b[31m"
	colorGreen  = "\x1b[32m"
	colorYellow = "\x1b[33m"
)

// metaColumns is the number of columns behind the table's own, without _row_id, which v3 tables have in addition.
const metaColumns = 6

// change is a row of table_changes taken apart.
type change struct {
	names                                     []string
	oids                                      []uint32
	values                                    [][]byte
	kind, ordinal, snapshot, seq, time, inSeq string
}

func split(fields []pgconn.FieldDescription, values [][]byte) (change, error) {
	n := len(fields)
	if n > 0 && fields[n-1].Name == "_row_id" {
		n--
	}
	n -= metaColumns
	if n < 0 || len(values) != len(fields) || fields[n].Name != "_change_type" {
		return change{}, fmt.Errorf("the server's answer is no change relation")
	}
	c := change{values: values[:n]}
	for _, f := range fields[:n] {
		c.names, c.oids = append(c.names, f.Name), append(c.oids, f.DataTypeOID)
	}
	for i, p := range []*string{&c.kind, &c.ordinal, &c.snapshot, &c.seq, &c.time, &c.inSeq} {
		*p = string(values[n+i])
	}
	return c, nil
}

// row prints one row and returns the bound behind it, "" while an update is half read or where there is none.
func (p *changePrinter) row(w io.Writer, fields []pgconn.FieldDescription, values [][]byte) (string, error) {
	c, err := split(fields, values)
	if err != nil {
		return "", err
	}
	if c.kind == "UPDATE_BEFORE" {
		p.before = p.before[:0]
		for _, v := range c.values {
			p.before = append(p.before, bytes.Clone(v))
		}
		return "", nil
	}
	p.b.Reset()
	if p.json {
		p.jsonLine(c)
	} else {
		p.textLine(c)
	}
	p.b.WriteByte('\n')
	if _, err := w.Write(p.b.Bytes()); err != nil {
		return "", err
	}
	if c.seq == "" { // a snapshot from before the catalog
		return "", nil
	}
	return "seq:" + c.seq + "/" + c.ordinal + "/" + c.inSeq, nil
}

func (p *changePrinter) in(color, text string) {
	if p.color {
		text = color + text + colorReset
	}
	p.b.WriteString(text)
}

// textLine is "time seq KIND column=value …"; of an update the columns that changed are column=old→new.
func (p *changePrinter) textLine(c change) {
	color := map[string]string{"INSERT": colorGreen, "DELETE": colorRed, "UPDATE_AFTER": colorYellow}[c.kind]
	p.in(colorDim, fmt.Sprintf("%s  %s  ", c.time, c.seq))
	p.in(color, fmt.Sprintf("%-6s", strings.TrimSuffix(c.kind, "_AFTER")))
	for i, v := range c.values {
		p.b.WriteString("  ")
		p.in(colorDim, c.names[i]+"=")
		if c.kind == "UPDATE_AFTER" && !same(p.before[i], v) {
			p.in(colorRed, printable(p.before[i]))
			p.b.WriteString("→")
			p.in(colorGreen, printable(v))
			continue
		}
		p.b.WriteString(printable(v))
	}
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// printable is a value on one line: in quotes when it would be read as something else.
func printable(v []byte) string {
	if v == nil {
		return "NULL"
	}
	s := string(v)
	if s == "" || s == "NULL" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '→' || r == 0x7f }) {
		b, err := json.Marshal(s)
		if err == nil {
			return string(b)
		}
	}
	return s
}

// jsonLine is one object; "before" is there for updates.
func (p *changePrinter) jsonLine(c change) {
	p.b.WriteString(`{"seq":`)
	p.jsonText(c.seq)
	fmt.Fprintf(&p.b, `,"ordinal":%s,"row":%s,"ts":`, c.ordinal, c.inSeq)
	p.jsonText(c.time)
	p.b.WriteString(`,"snapshot":`)
	p.jsonText(c.snapshot)
	p.b.WriteString(`,"op":`)
	p.jsonText(strings.TrimSuffix(c.kind, "_AFTER"))
	if c.kind == "UPDATE_AFTER" {
		p.jsonRow(`,"before":`, c, p.before)
	}
	name := `,"after":`
	if c.kind == "DELETE" {
		name = `,"before":`
	}
	p.jsonRow(name, c, c.values)
	p.b.WriteByte('}')
}

func (p *changePrinter) jsonRow(name string, c change, values [][]byte) {
	p.b.WriteString(name)
	p.b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			p.b.WriteByte(',')
		}
		p.jsonText(c.names[i])
		p.b.WriteByte(':')
		p.jsonValue(c.oids[i], v)
	}
	p.b.WriteByte('}')
}

func (p *changePrinter) jsonText(s string) {
	if s == "" {
		p.b.WriteString("null")
		return
	}
	p.quote(s)
}

// quote writes a JSON string; <, > and & as they are.
func (p *changePrinter) quote(s string) {
	e := json.NewEncoder(&p.b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	p.b.Truncate(p.b.Len() - 1)
}

// jsonValue writes a value in text form as row_to_json does: numbers, booleans and JSON as they are, all else as a string.
func (p *changePrinter) jsonValue(oid uint32, v []byte) {
	switch {
	case v == nil:
		p.b.WriteString("null")
	case oid == pgtype.BoolOID:
		if string(v) == "t" {
			p.b.WriteString("true")
		} else {
			p.b.WriteString("false")
		}
	case oid == pgtype.JSONOID || oid == pgtype.JSONBOID:
		if err := json.Compact(&p.b, v); err == nil {
			return
		}
		p.b.WriteString("null")
	case number(oid) && json.Valid(v): // NaN and infinities are no JSON
		p.b.Write(v)
	default:
		p.quote(string(v))
	}
}

func number(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.OIDOID:
		return true
	}
	return false
}
