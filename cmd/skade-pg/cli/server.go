package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/engine"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// Server is the layers wired together, listening. It ends with Close.
type Server struct {
	cfg          *Config
	log          zerolog.Logger
	catalog      *catalog.Catalog
	warehouse    *warehouse.Warehouse
	mounts       *mount.Manager
	engine       *engine.Gateway
	live         *liveset.Cache
	wire         *pgwire.Server
	http         *httpServer
	listener     net.Listener
	trust        bool
	users        users
	demoPassword string
	ready        atomic.Bool
	failed       chan error
	served       chan struct{}
}

// urlFile holds the URL of the server that has the folder, for `skade-pg check`.
const urlFile = "server.url"

// Start opens the folder and listens. On an error everything that was opened is closed again.
func Start(ctx context.Context, cfg *Config, log zerolog.Logger) (_ *Server, err error) {
	s := &Server{cfg: cfg, log: log, failed: make(chan error, 1), served: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeLayers())
		}
	}()
	signal.Ignore(syscall.SIGXFSZ) // a file at its limit (ulimit -f) is an error of the statement, not the end of the server
	auth, err := s.auth()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := loadTLS(cfg)
	if err != nil {
		return nil, err
	}
	memory, err := parseBytes(cfg.MemoryLimit)
	if err != nil {
		return nil, err
	}
	heap, err := parseBytes(cfg.HeapLimit)
	if err != nil {
		return nil, err
	}
	spill, err := parseBytes(cfg.TempLimit)
	if err != nil {
		return nil, err
	}
	shares, err := shareHeap(heap)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Data)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	fs, err := s.fileSystem(dir)
	if err != nil {
		return nil, err
	}
	if s.catalog, err = catalog.Open(ctx, catalog.Options{Dir: dir, FS: fs, Logger: log, Now: s.cfg.Clock}); err != nil {
		return nil, openError(dir, err)
	}
	// Spilled and uploaded files of a server that was killed.
	if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
		return nil, fmt.Errorf("clear the temporary folder: %w", err)
	}
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; choose another with --listen", err)
		}
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := s.wireLayers(ctx, dir, memory, spill, shares, auth, tlsConfig); err != nil {
		return nil, err
	}
	if cfg.HTTP != "" {
		if s.http, err = startHTTP(cfg.HTTP, s); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, urlFile), []byte(s.URL()+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("note the server's address: %w", err)
	}
	go func() {
		defer close(s.served)
		if err := s.wire.Serve(s.listener); err != nil && !errors.Is(err, pgwire.ErrServerStopped) {
			s.failed <- err
		}
	}()
	s.mounts.Start()
	s.ready.Store(true)
	return s, nil
}

// fileSystem reaches the server's folder and the allowed roots, nothing else.
func (s *Server) fileSystem(home string) (*storeio.FS, error) {
	roots := make([]string, len(s.cfg.AllowRoot))
	for i, r := range s.cfg.AllowRoot {
		var err error
		if roots[i], err = filepath.Abs(r); err != nil {
			return nil, usagef("allow-root %s: %w", r, err)
		}
		if st, err := os.Stat(roots[i]); err != nil {
			return nil, usagef("allow-root: %w", err)
		} else if !st.IsDir() {
			return nil, usagef("allow-root %s is not a folder", r)
		}
	}
	return storeio.NewFS(storeio.Options{Home: home, Roots: roots, Hooks: s.cfg.Hooks}), nil
}

