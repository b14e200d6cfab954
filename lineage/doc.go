// Package lineage answers: which tables did a commit read and write, and who asked for it?
//
// # Words
//
// An Event is one OpenLineage run event (https://openlineage.io/spec/2-0-2/OpenLineage.json): a job ran as a run, read
// inputs and wrote outputs. One commit is one run. A dataset is a table; its version is a snapshot id. A Sink takes
// events; a Recorder turns the commit log into events and feeds one sink.
//
// # Invariants
//
//   - E1 order: a sink gets events in commit order, each commit at most once a Recorder's life, none left out: what a
//     lagged subscription lost is read from the log.
//   - E2 no brake: commits never wait for a sink. A failing sink is called again with the same event, with a growing
//     pause, until Close.
//   - E3 off by default: without a started Recorder nothing of this package runs.
//
// # Concurrency
//
// A Recorder owns one goroutine from Start to Close; Close stops it and waits. Sinks are called by that goroutine only.
//
// # Errors
//
// ErrStarted, ErrContextTooLarge, ErrMalformedContext; a sink's own errors are logged and counted, never returned to a writer.
//
// # What it does not do
//
// It knows no column lineage and stores nothing: after a restart it goes on from the seq it is given.
package lineage
