package limits

import (
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"

	"github.com/spf13/cobra"
)

// completeFields completes the comma-separated fields of "limits unset".
func completeFields(_ *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	fields := unsettable
	if len(args) == 0 {
		fields = append(slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == "trusted" || f == "tier" }), "canary")
	}
	for _, f := range fields {
		out = append(out, before+f)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeTarget completes the targets of the audit trail: first the kind, then the client.
func (l *limits) completeTarget(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	kind, id, named := strings.Cut(typed, "/")
	if !named {
		return []string{"settings", "policies/", "candidates/", "tiers/", "overrides/", "bans/", "clients/", "users/", "store"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	if kind == "tiers" {
		names, directive := l.completeTierName(cmd, nil, id)
		for _, name := range names {
			out = append(out, kind+"/"+name)
		}
		return out, directive
	}
	if kind == "users" {
		names, directive := l.completeUser(cmd, nil, id)
		for _, name := range names {
			out = append(out, clientcfg.UserTarget(name))
		}
		return out, directive
	}
	if !slices.Contains([]string{"policies", "candidates", "clients"}, kind) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids, directive := l.completeClient(cmd, nil, id)
	for _, id := range ids {
		out = append(out, kind+"/"+id)
		if kind == "clients" {
			out = append(out, kind+"/"+id+"/counters")
		}
	}
	return out, directive
}

// LimitsCompletions returns the completions of flags by name.
func LimitsCompletions() map[string]command.Completion {
	return map[string]command.Completion{
		"field":         completeFields,
		"sort":          command.Fixed(listOrders...),
		overLimitFlag:   command.Fixed(overLimits...),
		criticalityFlag: command.Fixed(criticalities...),
		banFlag:         command.Fixed(banValues()...),
	}
}
