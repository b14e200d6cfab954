package lineage

import (
	"context"
	"sync"
	"time"
)

// Names of the specification that events follow.
const (
	Producer  = "https://github.com/nordisk/skade-pg"
	SchemaURL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
	// Complete is the only event type a commit has: it is known when it is over.
	Complete = "COMPLETE"
)

// Event is an OpenLineage run event. Its JSON is a RunEvent of schema 2-0-2.
type Event struct {
	EventTime time.Time `json:"eventTime"`
	Producer  string    `json:"producer"`
	SchemaURL string    `json:"schemaURL"`
	EventType string    `json:"eventType"`
	Run       Run       `json:"run"`
	Job       Job       `json:"job"`
	Inputs    []Dataset `json:"inputs"`
	Outputs   []Dataset `json:"outputs"`
}

// Run is one execution of a job: one commit. RunID is a UUID.
type Run struct {
	RunID  string         `json:"runId"`
	Facets map[string]any `json:"facets,omitempty"`
}

// Job is what ran.
type Job struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Facets    map[string]any `json:"facets,omitempty"`
}

// Dataset is a table a run read (then OutputFacets is empty) or wrote (then InputFacets is).
type Dataset struct {
	Namespace    string         `json:"namespace"`
	Name         string         `json:"name"`
	Facets       map[string]any `json:"facets,omitempty"`
	InputFacets  map[string]any `json:"inputFacets,omitempty"`
	OutputFacets map[string]any `json:"outputFacets,omitempty"`
}

// facetBase is what every facet begins with.
type facetBase struct {
	Producer  string `json:"_producer"`
	SchemaURL string `json:"_schemaURL"`
}

func base(schema string) facetBase {
	return facetBase{Producer, "https://openlineage.io/spec/facets/" + schema}
}

// VersionFacet is a dataset's snapshot id, as text: 63-bit ids do not survive a JavaScript number.
type VersionFacet struct {
	facetBase
	DatasetVersion string `json:"datasetVersion"`
}

// StatisticsFacet counts what was written.
type StatisticsFacet struct {
	facetBase
	RowCount  int64 `json:"rowCount"`
	FileCount int64 `json:"fileCount"`
}

// LifecycleFacet says that a table came, went, was renamed or altered.
type LifecycleFacet struct {
	facetBase
	Change   string      `json:"lifecycleStateChange"`
	Previous *Identifier `json:"previousIdentifier,omitempty"`
}

// Identifier names a dataset.
type Identifier struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// CommitFacet is our own run facet: the commit behind a run.
type CommitFacet struct {
	facetBase
	Seq             string `json:"commitSeq"`
	TxID            string `json:"txId,omitempty"`
	Actor           string `json:"actor,omitempty"`
	ApplicationName string `json:"applicationName,omitempty"`
}

// Sink takes events. Emit is called by one goroutine at a time and returns when the event is safe with the sink; an
// error makes the Recorder call it again with the same event. ctx ends with the Recorder. The event is the sink's.
type Sink interface {
	Emit(ctx context.Context, e *Event) error
}

// CapturingSink keeps events in memory: for tests, and for programs that embed the cores. Safe for concurrent use. The
// zero value is ready.
type CapturingSink struct {
	mu struct {
		sync.Mutex
		events []*Event
		wake   chan struct{}
	}
}

// Emit keeps the event.
func (s *CapturingSink) Emit(_ context.Context, e *Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.events = append(s.mu.events, e)
	if s.mu.wake != nil {
		close(s.mu.wake)
		s.mu.wake = nil
	}
	return nil
}

// Events returns what was kept so far, in order.
func (s *CapturingSink) Events() []*Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Event(nil), s.mu.events...)
}

// Wait returns the events once there are n of them, or ctx's error.
func (s *CapturingSink) Wait(ctx context.Context, n int) ([]*Event, error) {
	for {
		s.mu.Lock()
		if len(s.mu.events) >= n {
			s.mu.Unlock()
			return s.Events(), nil
		}
		if s.mu.wake == nil {
			s.mu.wake = make(chan struct{})
		}
		wake := s.mu.wake
		s.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
