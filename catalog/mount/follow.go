package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// batch is the number of changes of one commit.
const batch = 50

// maxReported is the number of troubles that Status names.
const maxReported = 3

// step is what one table's change needs, together.
type step struct {
	name    string
	stamp   string
	changes []catalog.Change
}

// plan compares a listing with what the catalog has.
type plan struct {
	m     *Manager
	x     *mounted
	cut   *catalog.Cut
	list  *Listing
	steps []step
	// have and listed are the mount's tables here and there, by name.
	have   map[string]*catalog.TableState
	listed map[string]Table
	// gone are the tables that the source no longer lists, by key; a listed table of that key was renamed.
	gone    map[catalog.TableKey]*catalog.TableState
	trouble []string
}

func nameOf(ident table.Identifier) string { return strings.Join(ident, "\x00") }

// follow commits what a listing changes, and reports the poll. It returns the number of tables that changed. The caller has the turn.
func (m *Manager) follow(ctx context.Context, x *mounted, list *Listing) (int, error) {
	p := &plan{m: m, x: x, cut: m.catalog.Cut(), list: list, have: map[string]*catalog.TableState{}, listed: map[string]Table{},
		gone: map[catalog.TableKey]*catalog.TableState{}}
	for _, pr := range list.Problems {
		p.fail(pr.Ident, pr.Err)
	}
	if err := p.tables(ctx); err != nil {
		return 0, err
	}
	n, err := p.commit(ctx)
	if err != nil {
		return n, err
	}
	m.report(x, p.summary())
	return n, nil
}

func (p *plan) fail(ident table.Identifier, err error) {
	p.trouble = append(p.trouble, strings.Join(ident, ".")+": "+err.Error())
}

func (p *plan) summary() error {
	if len(p.trouble) == 0 {
		return nil
	}
	slices.Sort(p.trouble)
	text := strings.Join(p.trouble[:min(len(p.trouble), maxReported)], "; ")
	if n := len(p.trouble) - maxReported; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return errors.New(text)
}

// troubled reports whether something at or above a name could not be listed: then its absence means nothing.
func (p *plan) troubled(ident table.Identifier) bool {
	return slices.ContainsFunc(p.list.Problems, func(pr Problem) bool {
		return len(pr.Ident) <= len(ident) && slices.Equal(pr.Ident, ident[:len(pr.Ident)])
	})
}

// tables makes the steps.
func (p *plan) tables(ctx context.Context) error {
	for _, t := range p.list.Tables {
		p.listed[nameOf(p.ours(t.Ident))] = t
	}
	for t := range p.cut.AllTables() {
		if !t.Mounted() || t.Ident[0] != p.x.def.Name {
			continue
		}
		p.have[nameOf(t.Ident)] = t
		if _, ok := p.listed[nameOf(t.Ident)]; !ok && !p.troubled(t.Ident[1:]) {
			p.gone[t.Key] = t
		}
	}
	for _, t := range p.list.Tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.table(ctx, t); err != nil {
			if cerr := ctx.Err(); cerr != nil {
				return cerr
			}
			p.fail(t.Ident, err)
		}
	}
	var drops []step
	for _, t := range p.gone {
		drops = append(drops, step{name: nameOf(t.Ident), changes: []catalog.Change{catalog.DropTable{Ident: t.Ident}}})
	}
	slices.SortFunc(drops, func(a, b step) int { return strings.Compare(a.name, b.name) })
	p.steps = append(drops, p.steps...) // a name is free before another table takes it
	return nil
}

// ours is the identifier under which a table of the source is mounted.
func (p *plan) ours(ident table.Identifier) table.Identifier {
	return append(table.Identifier{p.x.def.Name}, ident...)
}

