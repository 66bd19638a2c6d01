package limits

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/limiter/activity"
)

func (l *limits) newTop() *cobra.Command {
	var limit int
	var denied, counters, waste, shed bool
	cmd := &cobra.Command{
		Use: "top [CLIENT]", Short: "Show which clients ask the most, are near a limit, or were denied", Args: command.Takes("[CLIENT]"),
		Long: `Show the busiest clients, the users nearest to a limit and the users denied most in the last ten
minutes, of all clients or of one. LIMIT is the limit at the user's last request: a change shows
with the next one. Give a flag to see one list:

  --denied    users who were denied, or would have been, with their user_hash in the access log,
              and clients that got their last token again
  --counters  all current counts of CLIENT and its users
  --waste     clients that get tokens although an equal one (same credential, user and scopes) has
              more than half of its lifetime left; each instance compares only its own tokens,
              and a gateway has none: run simulate on its log
  --shed      clients with requests refused because of overload`,
		Example: `  oauth-server limits top shop --watch
  oauth-server limits top --denied`,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := topQuery(args, limit)
			if err := command.AtMostOne(cmd, "denied", "counters", "waste", "shed"); err != nil {
				return err
			}
			switch {
			case counters && len(args) == 0:
				return command.Usagef("limits top: --counters needs a CLIENT")
			case counters && cmd.Flags().Changed("limit"):
				return show(cmd.Context(), l, countersPath(args[0]), url.Values{"limit": query["limit"]}, l.countersTable)
			case counters:
				return show(cmd.Context(), l, countersPath(args[0]), nil, l.countersTable)
			case denied:
				return show(cmd.Context(), l, "/top", query, l.deniedTable)
			case waste:
				query.Set("sort", "wasted")
				return show(cmd.Context(), l, "/top", query, l.wasteTable)
			case shed:
				query.Set("sort", "shed")
				return show(cmd.Context(), l, "/top", query, l.shedTable)
			}
			return show(cmd.Context(), l, "/top", query, l.topTable)
		},
	}
	cmd.Flags().BoolVar(&denied, "denied", false, "show the users denied most, including dry-run")
	cmd.Flags().BoolVar(&counters, "counters", false, "show the current counts of CLIENT and its users")
	cmd.Flags().BoolVar(&waste, "waste", false, "show clients that request tokens too early")
	cmd.Flags().BoolVar(&shed, "shed", false, "show clients with requests refused because of overload")
	cmd.Flags().IntVar(&limit, "limit", 20, "number of rows per list, at most 100")
	return l.watched(cmd)
}

func topQuery(args []string, limit int) url.Values {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if len(args) > 0 {
		query.Set("client_id", args[0])
	}
	return query
}

func (l *limits) topTable(top adminapi.Top) error {
	rows := [][]string{append([]string{"CLIENT", "REQUESTS", "ALLOWED", "DENIED", "WOULD DENY"}, reusedHeading...)}
	waits := slices.ContainsFunc(top.Talkers, func(c adminapi.ClientCounts) bool { return c.Delayed+c.WouldDelay > 0 })
	if waits {
		rows[0] = append(rows[0], "DELAYED", "WOULD DELAY")
	}
	overloaded := slices.ContainsFunc(top.Talkers, func(c adminapi.ClientCounts) bool { return c.Shed+c.WouldShed > 0 })
	if overloaded {
		rows[0] = append(rows[0], shedHeading...)
	}
	for _, c := range top.Talkers {
		row := []string{
			c.ClientID, command.Number(c.Total() + c.Shed), command.Number(c.Allowed + c.Trusted + c.Off),
			l.Alarming(command.Number(c.Denied+c.Banned), c.Denied+c.Banned > 0), l.Notable(command.Number(c.WouldDeny+c.WouldBan), c.WouldDeny+c.WouldBan > 0),
		}
		row = append(row, l.reused(&c.Counts)...)
		if waits {
			row = append(row, l.Notable(command.Number(c.Delayed), c.Delayed > 0), l.Notable(command.Number(c.WouldDelay), c.WouldDelay > 0))
		}
		if overloaded {
			row = append(row, l.shed(&c.Counts)...)
		}
		rows = append(rows, row)
	}
	if err := l.Table(rows...); err != nil {
		return err
	}
	rows = [][]string{{""}, {"CLIENT", "USER", "LIMIT", "ESTIMATE", "USED", "NEXT FREE"}}
	for _, k := range top.NearLimit {
		rows = append(rows, l.counterRow(k))
	}
	if err := l.Table(rows...); err != nil {
		return err
	}
	if rows = l.deniedRows(&top); len(rows) > 1 {
		if err := l.Table(append([][]string{{""}}, rows...)...); err != nil {
			return err
		}
	}
	return l.period(top.Since)
}

