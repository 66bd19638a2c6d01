package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/cli/simulate"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// completions registers shell completions: the values of flags that have a known set, by the flag's
// name or by that of the command and the flag, and for commands on clients and users the names that there
// are.
func completions(c *connect.Commands, root *cobra.Command, ofLimits map[string]command.Completion) {
	byFlag := c.Completions()
	maps.Copy(byFlag, ofLimits)
	maps.Copy(byFlag, simulate.Completions())
	byFlag["output"] = command.Fixed(command.OutputText, command.OutputJSON)
	byFlag["grant"] = command.Fixed(command.Names(clientcfg.Grants())...)
	for _, mode := range []string{"mode", "rate-limit-mode", "rate-limit-instance-mode"} {
		byFlag[mode] = command.Fixed("enforce", "dry_run", "off")
	}
	for _, o := range config.Options() {
		if values := o.Values(); values != nil {
			byFlag[o.Name] = command.Fixed(values...)
		}
	}
	firsts := map[string]command.Completion{
		"ID": c.Complete(connect.First(connect.Registered)), "NAME": c.Complete(connect.First(connect.Usernames)),
		"CLIENT": c.Complete(connect.First(connect.ClientIDs)),
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				complete, known := byFlag[cmd.Name()+" "+f.Name]
				if !known {
					complete, known = byFlag[f.Name]
				}
				if known {
					_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails if the flag already has one
				}
			})
		}
		words := strings.Fields(cmd.Use)
		argument := strings.Trim(words[min(1, len(words)-1)], "[]")
		switch first, known := firsts[argument]; {
		case cmd.ValidArgsFunction != nil || argument == "FILE" || argument == "LOG...":
		case known && cmd.Name() != "create":
			cmd.ValidArgsFunction = first
		default: // otherwise a shell offers the names of files
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
