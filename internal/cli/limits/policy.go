package limits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"

	"github.com/spf13/cobra"
)

// limitFlags are the flags that take limits.
type limitFlags struct {
	both, user, client, total, source []string
	requests, window                  string
	preset                            string
}

func (l *limits) register(cmd *cobra.Command, f *limitFlags) {
	cmd.Flags().StringArrayVar(&f.both, "limit", nil, "`LIMIT` for each user of the client and for the client itself; repeatable")
	cmd.Flags().StringVar(&f.requests, "requests", "", "`NUMBER` of requests, with --window: the same as one --limit")
	cmd.Flags().StringVar(&f.window, "window", "", "`DURATION`, with --requests: the same as one --limit")
	cmd.Flags().StringArrayVar(&f.user, "user", nil, "`LIMIT` for each user of the client; repeatable")
	cmd.Flags().StringArrayVar(&f.client, "client", nil, "`LIMIT` for the client itself (client_credentials); repeatable")
	cmd.Flags().StringArrayVar(&f.total, "total", nil, "`LIMIT` over all users and grants, beside the others; repeatable")
	cmd.Flags().StringArrayVar(&f.source, "source", nil, "`LIMIT` for each source address, beside the others; repeatable")
	cmd.Flags().StringVar(&f.preset, "preset", "", "`NAME` of a provider: the limits that it publishes (limits presets)")
	_ = cmd.RegisterFlagCompletionFunc("preset", l.completePreset) // fails only for a missing flag
}

// RegisterOver registers the flags for requests over the limit.
func RegisterOver(cmd *cobra.Command) {
	registerOverLimit(cmd)
	registerWait(cmd)
	registerBan(cmd)
	command.InTopic(command.LimitsTopic, cmd.Flags(), overLimitFlag, maxWaitFlag, maxWaitingFlag, banFlag)
}

// overInto sets the fields of doc from these flags, if given.
func overInto(cmd *cobra.Command, doc map[string]any) error {
	return cmp.Or(overLimitInto(cmd, doc), waitInto(cmd, doc), banInto(cmd, doc))
}

// overLimitFlag sets the response to a client over its limit, one of overLimits.
const overLimitFlag = "over-limit"

var overLimits = []string{string(ratelimit.OverLimitDeny), string(ratelimit.OverLimitReuse)}

func registerOverLimit(cmd *cobra.Command) {
	cmd.Flags().String(overLimitFlag, "", "what the client gets over its limit of client_credentials: deny, or reuse for its last token again")
}

// overLimitInto sets the field over_limit of doc if the flag is given.
func overLimitInto(cmd *cobra.Command, doc map[string]any) error {
	flag := cmd.Flags().Lookup(overLimitFlag)
	if !flag.Changed {
		return nil
	}
	if value := flag.Value.String(); !slices.Contains(overLimits, value) {
		return command.Usagef("--%s: %q is none of %s", overLimitFlag, value, strings.Join(overLimits, ", "))
	}
	doc["over_limit"] = flag.Value.String()
	return nil
}

// LimitSyntax describes the values of [limitFlags].
const LimitSyntax = `A limit is REQUESTS/WINDOW, such as 10/60s, with options after commas:
  name=NAME                        unique in its list (default per-minute and so on)
  frames=N                         frames of a window (default 1)
  algorithm=sliding|weighted|fixed how the window is estimated (default sliding)
  soft=SHARE                       share of the limit from which the client is warned (default 0.8)
  on_outage=share|memory|deny      how to decide while the store is away (default share)
  strict                           never more in any window, on all instances; makes requests wait
  lease_wait=DURATION              of a strict limit: the longest wait of a request (default 50ms)
  grants=GRANT+GRANT               of --user: count only authorization_code, refresh_token, password or,
                                   at a gateway, such as urn:ietf:params:oauth:grant-type:device_code

A preset gives its limits, as they are now: a later release with other figures changes
nothing that is set.`

