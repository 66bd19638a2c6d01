package limits

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
)

func (l *limits) newBans() *cobra.Command {
	var ended, dryRun bool
	cmd := &cobra.Command{
		Use: "bans [CLIENT]", Short: "Show the banned clients and users", Args: command.Takes("[CLIENT]"),
		Long: `Show which clients and users are banned, because they did not stop after denials, and
until when. Every instance knows all bans.

With --dry-run it shows who would be banned. Where limits are in dry-run, each instance has
bans of its own, so these are the bans of the instance that answers.`,
		Example: `  oauth-server limits bans
  oauth-server limits bans shop --ended
  oauth-server limits unban shop --user ada@example.com --reason "batch job is fixed"`,
	}
	cmd.Flags().BoolVar(&ended, "ended", false, "also show ended bans that still make the next ban longer")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show who would be banned where limits are in dry-run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{"limit": {"1000"}}
		if len(args) > 0 {
			query.Set("client_id", args[0])
		}
		if ended {
			query.Set("ended", "true")
		}
		if dryRun {
			query.Set("mode", string(ratelimit.DryRun))
		}
		found, err := pages[document[adminapi.Ban]](cmd.Context(), l, "/bans", query)
		if err != nil {
			return err
		}
		rows := [][]string{{"CLIENT", "USER", "SINCE", "UNTIL", "FOR", "BANS BEFORE"}}
		for i := range found {
			rows = append(rows, banRow(&found[i].Value))
		}
		return l.List(map[string]any{"bans": found}, rows...)
	}
	return l.watched(cmd)
}

func banRow(b *adminapi.Ban) []string {
	user, until := "-", command.DateTime(b.Until)
	if b.Username != nil {
		user = *b.Username
	}
	switch {
	case !b.Lifted.IsZero():
		until += ", lifted"
	case !b.Active:
		until += ", over"
	case b.NotEnforced:
		until += ", not enforced by the policy now"
	}
	return []string{
		b.ClientID, user, command.DateTime(b.Since), until, ratelimit.FormatWindow(b.Until.Sub(b.Since).Round(time.Second)), strconv.Itoa(b.Before),
	}
}

func (l *limits) newUnban() *cobra.Command {
	var user string
	var forget bool
	cmd := &cobra.Command{
		Use: "unban CLIENT", Short: "Lift the ban of a client or one of its users, on all instances", Args: command.Takes("CLIENT"),
		Long: `Lift the ban of a client or one of its users, on all instances within two seconds.

Without --user, this lifts the ban of the client itself (client_credentials). The next ban is
still longer than this one. With --forget it is as short as a first ban, even if the last ban
has already ended.`,
		Example: `  oauth-server limits unban batch
  oauth-server limits unban shop --user ada@example.com --forget --reason "batch job is fixed"`,
	}
	cmd.Flags().StringVar(&user, "user", "", "lift the ban of this user of the client")
	cmd.Flags().BoolVar(&forget, "forget", false, "make the next ban as short as a first one")
	l.AddReason(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query, about := url.Values{}, args[0]
		if cmd.Flags().Changed("user") {
			query.Set("username", user)
			about = user + " at " + args[0]
		}
		if forget {
			query.Set("forget", "true")
		}
		return l.remove(cmd.Context(), "/bans/"+adminapi.Escape(args[0]), query, "The ban of "+about+" is now lifted")
	}
	return cmd
}
