package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminapi"
)

func (l *limits) newTier() *cobra.Command {
	cmd := group("tier", "Show and change the limits that clients have in common by name",
		l.newTierList(), l.newTierShow(), l.newTierSet(), l.newTierDelete())
	cmd.Long = `Show and change the limits that clients have in common by name.

A tier is a policy with a name. A client gets it by "limits set CLIENT --tier NAME": what
the policy of the client leaves open comes from the tier, and what that leaves open
from the settings for all clients. A change of a tier is one change, for all its
clients.`
	cmd.Example = `  oauth-server limits tier set gold --user 100/60s --client 1000/60s
  oauth-server limits set shop --tier gold`
	return cmd
}

func tierPath(name string) string { return "/tiers/" + adminapi.Escape(name) }

func (l *limits) newTierList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tiers, with how many clients have each", Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := l.tiers(cmd.Context())
			if err != nil {
				return err
			}
			rows, raw := [][]string{{"TIER", "MODE", "USER LIMITS", "CLIENT LIMITS", sharedHeading, "CLIENTS", "NOTE"}}, []json.RawMessage{}
			for _, one := range all {
				var t adminapi.TierView
				if err := json.Unmarshal(one, &t); err != nil {
					return fmt.Errorf("read the answer: %w", err)
				}
				mode := t.Mode
				if mode == "" {
					mode = "-"
				}
				raw = append(raw, one)
				rows = append(rows, []string{t.Name + untilTime(t.Meta.Until), mode, showLimits(t.User), showLimits(t.Client), showShared(t.Total, t.Source), strconv.Itoa(t.Clients), t.Note})
			}
			return l.list(map[string]any{"tiers": raw}, withoutEmpty(rows)...)
		},
	}
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

func (l *limits) newTierShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a tier", Args: takes("NAME"), ValidArgsFunction: l.completeTier,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := show(cmd.Context(), l, tierPath(args[0]), nil, l.tierTable)
			if notFound(err) {
				return fmt.Errorf("there is no tier %q", args[0])
			}
			return err
		},
	}
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
		{"user limits", showLimits(t.User), from(t.User != nil)},
		{"client limits", showLimits(t.Client), from(t.Client != nil)},
		{"over limit", orNone(t.OverLimit), from(t.OverLimit != "")},
	}...)
	rows = append(append(rows, waitRow(t.Waits, "tier")...),
		[]string{"ban", showBan(t.Ban), from(t.Ban != nil)},
		[]string{"criticality", orNone(t.Criticality), from(t.Criticality != "")},
		[]string{"hide headers", yesNo(t.HideHeaders), from(t.HideHeaders)},
		[]string{"clients", strconv.Itoa(t.Clients), ""},
		[]string{"note", t.Note, ""})
	return l.table(l.untilRow(t.Meta.Until, rows...)...)
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (l *limits) newTierSet() *cobra.Command {
	var f limitFlags
	var note, mode string
	var hide bool
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make a tier, or change one for all its clients", Args: takes("NAME"), ValidArgsFunction: l.completeTier,
		Long: "Make a tier, or change one for all its clients. What is not given stays as it is.\n\n" + limitSyntax + presetLists + "\n\n" + banSyntax,
		Example: `  oauth-server limits tier set gold --user 100/60s --client 1000/60s
  oauth-server limits tier set trial --limit 10/60s --mode dry_run
  oauth-server limits tier set partners --preset okta`,
	}
	l.register(cmd, &f)
	registerOver(cmd)
	registerCriticality(cmd)
	cmd.Flags().StringVar(&mode, "mode", "", "mode of its clients: enforce, dry_run or off")
	cmd.Flags().StringVar(&note, "note", "", "note for other operators")
	cmd.Flags().BoolVar(&hide, "hide-headers", false, "leave the RateLimit headers and violated-policies out of answers")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		patch := map[string]any{}
		if err := cmp.Or(f.parse(patch), overInto(cmd, patch), criticalityInto(cmd, patch)); err != nil {
			return err
		}
		for name, v := range map[string]any{"mode": mode, "note": note} {
			if cmd.Flags().Changed(name) {
				patch[name] = v
			}
		}
		if cmd.Flags().Changed("hide-headers") {
			patch["hide_headers"] = hide
		}
		if len(patch) == 0 && f.preset == "" {
			return usagef("limits tier set: nothing to set: give --limit, --user, --client, --total, --source, --preset, --mode, --over-limit, --max-wait, --ban, --criticality, --hide-headers or --note")
		}
		if err := l.addPreset(cmd.Context(), &f, patch); err != nil {
			return err
		}
		return l.perform(cmd.Context(), change{
			read: tierPath(args[0]), method: http.MethodPatch, body: patch, done: "The tier " + args[0] + " is now set for all its clients",
		})
	}
	return l.changes(cmd)
}

func (l *limits) newTierDelete() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "delete NAME", Short: "Remove a tier that no client has", Args: takes("NAME"), ValidArgsFunction: l.completeTier,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := l.perform(cmd.Context(), change{
				read: tierPath(args[0]), method: http.MethodDelete, done: "The tier " + args[0] + " is now removed",
			})
			if notFound(err) {
				return fmt.Errorf("there is no tier %q", args[0])
			}
			return err
		},
	})
}

// completeTier completes the first argument with the names of tiers.
func (l *limits) completeTier(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return l.completeTierName(cmd, args, typed)
}

func (l *limits) completeTierName(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	l.timeout = completeWithin
	raw, err := l.fetch(cmd.Context(), "/tiers", url.Values{"prefix": {typed}})
	var page adminapi.Tiers
	if err == nil && json.Unmarshal(raw, &page) == nil {
		for i := range page.Tiers {
			out = append(out, page.Tiers[i].Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
