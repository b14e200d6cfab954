package engine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// Table properties of ours; docs/format/table-properties.md describes them.
const (
	propPrimaryKey = sqlfuncs.PropertyKeyOrder    // field ids in key order, comma-separated, when it is not the schema's order
	propConstraint = warehouse.PropertyKeyName    // the key's name when it is not <table>_pkey
	propUnique     = "skade.unique"               // "true": the key was declared UNIQUE, not PRIMARY KEY
	propDefault    = "skade.default."             // + field id: a DEFAULT's SQL text
	propGenerated  = "skade.generated."           // + field id: GENERATED ALWAYS AS (…) STORED
	propIdentity   = "skade.identity."            // + field id: always or by default
	propSequence   = "skade.sequence."            // + field id: the sequence behind an identity column, schema-qualified
	propCheck      = "skade.check."               // + constraint name: the condition's SQL text
	propCheckFlags = "skade.check-flags."         // + constraint name: not valid, no inherit
	propVersion    = warehouse.PropertyDefinition // counts the changes of all of these
	propComment    = "comment"                    // the table's comment, as other engines keep it
)

// tableDef is what a table declares beyond Iceberg's schema: defaults, generated and identity columns, CHECK constraints. It lives
// in table properties, so that other engines read the table as ever and this one finds it again. To change it: readTableDef,
// modify, updates, warehouse.Tx.AlterTable.
type tableDef struct {
	// columns are by field id; a column that declares nothing has no entry.
	columns map[int]columnDef
	// checks are in the order of their names, in which they are evaluated.
	checks []checkDef
	// unique says that the identifier was declared UNIQUE rather than PRIMARY KEY.
	unique bool
	// version counts changes: what was analysed or checked under another version is out of date.
	version int
}

// columnDef is what a column declares beyond its type. At most one of Default, Generated and Identity is set.
type columnDef struct {
	// Default is the default's SQL text, names in it schema-qualified.
	Default string
	// Generated is the expression of GENERATED ALWAYS AS (…) STORED.
	Generated string
	// Identity is "always" or "by default"; Sequence is then the qualified name of the sequence behind it.
	Identity, Sequence string
}

// checkDef is a CHECK constraint.
type checkDef struct {
	Name, Expr string
	// NotValid: rows from before the constraint were not checked. NoInherit means nothing here and is kept for pg_constraint.
	NotValid, NoInherit bool
}