// shedHeading is the heading of the columns that shed returns.
var shedHeading = []string{"SHED", "WOULD SHED"}

// shed returns how many requests of a client were refused because of overload, or would have been.
func (l *limits) shed(c *activity.Counts) []string {
	return []string{l.Alarming(command.Number(c.Shed), c.Shed > 0), l.Notable(command.Number(c.WouldShed), c.WouldShed > 0)}
}

// shedTable shows the clients with shed requests, beside the number of requests that the limiter
// decided.
func (l *limits) shedTable(top adminapi.Top) error {
	rows := [][]string{append([]string{"CLIENT", "DECIDED BY LIMITS"}, shedHeading...)}
	for i := range top.Talkers {
		c := &top.Talkers[i]
		rows = append(rows, append([]string{c.ClientID, command.Number(c.Total())}, l.shed(&c.Counts)...))
	}
	return l.countedTable(rows, "No client had requests refused because of overload.", top.Since)
}

// countedTable writes a table of counts since a time, or a note instead of an empty table.
func (l *limits) countedTable(rows [][]string, none string, since time.Time) error {
	if len(rows) == 1 {
		l.Note("%s", none)
	} else if err := l.Table(rows...); err != nil {
		return err
	}
	return l.period(since)
}

// reusedHeading is the heading of the columns that reused returns.
var reusedHeading = []string{"REUSED", "WOULD REUSE"}

// reused returns how many requests were answered with the client's last token, or would have been.
func (l *limits) reused(c *activity.Counts) []string {
	return []string{l.Notable(command.Number(c.Reused), c.Reused > 0), l.Notable(command.Number(c.WouldReuse), c.WouldReuse > 0)}
}

// reusedRows returns a heading and the clients that got their last token again, which is not a
// denial.
func (l *limits) reusedRows(top *adminapi.Top) [][]string {
	rows := [][]string{append([]string{"CLIENT"}, reusedHeading...)}
	for i := range top.Talkers {
		if c := &top.Talkers[i]; c.Reused+c.WouldReuse > 0 {
			rows = append(rows, append([]string{c.ClientID}, l.reused(&c.Counts)...))
		}
	}
	return rows
}

// wasteTable shows how many tokens each client got while it still had an equal one.
func (l *limits) wasteTable(top adminapi.Top) error {
	rows := [][]string{{"CLIENT", "TOKENS ISSUED", "WASTED", "SHARE", "EARLY REFRESHES", "REUSED"}}
	for _, c := range top.Talkers {
		share := "-"
		if c.Issued > 0 {
			share = fmt.Sprintf("%d%%", c.Wasted*100/c.Issued)
		}
		rows = append(rows, []string{
			c.ClientID, command.Number(c.Issued), l.Notable(command.Number(c.Wasted), c.Wasted > 0), share, command.Number(c.EarlyRefreshes), command.Number(c.Reused),
		})
	}
	return l.countedTable(rows, "No token of this server was issued while an equal one had more than half of its lifetime left.", top.Since)
}

// deniedRows returns a heading and the users who were denied.
func (l *limits) deniedRows(top *adminapi.Top) [][]string {
	rows := [][]string{{"CLIENT", "USER", "HASH IN THE LOG", "DENIED", "WOULD DENY", "CANDIDATE DENIES"}}
	add := func(client, user, hash string, d activity.Denials) {
		rows = append(rows, []string{
			client, user, hash,
			l.Alarming(command.Number(d.Denied), d.Denied > 0), l.Notable(command.Number(d.WouldDeny), d.WouldDeny > 0), command.Number(d.CandidateWouldDeny),
		})
	}
	for _, u := range top.Denied {
		user, hash := "(the client itself)", "-"
		if u.Username != nil {
			user, hash = *u.Username, u.UserHash
		}
		add(u.ClientID, user, hash, u.Denials)
	}
	if o := top.DeniedOthers; o != nil && o.Total() > 0 && len(top.Talkers) > 0 {
		add(top.Talkers[0].ClientID, "(others)", "-", *o)
	}
	return rows
}

