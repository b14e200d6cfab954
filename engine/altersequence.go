package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// findSequence is the sequence that a name means; 42P01, 42809.
func (s *session) findSequence(ctx context.Context, n pgsql.QName) (*storedSequence, error) {
	schemas := []string{s.schemaName(n.Schema)}
	if n.Schema == "" {
		schemas = s.effectivePath()
	}
	for _, sch := range schemas {
		q, err := s.sequence(identOf(sch, n.Name))
		if q != nil || err != nil {
			return q, err
		}
	}
	if t, view, err := s.findRelation(ctx, n); err != nil {
		return nil, err
	} else if t != nil || view != nil {
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a sequence", n.Name)
	}
	return nil, undefinedTable(n)
}

// alterSequence is ALTER SEQUENCE with options. What it changes is seen by others at commit; RESTART starts a new run of values.
func (s *session) alterSequence(ctx context.Context, w pgwire.Writer, u *pgsql.AlterSequence) error {
	q, err := s.findSequence(ctx, u.Name)
	if err != nil {
		if e := pgerr.As(err); e != nil && e.Code == pgerr.UndefinedTable && u.IfExists {
			w.Notice(notice(fmt.Sprintf("relation \"%s\" does not exist, skipping", u.Name.Name)))
			return nil
		}
		return err
	}
	return s.changeSequence(ctx, q, u.Options)
}

// changeSequence applies options to a sequence and stores it.
func (s *session) changeSequence(ctx context.Context, q *storedSequence, o *pgsql.SequenceOptions) error {
	was := q.def()
	def, err := o.Apply(&was)
	if err != nil {
		return err
	}
	st, _, err := s.sequenceRun(q).state(ctx, q)
	if err != nil {
		return err
	}
	switch {
	case o.RestartAt != nil:
		q.restart(*o.RestartAt)
	case o.Restart:
		q.restart(def.Start)
	case st.Last < def.Min:
		return pgerr.Newf(pgerr.InvalidParameterValue, "RESTART value (%d) cannot be less than MINVALUE (%d)", st.Last, def.Min)
	case st.Last > def.Max:
		return pgerr.Newf(pgerr.InvalidParameterValue, "RESTART value (%d) cannot be greater than MAXVALUE (%d)", st.Last, def.Max)
	}
	q.set(def)
	if err := s.setOwner(ctx, q, o); err != nil {
		return err
	}
	s.sequences.statement()
	return s.putSequence(ctx, q, true)
}

// restartSequences is TRUNCATE … RESTART IDENTITY: the table's sequences start again when the transaction commits.
func (s *session) restartSequences(ctx context.Context, t *warehouse.TxTable) error {
	owned, err := s.ownedSequences(t.Key(), 0)
	if err != nil {
		return err
	}
	for _, q := range owned {
		q.restart(q.Start)
		if err := s.putSequence(ctx, q, true); err != nil {
			return err
		}
	}
	s.sequences.statement()
	return nil
}

// renameSequence is ALTER SEQUENCE … RENAME TO and SET SCHEMA. Defaults that draw from it follow.
func (s *session) renameSequence(ctx context.Context, u *pgsql.Alter) error {
	q, err := s.findSequence(ctx, u.Name)
	if err != nil {
		return err
	}
	to := slices.Clone(q.ident)
	switch u.Action {
	case "rename":
		to[len(to)-1] = u.NewName
	case "set schema":
		if to, err = s.moveTarget(q.ident, u.NewName); err != nil {
			return err
		}
		if t := s.ownerTable(q); t != nil && schemaOf(to) != schemaOf(q.ident) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot move an owned sequence into another schema").
				WithDetail("Sequence \"%s\" is linked to table \"%s\".", q.name(), t.Ident[len(t.Ident)-1])
		}
	default:
		return pgerr.Newf(pgerr.FeatureNotSupported, "ALTER SEQUENCE ... %s is not supported", strings.ToUpper(u.Action))
	}
	if slices.Equal(to, q.ident) {
		if u.Action == "set schema" {
			return nil
		}
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", to[len(to)-1])
	}
	if ok, err := s.exists(ctx, to); err != nil || ok {
		if err != nil {
			return err
		}
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", to[len(to)-1])
	}
	return s.moveSequence(ctx, q, to)
}

