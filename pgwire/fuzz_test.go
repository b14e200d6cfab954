package pgwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// feed runs a connection on input from a client that sends everything and closes, and returns what the client received.
func feed(t *testing.T, input []byte) []byte {
	var log bytes.Buffer
	b := newFakeBackend()
	b.maxBytes = 10000
	s, err := New(Options{Backend: b, Logger: zerolog.New(&log), MaxMessage: 1 << 20, StartupTimeout: 5 * time.Second})
	require.NoError(t, err)
	defer s.cancel()
	client, server := socketPair(t)
	defer client.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c := newConn(s, server)
		c.serve()
		s.forget(c)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// The write fails when the server closes early.
		_, _ = client.Write(input)
		_ = client.CloseWrite()
	}()
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	received, err := io.ReadAll(client)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection does not end")
	<-served
	<-sent
	if text := log.String(); strings.Contains(text, `"panic"`) && !strings.Contains(text, "as asked") {
		t.Fatalf("panic: %s", text)
	}
	return received
}

func socketPair(t *testing.T) (client, server *net.UnixConn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		nc, err := net.FileConn(f)
		require.NoError(t, err)
		_ = f.Close()
		conns[i] = nc.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

func startupBytes() []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, 3<<16)
	b = append(b, "user\x00u\x00database\x00db\x00\x00"...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// wellFormed checks that what a client received is a sequence of whole messages.
func wellFormed(t *testing.T, b []byte) {
	for len(b) > 0 && len(b) >= 5 {
		n := int(binary.BigEndian.Uint32(b[1:]))
		if n < 4 || n+1 > len(b) {
			return // cut by the client's close
		}
		show(t, b[0], b[5:n+1])
		b = b[n+1:]
	}
}

// FuzzStartup is S3 and W4 before authentication.
func FuzzStartup(f *testing.F) {
	f.Add(startupBytes())
	f.Add([]byte{0, 0, 0, 8, 4, 210, 22, 47})
	f.Add(append([]byte{0, 0, 0, 8, 4, 210, 22, 48}, startupBytes()...))
	f.Add([]byte{0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 1, 1, 2, 3, 4})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0, 0, 0, 9, 0, 3, 0, 2, 0})
	f.Add([]byte("\x00\x00\x00\x2f\x00\x03\x00\x63user\x00u\x00_pq_.x\x00y\x00options\x00-c a=b\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) { feed(t, input) })
}

// FuzzMessages is S3, W2 and W4 after it: any bytes after a start-up.
func FuzzMessages(f *testing.F) {
	var c rawClient
	files, _ := filepath.Glob("testdata/protocol/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(data), "\n\n") {
			var b []byte
			c.t = &testing.T{}
			for _, line := range strings.Split(block, "\n") {
				if strings.HasPrefix(line, "> ") {
					b = c.encode(b, line[2:])
				}
			}
			f.Add(b)
		}
	}
	f.Add([]byte("Q\x7f\xff\xff\xffselect"))
	f.Add([]byte("Q\x00\x00\x00\x00"))
	f.Add([]byte("S\x00\x00\x00\xff"))
	f.Fuzz(func(t *testing.T, input []byte) {
		if bytes.Contains(input, []byte("select sleep")) {
			return
		}
		wellFormed(t, feed(t, append(startupBytes(), input...)))
	})
}

// TestMalformedFrames: what cannot be framed ends the connection with FATAL 08P01, and nothing large is allocated for it.
func TestMalformedFrames(t *testing.T) {
	for name, input := range map[string]string{
		"unknown type":  "!\x00\x00\x00\x04",
		"short length":  "Q\x00\x00\x00\x03",
		"negative":      "Q\xff\xff\xff\xff",
		"beyond limit":  "Q\x7f\xff\xff\xff",
		"long sync":     "S\x00\x10\x00\x00",
		"password late": "p\x00\x00\x00\x08abc\x00",
	} {
		t.Run(name, func(t *testing.T) {
			got := string(feed(t, append(startupBytes(), input...)))
			require.Contains(t, got, "SFATAL\x00")
			require.Contains(t, got, "C08P01\x00")
		})
	}
}

// TestAnnouncedLength is W4: a length that is announced but not sent costs nothing.
func TestAnnouncedLength(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	r := newFrameReader(server, 1<<30-1, func() error { return nil })
	go func() {
		_, _ = client.Write([]byte("Q\x3f\xff\xff\xff"))
		_, _ = client.Write(make([]byte, 3000))
		_ = client.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := r.next()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// TestIdleMemory is W6: a connection that waits keeps no large buffer.
func TestIdleMemory(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := connect(t, "postgres://u@"+s.addr+"/db?sslmode=disable")
	_, err := c.Exec(t.Context(), "select 1 -- "+strings.Repeat("x", 1<<20)).ReadAll()
	require.Error(t, err)
	_, err = c.Exec(t.Context(), "select repeat('x', 30000) from generate_series(1, 2)").ReadAll()
	require.NoError(t, err)
	time.Sleep(10 * time.Millisecond)
	sc := s.srvConn(1)
	require.Eventually(t, func() bool {
		sc.mu.Lock()
		defer sc.mu.Unlock()
		return sc.mu.waiting
	}, 5*time.Second, time.Millisecond)
	require.LessOrEqual(t, cap(sc.out), maxIdleOut)
	// The large message's buffer goes when the next read begins.
	require.LessOrEqual(t, len(sc.in.buf), idleBuffer)
}
