package main

import (
	"oauth-server/internal/config"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newTopics returns the topics.
func newTopics(c *cli) []*cobra.Command {
	flags := &pflag.FlagSet{}
	(&apiFlags{cli: c}).add(flags, serverUsage)
	store := &cobra.Command{}
	addSettings(store, config.Option.IsStore)
	flags.AddFlagSet(store.Flags())
	every := &cobra.Command{}
	addSettings(every, func(config.Option) bool { return true })
	over := &cobra.Command{}
	registerOver(over)
	registerCriticality(over)
	topic := func(name, text string) *cobra.Command {
		return &cobra.Command{Use: name, Short: topicTexts[name], Long: text}
	}
	return []*cobra.Command{
		topic(connecting, "Flags of the commands that work on a running server or on a store.\n\n"+limitsCredentials+"\n\nFlags:\n"+flags.FlagUsagesWrapped(helpWidth)),
		topic(allSettings, "Every setting is a flag, a variable and a field of the configuration file: --listen,\nOAUTH_LISTEN and listen. docs/configuration.md describes them.\n\nFlags:\n"+
			every.Flags().FlagUsagesWrapped(helpWidth)),
		topic(limitsTopic, limitSyntax+"\n\n"+banSyntax+"\n\nFlags:\n"+over.Flags().FlagUsagesWrapped(helpWidth)),
	}
}
