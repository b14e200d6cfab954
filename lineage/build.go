package lineage

import (
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
)

// systemNamespace holds tables that the gateway writes itself; they are not lineage unless a reader names them.
const systemNamespace = "skade"

// builder turns log records into events.
type builder struct {
	datasets string // namespace of datasets
	jobs     string // namespace of jobs
}

// event returns the event of a record, nil when the record touches no table of a user.
func (b *builder) event(rec *catalog.Record) *Event {
	e := &Event{EventTime: rec.Time.UTC(), Producer: Producer, SchemaURL: SchemaURL, EventType: Complete,
		Inputs: []Dataset{}, Outputs: []Dataset{}}
	for i := range rec.Tables {
		if d, ok := b.output(&rec.Tables[i]); ok {
			e.Outputs = append(e.Outputs, d)
		}
	}
	if len(e.Outputs) == 0 {
		return nil
	}
	e.Job = Job{Namespace: b.jobs, Name: "commit"}
	if rec.ApplicationName != "" {
		e.Job.Name = rec.ApplicationName
	}
	e.Run.RunID = uuid.NewSHA1(uuid.NameSpaceURL, []byte(b.datasets+"#"+strconv.FormatUint(rec.Seq, 10))).String()
	// Context that something else wrote is not lineage's: the event goes out without inputs.
	if c, err := DecodeContext(rec.Context); err == nil && c != nil {
		if c.Job != "" {
			e.Job.Name = c.Job
		}
		if c.RunID != "" {
			e.Run.RunID = c.RunID
		}
		for _, in := range c.Inputs {
			e.Inputs = append(e.Inputs, Dataset{Namespace: b.datasets, Name: name(in.Table), Facets: version(in.SnapshotID)})
		}
	}
	e.Run.Facets = map[string]any{"skade_commit": CommitFacet{
		facetBase: facetBase{Producer, Producer + "/blob/main/lineage/CommitRunFacet.json#/$defs/CommitRunFacet"},
		Seq:       strconv.FormatUint(rec.Seq, 10), TxID: rec.TxID, Actor: rec.Actor, ApplicationName: rec.ApplicationName,
	}}
	return e
}

func name(ident table.Identifier) string { return strings.Join(ident, ".") }

func version(id *int64) map[string]any {
	if id == nil {
		return nil
	}
	return map[string]any{"version": VersionFacet{base("1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet"),
		strconv.FormatInt(*id, 10)}}
}

// lifecycles maps kinds of table records to lifecycleStateChange.
var lifecycles = map[string]string{
	catalog.KindCreate: "CREATE", catalog.KindRegister: "CREATE", catalog.KindDrop: "DROP",
	catalog.KindRename: "RENAME", catalog.KindMetadata: "ALTER",
}

func (b *builder) output(tr *catalog.TableRecord) (Dataset, bool) {
	change := lifecycles[tr.Kind]
	if change == "" && tr.Kind != catalog.KindCommit && tr.Kind != catalog.KindRef || len(tr.Ident) > 0 && tr.Ident[0] == systemNamespace {
		return Dataset{}, false
	}
	d := Dataset{Namespace: b.datasets, Name: name(tr.Ident), Facets: version(tr.SnapshotID)}
	if change != "" {
		f := LifecycleFacet{facetBase: base("1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet"), Change: change}
		if tr.Kind == catalog.KindRename {
			f.Previous = &Identifier{Namespace: b.datasets, Name: name(tr.OldIdent)}
		}
		if d.Facets == nil {
			d.Facets = map[string]any{}
		}
		d.Facets["lifecycleStateChange"] = f
	}
	if tr.SnapshotID != nil {
		d.OutputFacets = map[string]any{"outputStatistics": StatisticsFacet{
			base("1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet"), tr.RowsAdded, tr.FilesAdded}}
	}
	return d, true
}