// moveSequence gives a sequence another name and rewrites the defaults that name it.
func (s *session) moveSequence(ctx context.Context, q *storedSequence, to table.Identifier) error {
	tx := s.tx.warehouseTx()
	before := *q
	if err := tx.DropObject(ctx, sequenceKind, q.ident[:len(q.ident)-1], q.name()); err != nil {
		return err
	}
	q.ident = to
	if err := s.putSequence(ctx, q, false); err != nil {
		return err
	}
	s.sequences.statement()
	for _, info := range tx.Tables() {
		if err := s.redirectDefaults(ctx, info.Ident, before.qualified(), q); err != nil {
			return err
		}
	}
	return nil
}

// redirectDefaults rewrites what names a sequence in a table's definition.
func (s *session) redirectDefaults(ctx context.Context, ident table.Identifier, old string, q *storedSequence) error {
	t, err := s.table(ctx, ident)
	if err != nil {
		return err
	}
	quoted := strings.ReplaceAll(old, "'", "''")
	from, to := "'"+quoted+"'::regclass", "'"+strings.ReplaceAll(q.qualified(), "'", "''")+"'::regclass"
	props := t.Metadata().Properties()
	d := readTableDef(props)
	for id, c := range d.columns {
		c.Default = strings.ReplaceAll(c.Default, from, to)
		if c.Sequence == old {
			c.Sequence = q.qualified()
		}
		d.setColumn(id, c)
	}
	if up := d.updates(props); up != nil {
		return s.tx.warehouseTx().AlterTable(ctx, ident, up...)
	}
	return nil
}

// moveOwnedSequences takes a table's sequences along when it moves to another schema.
func (s *session) moveOwnedSequences(ctx context.Context, t *warehouse.TxTable, schema string) error {
	owned, err := s.ownedSequences(t.Key(), 0)
	if err != nil {
		return err
	}
	for _, q := range owned {
		if err := s.moveSequence(ctx, q, identOf(schema, q.name())); err != nil {
			return err
		}
	}
	return nil
}

