package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

func main() {
	url := flag.String("url", "", "postgres:// URL of the server")
	channel := flag.String("channel", "skade_commits", "the channel")
	sessions := flag.Int("sessions", 0, "listen with so many sessions until standard input ends, then print how many notifications they got")
	stuck := flag.Int("stuck", 0, "so many of them never read")
	commits := flag.Int("commits", 0, "measure so many commits of -sql: median and 99th percentile of the time from the commit's answer to its notification, in seconds")
	sql := flag.String("sql", "", "the statement that commits")
	flag.Parse()
	var err error
	if *commits > 0 {
		err = latency(*url, *channel, *sql, *commits)
	} else {
		err = listen(*url, *channel, *sessions, *stuck)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "listen:", err)
		os.Exit(1)
	}
}

// listen prints "ready" once all sessions listen.
func listen(url, channel string, sessions, stuck int) error {
	var told atomic.Int64
	var readers sync.WaitGroup
	var conns []net.Conn
	for i := range sessions {
		conn, err := pgconn.Connect(context.Background(), url)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(context.Background(), "LISTEN "+channel).ReadAll(); err != nil {
			return err
		}
		h, err := conn.Hijack()
		if err != nil {
			return err
		}
		if tcp, ok := h.Conn.(*net.TCPConn); ok && i < stuck {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		conns = append(conns, h.Conn)
		if i >= stuck {
			readers.Go(func() { told.Add(count(h.Conn)) })
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	for _, c := range conns {
		err = errors.Join(err, c.Close())
	}
	readers.Wait()
	fmt.Println(told.Load())
	return err
}

// count counts the messages of a connection until it ends. It costs as little as it can: server and writers share the processors.
func count(c net.Conn) (n int64) {
	buf := make([]byte, 64<<10)
	r, w := 0, 0
	for {
		for w-r >= 5 {
			size := 1 + (int(buf[r+1])<<24 | int(buf[r+2])<<16 | int(buf[r+3])<<8 | int(buf[r+4]))
			if w-r < size {
				break
			}
			if buf[r] == 'A' {
				n++
			}
			r += size
		}
		w = copy(buf, buf[r:w])
		r = 0
		m, err := c.Read(buf[w:])
		if err != nil {
			return n
		}
		w += m
	}
}

func latency(url, channel, sql string, commits int) error {
	ctx := context.Background()
	writer, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer writer.Close(ctx)
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+channel).ReadAll(); err != nil {
		return err
	}
	h, err := conn.Hijack()
	if err != nil {
		return err
	}
	defer h.Conn.Close()
	arrivals := make(chan time.Time, 16)
	go func() {
		defer close(arrivals)
		front := pgproto3.NewFrontend(h.Conn, io.Discard)
		for {
			m, err := front.Receive()
			if err != nil {
				return
			}
			if _, ok := m.(*pgproto3.NotificationResponse); ok {
				arrivals <- time.Now()
			}
		}
	}()
	var hops []time.Duration
	for range commits {
		if _, err := writer.Exec(ctx, sql).ReadAll(); err != nil {
			return err
		}
		committed := time.Now()
		at, ok := <-arrivals
		if !ok {
			return errors.New("the listener's connection ended")
		}
		hops = append(hops, max(at.Sub(committed), 0))
	}
	slices.Sort(hops)
	fmt.Println(hops[len(hops)/2].Seconds(), hops[len(hops)*99/100].Seconds())
	return nil
}