// parse sets the fields user, client, total and source of doc from all flags except --preset. The
// error lists all problems.
func (f *limitFlags) parse(doc map[string]any) error {
	const pair = "--requests/--window"
	both, errs := syntax.ParseLimits("limit", f.both)
	var common string // the flags with limits for both lists
	if len(f.both) > 0 {
		common = "--limit"
	}
	if f.requests != "" || f.window != "" {
		common = cmp.Or(common, pair)
	}
	if (f.requests == "") != (f.window == "") {
		errs.Add("", "--requests and --window belong together")
	} else if f.requests != "" {
		l, wrong := syntax.ParseLimit(f.requests + "/" + f.window)
		both, errs = append(both, l), append(errs, wrong.Under(pair)...)
	}
	for _, own := range []struct {
		field string
		specs []string
	}{{"user", f.user}, {"client", f.client}} {
		list, wrong := syntax.ParseLimits(own.field, own.specs)
		errs = append(errs, wrong...)
		if len(list) > 0 && common != "" {
			errs.Add("", "%s and --%s contradict each other", common, own.field)
		}
		if list = append(list, both...); len(list) > 0 {
			doc[own.field] = list
		}
	}
	for i, specs := range [][]string{f.total, f.source} {
		list, wrong := syntax.ParseLimits(syntax.SharedLists[i], specs)
		if errs = append(errs, wrong...); len(list) > 0 {
			doc[syntax.SharedLists[i]] = list
		}
	}
	if f.preset != "" && (common != "" || len(doc) > 0) {
		errs.Add("", "--preset contradicts the limits of other flags: leave one out")
	}
	return errs.Err()
}

// addPreset sets the fields of doc to the lists of --preset, if given. It asks the server for the
// preset, so call it after checking the command line.
func (l *limits) addPreset(ctx context.Context, f *limitFlags, doc map[string]any) error {
	if f.preset == "" {
		return nil
	}
	p, err := l.preset(ctx, f.preset)
	if err != nil {
		return err
	}
	for name, list := range map[string][]adminapi.Limit{"user": p.User, "client": p.Client, "total": p.Total} {
		if len(list) > 0 {
			doc[name] = list
		}
	}
	return nil
}

func (l *limits) newGet() *cobra.Command {
	var tier string
	var candidate bool
	cmd := &cobra.Command{
		Use: "get [CLIENT]", Short: "Show what applies to a client, to all clients, or what a tier sets", Args: command.Takes("[CLIENT]"),
		Example: `  oauth-server limits get shop
  oauth-server limits get shop --candidate
  oauth-server limits get --tier gold`,
		ValidArgsFunction: l.completeClient,
	}
	l.registerTier(cmd, &tier, "show this tier")
	cmd.Flags().BoolVar(&candidate, "candidate", false, "show the limits that are tried, and what they would have denied")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case tier != "" && len(args) > 0:
			return contradicts(cmd, tierFlag)
		case tier != "" && candidate:
			return command.Usagef("limits get: --%s and --candidate contradict each other", tierFlag)
		case candidate:
			return l.showCandidate(cmd.Context(), args)
		case tier != "":
			return l.showTier(cmd.Context(), tier)
		case len(args) == 0:
			return show(cmd.Context(), l, "/settings", nil, l.settingsTable)
		}
		return show(cmd.Context(), l, policyPath(args[0]), nil, func(p adminapi.PolicyView) error {
			return l.policyTable(cmd.Context(), p)
		})
	}
	return cmd
}

// contradicts returns the error for a flag that is given together with a CLIENT.
func contradicts(cmd *cobra.Command, flag string) error {
	return command.Usagef("limits %s: CLIENT and --%s contradict each other", cmd.Name(), flag)
}

