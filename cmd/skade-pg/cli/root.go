package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "devel"

// errUsage marks a wrong command line.
var errUsage = errors.New("usage")

// Main runs the command line and returns the process's exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errProblems): // already printed
		return 1
	}
	fmt.Fprintln(stderr, "skade-pg:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "skade-pg",
		Short:         "A PostgreSQL gateway to a warehouse of Apache Iceberg tables",
		SilenceUsage:  true,
		SilenceErrors: true,
		// A name that is no subcommand is an error, not an invitation to guess.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newCheck(), newVersion())
	return root
}
