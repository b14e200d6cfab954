package pgcatalog

import "time"

// timezoneRows are PostgreSQL's zone names with what holds now by Go's zone database; zones that it lacks are left out.
func timezoneRows(s *Snapshot, _ Session, w *rows) {
	t := s.catalog.mustText("pg_timezone_names")
	name := t.column("name")
	now := time.Now()
	w.columns("name", "abbrev", "utc_offset", "is_dst")
	for i := range t.rows {
		loc, err := time.LoadLocation(name(i))
		if err != nil {
			continue
		}
		at := now.In(loc)
		abbrev, offset := at.Zone()
		w.add(name(i), abbrev, time.Duration(offset)*time.Second, at.IsDST())
	}
}