// readTableDef reads a table's properties. What cannot be read as a field id is skipped: another tool wrote it.
func readTableDef(props iceberg.Properties) *tableDef {
	d := &tableDef{columns: map[int]columnDef{}, unique: props[propUnique] == "true"}
	d.version, _ = strconv.Atoi(props[propVersion])
	for k, v := range props {
		if !strings.HasPrefix(k, "skade.") {
			continue
		}
		if name, ok := strings.CutPrefix(k, propCheck); ok {
			flags := props[propCheckFlags+name]
			d.checks = append(d.checks, checkDef{Name: name, Expr: v, NotValid: strings.Contains(flags, "not valid"), NoInherit: strings.Contains(flags, "no inherit")})
			continue
		}
		for prefix, set := range columnProperties {
			rest, ok := strings.CutPrefix(k, prefix)
			if !ok {
				continue
			}
			if id, err := strconv.Atoi(rest); err == nil {
				c := d.columns[id]
				*set(&c) = v
				d.columns[id] = c
			}
		}
	}
	slices.SortFunc(d.checks, func(a, b checkDef) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// columnProperties are the properties that belong to a field.
var columnProperties = map[string]func(*columnDef) *string{
	propDefault:   func(c *columnDef) *string { return &c.Default },
	propGenerated: func(c *columnDef) *string { return &c.Generated },
	propIdentity:  func(c *columnDef) *string { return &c.Identity },
	propSequence:  func(c *columnDef) *string { return &c.Sequence },
}

// properties writes the definition, without its version.
func (d *tableDef) properties() iceberg.Properties {
	out := iceberg.Properties{}
	for id, c := range d.columns {
		for prefix, get := range columnProperties {
			if v := *get(&c); v != "" {
				out[prefix+strconv.Itoa(id)] = v
			}
		}
	}
	for _, c := range d.checks {
		out[propCheck+c.Name] = c.Expr
		var flags []string
		if c.NotValid {
			flags = append(flags, "not valid")
		}
		if c.NoInherit {
			flags = append(flags, "no inherit")
		}
		if len(flags) > 0 {
			out[propCheckFlags+c.Name] = strings.Join(flags, ", ")
		}
	}
	if d.unique {
		out[propUnique] = "true"
	}
	return out
}

// updates are the metadata updates that turn the definition in old into d; nil when they are equal.
func (d *tableDef) updates(old iceberg.Properties) []table.Update {
	before := readTableDef(old)
	was, now := before.properties(), d.properties()
	if maps.Equal(was, now) {
		return nil
	}
	set := iceberg.Properties{propVersion: strconv.Itoa(before.version + 1)}
	for k, v := range now {
		if was[k] != v {
			set[k] = v
		}
	}
	var gone []string
	for k := range was {
		if _, ok := now[k]; !ok {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	out := []table.Update{table.NewSetPropertiesUpdate(set)}
	if len(gone) > 0 {
		out = append(out, table.NewRemovePropertiesUpdate(gone))
	}
	return out
}

// check finds a constraint by name.
func (d *tableDef) check(name string) (int, bool) {
	return slices.BinarySearchFunc(d.checks, name, func(c checkDef, name string) int { return cmp.Compare(c.Name, name) })
}

// addCheck adds a constraint in its place.
func (d *tableDef) addCheck(c checkDef) {
	i, _ := d.check(c.Name)
	d.checks = slices.Insert(d.checks, i, c)
}

// dropCheck removes a constraint by name and says whether there was one.
func (d *tableDef) dropCheck(name string) bool {
	i, ok := d.check(name)
	if ok {
		d.checks = slices.Delete(d.checks, i, i+1)
	}
	return ok
}

// dropColumn forgets what a column declares.
func (d *tableDef) dropColumn(fieldID int) { delete(d.columns, fieldID) }

// setColumn replaces what a column declares.
func (d *tableDef) setColumn(fieldID int, c columnDef) {
	if c == (columnDef{}) {
		delete(d.columns, fieldID)
		return
	}
	d.columns[fieldID] = c
}

// definitionVersion tells two definitions of a table apart: its schema's id and the count of its property changes.
func definitionVersion(t *warehouse.TxTable) int {
	v, _ := strconv.Atoi(t.Metadata().Properties()[propVersion])
	return t.Schema().ID<<32 | v
}

// objectName is PostgreSQL's makeObjectName: name1_name2_label within 63 bytes, the longer name cut first.
func objectName(name1, name2, label string) string {
	const limit = 63
	overhead := 0
	if name2 != "" {
		overhead++
	}
	if label != "" {
		overhead += len(label) + 1
	}
	n1, n2 := len(name1), len(name2)
	for n1+n2 > limit-overhead {
		if n1 > n2 {
			n1--
		} else {
			n2--
		}
	}
	out := clipName(name1, n1)
	if name2 != "" {
		out += "_" + clipName(name2, n2)
	}
	if label != "" {
		out += "_" + label
	}
	return out
}

// clipName cuts a name at a character boundary.
func clipName(name string, n int) string {
	if len(name) <= n {
		return name
	}
	for n > 0 && name[n]&0xC0 == 0x80 {
		n--
	}
	return name[:n]
}

// chooseName is objectName with the first number behind label that makes a name nothing has: t_c_check, t_c_check1 …
func chooseName(name1, name2, label string, taken func(string) bool) string {
	out := objectName(name1, name2, label)
	for i := 1; taken(out); i++ {
		out = objectName(name1, name2, label+strconv.Itoa(i))
	}
	return out
}
