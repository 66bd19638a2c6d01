package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminclient"
)

func newUserShow(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "show NAME", Short: "Show a user", Args: takes("NAME")}
	return c.onRegistry(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		u, err := r.User(ctx, args[0])
		if err != nil {
			return userError(args[0], err)
		}
		return c.list(u,
			[]string{"username", u.Username}, []string{"created", u.CreatedAt.Format(time.RFC3339)},
			[]string{"operator", cmp.Or(string(u.Operator), "-")}, []string{"password", cmp.Or(u.Foreign, "argon2id")})
	})
}

func newUserSessions(c *cli) *cobra.Command {
	var end string
	var all bool
	cmd := &cobra.Command{
		Use: "sessions NAME", Short: "List the browsers that a user is signed in with, or end them", Args: takes("NAME"),
		Long: `List the browsers that a user is signed in with. With --end ID one of them ends, with --end-all all do;
tokens that came of them stay: see families and revoke.`,
	}
	cmd.Flags().StringVar(&end, "end", "", "end the session of this ID")
	cmd.Flags().BoolVar(&all, "end-all", false, "end all sessions")
	c.changing(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		if end != "" || all {
			n, err := r.EndSessions(ctx, args[0], end)
			return c.ended(args[0], "sessions", n, err)
		}
		name, list, err := r.Sessions(ctx, args[0])
		if err != nil {
			return userError(args[0], err)
		}
		rows := [][]string{{"SESSION", "SIGNED IN", "ENDS"}}
		for _, s := range list {
			rows = append(rows, []string{s.ID, s.CreatedAt.Format(time.RFC3339), s.ExpiresAt.Format(time.RFC3339)})
		}
		return c.list(map[string]any{"username": name, "sessions": list}, rows...)
	})
	return first(cmd, oneOrAll(cmd, "end"))
}

// oneOrAll rejects a flag given together with the flag for all, or with an empty ID, which usually
// comes from an unset shell variable.
func oneOrAll(cmd *cobra.Command, name string) func([]string) error {
	return func([]string) error {
		one := cmd.Flags().Lookup(name)
		switch {
		case one.Changed && cmd.Flags().Changed(name+"-all"):
			return usagef("--%[1]s and --%[1]s-all contradict each other", name)
		case one.Changed && one.Value.String() == "":
			return usagef("--%s needs an ID: without the flag the command lists them", name)
		}
		return nil
	}
}

// ended reports how many sign-ins were ended.
func (c *cli) ended(name, what string, n int, err error) error {
	if err != nil {
		return userError(name, err)
	}
	return c.answer(map[string]any{"username": name, "ended": n}, fmt.Sprintf("ended %d %s of user %s", n, what, name))
}

func newUserFamilies(c *cli) *cobra.Command {
	var revoke string
	var all bool
	cmd := &cobra.Command{
		Use: "families NAME", Short: "List the sign-ins of a user that clients can refresh, or revoke them", Args: takes("NAME"),
		Long: `List the sign-ins of a user that clients can refresh: each is a family of tokens. With --revoke ID one
of them is revoked, with --revoke-all all are: refresh tokens and access tokens, at once on every instance.`,
	}
	cmd.Flags().StringVar(&revoke, "revoke", "", "revoke the family of this ID")
	cmd.Flags().BoolVar(&all, "revoke-all", false, "revoke all families")
	c.changing(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		if revoke != "" || all {
			n, err := r.RevokeFamilies(ctx, args[0], revoke)
			return c.ended(args[0], "families", n, err)
		}
		name, list, err := r.Families(ctx, args[0])
		if err != nil {
			return userError(args[0], err)
		}
		rows := [][]string{{"FAMILY", "CLIENT", "SIGNED IN", "REFRESHED", "ENDS", "SCOPES"}}
		for _, f := range list {
			rows = append(rows, []string{
				f.ID, f.ClientID, f.AuthTime.Format(time.RFC3339), f.Refreshed.Format(time.RFC3339), f.ExpiresAt.Format(time.RFC3339), orDash(f.Scope),
			})
		}
		return c.list(map[string]any{"username": name, "families": list}, rows...)
	})
	return first(cmd, oneOrAll(cmd, "revoke"))
}

func newUserConsents(c *cli) *cobra.Command {
	var withdraw string
	cmd := &cobra.Command{
		Use: "consents NAME", Short: "List what a user allows clients, or withdraw it", Args: takes("NAME"),
		Long: `List what a user allows clients: remembered consents. With --withdraw CLIENT the user allows that client
nothing any more: its codes, refresh tokens and access tokens that came of the consent are worthless, at
once on every instance, and it has to ask again.`,
	}
	cmd.Flags().StringVar(&withdraw, "withdraw", "", "withdraw what the user allows this client")
	c.changing(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		if withdraw != "" {
			if err := r.WithdrawConsent(ctx, args[0], withdraw); err != nil {
				return userError(args[0], err)
			}
			return c.answer(map[string]any{"username": args[0], "client_id": withdraw, "withdrawn": true},
				"withdrew what user "+args[0]+" allowed client "+withdraw)
		}
		name, list, err := r.Consents(ctx, args[0])
		if err != nil {
			return userError(args[0], err)
		}
		rows := [][]string{{"CLIENT", "SCOPES", "AGREED", "LAST USED", "ENDS"}}
		for _, a := range list {
			rows = append(rows, []string{a.ClientID, orDash(a.Scopes), dateTime(a.AgreedAt), dateTime(a.UsedAt), dateTime(a.ExpiresAt)})
		}
		return c.list(map[string]any{"username": name, "consents": list}, rows...)
	})
	return first(cmd, func([]string) error {
		if withdraw == "" && cmd.Flags().Changed("withdraw") {
			return usagef("--withdraw needs the ID of a client")
		}
		return nil
	})
}
