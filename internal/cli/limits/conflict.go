package limits

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
)

// overtaken turns a stale-version error into one sentence that names the operator and the change
// that came first. It returns other errors unchanged.
func overtaken(err error) error {
	var p *adminclient.ProblemError
	switch {
	case !errors.As(err, &p) || !p.Stale():
		return err
	case p.Conflict == nil || len(p.Conflict.Changes) == 0: // no change by an operator: the configuration files probably differ
		return errors.New("nothing was changed: " + p.Detail + "; check limits status and run the command again")
	}
	return errors.New(adminclient.Printable(conflictText(p.Conflict)))
}

func conflictText(c *adminapi.Conflict) string {
	last := &c.Changes[0]
	done := "changed"
	if last.Action == "delete" {
		done = "removed"
	}
	text := fmt.Sprintf("%s: %s by %s %s", nameOfTarget(cmp.Or(c.Target, last.Target)), done, adminapi.Who(&last.Actor), command.Ago(c.Now.Sub(last.At)))
	text += fmt.Sprintf(" (change %d: %s)", last.Version, differences(last.Before, last.After))
	if n := len(c.Changes) - 1; n > 0 {
		text += fmt.Sprintf(", after %d other %s", n, command.Plural(n, "change"))
	}
	return text + "; check it and run the command again"
}

// nameOfTarget describes a target of the audit trail for a person.
func nameOfTarget(target string) string {
	kind, name, _ := strings.Cut(target, "/")
	client, user, override := clientcfg.OverrideOf(target)
	switch {
	case override:
		return "the limits of " + user + " at " + client
	case kind == "tiers":
		return "the tier " + name
	case kind == "settings":
		return "the settings for all clients"
	case target == clientcfg.CandidateTarget(clientcfg.GlobalCandidate):
		return "the candidate for the default limits"
	case kind == "candidates":
		return "the candidate for " + name
	}
	return name
}
