// Command answers asks a PostgreSQL 15 for the answers to the statements of a file, one per line, and writes them as JSON lines.
// Usage: go run ./testdata/gen/answers -url postgres://… -schema testdata/schema.sql < queries.sql > answers.jsonl
// A line that begins with PARAMS is prepared only: its answer is the parameter and column types.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

type answer struct {
	SQL    string      `json:"sql"`
	Names  []string    `json:"names,omitempty"`
	Types  []uint32    `json:"types,omitempty"`
	Mods   []int32     `json:"mods,omitempty"`
	Tables []bool      `json:"tables,omitempty"`
	Params []uint32    `json:"params,omitempty"`
	Rows   [][]*string `json:"rows,omitempty"`
	Err    *failure    `json:"err,omitempty"`
}

type failure struct {
	Code, Message string
	Hint          string `json:",omitempty"`
	Position      int32  `json:",omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	url := flag.String("url", "", "PostgreSQL 15")
	schema := flag.String("schema", "", "SQL to run first, in a schema of its own")
	flag.Parse()
	ctx := context.Background()
	c, err := pgconn.Connect(ctx, *url)
	if err != nil {
		return err
	}
	setup, err := os.ReadFile(*schema)
	if err != nil {
		return err
	}
	reset := "DROP SCHEMA IF EXISTS sales CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public; SET TimeZone = 'UTC';"
	if _, err := c.Exec(ctx, reset+string(setup)).ReadAll(); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a := ask(ctx, c, line)
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

func ask(ctx context.Context, c *pgconn.PgConn, line string) answer {
	a := answer{SQL: line}
	sql, prepareOnly := strings.CutPrefix(line, "PARAMS ")
	if _, err := c.Exec(ctx, "BEGIN").ReadAll(); err != nil {
		a.Err = fail(err)
		return a
	}
	defer func() { _, _ = c.Exec(ctx, "ROLLBACK").ReadAll() }()
	sd, err := c.Prepare(ctx, "", sql, nil)
	if err != nil {
		a.Err = fail(err)
		return a
	}
	a.Params = sd.ParamOIDs
	for _, f := range sd.Fields {
		a.Names = append(a.Names, f.Name)
		a.Types = append(a.Types, f.DataTypeOID)
		a.Mods = append(a.Mods, f.TypeModifier)
		a.Tables = append(a.Tables, f.TableOID != 0)
	}
	if prepareOnly {
		return a
	}
	res := c.ExecPrepared(ctx, "", nil, nil, nil).Read()
	for _, r := range res.Rows {
		row := []*string{}
		for _, v := range r {
			if v == nil {
				row = append(row, nil)
				continue
			}
			s := string(v)
			row = append(row, &s)
		}
		a.Rows = append(a.Rows, row)
	}
	a.Err = fail(res.Err)
	return a
}

func fail(err error) *failure {
	var e *pgconn.PgError
	if err == nil {
		return nil
	}
	if !errors.As(err, &e) {
		return &failure{Message: err.Error()}
	}
	return &failure{Code: e.Code, Message: e.Message, Hint: e.Hint, Position: e.Position}
}
