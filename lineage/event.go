package lineage

import (
	"context"
	"time"
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

// Run is one execution of a job: one commit.
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

// Dataset is a table a run read or wrote.
type Dataset struct {
	Namespace    string         `json:"namespace"`
	Name         string         `json:"name"`
	Facets       map[string]any `json:"facets,omitempty"`
	InputFacets  map[string]any `json:"inputFacets,omitempty"`
	OutputFacets map[string]any `json:"outputFacets,omitempty"`
}

// Sink takes events. Emit is called by one goroutine at a time and returns when the event is safe with the sink; an
// error makes the Recorder call it again with the same event. ctx ends with the Recorder.
type Sink interface {
	Emit(ctx context.Context, e *Event) error
}
