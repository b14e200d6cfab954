package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// tailPoll is how long tail waits for a notification before it looks by itself: a notification is a hint, the log is the truth.
const tailPoll = 10 * time.Second

// tailRetry is the longest pause between attempts to reach the server again.
const tailRetry = 5 * time.Second

func newTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail TABLE",
		Short: "Print the changes of a table as they are committed",
		Long: `Print the changes of a table as they are committed, like tail -f, through the port of a running server.

Updates are shown with the columns that changed. --json prints one JSON object a line: the row as row_to_json would give it, commit and
snapshot ids as strings. A lost connection is made again, and no change is missed or shown twice.`,
		Example: "  skade-pg tail orders\n  skade-pg tail public.orders --from earliest --json --follow=false",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one table, %d given", cmd.Name(), len(args))
			}
			return nil
		},
		RunE: runTail,
	}
	f := cmd.Flags()
	commonFlags(f)
	f.String("url", "", "postgres:// URL of the running server; default: the one it wrote into the folder")
	f.String("from", "now", "where to begin: now, earliest, seq:N, tag:NAME, a snapshot id or a timestamp")
	f.Bool("json", false, "print JSON lines")
	f.Bool("follow", true, "wait for more; false ends after what is there")
	f.String("color", "auto", "auto, always or never")
	return cmd
}

func runTail(cmd *cobra.Command, args []string) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	t := tail{table: args[0], out: cmd.OutOrStdout(), warn: cmd.ErrOrStderr(), url: cfg.URL}
	f := cmd.Flags()
	t.from, _ = f.GetString("from")
	t.follow, _ = f.GetBool("follow")
	asJSON, _ := f.GetBool("json")
	color, _ := f.GetString("color")
	switch color {
	case "auto":
		file, ok := t.out.(*os.File)
		t.print.color = ok && isatty.IsTerminal(file.Fd()) && os.Getenv("NO_COLOR") == ""
	case "always", "never":
		t.print.color = color == "always"
	default:
		return usagef("--color is auto, always or never, not %q", color)
	}
	t.print.json = asJSON
	if t.url == "" {
		if t.url, err = readURL(cfg.Data); err != nil {
			return fmt.Errorf("no running server is known: start one, or name it with --url: %w", err)
		}
	}
	if err := t.run(cmd.Context()); err != nil && cmd.Context().Err() == nil {
		return err
	}
	return nil // interrupted: the usual end
}

// tail prints the changes of one table, window by window.
type tail struct {
	url, table, from string
	follow           bool
	out, warn        io.Writer
	print            changePrinter

	oid string // the table, also when it is renamed
	// at is the bound of what is printed already, "" before the first window.
	at string
}

// run prints until ctx ends, or with follow off until the end. The first connection must succeed; later ones are tried again.
func (t *tail) run(ctx context.Context) error {
	for pause := time.Duration(0); ; {
		conn, err := pgx.Connect(ctx, t.url)
		if err == nil {
			pause = 0
			err = t.session(ctx, conn)
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		var said *pgconn.PgError
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case errors.As(err, &said) && !restarting(said), t.at == "", !t.follow:
			return err
		}
		pause = min(pause*2+100*time.Millisecond, tailRetry)
		fmt.Fprintf(t.warn, "skade-pg: %v; connecting again\n", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// restarting reports an error of a server that goes down or comes up (class 57P).
func restarting(e *pgconn.PgError) bool { return len(e.Code) == 5 && e.Code[:3] == "57P" }

// session prints over one connection.
func (t *tail) session(ctx context.Context, conn *pgx.Conn) error {
	if t.oid == "" {
		var oid uint32
		if err := conn.QueryRow(ctx, "SELECT $1::text::regclass::oid", t.table).Scan(&oid); err != nil {
			return err
		}
		t.oid = strconv.FormatUint(uint64(oid), 10)
	}
	var channel string
	if err := conn.QueryRow(ctx, "SELECT commit_channel($1)", t.oid).Scan(&channel); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil { // before the first look: nothing comes between
		return err
	}
	for {
		if err := t.window(ctx, conn.PgConn()); err != nil || !t.follow {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, tailPoll)
		_, err := conn.WaitForNotification(wait)
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
	}
}

// window prints what was committed since the last one. Its end is read first, so that a window without rows moves on, too.
func (t *tail) window(ctx context.Context, conn *pgconn.PgConn) error {
	r := conn.ExecParams(ctx, "SELECT current_commit_seq()", nil, nil, nil, nil).Read()
	if r.Err != nil {
		return r.Err
	}
	to := "seq:" + string(r.Rows[0][0])
	from := t.at
	if from == "" {
		if from = t.from; from == "now" {
			from = to
		}
	}
	if from == to {
		t.at = to
		return nil
	}
	// The table's name is no parameter: the columns of the result depend on it.
	rows := conn.ExecParams(ctx, "SELECT * FROM table_changes('"+t.oid+"', $1, $2)", [][]byte{[]byte(from), []byte(to)}, nil, nil, nil)
	fields := rows.FieldDescriptions()
	for rows.NextRow() {
		if fields == nil {
			fields = rows.FieldDescriptions()
		}
		place, err := t.print.row(t.out, fields, rows.Values())
		if err != nil {
			_, _ = rows.Close()
			return err
		}
		if place != "" {
			t.at = place
		}
	}
	if _, err := rows.Close(); err != nil {
		return err
	}
	t.at = to
	return nil
}
