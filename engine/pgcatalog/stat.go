package pgcatalog

import "strconv"

func tablesRows(s *Snapshot, w *rows) {
	w.columns("schemaname", "tablename", "tableowner", "hasindexes", "hasrules", "hastriggers", "rowsecurity")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == Table {
			w.add(shown(r.Namespace), shown(r.Name), s.roleName(owner(r.Owner)), r.hasKey(), false, false, false)
		}
	}
}

func viewsRows(s *Snapshot, w *rows) {
	w.columns("schemaname", "viewname", "viewowner", "definition")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == View {
			w.add(shown(r.Namespace), shown(r.Name), s.roleName(owner(r.Owner)), r.Definition)
		}
	}
}

func indexesRows(s *Snapshot, w *rows) {
	w.columns("schemaname", "tablename", "indexname", "indexdef")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.hasKey() {
			w.add(shown(r.Namespace), shown(r.Name), shown(r.keyName()), s.indexDefinition(r))
		}
	}
}

// statTableRows know the live rows only: nothing counts scans by table.
func statTableRows(s *Snapshot, w *rows) {
	for _, c := range []string{"seq_scan", "seq_tup_read", "n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_dead_tup", "n_mod_since_analyze",
		"n_ins_since_vacuum", "vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count"} {
		w.set(c, 0)
	}
	w.columns("relid", "schemaname", "relname", "n_live_tup", "idx_scan", "idx_tup_fetch")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind != Table {
			continue
		}
		var scans any
		if r.hasKey() {
			scans = 0
		}
		w.add(r.OID, shown(r.Namespace), shown(r.Name), max(r.Rows, 0), scans, scans)
	}
}

func statioTableRows(s *Snapshot, w *rows) {
	for _, c := range []string{"heap_blks_read", "heap_blks_hit", "idx_blks_read", "idx_blks_hit"} {
		w.set(c, 0)
	}
	w.columns("relid", "schemaname", "relname")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == Table {
			w.add(r.OID, shown(r.Namespace), shown(r.Name))
		}
	}
}

func statIndexRows(s *Snapshot, w *rows) {
	w.set("idx_scan", 0).set("idx_tup_read", 0).set("idx_tup_fetch", 0)
	w.columns("relid", "indexrelid", "schemaname", "relname", "indexrelname")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.hasKey() {
			w.add(r.OID, primaryIndex.of(r.OID), shown(r.Namespace), shown(r.Name), shown(r.keyName()))
		}
	}
}

func statDatabaseRows(s *Snapshot, w *rows) {
	for _, c := range w.relation.Columns {
		switch c.Name {
		case "datid", "datname", "checksum_failures", "checksum_last_failure", "stats_reset":
		default:
			w.set(c.Name, 0)
		}
	}
	w.columns("datid", "datname")
	for _, d := range s.objects.Databases {
		w.add(d.OID, shown(d.Name))
	}
}

func settingRows(_ *Snapshot, session Session, w *rows) {
	w.set("pending_restart", false)
	w.columns("name", "setting", "unit", "category", "short_desc", "context", "vartype", "source", "min_val", "max_val", "enumvals", "boot_val", "reset_val")
	for _, g := range session.Settings() {
		w.add(g.Name, g.Value, null(g.Unit), g.Category, g.ShortDesc, g.Context, g.VarType, g.Source, null(g.MinVal), null(g.MaxVal), g.EnumVals, g.BootVal, g.ResetVal)
	}
}

func activityRows(s *Snapshot, session Session, w *rows) {
	w.columns("datid", "datname", "pid", "usesysid", "usename", "application_name", "client_addr", "client_port", "backend_start", "xact_start", "query_start",
		"state_change", "wait_event_type", "wait_event", "state", "query", "backend_type")
	for _, b := range session.Activity() {
		var db, role any
		for _, d := range s.objects.Databases {
			if d.Name == b.Database {
				db = d.OID
			}
		}
		if oid := s.roleByName(b.User); oid != 0 {
			role = oid
		}
		w.add(db, null(b.Database), b.PID, role, null(b.User), b.ApplicationName, null(b.ClientAddr), b.ClientPort, b.BackendStart, b.XactStart, b.QueryStart,
			b.StateSince, null(b.WaitEventType), null(b.WaitEvent), null(b.State), b.Query, b.BackendType)
	}
}

func lockRows(_ *Snapshot, session Session, w *rows) {
	w.set("fastpath", false).columns("locktype", "database", "relation", "virtualxid", "classid", "objid", "objsubid", "virtualtransaction", "pid", "mode", "granted", "waitstart")
	for _, l := range session.Locks() {
		var class, obj, sub any
		if l.Advisory {
			class, obj, sub = l.ClassID, l.ObjID, int16(l.ObjSubID)
		}
		w.add(l.LockType, nonZero(l.Database), nonZero(l.Relation), null(l.VirtualXID), class, obj, sub, strconv.Itoa(int(l.PID))+"/1", l.PID, l.Mode, l.Granted, l.WaitStart)
	}
}

func copyProgressRows(s *Snapshot, session Session, w *rows) {
	w.set("bytes_total", 0).set("tuples_excluded", 0)
	w.columns("pid", "datid", "datname", "relid", "command", "type", "bytes_processed", "tuples_processed")
	for _, p := range session.Copies() {
		var db any
		for _, d := range s.objects.Databases {
			if d.Name == p.Database {
				db = d.OID
			}
		}
		w.add(p.PID, db, p.Database, p.Relation, p.Command, p.Type, p.Bytes, p.Tuples)
	}
}

func nonZero(oid uint32) any {
	if oid == 0 {
		return nil
	}
	return oid
}

func preparedRows(s *Snapshot, session Session, w *rows) {
	w.set("generic_plans", 0).set("custom_plans", 0)
	w.columns("name", "statement", "prepare_time", "parameter_types", "from_sql")
	for _, p := range session.PreparedStatements() {
		types := []uint32{}
		w.add(p.Name, p.Statement, p.PrepareTime, append(types, p.ParameterTypes...), p.FromSQL)
	}
}

func cursorRows(_ *Snapshot, session Session, w *rows) {
	w.columns("name", "statement", "is_holdable", "is_binary", "is_scrollable", "creation_time")
	for _, c := range session.Cursors() {
		w.add(c.Name, c.Statement, c.Holdable, c.Binary, c.Scrollable, c.CreationTime)
	}
}

func sslRows(_ *Snapshot, session Session, w *rows) {
	w.set("ssl", false).columns("pid")
	for _, b := range session.Activity() {
		w.add(b.PID)
	}
}

func gssRows(_ *Snapshot, session Session, w *rows) {
	w.set("gss_authenticated", false).set("encrypted", false).columns("pid")
	for _, b := range session.Activity() {
		w.add(b.PID)
	}
}