// deniedTable shows the users who were denied, and the clients that got their last token again.
func (l *limits) deniedTable(top adminapi.Top) error {
	rows := l.deniedRows(&top)
	if len(rows) == 1 {
		l.Note("No request was denied, or would have been.")
	} else if err := l.Table(rows...); err != nil {
		return err
	}
	if rows = l.reusedRows(&top); len(rows) > 1 {
		if err := l.Table(append([][]string{{""}}, rows...)...); err != nil {
			return err
		}
	}
	return l.period(top.Since)
}

// period writes the start of the period that the figures above cover, for a person.
func (l *limits) period(since time.Time) error {
	if l.Output != command.OutputText || since.IsZero() {
		return nil
	}
	_, err := fmt.Fprintln(l.Out, "\nrequests counted since "+command.DateTime(since))
	return err
}

// targetForms are the forms of --target.
var targetForms = []string{"settings", "policies/CLIENT", "candidates/CLIENT", "tiers/NAME", "'overrides/CLIENT USERNAME'", "clients/CLIENT/counters", "clients/CLIENT", "users/NAME", "store"}

func isTarget(s string) bool {
	kind, rest, _ := strings.Cut(s, "/")
	return s == "settings" || s == "store" ||
		slices.Contains([]string{"policies", "candidates", "tiers", "overrides", "clients", "users"}, kind) && rest != ""
}

// listOrder holds the filter and the order of "limits list".
type listOrder struct {
	by, filter string
	used       map[string]float64 // most used share of a limit, by client; set only for that order
}

var listOrders = []string{"name", "requests", "denied", "usage"}

func (o *listOrder) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.by, "sort", "name", "sort by name, requests, denied (including dry-run), or usage (of the fullest limit)")
	cmd.Flags().StringVar(&o.filter, "filter", "", "list only clients with this text in their ID or name, ignoring case")
}

type listedClient = document[adminapi.Client]

func (o *listOrder) matches(id, name string) bool {
	text := strings.ToLower(o.filter)
	return strings.Contains(strings.ToLower(id), text) || strings.Contains(strings.ToLower(name), text)
}

// sort sorts clients that are already sorted by name.
func (o *listOrder) sort(ctx context.Context, l *limits, clients []listedClient) error {
	var value func(c *adminapi.Client) float64
	switch o.by {
	case "name":
		return nil
	case "requests":
		value = func(c *adminapi.Client) float64 { return float64(c.Activity.Total()) }
	case "denied":
		value = func(c *adminapi.Client) float64 { return float64(c.Activity.Denials().Total()) }
	case "usage":
		if err := o.readUsed(ctx, l); err != nil {
			return err
		}
		value = func(c *adminapi.Client) float64 { return o.used[c.ClientID] }
	default:
		return command.Usagef("--sort: %q is not one of %s", o.by, strings.Join(listOrders, ", "))
	}
	slices.SortStableFunc(clients, func(a, b listedClient) int { return cmp.Compare(value(&b.Value), value(&a.Value)) })
	return nil
}

// readUsed reads the counters nearest their limits.
func (o *listOrder) readUsed(ctx context.Context, l *limits) error {
	top, err := get[adminapi.Top](ctx, l, "/top", url.Values{"limit": {"100"}})
	if err != nil {
		return err
	}
	o.used = map[string]float64{}
	for _, k := range top.NearLimit {
		if !k.Candidate {
			o.used[k.ClientID] = max(o.used[k.ClientID], k.Usage)
		}
	}
	return nil
}

// heading and row add the column of the sort key, unless it is one of the usual columns.
func (o *listOrder) heading(columns ...string) []string {
	if o.by == "usage" {
		return append(columns, "USED")
	}
	return columns
}

func (o *listOrder) row(l *limits, c *adminapi.Client, columns []string) []string {
	if o.by != "usage" {
		return columns
	}
	if share, known := o.used[c.ClientID]; known {
		return append(columns, l.used(share))
	}
	return append(columns, "-") // not among the counters nearest their limits
}
