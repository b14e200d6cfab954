package pgcatalog

// roleName gives a role's name, "" when there is none.
func (s *Snapshot) roleName(oid uint32) string {
	if r := s.roles[oid]; r != nil {
		return r.Name
	}
	if name := s.catalog.index().roles[oid]; name != "" {
		return name
	}
	if oid == bootstrapOwner {
		return s.catalog.options.Owner
	}
	return ""
}

// roleByName gives a role's OID, 0 when there is none.
func (s *Snapshot) roleByName(name string) uint32 {
	if oid := s.roleID[name]; oid != 0 {
		return oid
	}
	if oid := s.catalog.index().roleID[name]; oid != 0 {
		return oid
	}
	if name == s.catalog.options.Owner {
		return bootstrapOwner
	}
	return 0
}

// allRoles are the user's roles; the bootstrap superuser is one of them even when nobody lists it.
func (s *Snapshot) allRoles() []Role {
	if s.roles[bootstrapOwner] != nil {
		return s.objects.Roles
	}
	super := Role{OID: bootstrapOwner, Name: s.catalog.options.Owner, Superuser: true, CreateDB: true, CreateRole: true, Inherit: true,
		Login: true, Replication: true, BypassRLS: true, ConnLimit: -1}
	return append([]Role{super}, s.objects.Roles...)
}

func namespaceRows(s *Snapshot, w *rows) {
	w.columns("oid", "nspname", "nspowner")
	for name, oid := range s.namespaceID {
		w.add(oid, shown(name), owner(s.owners[name]))
	}
}

func databaseRows(s *Snapshot, w *rows) {
	w.set("encoding", encodingUTF8).set("datlocprovider", "c").set("datallowconn", true).set("datconnlimit", -1).set("datfrozenxid", frozenTransaction)
	w.set("datminmxid", 1).set("dattablespace", tablespaceDefault).set("datcollate", "C.UTF-8").set("datctype", "C.UTF-8")
	w.columns("oid", "datname", "datdba")
	for _, d := range s.objects.Databases {
		w.add(d.OID, shown(d.Name), owner(d.Owner))
	}
}

func authIDRows(s *Snapshot, w *rows) {
	w.columns("oid", "rolname", "rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication", "rolbypassrls", "rolconnlimit", "rolvaliduntil")
	for _, r := range s.allRoles() {
		w.add(r.OID, shown(r.Name), r.Superuser, r.Inherit, r.CreateRole, r.CreateDB, r.Login, r.Replication, r.BypassRLS, r.ConnLimit, r.ValidUntil)
	}
}

func roleRows(s *Snapshot, w *rows) {
	w.set("rolpassword", "********")
	w.columns("oid", "rolname", "rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication", "rolbypassrls", "rolconnlimit", "rolvaliduntil")
	for _, r := range s.allRoles() {
		w.add(r.OID, shown(r.Name), r.Superuser, r.Inherit, r.CreateRole, r.CreateDB, r.Login, r.Replication, r.BypassRLS, r.ConnLimit, r.ValidUntil)
	}
}

func userRows(s *Snapshot, w *rows) {
	w.set("passwd", "********")
	loginRows(s, w)
}

// shadowRows show no password: none leaves the server.
func shadowRows(s *Snapshot, w *rows) { loginRows(s, w) }

func loginRows(s *Snapshot, w *rows) {
	w.columns("usename", "usesysid", "usecreatedb", "usesuper", "userepl", "usebypassrls", "valuntil")
	for _, r := range s.allRoles() {
		if r.Login {
			w.add(shown(r.Name), r.OID, r.CreateDB, r.Superuser, r.Replication, r.BypassRLS, r.ValidUntil)
		}
	}
}

// groupRows are the roles that cannot log in.
func groupRows(s *Snapshot, w *rows) {
	w.columns("groname", "grosysid", "grolist")
	for _, r := range s.allRoles() {
		if r.Login {
			continue
		}
		members := []uint32{}
		for _, m := range s.allRoles() {
			for _, g := range m.MemberOf {
				if g == r.OID {
					members = append(members, m.OID)
				}
			}
		}
		w.add(shown(r.Name), r.OID, members)
	}
}

func memberRows(s *Snapshot, w *rows) {
	w.set("grantor", bootstrapOwner).columns("roleid", "member")
	for _, r := range s.allRoles() {
		for _, group := range r.MemberOf {
			w.add(group, r.OID)
		}
	}
}

func enabledRoleRows(s *Snapshot, w *rows) {
	w.columns("role_name")
	for _, r := range s.allRoles() {
		if r.OID != bootstrapOwner { // a static row
			w.add(shown(r.Name))
		}
	}
}
