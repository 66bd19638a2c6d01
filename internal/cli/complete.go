package cli

import (
	"maps"
	"strings"

	"oauth-server/internal/cli/accounts"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/config"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completions registers shell completions: the values of flags that have a known set, by the flag's
// name, and for commands on clients and users the names that a running server has.
func completions(c *connect.Commands, root *cobra.Command) {
	byFlag := map[string]command.Completion{
		"output": command.Fixed(command.OutputText, command.OutputJSON),
		"mode":   command.Fixed("enforce", "dry_run", "off"),

		"label":                    c.CompleteLabel,
		"remove-label":             c.CompleteLabelName,
		"rate-limit-mode":          command.Fixed("enforce", "dry_run", "off"),
		"rate-limit-instance-mode": command.Fixed("enforce", "dry_run", "off"),
	}
	maps.Copy(byFlag, accounts.AccountCompletions(c))
	for _, o := range config.Options() {
		if values := o.Values(); values != nil {
			byFlag[o.Name] = command.Fixed(values...)
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if complete, known := byFlag[f.Name]; known {
					_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails if the flag already has one
				}
			})
		}
		switch {
		case cmd.ValidArgsFunction != nil:
		case takesClient(cmd):
			cmd.ValidArgsFunction = c.CompleteClientID
		case takesUser(cmd):
			cmd.ValidArgsFunction = c.CompleteUsername
		}
		if cmd.Name() == "status" && cmd.Flags().Lookup("hash") != nil {
			_ = cmd.RegisterFlagCompletionFunc("hash", c.CompleteNamedUser)
		}
		if cmd.Name() == "reset" { // of limits: in other commands --user is a limit
			_ = cmd.RegisterFlagCompletionFunc("user", c.CompleteNamedUser)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// takesClient reports whether the command's first argument is the ID of an existing client.
func takesClient(cmd *cobra.Command) bool {
	fields := strings.Fields(cmd.Use)
	ofClient := cmd.HasParent() && cmd.Parent().Name() == "client"
	return ofClient && cmd.Name() != "create" && len(fields) > 1 && fields[1] == "ID"
}

// takesUser reports whether the first argument of the command is the name of a user.
func takesUser(cmd *cobra.Command) bool {
	fields := strings.Fields(cmd.Use)
	if !cmd.HasParent() || len(fields) < 2 {
		return false
	}
	ofUser := cmd.Parent().Name() == "user" && cmd.Name() != "create"
	return fields[1] == "USER" || fields[1] == "NAME" && ofUser
}
