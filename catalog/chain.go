package catalog

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// chained is a table's metadata whose snapshots and snapshot log are the beginning of lists that it shares with the metadata made
// from it, so that a commit costs what it adds, not what the table has. All else is the library's. Immutable; read only what it returns.
type chained struct {
	table.Metadata // of which snapshots, refs, logs and counters are not used

	chain       *chain
	snapshots   []table.Snapshot
	log         []table.SnapshotLogEntry
	current     *int64
	refs        map[string]table.SnapshotRef
	metadataLog []table.MetadataLogEntry
	updated     int64 // milliseconds since 1970
	sequence    int64
	nextRow     int64
	fixed       *fixedMetadata
}

// fixedMetadata is what the library copies whenever it is asked.
type fixedMetadata struct {
	schemas    []*iceberg.Schema
	schema     *iceberg.Schema
	specs      []iceberg.PartitionSpec
	spec       iceberg.PartitionSpec
	properties iceberg.Properties
}

// chain is the growing lists. Elements never change; whoever holds a prefix of them needs no lock to read it.
type chain struct {
	carrier *metadataEntry // guarded by the cache's lock
	last    *document      // of the newest committed metadata file, and its path; the leader's
	path    string
	mu      struct {
		sync.RWMutex
		list []table.Snapshot
		log  []table.SnapshotLogEntry
		pos  map[int64]int // snapshot id → place in list
		// The JSON of both lists, elements joined by commas, and where each element ends; encoded as far as it was asked for.
		json, logJSON jsonList
	}
}

// chainOf gives metadata the form that commits cost little on. before, when there is one, is the metadata it was made from.
func chainOf(meta, before table.Metadata) *chained {
	if m, ok := meta.(*chained); ok {
		return m
	}
	m := &chained{
		Metadata: meta, chain: &chain{}, snapshots: meta.Snapshots(), log: slices.Collect(meta.SnapshotLogs()), current: headOf(meta),
		refs: maps.Collect(meta.Refs()), metadataLog: slices.Collect(meta.PreviousFiles()), updated: meta.LastUpdatedMillis(),
		sequence: meta.LastSequenceNumber(), nextRow: meta.NextRowID(),
		fixed: &fixedMetadata{meta.Schemas(), meta.CurrentSchema(), meta.PartitionSpecs(), meta.PartitionSpec(), meta.Properties()},
	}
	c := m.chain
	c.mu.list, c.mu.log, c.mu.pos = m.snapshots, m.log, make(map[int64]int, len(m.snapshots))
	for i := range m.snapshots {
		c.mu.pos[m.snapshots[i].SnapshotID] = i
	}
	if b, ok := before.(*chained); ok {
		c.mu.json.inherit(m, b)
	}
	return m
}

func (m *chained) Snapshots() []table.Snapshot { return slices.Clone(m.snapshots) }

func (m *chained) SnapshotByID(id int64) *table.Snapshot {
	m.chain.mu.RLock()
	i, ok := m.chain.mu.pos[id]
	m.chain.mu.RUnlock()
	if !ok || i >= len(m.snapshots) {
		return nil
	}
	s := m.snapshots[i]
	return &s
}

func (m *chained) SnapshotByName(name string) *table.Snapshot {
	if r, ok := m.refs[name]; ok {
		return m.SnapshotByID(r.SnapshotID)
	}
	return nil
}

func (m *chained) CurrentSnapshot() *table.Snapshot {
	if m.current == nil {
		return nil
	}
	return m.SnapshotByID(*m.current)
}

func (m *chained) Ref() table.SnapshotRef { return m.refs[table.MainBranch] }

func (m *chained) Refs() iter.Seq2[string, table.SnapshotRef] { return maps.All(m.refs) }

func (m *chained) SnapshotLogs() iter.Seq[table.SnapshotLogEntry] { return slices.Values(m.log) }

func (m *chained) PreviousFiles() iter.Seq[table.MetadataLogEntry] {
	return slices.Values(m.metadataLog)
}

func (m *chained) LastUpdatedMillis() int64             { return m.updated }
func (m *chained) LastSequenceNumber() int64            { return m.sequence }
func (m *chained) NextRowID() int64                     { return m.nextRow }
func (m *chained) Schemas() []*iceberg.Schema           { return slices.Clone(m.fixed.schemas) }
func (m *chained) CurrentSchema() *iceberg.Schema       { return m.fixed.schema }
func (m *chained) PartitionSpec() iceberg.PartitionSpec { return m.fixed.spec }
func (m *chained) PartitionSpecs() []iceberg.PartitionSpec {
	return slices.Clone(m.fixed.specs)
}

