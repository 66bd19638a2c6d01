package accounts

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

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
	return c.Reads(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		u, err := readShownUser(ctx, r, args[0])
		if err != nil {
			return userError(args[0], err)
		}
		return c.List(u, u.rows()...)
	})
}

func readShownUser(ctx context.Context, r *adminclient.Accounts, name string) (u shownUser, err error) {
	if u.User, err = r.User(ctx, name); err != nil {
		return u, err
	}
	if u.Sessions, err = r.Sessions(ctx, name); err != nil {
		return u, err
	}
	if u.Families, err = r.Families(ctx, name); err != nil {
		return u, err
	}
	u.Consents, err = r.Consents(ctx, name)
	return u, err
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
	change(c, cmd, userError, func(ctx context.Context, r *adminclient.Accounts, name string) (any, string, error) {
		var ended string
		var n int
		var err error
		switch {
		case session != "":
			n, err = r.EndSessions(ctx, name, oneOrAll(session))
			ended = command.Plural(n, "session")
		case family != "":
			n, err = r.RevokeFamilies(ctx, name, oneOrAll(family))
			if ended = "families"; n == 1 {
				ended = "family"
			}
		case consent != "":
			return map[string]any{"username": name, "client_id": consent, "withdrawn": true},
				"withdrew the consent of user " + name + " to client " + consent, r.WithdrawConsent(ctx, name, consent)
		default:
			u, err := r.RevokeUser(ctx, name)
			return map[string]string{"username": u.Username}, "ended the sessions and tokens of user " + u.Username + ", who must sign in again everywhere", err
		}
		return map[string]any{"username": name, "ended": n}, fmt.Sprintf("ended %d %s of user %s", n, ended, name), err
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

// oneOrAll returns an ID as the API takes it: empty for all.
func oneOrAll(id string) string {
	if id == connect.All {
		return ""
	}
	return id
}
