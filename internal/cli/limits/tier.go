package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/cli/limits/syntax"

	"github.com/spf13/cobra"
)

func tierPath(name string) string { return "/tiers/" + adminapi.Escape(name) }

// tierFlag names a tier: the one of CLIENT or, without CLIENT, the tier that a command is about.
const tierFlag = "tier"

func (l *limits) registerTier(cmd *cobra.Command, name *string, usage string) {
	cmd.Flags().StringVar(name, tierFlag, "", usage)
	_ = cmd.RegisterFlagCompletionFunc(tierFlag, l.completeTierName) // fails only for a missing flag
}

// listTiers writes the tiers, with how many clients have each.
func (l *limits) listTiers(ctx context.Context) error {
	all, err := l.tiers(ctx)
	if err != nil {
		return err
	}
	rows, raw := [][]string{{"TIER", "MODE", "USER LIMITS", "CLIENT LIMITS", sharedHeading, "CLIENTS", "NOTE"}}, []json.RawMessage{}
	for _, one := range all {
		var t adminapi.TierView
		if err := json.Unmarshal(one, &t); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		raw = append(raw, one)
		rows = append(rows, []string{
			t.Name + untilTime(t.Meta.Until), orNone(t.Mode), syntax.ShowLimits(t.User), syntax.ShowLimits(t.Client), showShared(t.Total, t.Source), strconv.Itoa(t.Clients), t.Note,
		})
	}
	return l.List(map[string]any{"tiers": raw}, withoutEmpty(rows)...)
}

// tiers reads all pages of the list of tiers.
func (l *limits) tiers(ctx context.Context) (all []json.RawMessage, err error) {
	query := url.Values{}
	for {
		raw, err := l.fetch(ctx, "/tiers", query)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tiers []json.RawMessage `json:"tiers"`
			Next  string            `json:"next"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		all = append(all, page.Tiers...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}

// showTier writes a tier.
func (l *limits) showTier(ctx context.Context, name string) error {
	return noTier(name, show(ctx, l, tierPath(name), nil, l.tierTable))
}

// noTier replaces the error for a tier that does not exist. name is empty if err is not about a tier.
func noTier(name string, err error) error {
	if name != "" && notFound(err) {
		return fmt.Errorf("there is no tier %q", name)
	}
	return err
}

func (l *limits) tierTable(t adminapi.TierView) error {
	from := func(own bool) string {
		if own {
			return "tier"
		}
		return "all clients"
	}
	rows := withShared(t.Total, from(t.Total != nil), t.Source, from(t.Source != nil), [][]string{
		{"SETTING", "VALUE", "FROM"},
		{"mode", orNone(t.Mode), from(t.Mode != "")},
		{"user limits", syntax.ShowLimits(t.User), from(t.User != nil)},
		{"client limits", syntax.ShowLimits(t.Client), from(t.Client != nil)},
		{"over limit", orNone(t.OverLimit), from(t.OverLimit != "")},
	}...)
	rows = append(append(rows, waitRow(t.Waits, "tier")...),
		[]string{"ban", showBan(t.Ban), from(t.Ban != nil)},
		[]string{"criticality", orNone(t.Criticality), from(t.Criticality != "")},
		[]string{"hide headers", yesNo(t.HideHeaders), from(t.HideHeaders)},
		[]string{"clients", strconv.Itoa(t.Clients), ""},
		[]string{"note", t.Note, ""})
	return l.Table(l.untilRow(t.Meta.Until, rows...)...)
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// setTier changes fields of a tier, and makes the tier if it does not exist.
func (l *limits) setTier(ctx context.Context, name string, fields map[string]any) error {
	return l.perform(ctx, change{
		read: tierPath(name), method: http.MethodPatch, body: fields, done: "The tier " + name + " is now set for all its clients",
	})
}

func (l *limits) completeTierName(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	l.Timeout = connect.CompleteWithin
	raw, err := l.fetch(cmd.Context(), "/tiers", url.Values{"prefix": {typed}})
	var page adminapi.Tiers
	if err == nil && json.Unmarshal(raw, &page) == nil {
		for i := range page.Tiers {
			out = append(out, page.Tiers[i].Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
