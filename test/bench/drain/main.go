package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

func main() {
	url := flag.String("url", "", "postgres:// URL of the server")
	sql := flag.String("sql", "", "the statement")
	binaryRows := flag.Bool("binary", false, "ask for binary results")
	flag.Parse()
	if err := run(*url, *sql, *binaryRows); err != nil {
		fmt.Fprintln(os.Stderr, "drain:", err)
		os.Exit(1)
	}
}

func run(url, sql string, binaryRows bool) error {
	conn, err := pgconn.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	h, err := conn.Hijack()
	if err != nil {
		return err
	}
	defer h.Conn.Close()
	format := int16(0)
	if binaryRows {
		format = 1
	}
	var out []byte
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: sql},
		&pgproto3.Bind{ResultFormatCodes: []int16{format}},
		&pgproto3.Execute{},
		&pgproto3.Sync{},
	} {
		if out, err = m.Encode(out); err != nil {
			return err
		}
	}
	begin := time.Now()
	if _, err := h.Conn.Write(out); err != nil {
		return err
	}
	r, err := drain(h.Conn)
	if err != nil {
		return err
	}
	fmt.Printf("%d %d %.6f %d\n", r.rows, r.bytes, time.Since(begin).Seconds(), r.sum)
	return nil
}

type result struct {
	rows, bytes int64
	sum         uint64
}

func drain(conn io.Reader) (result, error) {
	var r result
	var head [5]byte
	body := make([]byte, 0, 64<<10)
	in := bufio.NewReaderSize(conn, 256<<10)
	table := crc32.MakeTable(crc32.Castagnoli)
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return r, err
		}
		n := int(binary.BigEndian.Uint32(head[1:])) - 4
		if n > cap(body) {
			body = make([]byte, 0, n)
		}
		body = body[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return r, err
		}
		switch head[0] {
		case 'D':
			r.rows++
			r.bytes += int64(n)
			r.sum += uint64(crc32.Checksum(body, table))
		case 'E':
			return r, errors.New("the server says: " + string(body))
		case 'Z':
			return r, nil
		}
	}
}
