package limits

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

func (l *limits) newList() *cobra.Command {
	var all, tiers bool
	var by listOrder
	cmd := &cobra.Command{
		Use: "list", Short: "List clients with recent requests or a policy of their own", Args: command.Takes(),
		Long: `List the clients with requests in the last ten minutes, or with a policy or candidate of their
own, with the limits that apply to them and how their requests were decided.

Deleted clients, and clients that only the configuration file names, are listed as not
registered if they have limits.`,
		Example: "  oauth-server limits list --sort denied --watch\n  oauth-server limits list --all --filter shop",
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all registered clients")
	cmd.Flags().BoolVar(&tiers, "tiers", false, "list the tiers, with the number of clients in each")
	by.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if tiers {
			return l.listTiers(cmd.Context())
		}
		found, err := pages[listedClient](cmd.Context(), l, "/clients", url.Values{"limit": {"1000"}})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(d listedClient) bool {
			c := &d.Value
			return !by.matches(c.ClientID, c.Name) || !all && c.Source == "none" && c.Effective.Overrides == 0 && !c.Candidate && c.Activity.Total() == 0
		})
		unregistered, err := pages[adminapi.UnregisteredClient](cmd.Context(), l, "/unregistered", url.Values{})
		if err != nil {
			return err
		}
		unregistered = slices.DeleteFunc(unregistered, func(c adminapi.UnregisteredClient) bool { return !by.matches(c.ClientID, "") })
		if err := by.sort(cmd.Context(), l, found); err != nil {
			return err
		}
		heading := by.heading("CLIENT", "MODE", "USER LIMITS", "CLIENT LIMITS", sharedHeading, "FROM", "ALLOWED", "DENIED", "WOULD DENY", "CANDIDATE DENIES")
		reuses := slices.ContainsFunc(found, func(c listedClient) bool { return c.Value.Activity.Reused+c.Value.Activity.WouldReuse > 0 })
		if reuses {
			heading = append(heading, reusedHeading...)
		}
		rows := [][]string{heading}
		for i := range found {
			c := &found[i].Value
			row := by.row(l, c, l.clientRow(c.ClientID, &c.Applied, &c.Activity))
			if reuses {
				row = append(row, l.reused(&c.Activity)...)
			}
			rows = append(rows, row)
		}
		names := make([]string, len(unregistered))
		for i := range unregistered {
			names[i], rows = unregistered[i].ClientID, append(rows, l.unregisteredRow(&unregistered[i]))
		}
		answer := map[string]any{"clients": found, "unregistered": names, "limits_of_unregistered": unregistered, "since": l.since}
		if err := l.List(answer, withoutEmpty(rows)...); err != nil {
			return err
		}
		return l.period(l.since)
	}
	return l.watched(cmd)
}

func (l *limits) clientRow(id string, a *adminapi.Applied, counts *activity.Counts) []string {
	mode := a.Effective.Mode
	if a.Effective.Trusted {
		mode = "trusted"
	}
	from := map[string]string{"api": "changed here", "file": "configuration file", "none": "default"}[a.Source] + untilTime(a.Until)
	if a.Effective.Tier != "" {
		from += ", tier " + a.Effective.Tier
	}
	if n := a.Effective.Overrides; n == 1 {
		from += ", 1 user's own"
	} else if n > 1 {
		from += fmt.Sprintf(", %d users' own", n)
	}
	candidate := "-"
	if a.Candidate || counts.Tried > 0 {
		candidate = command.Number(counts.CandidateWouldDeny + counts.CandidateWouldBan)
	}
	return []string{
		id, mode, syntax.ShowLimits(a.Effective.User), syntax.ShowLimits(a.Effective.Client), showShared(a.Effective.Total, a.Effective.Source), from,
		command.Number(counts.Allowed + counts.Trusted + counts.Off),
		l.Alarming(command.Number(counts.Denied+counts.Banned), counts.Denied+counts.Banned > 0), l.Notable(command.Number(counts.WouldDeny+counts.WouldBan), counts.WouldDeny+counts.WouldBan > 0), candidate,
	}
}

// unregisteredRow is like clientRow, for an unregistered client, which sends no requests.
func (l *limits) unregisteredRow(c *adminapi.UnregisteredClient) []string {
	row := l.clientRow(c.ClientID, &c.Applied, &activity.Counts{})
	row[1] = l.Notable("not registered", true) + ", " + row[1]
	return row
}

func (l *limits) counterRow(k adminapi.Counter) []string {
	user, free, client := "(the client itself)", "now", k.ClientID
	switch {
	case k.Total:
		user = "(all users)"
	case k.Source != "":
		user = "(from " + k.Source + ")"
	case k.Username != nil:
		user = *k.Username
	}
	if k.FreeAt != nil {
		free = k.FreeAt.UTC().Format("15:04:05Z07:00")
	}
	if k.Candidate {
		client += " (candidate)"
	}
	return []string{
		client, user, syntax.ShowLimits([]ratelimit.Limit{k.Limit}), strconv.FormatFloat(k.Estimate, 'f', 1, 64),
		l.used(k.Usage), free,
	}
}

