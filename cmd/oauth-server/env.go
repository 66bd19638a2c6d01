package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"oauth-server/internal/config"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxSecretLine is the maximum length of a secret on standard input, in bytes.
const maxSecretLine = 4 << 10

// cli is the environment of the commands: input, output and variables. Tests replace it.
type cli struct {
	in          io.Reader
	out, errOut io.Writer
	environ     []string
	root        fs.FS  // of the machine; nil: do not look
	output      string // -o
	terminal    bool   // out is a terminal
	errTerminal bool   // errOut is one
	// hangups receives the SIGHUPs of serve; see catchHangups.
	hangups chan os.Signal
	// pause waits between two views of --watch; nil waits.
	pause func(context.Context, time.Duration) error
}

// variable returns the value of an environment variable; empty if it is not set.
func (c *cli) variable(name string) string {
	for _, kv := range c.environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return config.Value(value)
		}
	}
	return ""
}

// secretLine reads one line, without its end. It keeps spaces, which may be part of a password.
func secretLine(stdin io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(stdin, maxSecretLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", usagef("standard input holds no secret; write it on one line")
	}
	return line, nil
}

// group is a command that only holds other commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: needsSubcommand}
	cmd.AddCommand(commands...)
	return cmd
}

// needsSubcommand shows the help of a command group and rejects an unknown argument: by default,
// cobra shows the help and succeeds.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%sunknown command %q%s", within(cmd), args[0], hint)
}

// within returns the error prefix that names the command.
func within(cmd *cobra.Command) string {
	_, path, nested := strings.Cut(cmd.CommandPath(), " ")
	if !nested {
		return ""
	}
	return path + ": "
}

// takes accepts one argument for each name. Names in brackets are optional. The error shows the
// missing ones.
func takes(names ...string) cobra.PositionalArgs {
	needed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "[") })
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(needed):
			return usagef("%s%s is missing", within(cmd), strings.Join(needed[len(args):], ", "))
		case len(args) > len(names):
			return usagef("%sunexpected argument %q", within(cmd), args[len(names)])
		case slices.Contains(args, ""):
			return usagef("%san argument is empty", within(cmd))
		}
		return nil
	}
}
