package pgwire

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Options configure a Server. Backend is required; zero values of the rest take the defaults named.
type Options struct {
	Backend Backend
	Auth    Auth
	// TLS, when set, is offered to SSLRequest. RequireTLS refuses connections without it.
	TLS        *tls.Config
	RequireTLS bool
	// MaxConnections is the number of sessions; one more gets 53300. Default 100.
	MaxConnections int
	// MaxMessage is the greatest message accepted, in bytes. Default 1 GiB - 1, PostgreSQL's.
	MaxMessage int
	// StartupTimeout bounds start-up and authentication. Default 60 s.
	StartupTimeout time.Duration
	// NotifyQueue is how many notifications may wait for one client (Asyncer.NotifyUsage). Default 65,536; 64 MiB of them at most.
	NotifyQueue int
	// CheckInterval is how often a running statement's client is checked for having gone away. Default 1 s.
	CheckInterval time.Duration
	Logger        zerolog.Logger
}

// Server accepts clients. It ends by Stop, which ends every Serve.
type Server struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	started sync.WaitGroup // accept loops, connections and watchClients
	drained chan struct{}  // closed by Stop: watchClients ends

	mu struct {
		sync.Mutex
		listeners map[net.Listener]struct{}
		conns     map[*conn]struct{}
		byPID     map[int32]*conn
		sessions  int
		nextPID   int32
		stopping  bool
		watching  bool
	}
}

// New makes a Server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Backend == nil {
		return nil, errors.New("pgwire: no backend")
	}
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxConnections, 100)
	def(&o.MaxMessage, 1<<30-1)
	def(&o.NotifyQueue, 65536)
	if o.StartupTimeout <= 0 {
		o.StartupTimeout = time.Minute
	}
	if o.CheckInterval <= 0 {
		o.CheckInterval = time.Second
	}
	if err := o.Auth.complete(); err != nil {
		return nil, err
	}
	s := &Server{o: o, drained: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.listeners = map[net.Listener]struct{}{}
	s.mu.conns = map[*conn]struct{}{}
	s.mu.byPID = map[int32]*conn{}
	return s, nil
}

// Serve accepts connections until Stop (ErrServerStopped) or a permanent error of the listener, which it closes.
// It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.mu.stopping {
		s.mu.Unlock()
		_ = l.Close()
		return ErrServerStopped
	}
	s.mu.listeners[l] = struct{}{}
	s.started.Add(1)
	if !s.mu.watching {
		s.mu.watching = true
		s.started.Add(1)
		go s.watchClients()
	}
	s.mu.Unlock()
	defer s.started.Done()
	defer func() {
		s.mu.Lock()
		delete(s.mu.listeners, l)
		s.mu.Unlock()
		_ = l.Close()
	}()
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.accept(nc)
			continue
		}
		if s.stopping() {
			return ErrServerStopped
		}
		// Out of file descriptors and its kind pass: wait, as net/http does.
		var ne net.Error
		if !errors.As(err, &ne) || errors.Is(err, net.ErrClosed) {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.o.Logger.Warn().Err(err).Dur("pause", pause).Msg("accept")
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
	}
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.stopping
}

// accept starts a connection's goroutine. Connections that have not authenticated are bounded too.
func (s *Server) accept(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetNoDelay(true)
		_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 10 * time.Second, Count: 6})
	}
	c := newConn(s, nc)
	s.mu.Lock()
	if s.mu.stopping || len(s.mu.conns) >= 2*s.o.MaxConnections+32 {
		s.mu.Unlock()
		_ = nc.Close()
		return
	}
	s.mu.conns[c] = struct{}{}
	s.started.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.started.Done()
		defer s.forget(c)
		c.serve()
	}()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
	if c.pid != 0 {
		delete(s.mu.byPID, c.pid)
		s.mu.sessions--
	}
}

// admit gives the connection a backend key, or 53300.
func (s *Server) admit(c *conn) error {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopping {
		return fatal(pgerr.CannotConnectNow, "the database system is shutting down")
	}
	if s.mu.sessions >= s.o.MaxConnections {
		return errTooMany
	}
	s.mu.sessions++
	for {
		s.mu.nextPID++
		if s.mu.nextPID <= 0 {
			s.mu.nextPID = 1
		}
		if _, taken := s.mu.byPID[s.mu.nextPID]; !taken {
			break
		}
	}
	c.pid = s.mu.nextPID
	// The 4-byte key of protocol 3.0 is the head of 3.2's.
	c.key = key[:]
	if c.minor < 2 {
		c.key = key[:4]
	}
	c.secret = binary.BigEndian.Uint32(key[:4])
	s.mu.byPID[c.pid] = c
	return nil
}

// Sessions is the number of authenticated connections.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.sessions
}

// Stop drains the server: it accepts no more, ends idle connections with 57P01, lets running statements finish until ctx is
// done, ends what is left, and waits for every goroutine. It returns ErrKilled when statements had to be interrupted.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.mu.stopping {
		s.mu.stopping = true
		close(s.drained)
	}
	for l := range s.mu.listeners {
		_ = l.Close()
	}
	conns := s.connsLocked()
	s.mu.Unlock()
	for _, c := range conns {
		c.drain()
	}
	done := make(chan struct{})
	go func() {
		s.started.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ErrKilled
		s.kill(done)
	}
	s.cancel()
	<-done
	return err
}

func (s *Server) connsLocked() []*conn {
	conns := make([]*conn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		conns = append(conns, c)
	}
	return conns
}

// killGrace is how long a terminated connection has to tell its client before the socket is closed under it.
const killGrace = 2 * time.Second

func (s *Server) kill(done <-chan struct{}) {
	s.mu.Lock()
	conns := s.connsLocked()
	s.mu.Unlock()
	for _, c := range conns {
		c.Terminate(errShutdown)
	}
	select {
	case <-done:
	case <-time.After(killGrace):
		s.cancel()
		for _, c := range conns {
			_ = c.raw.Close()
		}
	}
}
