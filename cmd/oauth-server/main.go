package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oauth-server/internal/overload/hashing"
	"oauth-server/internal/strict/fielderr"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if hashing.IsChild(os.Args) { // must run first
		os.Exit(hashing.Child())
	}
	c := &cli{in: os.Stdin, out: os.Stdout, errOut: os.Stderr, environ: os.Environ(), root: os.DirFS("/")}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		c.catchHangups() // must run first
	}
	c.terminal, c.errTerminal = term.IsTerminal(int(os.Stdout.Fd())), term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(c.run(context.Background(), os.Args[1:]))
}

// run executes one command line and returns the exit status.
func (c *cli) run(ctx context.Context, args []string) int {
	root := newRoot(c) //nolint:contextcheck // commands get the context of ExecuteContext from cobra
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	err = withHint(cmd, err)
	if !errors.Is(err, errReported) {
		for line := range strings.Lines(err.Error()) {
			_, _ = fmt.Fprintln(c.errOut, "oauth-server:", strings.TrimRight(line, "\n"))
		}
	}
	return exitStatus(err)
}

func exitStatus(err error) int {
	var usage *usageError
	if errors.As(err, &usage) || fielderr.Of(err) != nil {
		return exitUsage
	}
	return exitFailed
}

// errReported marks an error that was already printed.
var errReported = errors.New("reported")

// usageError is a mistake in the command line or the configuration; the exit status is 2.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// atMostOne returns a usage error if more than one of the flags is given.
func atMostOne(cmd *cobra.Command, flags ...string) error {
	given := 0
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			given++
		}
	}
	if last := len(flags) - 1; given > 1 {
		return usagef("--%s and --%s contradict each other: give one of them", strings.Join(flags[:last], ", --"), flags[last])
	}
	return nil
}