// used writes the used share of a limit.
func (l *limits) used(share float64) string {
	const soft = 0.8
	text := strconv.FormatFloat(100*share, 'f', 0, 64) + "%"
	return l.Alarming(l.Notable(text, share >= soft && share < 1), share >= 1)
}

func (l *limits) countersTable(page adminapi.Counters) error {
	rows := [][]string{{"CLIENT", "USER", "LIMIT", "ESTIMATE", "USED", "NEXT FREE", "SHARED", "IN FLIGHT"}}
	for _, k := range page.Counters {
		rows = append(rows, append(l.counterRow(k), strconv.FormatInt(k.Known, 10), strconv.FormatInt(k.InFlight, 10)))
	}
	return l.Table(rows...)
}

func (l *limits) newReset() *cobra.Command {
	var user, source string
	var total bool
	cmd := &cobra.Command{
		Use: "reset CLIENT", Short: "Reset the counts of a client, on all instances", Args: command.Takes("CLIENT"),
		Example: "  oauth-server limits reset shop --user ada@example.com\n  oauth-server limits reset shop --source 192.0.2.7",
	}
	cmd.Flags().StringVar(&user, "user", "", "reset only this user of the client")
	cmd.Flags().BoolVar(&total, "total", false, "reset only the client's total")
	cmd.Flags().StringVar(&source, "source", "", "reset only this source address")
	l.AddReason(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := command.AtMostOne(cmd, "user", "total", "source"); err != nil {
			return err
		}
		client, about, query := ratelimit.Key{ClientID: args[0]}, args[0], url.Values{}
		switch {
		case cmd.Flags().Changed("user"):
			query.Set("username", user)
			about = user + " at " + about
		case total:
			query.Set("username", client.Total().Username)
			about += "'s total"
		case cmd.Flags().Changed("source"):
			address, err := limiter.ParseSource(source)
			if err != nil {
				return command.Usagef("--source: %w", err)
			}
			query.Set("username", client.Source(address).Username)
			about += " from " + address
		}
		return l.remove(cmd.Context(), countersPath(args[0]), query, "The counts of "+about+" are now forgotten")
	}
	return cmd
}

func (l *limits) newAudit() *cobra.Command {
	var limit int
	var target string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who changed what, newest first", Args: command.Takes(),
		Example: "  oauth-server limits audit --target policies/shop\n  oauth-server limits audit --limit 100 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if target != "" {
				query.Set("target", target)
			}
			page, err := get[document[adminapi.Audit]](cmd.Context(), l, "/audit", query)
			if err != nil {
				return err
			}
			return l.showAudit(target, page)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "number of changes to show, at most 1000")
	cmd.Flags().StringVar(&target, "target", "", "only changes of this `TARGET`, such as settings, policies/shop, clients/shop or users/ada")
	return cmd
}

// showAudit writes the changes of the target. It returns an error if the target is unknown.
func (l *limits) showAudit(target string, page document[adminapi.Audit]) error {
	none, known := len(page.Value.Entries) == 0, target == "" || isTarget(target)
	switch {
	case l.Output == command.OutputJSON:
		if err := l.JSON(page); err != nil {
			return err
		}
	case !none:
		return l.auditTable(page.Value)
	case target == "":
		l.Note("There are no changes.")
	case known:
		l.Note("There are no changes of %s.", target)
	}
	if none && !known {
		return command.Usagef("--target: %q is not a target: use %s", target, strings.Join(targetForms, ", "))
	}
	return nil
}

func (l *limits) auditTable(page adminapi.Audit) error {
	rows := [][]string{{"CHANGE", "TIME", "WHO", "WHAT", "CHANGED", "REASON"}}
	for _, e := range page.Entries {
		number := strconv.FormatInt(e.Version, 10)
		if e.Unreadable != "" {
			l.Note("Entry %s of the audit trail is unreadable: %s.", number, e.Unreadable)
		}
		if e.Unreadable != "" && e.Target == "" {
			rows = append(rows, []string{number, "-", "-", "-", l.Alarming("unreadable", true), "-"})
			continue
		}
		what := e.Action + " " + e.Target + untilTime(e.Until)
		if e.Outcome != "" {
			what += " (unknown whether it was applied)"
		}
		changed := l.Alarming("unreadable", true)
		if e.Unreadable == "" {
			changed = differences(e.Before, e.After)
		}
		rows = append(rows, []string{number, command.DateTime(e.At), adminapi.Who(&e.Actor), what, changed, e.Reason})
		for _, c := range e.More { // of the same change
			rows = append(rows, []string{"", "", "", e.Action + " " + c.Target + untilTime(e.Until), differences(c.Before, c.After), ""})
		}
	}
	return l.Table(rows...)
}
