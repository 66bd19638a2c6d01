package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/cli/accounts"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/cli/limits"
	"oauth-server/internal/cli/serve"
	"oauth-server/internal/cli/simulate"
	"oauth-server/internal/cli/store"
	"oauth-server/internal/cli/token"
)

// newRoot makes all commands, and the function that adds the completions of flags. Completions stay in
// cobra until the process ends, and most command lines need none.
func newRoot(c *command.Env) (root *cobra.Command, complete func()) {
	root = &cobra.Command{
		Use:   "oauth-server",
		Short: "An OAuth 2.0 authorization server with a rate limited token endpoint",
		Long: `An OAuth 2.0 authorization server that limits token requests per client and user.

Try it: this starts a demo and prints commands to paste.

  oauth-server serve --demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          command.NeedsSubcommand,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if c.Output != command.OutputText && c.Output != command.OutputJSON {
				return command.Usagef("-o %s: the output is text or json", c.Output)
			}
			return nil
		},
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	root.PersistentFlags().StringVarP(&c.Output, "output", "o", command.OutputText, "output: text or json")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a misspelt command
			return command.NeedsSubcommand(cmd, cmd.Flags().Args())
		}
		if err.Error() == "unknown flag: --version" {
			return command.Usagef("%w; the command is oauth-server version", err)
		}
		return command.Usagef("%w; see %s --help", plain(err), cmd.CommandPath())
	})
	registries := connect.NewCommands(c)
	limited, ofLimits := limits.New(registries)
	root.AddCommand(serve.New(c), serve.NewGateway(c), accounts.NewClient(registries), accounts.NewUser(registries), store.NewKeys(c), store.NewMigrate(c), store.NewRecords(c),
		token.New(c), limited, store.NewBackup(c), store.NewRestore(c), simulate.New(c), serve.NewHealth(c), serve.NewVersion(c))
	root.AddCommand(newTopics(c)...)
	root.SetHelpFunc(command.Help)
	return root, func() { completions(registries, root, ofLimits) }
}

// plain returns the error of a flag without the terms of Go's parsers.
func plain(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	var number *strconv.NumError
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "duration":
		return fmt.Errorf("--%s: %q is not a duration, such as 90s, 10m or 24h", name, value)
	case !errors.As(err, &number):
		return fmt.Errorf("--%s: %w", name, invalid.Unwrap())
	case kind == "bool":
		return fmt.Errorf("--%s: %q is neither true nor false", name, value)
	default:
		return fmt.Errorf("--%s: %q is not a whole number", name, value)
	}
}

// rejectUnknown makes cobra's own commands reject an unknown argument: by default, "help" and
// "completion" show a help text and succeed.
func rejectUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return command.NeedsSubcommand(found, rest)
				}
				return nil
			}
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, command.NeedsSubcommand
			for _, shell := range cmd.Commands() {
				shell.Args = command.Takes()
			}
		}
	}
}
