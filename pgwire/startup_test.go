package pgwire

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// packet is a start-up packet: a code or version and strings.
func packet(code uint32, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

func TestEncryptionRequestsAreDeclined(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	c := dialRaw(t, s.addr)
	for _, code := range []uint32{codeGSS, codeSSL} {
		_, err := c.Write(packet(code, ""))
		require.NoError(t, err)
		var answer [1]byte
		_, err = io.ReadFull(c, answer[:])
		require.NoError(t, err)
		require.Equal(t, "N", string(answer[:]))
	}
	c.startup("u", "db")
	require.Equal(t, []string{"Z I"}, c.until('Z', 1))
}

func TestProtocolVersions(t *testing.T) {
	b := newFakeBackend()
	s := startServer(t, Options{Backend: b})
	for _, tc := range []struct {
		version   uint32
		params    string
		negotiate string // what NegotiateProtocolVersion holds, "" for none
		key       int
	}{
		{3 << 16, "", "", 4},
		{3<<16 | 2, "", "", 32},
		{3<<16 | 9999, "", "\x00\x03\x00\x02\x00\x00\x00\x00", 32},
		{3 << 16, "_pq_.x\x00y\x00", "\x00\x03\x00\x02\x00\x00\x00\x01_pq_.x\x00", 4},
	} {
		c := dialRaw(t, s.addr)
		_, err := c.Write(packet(tc.version, "user\x00u\x00"+tc.params+"\x00"))
		require.NoError(t, err)
		negotiate, key := "", 0
		for typ := byte(0); typ != 'Z'; {
			var h [5]byte
			_, err := io.ReadFull(c, h[:])
			require.NoError(t, err)
			body := make([]byte, binary.BigEndian.Uint32(h[1:])-4)
			_, err = io.ReadFull(c, body)
			require.NoError(t, err)
			switch typ = h[0]; typ {
			case 'v':
				negotiate = string(body)
			case 'K':
				key = len(body) - 4
			}
		}
		require.Equal(t, tc.negotiate, negotiate)
		require.Equal(t, tc.key, key)
	}
}

func TestStartupErrors(t *testing.T) {
	s := startServer(t, Options{Backend: newFakeBackend()})
	for name, tc := range map[string]struct {
		send []byte
		want string
	}{
		"no user":       {packet(3<<16, "database\x00d\x00\x00"), `E FATAL 28000 "no PostgreSQL user name specified in startup packet"`},
		"version 2":     {packet(2<<16, ""), `E FATAL 0A000 "unsupported frontend protocol 2.0: server supports 3.0 to 3.2"`},
		"replication":   {packet(3<<16, "user\x00u\x00replication\x00database\x00\x00"), `E FATAL 0A000 "replication connections are not supported"`},
		"no terminator": {packet(3<<16, "user\x00u"), `E FATAL 08P01 "invalid startup packet layout: expected terminator as last byte"`},
		"bad option":    {packet(3<<16, "user\x00u\x00options\x00-x\x00\x00"), `E FATAL 42601 "invalid command-line argument for server process: -x"`},
		"no value":      {packet(3<<16, "user\x00u\x00options\x00-c a\x00\x00"), `E FATAL 42601 "-c a requires a value"`},
		"bad UTF-8":     {packet(3<<16, "user\x00\xff\x00\x00"), `E FATAL 22021 "invalid byte sequence for encoding \"UTF8\": 0xff"`},
		"HTTP":          {[]byte("GET / HTTP/1.1\r\n\r\n"), `E FATAL 08P01 "invalid length of startup packet"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, s.addr)
			_, err := c.Write(tc.send)
			require.NoError(t, err)
			require.Equal(t, []string{tc.want, "closed"}, c.until('Z', 1))
		})
	}
}

func TestParseOptions(t *testing.T) {
	got, err := parseOptions(`-c a=b --c-d=e\ f  -cg=h\\ `)
	require.NoError(t, err)
	require.Equal(t, []Param{{"a", "b"}, {"c_d", "e f"}, {"g", `h\`}}, got)
}