func (l *limits) settingsTable(s adminapi.SettingsView) error {
	from := func(field string) string {
		if slices.Contains(s.Meta.Changed, field) {
			return "changed here"
		}
		return "configuration file"
	}
	rows := withShared(s.Default.Total, from("default.total"), s.Default.Source, from("default.source"), [][]string{
		{"SETTING", "VALUE", "FROM"},
		{"mode", s.Mode, from("mode")},
		{"canary", fmt.Sprintf("%v%%", s.CanaryPercent), from("canary_percent")},
		{"user limits", syntax.ShowLimits(s.Default.User), from("default.user")},
		{"client limits", syntax.ShowLimits(s.Default.Client), from("default.client")},
		{"over limit", orNone(s.Default.OverLimit), from("default.over_limit")},
	}...)
	rows = append(append(rows, waitRow(s.Default.Waits, from("default.max_wait"))...),
		[]string{"ban", showBan(s.Default.Ban), from("default.ban")},
		[]string{"criticality", orNone(s.Default.Criticality), from("default.criticality")},
		[]string{"hide headers", yesNo(s.Default.HideHeaders), from("default.hide_headers")},
		[]string{"note", s.Note, ""})
	return l.Table(l.untilRow(s.Meta.Until, rows...)...)
}

// untilRow adds a row with the end of temporary settings, if there is one.
func (l *limits) untilRow(end time.Time, rows ...[]string) [][]string {
	if end.IsZero() {
		return rows
	}
	return append(rows, []string{"until", command.DateTime(end), "changed here"})
}

func (l *limits) policyTable(ctx context.Context, p adminapi.PolicyView) error {
	tier, err := l.tierOf(ctx, p.Effective.Tier)
	if err != nil {
		return err
	}
	users, err := l.overrideRows(ctx, p.ClientID, p.Effective.Overrides)
	if err != nil {
		return err
	}
	from := func(own, ofTier bool) string {
		switch {
		case own && p.Meta.Source == "api":
			return "changed here"
		case own:
			return "configuration file"
		case ofTier:
			return "tier " + tier.Name
		}
		return "all clients"
	}
	rows := [][]string{
		{"SETTING", "VALUE", "FROM"},
		{"mode", p.Effective.Mode, from(p.Mode != "", tier.Mode != "")},
		{"trusted", yesNo(p.Effective.Trusted), from(p.Trusted, false)},
		{"user limits", syntax.ShowLimits(p.Effective.User), from(p.User != nil, tier.User != nil)},
		{"client limits", syntax.ShowLimits(p.Effective.Client), from(p.Client != nil, tier.Client != nil)},
		{"over limit", orNone(p.Effective.OverLimit), from(p.OverLimit != "", tier.OverLimit != "")},
	}
	rows = withShared(p.Effective.Total, from(p.Total != nil, tier.Total != nil), p.Effective.Source, from(p.Source != nil, tier.Source != nil), rows...)
	rows = append(append(rows, waitRow(waitsOf(p.Effective.Waits, p.Waits, tier.Waits), from(p.MaxWait != "", tier.MaxWait != ""))...),
		[]string{"ban", showBan(p.Effective.Ban), from(p.Ban != nil, tier.Ban != nil)},
		[]string{"criticality", orNone(p.Effective.Criticality), from(p.Criticality != "", tier.Criticality != "")},
		[]string{"hide headers", yesNo(p.Effective.HideHeaders), from(p.HideHeaders, tier.HideHeaders)})
	rows = append(append(rows, users...), []string{"note", p.Note, ""})
	return l.Table(l.untilRow(p.Meta.Until, rows...)...)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (l *limits) newSet() *cobra.Command {
	var f limitFlags
	var of policyFlags
	var note, mode string
	var hide bool
	cmd := &cobra.Command{
		Use: "set [CLIENT]", Short: "Set the limits of a client, of a tier, or the default limits", Args: command.Takes("[CLIENT]"),
		Long: `Set the limits of a client, of a tier, or the default limits.

With CLIENT, --tier gives the client that tier. Without, it makes or changes the tier.

What a client has not set comes from its tier, or else from the settings for all clients.
If the configuration file has a policy for the client, the first change takes its fields
over, until "limits unset CLIENT". A list that a preset has not stays as it is.`,
		Annotations: map[string]string{command.TopicKey: command.LimitsTopic},
		Example: `  oauth-server limits set shop --user 10/60s --user 2/1s --client 100/60s
  oauth-server limits set shop --for-user nightly@example.com --user 500/60s
  oauth-server limits set --tier gold --user 100/60s --max-wait 2s`,
		ValidArgsFunction: l.completeClient,
	}
	l.register(cmd, &f)
	RegisterOver(cmd)
	RegisterCriticality(cmd)
	of.register(cmd)
	l.registerTier(cmd, &of.tier, "tier of the client; without CLIENT, the tier to make or change")
	cmd.Flags().StringVar(&mode, "mode", "", "mode of the clients of a tier: enforce, dry_run or off")
	cmd.Flags().StringVar(&note, "note", "", "note for other operators")
	cmd.Flags().BoolVar(&hide, "hide-headers", false, "leave the RateLimit headers out of answers")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		doc, patch := map[string]any{}, map[string]any{}
		if err := cmp.Or(f.parse(doc), overInto(cmd, doc), criticalityInto(cmd, doc)); err != nil {
			return err
		}
		if cmd.Flags().Changed("hide-headers") {
			doc["hide_headers"] = hide
		}
		if cmd.Flags().Changed("note") {
			patch["note"] = note
		}
		if len(args) > 0 && cmd.Flags().Changed(tierFlag) {
			patch[tierFlag] = of.tier
		}
		if cmd.Flags().Changed("mode") {
			patch["mode"] = mode
		}
		if err := of.checkSet(cmd, args, len(doc)+len(patch) == 0 && f.preset == ""); err != nil {
			return err
		}
		if err := l.addPreset(cmd.Context(), &f, doc); err != nil {
			return err
		}
		return l.setFields(cmd, args, &of, doc, patch)
	}
	return l.changes(cmd)
}