func (m *chained) PartitionSpecByID(id int) *iceberg.PartitionSpec {
	for i := range m.fixed.specs {
		if m.fixed.specs[i].ID() == id {
			s := m.fixed.specs[i]
			return &s
		}
	}
	return nil
}

// Properties is shared, unlike the library's copy.
func (m *chained) Properties() iceberg.Properties { return m.fixed.properties }

// MarshalJSON is the metadata file's content.
func (m *chained) MarshalJSON() ([]byte, error) {
	d, err := encodeDocument(m)
	if err != nil {
		return nil, err
	}
	return d.bytes(), nil
}

// Equals compares as the library does.
func (m *chained) Equals(other table.Metadata) bool {
	mine, err := m.library()
	if err != nil {
		return false
	}
	if o, ok := other.(*chained); ok {
		if other, err = o.library(); err != nil {
			return false
		}
	}
	return mine.Equals(other)
}

func (m *chained) library() (table.Metadata, error) {
	raw, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return table.ParseMetadataBytes(raw)
}

var _ table.Metadata = (*chained)(nil)

// at is the metadata with main, the other refs and the current schema set to older ones: the state of an earlier commit that shares
// the chain. false when the schema is another: the library has to be asked.
func (m *chained) at(snapshotID *int64, schemaID int, older []Ref) (*chained, bool) {
	if m.Version() < 2 || schemaID != m.fixed.schema.ID || snapshotID != nil && m.SnapshotByID(*snapshotID) == nil {
		return nil, false
	}
	back := *m
	back.current, back.refs = snapshotID, refsBack(m, snapshotID, older)
	back.log = m.log[:0:0]
	if snapshotID != nil {
		for i := len(m.log) - 1; i >= 0; i-- {
			if m.log[i].SnapshotID == *snapshotID {
				back.log = m.log[: i+1 : i+1]
				break
			}
		}
	}
	return &back, true
}

// grow returns the lists with one more element each. Metadata that is no longer the chain's newest gets a chain of its own.
func (m *chained) grow(s table.Snapshot, e table.SnapshotLogEntry) (*chain, []table.Snapshot, []table.SnapshotLogEntry) {
	c := m.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.list) != len(m.snapshots) || len(c.mu.log) != len(m.log) {
		fork := &chain{}
		fork.mu.list, fork.mu.log, fork.mu.pos = slices.Clone(m.snapshots), slices.Clone(m.log), make(map[int64]int, len(m.snapshots)+1)
		for i := range m.snapshots {
			fork.mu.pos[m.snapshots[i].SnapshotID] = i
		}
		fork.mu.json, fork.mu.logJSON = c.mu.json.prefix(len(m.snapshots)), c.mu.logJSON.prefix(len(m.log))
		c = fork
	}
	c.mu.list, c.mu.log = append(c.mu.list, s), append(c.mu.log, e)
	c.mu.pos[s.SnapshotID] = len(c.mu.list) - 1
	n, l := len(c.mu.list), len(c.mu.log)
	return c, c.mu.list[:n:n], c.mu.log[:l:l]
}

// appendSnapshot is table.UpdateTableMetadata for what nearly every commit is: a snapshot on top of main. false: it is not that, or
// something is wrong with it, which the library will say.
func appendSnapshot(base table.Metadata, updates []table.Update, replaced string) (*chained, bool) {
	m, ok := base.(*chained)
	if !ok || len(updates) != 2 || m.Version() < 2 {
		return nil, false
	}
	s, ref, ok := headMove(updates)
	if !ok {
		return nil, false
	}
	onHead := s.ParentSnapshotID == nil && m.current == nil || s.ParentSnapshotID != nil && m.current != nil && *s.ParentSnapshotID == *m.current
	latest := m.updated
	if n := len(m.log); n > 0 {
		latest = max(latest, m.log[n-1].TimestampMs)
	}
	old, had := m.refs[table.MainBranch]
	if !onHead || s.SequenceNumber <= m.sequence || s.TimestampMs < latest || m.SnapshotByID(s.SnapshotID) != nil ||
		had && old.SnapshotRefType != table.BranchRef {
		return nil, false
	}
	next := *m
	if m.Version() >= 3 {
		if s.FirstRowID == nil || s.AddedRows == nil || *s.FirstRowID < m.nextRow || *s.AddedRows < 0 || m.nextRow+*s.AddedRows < m.nextRow {
			return nil, false
		}
		next.nextRow = m.nextRow + *s.AddedRows
	}
	next.refs = maps.Clone(m.refs)
	next.refs[table.MainBranch] = ref
	id := s.SnapshotID
	next.current, next.sequence, next.updated = &id, s.SequenceNumber, s.TimestampMs
	if replaced != "" {
		keep := max(1, m.fixed.properties.GetInt(table.MetadataPreviousVersionsMaxKey, table.MetadataPreviousVersionsMaxDefault))
		log := append(slices.Clip(m.metadataLog), table.MetadataLogEntry{MetadataFile: replaced, TimestampMs: m.updated})
		next.metadataLog = log[max(0, len(log)-keep):]
	}
	next.chain, next.snapshots, next.log = m.grow(*s, table.SnapshotLogEntry{SnapshotID: id, TimestampMs: s.TimestampMs})
	return &next, true
}