// wireLayers makes the layers above the catalog.
func (s *Server) wireLayers(ctx context.Context, dir string, memory, spill int64, heap heapShares, auth pgwire.Auth, tlsConfig *tls.Config) (err error) {
	fs := s.catalog.FS()
	live := liveset.NewCache(liveset.Options{FS: fs, Budget: heap.files, Home: dir, Logger: s.log})
	s.live = live
	temp := filepath.Join(dir, "tmp")
	s.warehouse = warehouse.New(warehouse.Options{Catalog: s.catalog, Live: live, FS: fs, TempDir: temp, MemoryLimit: heap.write, Logger: s.log})
	s.mounts = mount.NewManager(mount.Options{Catalog: s.catalog, FS: fs, Logger: s.log, Interval: s.cfg.MountInterval})
	s.engine, err = engine.New(ctx, engine.Options{
		Catalog: s.catalog, Live: live, Warehouse: s.warehouse, FS: fs, Mounts: s.mounts,
		Changes: changelog.New(changelog.Options{Catalog: s.catalog, Live: live, TempDir: temp, TempLimit: spill, Logger: s.log}),
		Lookup:  lookup.New(lookup.Options{Live: live, CacheBytes: heap.rows}),
		Dir:     dir, Database: s.cfg.Database, Address: s.listener.Addr().String(), Roles: s.users.names,
		MemoryLimit: memory, TempLimit: spill, Threads: s.cfg.Threads, Version: version, Logger: s.log,
		Retention:           engine.Retention{Snapshots: s.cfg.RetainSnapshots, Age: s.cfg.RetainAge, Dropped: s.cfg.RetainDropped, Log: s.cfg.RetainLog},
		MaintenanceInterval: s.cfg.MaintenanceInterval,
	})
	if err != nil {
		return err
	}
	s.wire, err = pgwire.New(pgwire.Options{
		Backend: s.engine, Auth: auth, TLS: tlsConfig, MaxConnections: s.cfg.MaxConnections, Logger: s.log,
	})
	return err
}

// openError says what to do about a folder that cannot be opened.
func openError(dir string, err error) error {
	if errors.Is(err, catalog.ErrLocked) {
		hint := ""
		if u, rerr := readURL(dir); rerr == nil {
			hint = " (it listens at " + redact(u) + ")"
		}
		return fmt.Errorf("another skade-pg is serving %s%s: %w", dir, hint, err)
	}
	return err
}

func readURL(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, urlFile))
	return strings.TrimSpace(string(b)), err
}

// redact removes a password from a URL.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Redacted()
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL connects to the server.
func (s *Server) URL() string { return s.urlFor(url.User(s.firstUser())) }

// demoURL is the demo's way in.
func (s *Server) demoURL() string {
	if s.demoPassword == "" {
		return s.URL()
	}
	return s.urlFor(url.UserPassword(demoUser, s.demoPassword))
}

func (s *Server) urlFor(user *url.Userinfo) string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		host = s.listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "postgres", User: user, Host: net.JoinHostPort(host, port), Path: "/" + s.cfg.Database}
	if s.cfg.TLSCert == "" {
		u.RawQuery = "sslmode=disable"
	}
	return u.String()
}

func (s *Server) firstUser() string {
	if users := s.users.names; len(users) > 0 {
		return users[0]
	}
	return DefaultUser
}

func (s *Server) authNote() string {
	if s.trust {
		return "  (trust: loopback only, no password)"
	}
	return "  (password: scram-sha-256)"
}

// Failed tells when the listener broke.
func (s *Server) Failed() <-chan error { return s.failed }

// Close drains: no new connections, running statements get cfg.DrainSeconds to end, then everything closes.
func (s *Server) Close() error {
	s.ready.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(max(s.cfg.DrainSeconds, 0))*time.Second)
	defer cancel()
	err := s.wire.Stop(ctx)
	if errors.Is(err, pgwire.ErrKilled) {
		s.log.Warn().Msg("statements that outlived the drain were interrupted")
		err = nil
	}
	<-s.served
	return errors.Join(err, s.closeLayers())
}

// closeLayers closes what is open, top down.
func (s *Server) closeLayers() error {
	var errs []error
	if s.http != nil {
		errs = append(errs, s.http.close())
	}
	if s.listener != nil {
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.mounts != nil {
		errs = append(errs, s.mounts.Close())
	}
	if s.warehouse != nil {
		errs = append(errs, s.warehouse.Close())
	}
	if s.catalog != nil {
		if err := os.Remove(filepath.Join(s.catalog.Dir(), urlFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, s.catalog.Close())
	}
	return errors.Join(errs...)
}

// loadTLS reads the certificate; nil without one.
func loadTLS(cfg *Config) (*tls.Config, error) {
	if cfg.TLSCert == "" && cfg.TLSKey == "" {
		return nil, nil
	}
	if cfg.TLSCert == "" || cfg.TLSKey == "" {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("load the certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