// table makes the step of one listed table, if it needs one.
func (p *plan) table(ctx context.Context, t Table) error {
	ident := p.ours(t.Ident)
	name := nameOf(ident)
	old := p.have[name]
	if old != nil && old.MetadataLocation == t.MetadataLocation && (t.Stamp == "" || p.x.stamps[name] == t.Stamp) {
		return nil
	}
	f, err := p.m.catalog.ReadForeign(ctx, t.MetadataLocation)
	if err != nil {
		return err
	}
	key := catalog.TableKey(f.Metadata.TableUUID().String())
	s := step{name: name, stamp: t.Stamp}
	switch from := p.gone[key]; {
	case old != nil && old.Key == key && old.MetadataLocation == t.MetadataLocation:
		p.x.stamps[name] = t.Stamp
		return nil
	case old != nil && old.Key == key:
		s.changes = []catalog.Change{catalog.FollowTable{Key: key, Foreign: f}}
	case from != nil:
		delete(p.gone, key)
		if old != nil {
			s.changes = append(s.changes, catalog.DropTable{Ident: old.Ident})
		}
		s.changes = append(s.changes, catalog.RenameTable{From: from.Ident, To: ident})
		if from.MetadataLocation != t.MetadataLocation {
			s.changes = append(s.changes, catalog.FollowTable{Key: key, Foreign: f})
		}
	default:
		if other, used := p.cut.TableByKey(key); used {
			return fmt.Errorf("its uuid is that of table %s", strings.Join(other.Ident, "."))
		}
		if old != nil { // made anew under its name
			s.changes = append(s.changes, catalog.DropTable{Ident: old.Ident})
		}
		s.changes = append(s.changes, catalog.RegisterTable{Ident: ident, MetadataLocation: t.MetadataLocation, Foreign: f})
	}
	p.steps = append(p.steps, s)
	return nil
}

// commit runs the steps, some of them in one commit. One that cannot be made does not keep the others.
func (p *plan) commit(ctx context.Context) (int, error) {
	if err := p.spaces(ctx); err != nil {
		return 0, err
	}
	done := 0
	for steps := range slices.Chunk(p.steps, batch) {
		err := p.try(ctx, steps)
		if err == nil {
			done += len(steps)
			continue
		}
		for _, s := range steps {
			if err := ctx.Err(); err != nil {
				return done, err
			}
			if err := p.try(ctx, []step{s}); err != nil {
				if errors.Is(err, catalog.ErrUnknownOutcome) || errors.Is(err, catalog.ErrFailed) || errors.Is(err, catalog.ErrClosed) {
					return done, err
				}
				p.fail(strings.Split(s.name, "\x00")[1:], err)
				continue
			}
			done++
		}
	}
	return done, p.emptied(ctx)
}

func (p *plan) request(changes []catalog.Change) *catalog.Request {
	return &catalog.Request{ApplicationName: application(p.x.def.Name), Mount: p.x.def.Name, Changes: changes}
}

func (p *plan) try(ctx context.Context, steps []step) error {
	var changes []catalog.Change
	for _, s := range steps {
		changes = append(changes, s.changes...)
	}
	if _, err := p.m.catalog.Commit(ctx, p.request(changes)); err != nil {
		return err
	}
	for _, s := range steps {
		p.x.stamps[s.name] = s.stamp
	}
	return nil
}

// wanted are the namespaces of the source, with all levels above a namespace or a table.
func (p *plan) wanted() map[string]table.Identifier {
	out := map[string]table.Identifier{}
	add := func(ns table.Identifier) {
		for n := 1; n <= len(ns); n++ {
			out[nameOf(ns[:n])] = ns[:n]
		}
	}
	for _, ns := range p.list.Namespaces {
		if !slices.ContainsFunc(ns, func(level string) bool { return level == "" || strings.ContainsAny(level, ".\x00") }) {
			add(p.ours(ns))
		}
	}
	for _, t := range p.list.Tables {
		ident := p.ours(t.Ident)
		add(ident[:len(ident)-1])
	}
	return out
}

// spaces creates the namespaces that are missing, parents first.
func (p *plan) spaces(ctx context.Context) error {
	var changes []catalog.Change
	wanted := p.wanted()
	names := make([]string, 0, len(wanted))
	for n := range wanted {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if _, err := p.cut.Namespace(wanted[n]); err == nil {
			continue
		}
		changes = append(changes, catalog.CreateNamespace{Ident: wanted[n], Props: iceberg.Properties{catalog.PropertyMount: p.x.def.Name}})
	}
	for some := range slices.Chunk(changes, batch) {
		if _, err := p.m.catalog.Commit(ctx, p.request(some)); err != nil {
			return err
		}
	}
	return nil
}

// emptied drops the namespaces that the source no longer has.
func (p *plan) emptied(ctx context.Context) error {
	wanted := p.wanted()
	cut := p.m.catalog.Cut()
	var spaces []table.Identifier
	for n := range cut.Namespaces() {
		if n.Ident[0] == p.x.def.Name && len(n.Ident) > 1 {
			if _, ok := wanted[nameOf(n.Ident)]; !ok && !p.troubled(n.Ident[1:]) {
				spaces = append(spaces, n.Ident)
			}
		}
	}
	slices.Reverse(spaces)
	for _, ns := range spaces {
		_, err := p.m.catalog.Commit(ctx, p.request([]catalog.Change{catalog.DropNamespace{Ident: ns}}))
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
