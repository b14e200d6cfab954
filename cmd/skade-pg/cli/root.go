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

// errUsage is what a wrong command line, variable or configuration file is: exit code 2.
var errUsage = errors.New("usage")

// usageError is an errUsage that speaks for itself.
type usageError struct{ error }

func (e usageError) Unwrap() error        { return e.error }
func (e usageError) Is(target error) bool { return target == errUsage }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// noArgs refuses arguments that are no flag.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return usagef("unknown command %q", args[0])
	}
	return usagef("%s takes no argument, %q given", cmd.Name(), args[0])
}

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
		fmt.Fprintln(stderr, "Try 'skade-pg --help'.")
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newCheck(), newTail(), newVersion())
	return root
}
