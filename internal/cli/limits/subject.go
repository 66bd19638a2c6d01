package limits

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
)

// subject is what a command shows or changes: the settings for all clients, a policy, a tier, the limits
// of one user or a candidate.
type subject struct {
	path string
	none string // the error if it does not exist; empty for the server's
	// Messages after it was set, after it was removed, and, before their names, after some of its fields
	// were removed: sentences without the full stop.
	set, unset, unsetFields string
}

// subjectFlags select the subject together with the argument CLIENT.
type subjectFlags struct {
	tier, user string
	candidate  bool
}

// The flags that name a tier and a user of the client.
const (
	tierFlag = "tier"
	forUser  = "for-user"
)

func (f *subjectFlags) addTier(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.tier, tierFlag, "", usage)
}

func (f *subjectFlags) addUser(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.user, forUser, "", "this user only, overriding the client's limits per user")
}

// of returns the subject, with CLIENT in args or without. CLIENT takes precedence over a tier.
func (f *subjectFlags) of(args []string) subject {
	client := only(args)
	switch {
	case f.candidate:
		return candidate(client)
	case f.user != "":
		name := "The limits of " + f.user + " at " + client
		return subject{path: overridePath(client, f.user), set: name + " are now set", unset: name + " are now removed"}
	case client != "":
		name := "The policy of " + client
		return subject{policyPath(client), "", name + " is now set", name + " now comes from the configuration file", name + " no longer sets "}
	case f.tier != "":
		name, none := "The tier "+f.tier, fmt.Sprintf("tier %q does not exist", f.tier)
		return subject{tierPath(f.tier), none, name + " is now set for all its clients", name + " is now removed", name + " no longer sets "}
	}
	return settings
}

var settings = subject{
	settingsPath, "", "The default limits are now set", "The settings now come from the configuration file", "The settings no longer set ",
}

// candidate returns the candidate for a client or, without a name, for the default limits.
func candidate(client string) subject {
	shown := client
	if client == "" || client == clientcfg.GlobalCandidate {
		client, shown = clientcfg.GlobalCandidate, "the default limits"
	}
	name := "The candidate for " + shown
	return subject{
		path: candidatePath(client), none: shown + ": no candidate exists",
		set: name + " is now tried beside the live limits", unset: name + " is no longer tried",
	}
}

// missing replaces the API's error for a subject that does not exist, because its advice is for programs.
func (s *subject) missing(err error) error {
	if s.none != "" && notFound(err) {
		return errors.New(s.none)
	}
	return err
}

// contradicts returns the error for a flag that is given together with a CLIENT.
func contradicts(cmd *cobra.Command, flag string) error {
	return command.Usagef("limits %s: CLIENT and --%s cannot be used together", cmd.Name(), flag)
}

// checkForUser rejects flags that concern more than one user.
func (f *subjectFlags) checkForUser(cmd *cobra.Command, args []string, others ...string) error {
	if len(args) == 0 || f.user == "" {
		return command.Usagef("limits %s: --%s needs a CLIENT and the name of a user", cmd.Name(), forUser)
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return command.Usagef("limits %s: --%s applies to the whole client, and --%s to one user", cmd.Name(), name, forUser)
		}
	}
	return nil
}
