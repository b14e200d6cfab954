package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/cmd/skade-pg/demo"
	"github.com/nordisk/skade-pg/engine"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a warehouse",
		Long: `Serve a warehouse folder to PostgreSQL clients. The folder is made when it does not exist.

Every flag is also an environment variable (--max-connections is SKADE_PG_MAX_CONNECTIONS) and a key of the file given by --config.
On a loopback address any user may connect without a password (trust). On any other address --auth-file is required.`,
		Args: noArgs,
		RunE: runServe,
	}
	f := cmd.Flags()
	commonFlags(f)
	f.String("listen", DefaultListen, "address to listen on")
	f.String("http", "", "address for /healthz, /readyz and /metrics; empty serves none")
	f.Bool("demo", false, "create a small shop and keep it busy")
	f.String("auth-file", "", "file of role:password lines; a password may be a SCRAM-SHA-256 verifier")
	f.String("tls-cert", "", "certificate file (PEM)")
	f.String("tls-key", "", "key file of the certificate (PEM)")
	f.Int("max-connections", 100, "connections at once")
	f.String("memory-limit", "", "memory of all queries together, e.g. 4GB; default half of the machine's")
	f.String("temp-limit", "8GB", "space in the folder's tmp: of all queries' spilled rows together, and of each step of changes")
	f.String("heap-limit", "640MB", "memory of everything but queries: caches, rows being written; what is cached and buffered scales with it")
	f.Int("threads", 0, "query threads; 0 is one per core")
	f.Duration("retain-age", engine.DefaultRetention.Age, "maintenance keeps snapshots that are younger")
	f.Int("retain-snapshots", engine.DefaultRetention.Snapshots, "maintenance keeps this many snapshots of a table, however old")
	f.Duration("retain-log", engine.DefaultRetention.Log, "how long commits stay in the log (commits_since, table_changes); 0 keeps them")
	f.Duration("retain-dropped", engine.DefaultRetention.Dropped, "how long a dropped table can come back (skade.undrop)")
	f.Duration("maintenance-interval", 10*time.Minute, "how often tables are compacted and expired in the background; 0 leaves it to VACUUM")
	f.StringArray("allow-root", nil, "folder whose Iceberg tables may be registered and mounted; may be given several times")
	f.Duration("mount-interval", mount.DefaultInterval, "time between two looks at a mounted catalog, for mounts without an own one")
	f.Int("drain-seconds", 10, "how long SIGTERM waits for running statements")
	return cmd
}

func runServe(cmd *cobra.Command, _ []string) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		return usagef("log level %q: use debug, info, warn or error", cfg.LogLevel)
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: cmd.ErrOrStderr(), TimeFormat: time.RFC3339, NoColor: true}).Level(level).With().Timestamp().Logger()
	heap, err := parseBytes(cfg.HeapLimit)
	if err != nil {
		return err
	}
	limitHeap(heap)
	ctx := cmd.Context()
	srv, err := Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "skade-pg %s is ready: psql %s%s\n", version, srv.URL(), srv.authNote())
	demoDone := make(chan struct{})
	demoCtx, stopDemo := context.WithCancel(ctx)
	defer stopDemo()
	go func() {
		defer close(demoDone)
		if !cfg.Demo {
			return
		}
		if err := demo.Run(demoCtx, srv.demoURL(), log); err != nil && !errors.Is(err, context.Canceled) {
			log.Error().Err(err).Msg("the demo ended; the server goes on")
		}
	}()
	select {
	case <-ctx.Done():
		log.Info().Msg("draining")
	case err = <-srv.Failed():
	}
	stopDemo()
	<-demoDone
	return errors.Join(err, srv.Close())
}
