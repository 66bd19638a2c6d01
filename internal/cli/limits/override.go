package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"

	"github.com/spf13/cobra"
)

// policyFlags are the flags that select the part of a policy for "limits set" and "limits unset".
type policyFlags struct {
	tier, user string
}

// forUser is the flag for one user of the client.
const forUser = "for-user"

func (f *policyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.user, forUser, "", "only this user of the client, in place of the limits of all its users")
}

func overridePath(clientID, username string) string {
	return policyPath(clientID) + "/users/" + adminapi.Escape(username)
}

// checkForUser rejects flags that concern more than one user.
func (f *policyFlags) checkForUser(cmd *cobra.Command, args []string, others ...string) error {
	if len(args) == 0 || f.user == "" {
		return command.Usagef("limits %s: --%s needs a CLIENT and the name of a user", cmd.Name(), forUser)
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return command.Usagef("limits %s: --%s is about the client, and --%s about one of its users", cmd.Name(), name, forUser)
		}
	}
	return nil
}

// checkOverride rejects settings that one user cannot have.
func (f *policyFlags) checkOverride(cmd *cobra.Command, args []string, nothing bool) error {
	err := f.checkForUser(cmd, args, "client", "total", "source", "limit", "requests", "window", "preset", overLimitFlag, maxWaitFlag, maxWaitingFlag, banFlag, criticalityFlag, "hide-headers", "tier")
	if err == nil && nothing {
		return command.Usagef("limits set: nothing to set: give --user or --note with --%s", forUser)
	}
	return err
}

// setOverride sets the limits of one user of a client. doc has the fields from the flags.
func (l *limits) setOverride(ctx context.Context, clientID, user string, doc map[string]any) error {
	return l.perform(ctx, change{
		read: overridePath(clientID, user), method: http.MethodPatch, body: doc,
		done: "The limits of " + user + " at " + clientID + " are now set",
	})
}

// unsetOverride removes the limits of one user of a client.
func (l *limits) unsetOverride(cmd *cobra.Command, args []string, f *policyFlags) error {
	if err := f.checkForUser(cmd, args, "field", "tier"); err != nil {
		return err
	}
	return l.perform(cmd.Context(), change{
		read: overridePath(args[0], f.user), method: http.MethodDelete,
		done: "The limits of " + f.user + " at " + args[0] + " are now those of all users",
	})
}

// shownUsers is the number of users with their own limits that "limits get" shows.
const shownUsers = 100

// overrideRows returns table rows for the users of a client with their own limits.
func (l *limits) overrideRows(ctx context.Context, clientID string, n int) (rows [][]string, err error) {
	if n == 0 {
		return nil, nil
	}
	raw, err := l.fetch(ctx, policyPath(clientID)+"/users", url.Values{"limit": {strconv.Itoa(shownUsers)}})
	if err != nil {
		return nil, err
	}
	var page adminapi.Overrides
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	for _, o := range page.Overrides {
		rows = append(rows, []string{"user " + o.Username, syntax.ShowLimits(o.User), "changed here" + untilTime(o.Meta.Until), o.Note})
	}
	if more := n - len(page.Overrides); more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", more)})
	}
	return rows, nil
}

// tierOf reads the tier of a client. It returns an empty tier for a client without one.
func (l *limits) tierOf(ctx context.Context, name string) (t adminapi.TierView, err error) {
	if name == "" {
		return t, nil
	}
	raw, err := l.fetch(ctx, tierPath(name), nil)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err != nil {
		return t, fmt.Errorf("read the tier %s: %w", name, err)
	}
	return t, nil
}
