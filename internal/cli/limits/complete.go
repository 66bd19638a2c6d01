package limits

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/limiter/preset"
)

// completions are the completions of flags, by name.
func (l *limits) completions() map[string]command.Completion {
	byFlag := map[string]command.Completion{
		"field": completeFields, "sort": command.Fixed(listOrders...), tierFlag: l.completeTier, "target": l.completeTarget,
		"set preset": l.completePreset, "status hash": l.completeUser, "reset user": l.completeUser,
	}
	for _, f := range overFlags() {
		if f.values != nil {
			byFlag[f.name] = command.Fixed(f.values...)
		}
	}
	return byFlag
}

// offered reads names for a completion, at most a page; none on an error.
func offered[T any](cmd *cobra.Command, l *limits, path, typed string, name func(*T) string) ([]string, cobra.ShellCompDirective) {
	l.Timeout = connect.CompleteWithin
	all, _, _ := pageOf[T](cmd.Context(), l, path, url.Values{"prefix": {typed}})
	return beginningWith(typed, all, name)
}

// beginningWith returns the names that begin with the typed text.
func beginningWith[T any](typed string, all []T, name func(*T) string) (names []string, _ cobra.ShellCompDirective) {
	for i := range all {
		if n := name(&all[i]); strings.HasPrefix(n, typed) {
			names = append(names, n)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (l *limits) completeTier(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offered(cmd, l, "/tiers", typed, func(t *adminapi.TierView) string { return t.Name })
}

func (l *limits) completeUser(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offered(cmd, l, "/users", typed, func(u *registry.User) string { return u.Username })
}

// completePreset does not use offered, because the list of presets has no pages and no prefix.
func (l *limits) completePreset(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	l.Timeout = connect.CompleteWithin
	all, _ := get[adminapi.Presets](cmd.Context(), l, "/presets", nil) // empty on an error
	return beginningWith(typed, all.Presets, func(p *preset.Preset) string { return p.Name + "\t" + p.About })
}

// completeClient completes the first argument.
func (l *limits) completeClient(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offered(cmd, l, "/clients", typed, func(c *adminapi.Client) string { return c.ClientID })
}

// completeTarget completes the targets of the audit trail: first the kind, then the name.
func (l *limits) completeTarget(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	kind, name, named := strings.Cut(typed, "/")
	if !named {
		return []string{"settings", "policies/", "candidates/", "tiers/", "overrides/", "bans/", "clients/", "users/", "store"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	complete, known := map[string]cobra.CompletionFunc{
		"tiers": l.completeTier, "users": l.completeUser, "policies": l.completeClient, "candidates": l.completeClient, "clients": l.completeClient,
	}[kind]
	if !known {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := complete(cmd, nil, name)
	for _, name := range names {
		out = append(out, kind+"/"+name)
		if kind == "clients" {
			out = append(out, kind+"/"+name+"/counters")
		}
	}
	return out, directive
}

// completeSwitch completes CLIENT on|off. The values of alone may replace CLIENT and take no state.
func (l *limits) completeSwitch(alone ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && !slices.Contains(alone, args[0]) {
			return states, cobra.ShellCompDirectiveNoFileComp
		}
		clients, directive := l.completeClient(cmd, args, typed)
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
