package lockmgr

import (
	"cmp"
	"slices"
	"time"
)

// Info is a lock as pg_locks shows it.
type Info struct {
	Tag     Tag
	PID     int32
	Mode    Mode
	Granted bool
	Since   time.Time // of the wait; zero when granted
}

// Locks lists what is held and waited for, by pid. Intentions are left out.
func (m *Manager) Locks() []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Info
	for _, lk := range m.mu.locks {
		for _, h := range lk.holders {
			for mode := AccessShare; mode < firstIntent; mode++ {
				if h.all&mode.bit() != 0 {
					out = append(out, Info{Tag: lk.tag, PID: h.owner.pid, Mode: mode, Granted: true})
				}
			}
		}
		for _, w := range lk.queue {
			out = append(out, Info{Tag: lk.tag, PID: w.owner.pid, Mode: w.mode, Since: w.since})
		}
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Tag.Kind, b.Tag.Kind), cmp.Compare(a.Tag.Rel, b.Tag.Rel),
			cmp.Compare(a.Tag.Class, b.Tag.Class), cmp.Compare(a.Tag.Object, b.Tag.Object), cmp.Compare(a.Tag.Key, b.Tag.Key),
			cmp.Compare(a.Mode, b.Mode))
	})
	return out
}

// Blockers are the pids that a waiting session waits for, each once; nil when it does not wait.
func (m *Manager) Blockers(pid int32) []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []int32
	for _, lk := range m.mu.locks {
		for _, w := range lk.queue {
			if w.owner.pid != pid {
				continue
			}
			for _, e := range w.edges() {
				if !slices.Contains(out, e.by.pid) {
					out = append(out, e.by.pid)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// PID is the session's process id.
func (o *Owner) PID() int32 { return o.pid }
