package cli

import (
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/cli/limits"
	"oauth-server/internal/config"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newTopics returns the topics.
func newTopics(c *command.Env) []*cobra.Command {
	flags := &pflag.FlagSet{}
	(&connect.API{Env: c}).Add(flags, connect.ServerUsage)
	store := &cobra.Command{}
	command.AddSettings(store, config.Option.IsStore)
	flags.AddFlagSet(store.Flags())
	every := &cobra.Command{}
	command.AddSettings(every, func(config.Option) bool { return true })
	over := &cobra.Command{}
	limits.RegisterOver(over)
	topic := func(name, text string) *cobra.Command {
		return &cobra.Command{Use: name, Short: command.TopicTexts[name], Long: text}
	}
	return []*cobra.Command{
		topic(command.Connecting, "Flags of the commands that work on a running server or on a store.\n\n"+limits.LimitsCredentials+"\n\nFlags:\n"+flags.FlagUsagesWrapped(command.HelpWidth)),
		topic(command.AllSettings, "Every setting is a flag, a variable and a field of the configuration file: --listen,\nOAUTH_LISTEN and listen. docs/configuration.md describes them.\n\nFlags:\n"+
			every.Flags().FlagUsagesWrapped(command.HelpWidth)),
		topic(command.LimitsTopic, limits.LimitSyntax+"\n\n"+limits.BanSyntax+"\n\nFlags:\n"+over.Flags().FlagUsagesWrapped(command.HelpWidth)),
	}
}
