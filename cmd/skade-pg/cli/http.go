package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nordisk/skade-pg/liveset"
)

// httpServer serves /healthz (the process lives), /readyz (it takes connections) and /metrics.
type httpServer struct {
	l    net.Listener
	srv  *http.Server
	done chan struct{}
}

func startHTTP(addr string, s *Server) (*httpServer, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics(s), promhttp.HandlerOpts{}))
	h := &httpServer{l: l, srv: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		if err := h.srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("HTTP")
		}
	}()
	return h, nil
}

func (h *httpServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := h.srv.Shutdown(ctx)
	<-h.done
	return err
}

// metrics are what Prometheus scrapes.
func metrics(s *Server) *prometheus.Registry {
	r := prometheus.NewRegistry()
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "skade", Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "skade", Name: name, Help: help}, f))
	}
	gauge("sessions", "Open client sessions.", func() float64 { return float64(s.wire.Sessions()) })
	counter("commit_seq", "The newest commit seq.", func() float64 { return float64(s.catalog.CommitSeq()) })
	stats := s.catalog.Stats
	counter("commit_groups_total", "Store transactions that carried commits; each waits for two syncs.", func() float64 { return float64(stats().Groups) })
	counter("commit_conflicts_total", "Commits that lost against another.", func() float64 { return float64(stats().Conflicts) })
	fs := s.catalog.FS().Counters()
	counter("storage_opens_total", "Files opened for reading.", func() float64 { return float64(fs.Opens.Load()) })
	counter("storage_reads_total", "Range reads.", func() float64 { return float64(fs.Reads.Load()) })
	counter("storage_read_bytes_total", "Bytes read.", func() float64 { return float64(fs.Bytes.Load()) })
	counter("storage_creates_total", "Files made.", func() float64 { return float64(fs.Creates.Load()) })
	counter("storage_written_bytes_total", "Bytes written to files.", func() float64 { return float64(fs.Written.Load()) })
	counter("storage_fsyncs_total", "Files and directories synced.", func() float64 { return float64(fs.Fsyncs.Load()) })
	probes := s.live.ProbeCounts
	for _, c := range []struct {
		name, help string
		of         func(liveset.ProbeCounts) int64
	}{
		{"keys", "Keys probed.", func(n liveset.ProbeCounts) int64 { return n.Keys }},
		{"cached_keys", "Keys answered by the row cache, without a probe.", func(n liveset.ProbeCounts) int64 { return n.CachedKeys }},
		{"files", "Files that bounds and partitions could not rule out, counted once a probe.", func(n liveset.ProbeCounts) int64 { return n.Considered }},
		{"probed_files", "Files whose key index was asked, counted once a probe.", func(n liveset.ProbeCounts) int64 { return n.Probed }},
		{"filtered", "Pairs of a key and a file that a bloom filter ruled out.", func(n liveset.ProbeCounts) int64 { return n.Filtered }},
		{"index_hits", "Rows that key indexes named.", func(n liveset.ProbeCounts) int64 { return n.IndexHits }},
		{"suppressed_hits", "Rows that key indexes named and that are not live; they are not read.", func(n liveset.ProbeCounts) int64 { return n.Suppressed }},
		{"needless_reads", "Rows that were read and had another key.", func(n liveset.ProbeCounts) int64 { return n.Needless }},
		{"built_indexes", "Key indexes built from key columns.", func(n liveset.ProbeCounts) int64 { return n.Built }},
		{"reads", "Range reads of lookups.", func(n liveset.ProbeCounts) int64 { return n.Reads }},
		{"read_bytes", "Bytes read by lookups.", func(n liveset.ProbeCounts) int64 { return n.Bytes }},
		{"opens", "Files opened by lookups.", func(n liveset.ProbeCounts) int64 { return n.Opens }},
		{"pages", "Pages inflated by lookups.", func(n liveset.ProbeCounts) int64 { return n.Pages }},
		{"decoded_values", "Values decoded by lookups, a column's row each.", func(n liveset.ProbeCounts) int64 { return n.Decoded }},
		{"row_groups", "Row groups that lookups looked into.", func(n liveset.ProbeCounts) int64 { return n.Groups }},
	} {
		counter("lookup_"+c.name+"_total", c.help, func() float64 { return float64(c.of(probes())) })
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