// checkSet rejects flag combinations that "limits set" does not support.
func (f *policyFlags) checkSet(cmd *cobra.Command, args []string, nothing bool) error {
	switch {
	case cmd.Flags().Changed(forUser):
		return f.checkOverride(cmd, args, nothing)
	case cmd.Flags().Changed("mode") && (len(args) > 0 || f.tier == ""):
		return command.Usagef("limits set: --mode is about a tier, without CLIENT; for a client or all use limits dry-run")
	case nothing:
		return command.Usagef("limits set: nothing to set: give --limit, --user, --client, --total, --source, --preset, --tier, --over-limit, --max-wait, --ban, --criticality, --hide-headers or --note")
	}
	return nil
}

// setFields changes fields of a policy, of a tier, of the limits of one user, or of the settings for all
// clients. In the settings, the fields of doc go below default.
func (l *limits) setFields(cmd *cobra.Command, args []string, of *policyFlags, doc, patch map[string]any) error {
	all := maps.Clone(patch)
	maps.Copy(all, doc)
	switch {
	case cmd.Flags().Changed(forUser):
		return l.setOverride(cmd.Context(), args[0], of.user, all)
	case len(args) == 0 && of.tier != "":
		return l.setTier(cmd.Context(), of.tier, all)
	case len(args) > 0:
		return l.patchPolicy(cmd.Context(), args[0], all, "The policy of "+args[0]+" is now set")
	}
	if len(doc) > 0 {
		patch["default"] = doc
	}
	return l.patchSettings(cmd.Context(), patch, "The default limits are now set")
}

func (l *limits) newCanary() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "canary PERCENT", Short: "Enforce on a share of the clients; the others are in dry-run", Args: command.Takes("PERCENT"),
		Long: `Enforce on a share of the clients; the others are in dry-run.

The share of a client depends on its client_id alone, so it is the same on all
instances, and a larger share contains every smaller one. A client with a mode of
its own keeps it.`,
		Example: "  oauth-server limits canary 5%\n  oauth-server limits canary 100% --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			share, err := syntax.ParsePercent(args[0])
			if err != nil {
				return err
			}
			return l.patchSettings(cmd.Context(), map[string]any{"canary_percent": share}, fmt.Sprintf("Limits are now enforced on %v%% of the clients", share))
		},
	})
}
