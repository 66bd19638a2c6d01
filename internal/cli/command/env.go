package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/config"
)

// maxSecretLine is the maximum length of a secret on standard input, in bytes.
const maxSecretLine = 4 << 10

// Env is the environment of the commands: input, output and variables. Tests replace it.
type Env struct {
	In          io.Reader
	Out, ErrOut io.Writer
	Environ     []string
	Root        fs.FS  // of the machine; nil: do not look
	Output      string // -o
	Terminal    bool   // Out is a terminal
	ErrTerminal bool   // ErrOut is one
	// Hangups receives the SIGHUPs of serve; see CatchHangups.
	Hangups chan os.Signal
	nohup   bool // SIGHUP was ignored before
	// Pause waits between two views of --watch. It returns false to end the command. Nil waits.
	Pause func(context.Context, time.Duration) bool
}

// Variable returns the value of an environment variable; empty if it is not set.
func (c *Env) Variable(name string) string {
	for _, kv := range c.Environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return config.Value(value)
		}
	}
	return ""
}

// SecretLine reads one line, without its end. It keeps spaces, which may be part of a password.
func SecretLine(stdin io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(stdin, maxSecretLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", Usagef("standard input holds no secret; write it on one line")
	}
	return line, nil
}

// Group returns a command that only holds other commands, with examples of some of them.
func Group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: NeedsSubcommand}
	cmd.AddCommand(commands...)
	return cmd
}

// NeedsSubcommand shows the help of a command group and rejects an unknown argument: by default,
// cobra shows the help and succeeds.
func NeedsSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usagef("%sunknown command %q%s", Within(cmd), args[0], hint)
}

// Within returns the error prefix that names the command.
func Within(cmd *cobra.Command) string {
	_, path, nested := strings.Cut(cmd.CommandPath(), " ")
	if !nested {
		return ""
	}
	return path + ": "
}

// Takes accepts one argument for each name. Names in brackets are optional. The error shows the
// missing ones.
func Takes(names ...string) cobra.PositionalArgs {
	needed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "[") })
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(needed):
			return Usagef("%s%s is missing", Within(cmd), strings.Join(needed[len(args):], ", "))
		case len(args) > len(names):
			return Usagef("%sunexpected argument %q", Within(cmd), args[len(names)])
		case slices.Contains(args, ""):
			return Usagef("%san argument is empty", Within(cmd))
		}
		return nil
	}
}
