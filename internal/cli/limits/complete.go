package limits

import (
	"slices"
	"strings"

	"oauth-server/internal/clientcfg"

	"github.com/spf13/cobra"
)

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
