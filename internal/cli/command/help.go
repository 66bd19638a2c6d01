package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A help text fits on one screen. Flags that many commands share are in topics of their own:
// "oauth-server help TOPIC".
const (
	HelpWidth    = 100
	TopicKey     = "help-topic" // annotation of the flags that a topic lists
	Connecting   = "connecting"
	AllSettings  = "settings"
	LimitsTopic  = "limits-syntax"
	topicHeading = "More:"
)

// TopicTexts describes the topics in the list of the root command.
var TopicTexts = map[string]string{
	Connecting:  "flags that name a server or store, and credentials",
	AllSettings: "all settings as flags",
	LimitsTopic: "syntax of limits; --ban, --max-wait, --over-limit, --criticality",
}

// InTopic makes help show flags in a topic instead of with the command.
func InTopic(topic string, flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, TopicKey, []string{topic}) // fails only for a missing flag
	}
}

// Help writes the help text of a command.
func Help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(text + "\n")
	if cmd.Runnable() || cmd.HasSubCommands() {
		writeUsage(&b, cmd)
	}
	_, _ = fmt.Fprint(cmd.OutOrStdout(), b.String())
}

func writeUsage(b *strings.Builder, cmd *cobra.Command) {
	use := cmd.UseLine()
	if cmd.HasSubCommands() {
		use = cmd.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(b, "\nUsage:\n  %s\n", use)
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(b, "  %-*s %s\n", cmd.Commands()[0].NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	flags, topics := &pflag.FlagSet{}, []string{}
	add := func(f *pflag.Flag) {
		topic, in := f.Annotations[TopicKey]
		switch {
		case f.Hidden || f.Name == "help":
		case !in:
			flags.AddFlag(f)
		case len(topics) == 0 || topics[len(topics)-1] != topic[0]:
			topics = append(topics, topic[0])
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if lines := flags.FlagUsagesWrapped(HelpWidth); lines != "" {
		b.WriteString("\nFlags:\n" + lines)
	}
	writeTopics(b, cmd, topics)
}

func writeTopics(b *strings.Builder, cmd *cobra.Command, topics []string) {
	if topic, has := cmd.Annotations[TopicKey]; has {
		topics = append(topics, topic)
	}
	if !cmd.HasParent() {
		topics = slices.Sorted(maps.Keys(TopicTexts))
	}
	seen := map[string]bool{}
	for _, t := range topics {
		if seen[t] {
			continue
		}
		if len(seen) == 0 {
			b.WriteString("\n" + topicHeading + "\n")
		}
		seen[t] = true
		fmt.Fprintf(b, "  %s help %-14s %s\n", cmd.Root().Name(), t, TopicTexts[t])
	}
}
