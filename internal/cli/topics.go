package cli

import (
	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/cli/limits"
	"oauth-server/internal/config"
)

// newTopics returns the topics.
func newTopics(c *command.Env) []*cobra.Command {
	topic := func(name string, text func(flags *cobra.Command) string) *cobra.Command {
		cmd := &cobra.Command{Use: name, Short: command.TopicTexts[name]}
		cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { // not before, because it takes longer than most commands
			flags := &cobra.Command{}
			cmd.Long = text(flags) + "\n\nFlags:\n" + flags.Flags().FlagUsagesWrapped(command.HelpWidth)
			command.Help(cmd, nil)
		})
		return cmd
	}
	return []*cobra.Command{
		topic(command.Connecting, func(flags *cobra.Command) string {
			(&connect.API{Env: c}).Add(flags.Flags(), connect.ServerUsage)
			command.AddSettings(flags, config.Option.IsStore)
			return "Flags for commands that use a running server or a store.\n\n" + limits.LimitsCredentials
		}),
		topic(command.AllSettings, func(flags *cobra.Command) string {
			command.AddSettings(flags, func(config.Option) bool { return true })
			return "You can give every setting as a flag, an environment variable or a field of the configuration\nfile: --listen, OAUTH_LISTEN or listen. docs/configuration.md describes them."
		}),
		topic(command.LimitsTopic, func(flags *cobra.Command) string {
			limits.RegisterOver(flags)
			return limits.LimitSyntax + "\n\n" + limits.BanSyntax
		}),
	}
}
