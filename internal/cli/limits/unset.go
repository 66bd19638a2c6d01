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
	var of subjectFlags
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
	}
	cmd.Flags().StringSliceVar(&fields, "field", nil, "remove only this field: "+strings.Join(unsettable, ", ")+"; for all clients also canary")
	cmd.Flags().BoolVar(&of.candidate, "candidate", false, "remove the candidate")
	of.addUser(cmd)
	of.addTier(cmd, "remove this tier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch user := cmd.Flags().Changed(forUser); {
		case of.candidate && (len(fields) > 0 || user || of.tier != ""):
			return command.Usagef("limits unset: --candidate cannot be used together with --field, --%s or --%s", forUser, tierFlag)
		case user:
			if err := of.checkForUser(cmd, args, "field", tierFlag); err != nil {
				return err
			}
		case of.tier != "" && len(args) > 0:
			return contradicts(cmd, tierFlag)
		}
		subject := of.of(args)
		if len(fields) == 0 {
			return l.perform(cmd.Context(), subject, http.MethodDelete, nil, subject.unset)
		}
		patch, err := nullPatch(fields, subject == settings)
		if err != nil {
			return err
		}
		return l.perform(cmd.Context(), subject, http.MethodPatch, patch, subject.unsetFields+strings.Join(fields, ", "))
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