// headMove takes the two updates of a commit apart: a new snapshot, and main set to it. Their types are unexported, their fields are not.
func headMove(updates []table.Update) (*table.Snapshot, table.SnapshotRef, bool) {
	none := table.SnapshotRef{}
	if updates[0].Action() != table.UpdateAddSnapshot || updates[1].Action() != table.UpdateSetSnapshotRef {
		return nil, none, false
	}
	add, set := reflect.Indirect(reflect.ValueOf(updates[0])), reflect.Indirect(reflect.ValueOf(updates[1]))
	if add.Kind() != reflect.Struct || set.Kind() != reflect.Struct {
		return nil, none, false
	}
	s, ok := field[*table.Snapshot](add, "Snapshot")
	name, ok1 := field[string](set, "RefName")
	kind, ok2 := field[table.RefType](set, "RefType")
	id, ok3 := field[int64](set, "SnapshotID")
	maxRef, ok4 := field[int64](set, "MaxRefAgeMs")
	maxAge, ok5 := field[int64](set, "MaxSnapshotAgeMs")
	keep, ok6 := field[int](set, "MinSnapshotsToKeep")
	if !(ok && ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || s == nil || name != table.MainBranch || kind != table.BranchRef || id != s.SnapshotID {
		return nil, none, false
	}
	ref := table.SnapshotRef{SnapshotID: id, SnapshotRefType: kind}
	if maxRef > 0 {
		ref.MaxRefAgeMs = &maxRef
	}
	if maxAge > 0 {
		ref.MaxSnapshotAgeMs = &maxAge
	}
	if keep > 0 {
		ref.MinSnapshotsToKeep = &keep
	}
	return s, ref, true
}

func field[T any](v reflect.Value, name string) (out T, ok bool) {
	f := v.FieldByName(name)
	if !f.IsValid() || !f.CanInterface() {
		return out, false
	}
	out, ok = f.Interface().(T)
	return out, ok
}

// jsonList is the JSON of a list's elements, joined by commas.
type jsonList struct {
	b    []byte
	ends []int // of each element in b
}

// prefix shares the first n elements, as far as they are encoded.
func (l *jsonList) prefix(n int) jsonList {
	n = min(n, len(l.ends))
	if n == 0 {
		return jsonList{}
	}
	end := l.ends[n-1]
	return jsonList{l.b[:end:end], l.ends[:n:n]}
}

// element is the i-th element's JSON.
func (l *jsonList) element(i int) []byte {
	start := 0
	if i > 0 {
		start = l.ends[i-1] + 1
	}
	return l.b[start:l.ends[i]]
}

func (l *jsonList) add(raw []byte) {
	if len(l.ends) > 0 {
		l.b = append(l.b, ',')
	}
	l.b = append(l.b, raw...)
	l.ends = append(l.ends, len(l.b))
}

// upTo encodes the elements that are not yet, and returns the JSON of the first len(list).
func upTo[T any](l *jsonList, list []T) ([]byte, error) {
	for i := len(l.ends); i < len(list); i++ {
		raw, err := json.Marshal(&list[i])
		if err != nil {
			return nil, err
		}
		l.add(raw)
	}
	if len(list) == 0 {
		return nil, nil
	}
	end := l.ends[len(list)-1]
	return l.b[:end:end], nil
}

// inherit takes the JSON of snapshots over that are the same in the metadata before; it stops at the first that has none.
func (l *jsonList) inherit(m, before *chained) {
	b := before.chain
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i := range m.snapshots {
		s := &m.snapshots[i]
		at, ok := b.mu.pos[s.SnapshotID]
		if !ok || at >= len(b.mu.json.ends) {
			return
		}
		if o := &b.mu.list[at]; o.SequenceNumber != s.SequenceNumber || o.TimestampMs != s.TimestampMs || o.ManifestList != s.ManifestList {
			return
		}
		l.add(b.mu.json.element(at))
	}
}
