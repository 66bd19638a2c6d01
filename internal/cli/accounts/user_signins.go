package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

// shownUser is a user with everything that comes of a sign-in.
type shownUser struct {
	registry.User
	Sessions []registry.Session `json:"sessions"`
	Families []registry.Family  `json:"families"`
	Consents []registry.Consent `json:"consents"`
}

func newUserShow(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a user, with sessions, families and consents", Args: command.Takes("NAME"),
		Long: `Show a user, with the browsers that are signed in (sessions), the sign-ins that clients can refresh
(families), and the access that the user granted to clients (consents). End them with user revoke.`,
		Example: "  oauth-server user show ada\n  oauth-server user show ada -o json",
	}
	return c.Reads(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		var u shownUser
		for _, part := range []string{"", "/sessions", "/families", "/consents"} {
			if _, err := api.Get(ctx, userPath(args[0], part), nil, &u); err != nil {
				return explain("user", args[0], err)
			}
		}
		return c.List(u, u.rows()...)
	})
}

// rows returns the user as a table, with a heading before each kind of sign-in that there is.
func (u *shownUser) rows() [][]string {
	rows := [][]string{
		{"username", u.Username},
		{"created", command.DateTime(u.CreatedAt)},
		{"operator", cmp.Or(string(u.Operator), "-")},
		{"password", cmp.Or(u.Foreign, "argon2id")},
	}
	section := func(n int, heading ...string) {
		if n > 0 {
			rows = append(rows, []string{}, heading)
		}
	}
	section(len(u.Sessions), "SESSION", "SIGNED IN", "ENDS")
	for _, s := range u.Sessions {
		rows = append(rows, []string{s.ID, command.DateTime(s.CreatedAt), command.DateTime(s.ExpiresAt)})
	}
	section(len(u.Families), "FAMILY", "CLIENT", "SIGNED IN", "REFRESHED", "ENDS", "SCOPES")
	for i := range u.Families {
		f := &u.Families[i]
		rows = append(rows, []string{f.ID, f.ClientID, command.DateTime(f.AuthTime), command.DateTime(f.Refreshed), command.DateTime(f.ExpiresAt), command.OrDash(f.Scope)})
	}
	section(len(u.Consents), "CONSENT TO", "SCOPES", "AGREED", "LAST USED", "ENDS")
	for _, a := range u.Consents {
		rows = append(rows, []string{a.ClientID, command.OrDash(a.Scopes), command.DateTime(a.AgreedAt), command.DateTime(a.UsedAt), command.DateTime(a.ExpiresAt)})
	}
	return rows
}

func newUserRevoke(c *connect.Commands) *cobra.Command {
	var session, family, consent string
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "End all or some sessions and tokens of a user", Args: command.Takes("NAME"),
		Long: `End all sessions of a user, and revoke all codes and tokens so far. The password still works.

This applies immediately, on all instances. Introspection then reports the tokens as inactive. A
resource server that only verifies signatures accepts them until they expire.

To end less, give a flag:
  --session  ends the session of one browser; tokens issued in it stay valid
  --family   revokes one sign-in that a client can refresh
  --consent  withdraws the consent to a client, and revokes the codes and tokens issued under it`,
		Example: `  oauth-server user revoke ada
  oauth-server user revoke ada --family all
  oauth-server user revoke ada --consent shop`,
	}
	cmd.Flags().StringVar(&session, "session", "", "end this session, or all")
	cmd.Flags().StringVar(&family, "family", "", "revoke this family, or all")
	cmd.Flags().StringVar(&consent, "consent", "", "withdraw the consent to this client")
	change(c, cmd, "user", func(ctx context.Context, api *adminclient.Client, name string) (any, string, error) {
		switch {
		case session != "":
			n, err := end(ctx, api, userPath(name, "/sessions"), session)
			return ended(name, n, command.Plural(n, "session"), err)
		case family != "":
			n, err := end(ctx, api, userPath(name, "/families"), family)
			return ended(name, n, map[bool]string{true: "family", false: "families"}[n == 1], err)
		case consent != "":
			return map[string]any{"username": name, "client_id": consent, "withdrawn": true},
				"withdrew the consent of user " + name + " to client " + consent,
				api.Do(ctx, http.MethodDelete, userPath(name, "/consents/", adminapi.Escape(consent)), nil, nil)
		}
		var u registry.User
		err := api.Do(ctx, http.MethodPost, userPath(name, "/revoke"), nil, &u)
		return map[string]string{"username": u.Username}, "ended the sessions and tokens of user " + u.Username + ", who must sign in again everywhere", err
	})
	return first(cmd, func([]string) error {
		flags := []string{"session", "family", "consent"}
		for _, flag := range flags {
			if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() == "" { // an unset shell variable must not end everything
				return command.Usagef("--%s is empty: user show lists the values", flag)
			}
		}
		return command.AtMostOne(cmd, flags...)
	})
}

func ended(name string, n int, what string, err error) (result any, line string, _ error) {
	return map[string]any{"username": name, "ended": n}, fmt.Sprintf("ended %d %s of user %s", n, what, name), err
}

// end ends the session or family with that ID, or [connect.All] in the list at path, and returns how many.
func end(ctx context.Context, api *adminclient.Client, path, id string) (int, error) {
	if id != connect.All {
		path += "/" + adminapi.Escape(id)
	}
	var out adminapi.Ended
	err := api.Do(ctx, http.MethodDelete, path, nil, &out)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; the server continues; list again to see what is left", err)
	}
	return out.Ended, err
}