// dropSequence is DROP SEQUENCE. A sequence that a default draws from stays, unless CASCADE takes the default away.
func (s *session) dropSequence(ctx context.Context, w pgwire.Writer, n pgsql.QName, u *pgsql.Drop) error {
	q, err := s.findSequence(ctx, n)
	if err != nil {
		e := pgerr.As(err)
		switch {
		case e != nil && e.Code == pgerr.UndefinedTable && u.IfExists:
			skipMissing(w, "sequence", n.Name)
			return nil
		case e != nil && e.Code == pgerr.UndefinedTable:
			return pgerr.Newf(pgerr.UndefinedTable, "sequence \"%s\" does not exist", dottedName(n))
		case e != nil && e.Code == pgerr.WrongObjectType:
			return e.WithHint("%s", s.dropHint(ctx, n))
		}
		return err
	}
	if q.Owner != nil && q.Owner.Internal {
		if t := s.ownerTable(q); t != nil {
			column := s.columnName(ctx, t, q.Owner.Field)
			return pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop sequence %s because column %s of table %s requires it", q.name(), column, t.Ident[len(t.Ident)-1]).
				WithHint("You can drop column %s of table %s instead.", column, t.Ident[len(t.Ident)-1])
		}
	}
	users, err := s.drawers(ctx, q)
	if err != nil {
		return err
	}
	if len(users) > 0 && !u.Cascade {
		lines := make([]string, len(users))
		for i, d := range users {
			lines[i] = fmt.Sprintf("default value for column %s of table %s depends on sequence %s", d.column, d.table, q.name())
		}
		return pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop sequence %s because other objects depend on it", q.name()).
			WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	for _, d := range users {
		w.Notice(notice(fmt.Sprintf("drop cascades to default value for column %s of table %s", d.column, d.table)))
		if err := d.dropDefault(ctx, s); err != nil {
			return err
		}
	}
	return s.tx.warehouseTx().DropObject(ctx, sequenceKind, q.ident[:len(q.ident)-1], q.name())
}

func dottedName(n pgsql.QName) string {
	if n.Schema == "" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

func (s *session) dropHint(ctx context.Context, n pgsql.QName) string {
	if _, view, err := s.findRelation(ctx, n); err == nil && view != nil {
		return "Use DROP VIEW to remove a view."
	}
	return "Use DROP TABLE to remove a table."
}

func (s *session) columnName(ctx context.Context, info *warehouse.TableInfo, field int) string {
	t, err := s.table(ctx, info.Ident)
	if err != nil {
		return ""
	}
	for _, f := range t.Schema().Fields() {
		if f.ID == field {
			return f.Name
		}
	}
	return ""
}

// drawer is a column whose default draws from a sequence.
type drawer struct {
	t             *warehouse.TxTable
	field         int
	table, column string
}

// drawers are the columns whose defaults draw from a sequence, identity columns left out.
func (s *session) drawers(ctx context.Context, q *storedSequence) ([]drawer, error) {
	name := "'" + strings.ReplaceAll(q.qualified(), "'", "''") + "'::regclass"
	var out []drawer
	for _, info := range s.readTx().Tables() {
		t, err := s.table(ctx, info.Ident)
		if err != nil {
			return nil, err
		}
		d := readTableDef(t.Metadata().Properties())
		for _, f := range t.Schema().Fields() {
			if strings.Contains(d.columns[f.ID].Default, name) {
				out = append(out, drawer{t, f.ID, s.label(info.Ident), f.Name})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b drawer) int { return cmp.Compare(tableOID(a.t), tableOID(b.t)) })
	return out, nil
}

func (d drawer) dropDefault(ctx context.Context, s *session) error {
	props := d.t.Metadata().Properties()
	def := readTableDef(props)
	c := def.columns[d.field]
	c.Default = ""
	def.setColumn(d.field, c)
	return s.tx.warehouseTx().AlterTable(ctx, d.t.Ident(), def.updates(props)...)
}

// sequenceRelation describes a sequence as a FROM item: SELECT * FROM seq.
func sequenceRelation(q *storedSequence) *pgsql.Relation {
	return &pgsql.Relation{Kind: pgsql.System, Schema: schemaOf(q.ident), Name: q.name(), OID: q.oid, ReadOnly: true, Handle: &handle{sequence: q}, Columns: []pgsql.RelColumn{
		{Name: "last_value", Type: pgtype.Int8, Mod: -1, AttNum: 1, NotNull: true},
		{Name: "log_cnt", Type: pgtype.Int8, Mod: -1, AttNum: 2, NotNull: true},
		{Name: "is_called", Type: pgtype.Bool, Mod: -1, AttNum: 3, NotNull: true},
	}}
}

// sequenceRow is the one row of a sequence: the last value handed out, how many more are reserved, and whether there was one at all.
func (s *session) sequenceRow(ctx context.Context, q *storedSequence) (*sqlfuncs.Rows, error) {
	// The definition may have been found in another transaction.
	if now, err := s.sequence(q.ident); err == nil && now != nil {
		q = now
	}
	st, left, err := s.sequenceRun(q).state(ctx, q)
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(arrowAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "last_value", Type: arrow.PrimitiveTypes.Int64}, {Name: "log_cnt", Type: arrow.PrimitiveTypes.Int64}, {Name: "is_called", Type: arrow.FixedWidthTypes.Boolean},
	}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(st.Last)
	b.Field(1).(*array.Int64Builder).Append(left)
	b.Field(2).(*array.BooleanBuilder).Append(st.Called)
	return oneBatch(b.NewRecordBatch()), nil
}
