package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/overload/hashing"
)

// Main runs the command line of this process, and ends the process with its exit status.
func Main() {
	if hashing.IsChild(os.Args) { // must run first
		os.Exit(hashing.Child())
	}
	c := &command.Env{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr, Environ: os.Environ(), Root: os.DirFS("/")}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		c.CatchHangups() // must run first
	}
	c.Terminal, c.ErrTerminal = term.IsTerminal(int(os.Stdout.Fd())), term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(execute(context.Background(), c, os.Args[1:])) //nolint:forbidigo // the context of the program
}

// execute executes one command line and returns the exit status.
func execute(ctx context.Context, c *command.Env, args []string) int {
	root, complete := newRoot(c)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		complete()
	}
	rejectUnknown(root)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return command.ExitOK
	}
	err = withHint(cmd, err)
	if !errors.Is(err, command.ErrReported) {
		for line := range strings.Lines(err.Error()) {
			_, _ = fmt.Fprintln(c.ErrOut, "oauth-server:", strings.TrimRight(line, "\n"))
		}
	}
	return command.ExitStatus(err)
}
