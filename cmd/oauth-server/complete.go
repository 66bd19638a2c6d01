package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completions registers shell completions: the values of flags that have a known set, by the flag's
// name, and for commands on clients and users the names that a running server has.
func completions(c *cli, root *cobra.Command) {
	byFlag := map[string]completion{
		"output":        fixed(outputText, outputJSON),
		"grant":         fixed(grantNames()...),
		"field":         completeFields,
		"sort":          fixed(listOrders...),
		"mode":          fixed("enforce", "dry_run", "off"),
		overLimitFlag:   fixed(overLimits...),
		criticalityFlag: fixed(criticalities...),
		banFlag:         fixed(banValues()...),

		"label":        c.completeLabel,
		"remove-label": c.completeLabelName,
		"session": c.completeSignIn(func(u *shownUser) (ids []string) {
			for _, s := range u.Sessions {
				ids = append(ids, s.ID)
			}
			return append(ids, all)
		}),
		"family": c.completeSignIn(func(u *shownUser) (ids []string) {
			for i := range u.Families {
				ids = append(ids, u.Families[i].ID)
			}
			return append(ids, all)
		}),
		"consent": c.completeSignIn(func(u *shownUser) (ids []string) {
			for _, a := range u.Consents {
				ids = append(ids, a.ClientID)
			}
			return ids
		}),

		"rate-limit-mode":          fixed("enforce", "dry_run", "off"),
		"rate-limit-instance-mode": fixed("enforce", "dry_run", "off"),
	}
	for _, o := range config.Options() {
		if values := o.Values(); values != nil {
			byFlag[o.Name] = fixed(values...)
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
			cmd.ValidArgsFunction = c.completeClientID
		case takesUser(cmd):
			cmd.ValidArgsFunction = c.completeUsername
		}
		if cmd.Name() == "status" && cmd.Flags().Lookup("hash") != nil {
			_ = cmd.RegisterFlagCompletionFunc("hash", c.completeNamedUser)
		}
		if cmd.Name() == "reset" { // of limits: in other commands --user is a limit
			_ = cmd.RegisterFlagCompletionFunc("user", c.completeNamedUser)
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

func fixed(values ...string) completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func grantNames() (names []string) {
	for _, g := range clientcfg.Grants() {
		names = append(names, string(g))
	}
	return names
}

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
		names, directive := l.completeNamedUser(cmd, nil, id)
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
