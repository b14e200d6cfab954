package pgcatalog

// comment finds the comment of an object, "" when there is none.
func (s *Snapshot) comment(class, object uint32, sub int32) string {
	switch class {
	case classRelation:
		if r := s.relations[object]; r != nil {
			if sub == 0 {
				return r.Comment
			}
			if c := r.column(int16(sub)); c != nil {
				return c.Comment
			}
			return ""
		}
	case classProc:
		if f := s.functions[object]; f != nil {
			return f.Comment
		}
	case classNamespace:
		for _, n := range s.objects.Namespaces {
			if s.namespaceByName(n.Name) == object && n.Comment != "" {
				return n.Comment
			}
		}
	}
	return s.catalog.index().comments[commentKey{class, object, sub}]
}

// sharedComment finds the comment of a database or role.
func (s *Snapshot) sharedComment(class, object uint32) string {
	switch class {
	case classDatabase:
		for _, d := range s.objects.Databases {
			if d.OID == object {
				return d.Comment
			}
		}
	case classAuthID:
		if r := s.roles[object]; r != nil {
			return r.Comment
		}
	}
	return ""
}

func descriptionRows(s *Snapshot, w *rows) {
	w.columns("objoid", "classoid", "objsubid", "description")
	add := func(object, class uint32, sub int16, text string) {
		if text != "" {
			w.add(object, class, sub, text)
		}
	}
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		add(r.OID, classRelation, 0, r.Comment)
		for _, c := range r.Columns {
			add(r.OID, classRelation, c.AttNum, c.Comment)
		}
	}
	for _, f := range s.objects.Functions {
		add(f.OID, classProc, 0, f.Comment)
	}
	for _, n := range s.objects.Namespaces {
		add(s.namespaceByName(n.Name), classNamespace, 0, n.Comment)
	}
}

func sharedDescriptionRows(s *Snapshot, w *rows) {
	w.columns("objoid", "classoid", "description")
	for _, d := range s.objects.Databases {
		if d.Comment != "" {
			w.add(d.OID, classDatabase, d.Comment)
		}
	}
	for _, r := range s.objects.Roles {
		if r.Comment != "" {
			w.add(r.OID, classAuthID, r.Comment)
		}
	}
}
