package limits

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

// completions are the completions of flags, by name.
func completions(c *connect.Commands) map[string]command.Completion {
	users := c.Complete(connect.Usernames)
	byFlag := map[string]command.Completion{
		"field": completeFields, "sort": command.Fixed(listOrders...), tierFlag: c.Complete(tierNames), "target": completeTarget(c),
		"set preset": c.Complete(presetNames), "status hash": users, "reset user": users,
	}
	for _, f := range overFlags() {
		if f.values != nil {
			byFlag[f.name] = command.Fixed(f.values...)
		}
	}
	return byFlag
}

var tierNames = connect.Named("/tiers", "name")

func presetNames(ctx context.Context, api *adminclient.Client, _ []string, _ string) (names []string, err error) {
	var all adminapi.Presets
	_, err = api.Get(ctx, "/presets", nil, &all)
	for _, p := range all.Presets {
		names = append(names, p.Name+"\t"+p.About)
	}
	return names, err
}

// completeTarget completes the targets of the audit trail: first the kind, then the name.
func completeTarget(c *connect.Commands) command.Completion {
	named := c.Complete(targetNames)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(typed, "/") {
			return named(cmd, args, typed)
		}
		return []string{"settings", "policies/", "candidates/", "tiers/", "overrides/", "bans/", "clients/", "users/", "store"},
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func targetNames(ctx context.Context, api *adminclient.Client, args []string, typed string) (targets []string, err error) {
	kind, name, _ := strings.Cut(typed, "/")
	find, known := map[string]connect.Finder{
		"tiers": tierNames, "users": connect.Usernames, "policies": connect.ClientIDs, "candidates": connect.ClientIDs, "clients": connect.ClientIDs,
	}[kind]
	if !known {
		return nil, nil
	}
	names, err := find(ctx, api, args, name)
	for _, name := range names {
		targets = append(targets, kind+"/"+name)
		if kind == "clients" {
			targets = append(targets, kind+"/"+name+"/counters")
		}
	}
	return targets, err
}

// completeSwitch completes CLIENT on|off. The values of alone may replace CLIENT and take no state.
func (l *limits) completeSwitch(alone ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && !slices.Contains(alone, args[0]) {
			return states, cobra.ShellCompDirectiveNoFileComp
		}
		clients, directive := l.commands.Complete(connect.First(connect.ClientIDs))(cmd, args, typed)
		if len(args) == 0 {
			clients = append(clients, alone...)
		}
		return clients, directive
	}
}

// completeFields completes the comma-separated fields of "limits unset".
func completeFields(_ *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	fields := unsettable
	if len(args) == 0 {
		fields = append(slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == "trusted" || f == tierFlag }), "canary")
	}
	for _, f := range fields {
		out = append(out, before+f)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
