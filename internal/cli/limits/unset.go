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

  CLIENT       its whole policy; without CLIENT, the settings for all clients
  --field      only this field; a client then gets the value of its tier, or of all clients
  --for-user   the limits of this user of the client
  --candidate  the candidate, which ends the trial
  --tier       this tier; no client may be in it`,
		Example: `  oauth-server limits unset shop --field tier
  oauth-server limits unset shop --candidate
  oauth-server limits unset --tier gold`,
		ValidArgsFunction: l.completeClient,
	}
	cmd.Flags().StringSliceVar(&fields, "field", nil, "remove only this field: "+strings.Join(unsettable, ", ")+"; for all clients also canary")
	cmd.Flags().BoolVar(&candidate, "candidate", false, "remove the candidate")
	of.register(cmd)
	l.registerTier(cmd, &of.tier, "remove this tier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if candidate && (len(fields) > 0 || cmd.Flags().Changed(forUser) || of.tier != "") {
			return command.Usagef("limits unset: --candidate cannot be used together with --field, --%s or --%s", forUser, tierFlag)
		}
		if candidate {
			return l.dropCandidate(cmd.Context(), args)
		}
		if cmd.Flags().Changed(forUser) {
			if err := of.checkForUser(cmd, args, "field", tierFlag); err != nil {
				return err
			}
			done := "The limits of " + of.user + " at " + args[0] + " are now removed"
			return l.perform(cmd.Context(), change{read: overridePath(args[0], of.user), method: http.MethodDelete, done: done})
		}
		read, whole, part := settingsPath, "The settings now come from the configuration file", "The settings no longer set "
		switch {
		case of.tier != "" && len(args) > 0:
			return contradicts(cmd, tierFlag)
		case of.tier != "":
			tier := "The tier " + of.tier
			read, whole, part = tierPath(of.tier), tier+" is now removed", tier+" no longer sets "
		case len(args) > 0:
			policy := "The policy of " + args[0]
			read, whole, part = policyPath(args[0]), policy+" now comes from the configuration file", policy+" no longer sets "
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
			return nil, command.Usagef("--field: %q is not one of %s", f, strings.Join(unsettable, ", "))
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
