package main

import (
	"github.com/spf13/cobra"
)

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
	registries := newRegistryCommands(c)
	root.AddCommand(newServe(c), newGateway(c), newClient(registries), newUser(registries), newKeys(c), newMigrate(c), newRecords(c),
		newToken(c), newLimits(registries), newBackup(c), newRestore(c), newSimulate(c), newHealth(c), newVersion(c))
	root.AddCommand(newTopics(c)...)
	root.SetHelpFunc(help)
	completions(registries, root)
	return root
}
