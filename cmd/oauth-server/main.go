package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"oauth-server/internal/overload/hashing"
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
