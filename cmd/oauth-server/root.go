package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

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
	// places holds the flags of the commands that work on clients and users, for completions.
	places map[*cobra.Command]*registryFlags
}

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "oauth-server",
		Short: "An OAuth 2.0 authorization server with a rate limited token endpoint",
		Long: `An OAuth 2.0 authorization server whose token endpoint is rate limited per client and user.

  oauth-server serve --demo     starts a server to try, and prints commands to paste`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          needsSubcommand,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if c.output != outputText && c.output != outputJSON {
				return usagef("-o %s: the output is text or json", c.output)
			}
			return nil
		},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errOut)
	root.PersistentFlags().StringVarP(&c.output, "output", "o", outputText, "output: text or json")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a misspelt command
			return needsSubcommand(cmd, cmd.Flags().Args())
		}
		if err.Error() == "unknown flag: --version" {
			return usagef("%w; the command is oauth-server version", err)
		}
		return usagef("%w; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newServe(c), newGateway(c), newClient(c), newUser(c), newKeys(c), newMigrate(c), newRecords(c), newToken(c), newLimits(c), newBackup(c), newRestore(c), newSimulate(c), newHealth(c), newVersion(c))
	root.AddCommand(newTopics(c)...)
	root.SetHelpFunc(help)
	completions(c, root)
	return root
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
