package limits

import (
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
)

// states are the values of a switch.
var states = []string{"on", "off"}

func isState(arg string) bool { return slices.Contains(states, arg) }

// switchArgs reads [CLIENT] on|off. The last argument is the state, which allows a client named on
// or off.
func switchArgs(cmd *cobra.Command, args []string) (client string, on bool, err error) {
	last := len(args) - 1
	if last > 0 && isState(args[0]) && !isState(args[last]) {
		return "", false, command.Usagef("%sthe client comes before the state: %s %s %s", command.Within(cmd), cmd.CommandPath(), args[last], args[0])
	}
	if !isState(args[last]) {
		_, order, _ := strings.Cut(cmd.Use, " ")
		return "", false, command.Usagef("%s%q is neither on nor off; usage: %s", command.Within(cmd), args[last], order)
	}
	return only(args[:last]), args[last] == "on", nil
}

func (l *limits) newDryRun() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "dry-run [CLIENT] on|off", Short: "Record denials instead of enforcing them", Args: command.Takes("[CLIENT]", "on|off"),
		Long: `Record denials instead of enforcing them, for all clients or for one. Requests count exactly as
if the limits were enforced.

Without CLIENT, this applies to all clients without a mode of their own; off enforces the limits
on the canary share. With CLIENT, off always enforces them. To return a client to the mode of all
clients, use "limits unset CLIENT --field mode".`,
		Example: `  oauth-server limits dry-run on
  oauth-server limits dry-run shop off`,
		ValidArgsFunction: l.completeSwitch(states...),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, on, err := switchArgs(cmd, args)
			if err != nil {
				return err
			}
			patch := map[string]any{"mode": map[bool]string{true: "dry_run", false: "enforce"}[on]}
			done := "Dry-run is now " + args[len(args)-1]
			if client != "" {
				done += " for " + client
			}
			return l.perform(cmd.Context(), (&subjectFlags{}).of(args[:len(args)-1]), http.MethodPatch, patch, done)
		},
	})
}

func (l *limits) newTrust() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "trust CLIENT [on|off]", Short: "Trust a client, so that it is never denied, or stop trusting it", Args: command.Takes("CLIENT", "[on|off]"),
		Long: `Trust a client, or stop trusting it. A trusted client is neither counted nor denied. Trusting a
client removes its over_limit, max_wait and ban.

The default state is on. If the client itself is named on or off, give the state explicitly.`,
		Example: `  oauth-server limits trust shop on
  oauth-server limits trust shop off`,
		ValidArgsFunction: l.completeSwitch(),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := trustArgs(cmd, args)
			if err != nil {
				return err
			}
			client, on, err := switchArgs(cmd, args)
			if err != nil {
				return err
			}
			done := map[bool]string{true: " is now trusted", false: " is no longer trusted"}[on]
			patch := map[string]any{"trusted": on}
			if on {
				patch["over_limit"], patch["ban"] = nil, nil // the server rejects reuse, a ban and waiting with this setting
				takeBack(patch, maxWaitFlag)
			}
			return l.perform(cmd.Context(), (&subjectFlags{}).of(args[:1]), http.MethodPatch, patch, "The client "+client+done)
		},
	})
}

// trustArgs adds the state on if only a client is given. It rejects a state without a client, which
// would otherwise trust a client of that name.
func trustArgs(cmd *cobra.Command, args []string) ([]string, error) {
	alone := len(args) == 1
	switch {
	case alone && isState(args[0]):
		return nil, command.Usagef("%sCLIENT is missing before %q: %s CLIENT %[2]s", command.Within(cmd), args[0], cmd.CommandPath())
	case alone:
		return append(args, "on"), nil
	}
	return args, nil
}
