package limits

import (
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
)

// The values of --field: of the settings those below default, and of a client all.
var (
	ofDefault  = slices.Concat([]string{"user", "client", "total", "source"}, overNames, []string{"hide-headers"})
	unsettable = append(slices.Insert(slices.Clone(ofDefault), 4, tierFlag, "mode", "trusted"), "note")
)

func (l *limits) newUnset() *cobra.Command {
	var fields []string
	var candidate bool
	var of policyFlags
	cmd := &cobra.Command{
		Use: "unset [CLIENT]", Short: "Remove what was set, so that the configuration file applies again", Args: command.Takes("[CLIENT]"),
		Long: `Remove what was set, so that the configuration file applies again.

Without CLIENT this concerns the settings for all clients, or with --tier that tier,
which no client may have then. With --field it concerns that field alone: a client
without a value of its own has that of its tier, or else of all clients. With
--for-user it concerns the limits of that user alone, and with --candidate the limits
that are tried, which are no longer tried then.`,
		Example: `  oauth-server limits unset shop --field tier
  oauth-server limits unset shop --candidate
  oauth-server limits unset --tier gold`,
		ValidArgsFunction: l.completeClient,
	}
	cmd.Flags().StringSliceVar(&fields, "field", nil, "take back this field only: "+strings.Join(unsettable, ", ")+"; for all clients also canary")
	cmd.Flags().BoolVar(&candidate, "candidate", false, "stop trying the candidate")
	of.register(cmd)
	l.registerTier(cmd, &of.tier, "remove this tier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if candidate && (len(fields) > 0 || cmd.Flags().Changed(forUser) || of.tier != "") {
			return command.Usagef("limits unset: --candidate contradicts --field, --%s and --%s", forUser, tierFlag)
		}
		if candidate {
			return l.dropCandidate(cmd.Context(), args)
		}
		if cmd.Flags().Changed(forUser) {
			if err := of.checkForUser(cmd, args, "field", tierFlag); err != nil {
				return err
			}
			done := "The limits of " + of.user + " at " + args[0] + " are now those of all users"
			return l.perform(cmd.Context(), change{read: overridePath(args[0], of.user), method: http.MethodDelete, done: done})
		}
		read, whole, part := settingsPath, "The settings are now those of the configuration file", "The settings no longer set "
		switch {
		case of.tier != "" && len(args) > 0:
			return contradicts(cmd, tierFlag)
		case of.tier != "":
			tier := "The tier " + of.tier
			read, whole, part = tierPath(of.tier), tier+" is now removed", tier+" no longer sets "
		case len(args) > 0:
			policy := "The policy of " + args[0]
			read, whole, part = policyPath(args[0]), policy+" is now that of the configuration file", policy+" no longer sets "
		}
		if len(fields) == 0 {
			return noTier(of.tier, l.perform(cmd.Context(), change{read: read, method: http.MethodDelete, done: whole}))
		}
		patch, err := nullPatch(fields, len(args) == 0 && of.tier == "")
		if err != nil {
			return err
		}
		return noTier(of.tier, l.perform(cmd.Context(), change{read: read, method: http.MethodPatch, body: patch, done: part + strings.Join(fields, ", ")}))
	}
	return l.changes(cmd)
}

// nullPatch returns the merge patch that removes the fields from the settings, from a policy or from
// a tier. In the settings, some of them are below default.
func nullPatch(fields []string, settings bool) (map[string]any, error) {
	patch, defaults := map[string]any{}, map[string]any{}
	for _, f := range fields {
		switch {
		case f == "canary" && settings:
			patch["canary_percent"] = nil
		case !slices.Contains(unsettable, f) || (f == "trusted" || f == tierFlag) && settings:
			return nil, command.Usagef("--field: %q is none of %s", f, strings.Join(unsettable, ", "))
		case settings && slices.Contains(ofDefault, f):
			takeBack(defaults, f)
			patch["default"] = defaults
		default:
			takeBack(patch, f)
		}
	}
	return patch, nil
}

// takeBack removes a field and its dependent fields.
func takeBack(patch map[string]any, field string) {
	patch[fieldOf(field)] = nil
	if field == maxWaitFlag {
		patch["max_waiting"] = nil
	}
}
