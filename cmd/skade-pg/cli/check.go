package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/nordisk/skade-pg/catalog"
)

// errProblems is returned when the check found something; each finding is printed already.
var errProblems = errors.New("the warehouse has problems")

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify a warehouse: catalog, commit log, every referenced file",
		Long: `Verify a warehouse: the catalog, the commit log, and that every file the metadata names is there with its size.

When no server holds the folder it is read directly; else the server is asked through its port (--url, or the one it wrote down).
The exit code is 0 when all is sound, 1 when something is wrong.`,
		Args: noArgs,
		RunE: runCheck,
	}
	commonFlags(cmd.Flags())
	cmd.Flags().String("url", "", "postgres:// URL of the running server; default: the one it wrote into the folder")
	return cmd
}

func runCheck(cmd *cobra.Command, _ []string) error {
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	url := cfg.URL
	problems := 0
	report := func(path, detail string) {
		problems++
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", path, detail)
	}
	how := "folder " + cfg.Data
	if url == "" {
		err = catalog.Check(cmd.Context(), cfg.Data, func(p catalog.Problem) { report(p.Path, p.Detail) })
	}
	if url != "" || errors.Is(err, catalog.ErrLocked) {
		if url == "" {
			if url, err = readURL(cfg.Data); err != nil {
				return fmt.Errorf("the folder is in use, and its server's address is not known: %w", err)
			}
		}
		how = "server at " + redact(url)
		err = checkServer(cmd.Context(), url, report)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no warehouse in %s: %w", how, err)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", how, err)
	}
	if problems > 0 {
		noun := "problems"
		if problems == 1 {
			noun = "problem"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d %s found (%s)\n", problems, noun, how)
		return errProblems
	}
	fmt.Fprintf(cmd.OutOrStdout(), "ok: catalog, commit log and every referenced file (%s)\n", how)
	return nil
}

// checkServer asks a running server.
func checkServer(ctx context.Context, url string, report func(path, detail string)) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT path, problem FROM skade.check_warehouse()")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var path, problem *string
		if err := rows.Scan(&path, &problem); err != nil {
			return err
		}
		report(deref(path), deref(problem))
	}
	return rows.Err()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
