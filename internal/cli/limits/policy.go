package limits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"
)

// limitFlags are the flags that take limits.
type limitFlags struct {
	both, user, client, total, source []string
	requests, window                  string
	preset                            string
}

func (l *limits) register(cmd *cobra.Command, f *limitFlags) {
	cmd.Flags().StringArrayVar(&f.both, "limit", nil, "`LIMIT` per user, and for the client itself; repeatable")
	cmd.Flags().StringVar(&f.requests, "requests", "", "`NUMBER` of requests; with --window, same as one --limit")
	cmd.Flags().StringVar(&f.window, "window", "", "`DURATION`; with --requests, same as one --limit")
	cmd.Flags().StringArrayVar(&f.user, "user", nil, "`LIMIT` per user of the client; repeatable")
	cmd.Flags().StringArrayVar(&f.client, "client", nil, "`LIMIT` for the client itself (client_credentials); repeatable")
	cmd.Flags().StringArrayVar(&f.total, "total", nil, "`LIMIT` for all users and grants together; repeatable")
	cmd.Flags().StringArrayVar(&f.source, "source", nil, "`LIMIT` per source address; repeatable")
	cmd.Flags().StringVar(&f.preset, "preset", "", "`NAME` of a provider, to use its limits (see limits presets)")
}

// LimitSyntax describes the values of [limitFlags].
const LimitSyntax = `A limit is REQUESTS/WINDOW, such as 10/60s, with comma-separated options:
  name=NAME                     unique in its list (default per-minute and so on)
  frames=N                      frames per window (default 1)
  algorithm=ALGORITHM           estimate of the window: sliding (default), weighted or fixed
  soft=SHARE                    share of the limit at which to count a warning (default 0.8)
  on_outage=share|memory|deny   how to decide without the store (default share)
  strict                        never exceed the limit in any window; requests may wait
  lease_wait=DURATION           strict limits: longest wait of a request (default 50ms)
  grants=GRANT+GRANT            --user: count only authorization_code, refresh_token, password,
                                or urn:ietf:params:oauth:grant-type:… at a gateway

A preset copies the limits of a provider as this release knows them. Later releases do not change
limits that you have set.`

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
		errs.Add("", "--requests needs --window, and --window needs --requests")
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
			errs.Add("", "%s and --%s cannot be used together", common, own.field)
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
		errs.Add("", "--preset cannot be used together with flags for limits")
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
	for name, list := range map[string][]ratelimit.Limit{"user": p.User, "client": p.Client, "total": p.Total} {
		if len(list) > 0 {
			doc[name] = list
		}
	}
	return nil
}

func (l *limits) newGet() *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use: "get [CLIENT]", Short: "Show the limits of a client, of a tier, or the default limits", Args: command.Takes("[CLIENT]"),
		Example: `  oauth-server limits get shop
  oauth-server limits get shop --candidate
  oauth-server limits get --tier gold`,
	}
	f.addTier(cmd, "show this tier")
	cmd.Flags().BoolVar(&f.candidate, "candidate", false, "show the candidate, and what it would have denied")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		table := l.settingsTable
		switch {
		case f.tier != "" && len(args) > 0:
			return contradicts(cmd, tierFlag)
		case f.tier != "" && f.candidate:
			return command.Usagef("limits get: --%s and --candidate cannot be used together", tierFlag)
		case f.candidate:
			table = l.candidateTable
		case f.tier != "":
			table = l.tierTable
		case len(args) > 0:
			table = func(v view) error { return l.policyTable(cmd.Context(), v) }
		}
		of := f.of(args)
		return of.missing(show(cmd.Context(), l, of.path, nil, table))
	}
	return cmd
}

func (l *limits) newSet() *cobra.Command {
	var f limitFlags
	var of subjectFlags
	var note, mode string
	var hide bool
	cmd := &cobra.Command{
		Use: "set [CLIENT]", Short: "Set the limits of a client, of a tier, or the default limits", Args: command.Takes("[CLIENT]"),
		Long: `Set the limits of a client, of a tier, or the default limits.

With CLIENT, --tier puts the client into a tier. Without CLIENT, it creates or changes the tier.

What a client has not set comes from its tier, or else from the settings for all clients.
If the configuration file has a policy for the client, the first change takes its fields
over, until "limits unset CLIENT". A list that is not in a preset stays as it is.`,
		Annotations: map[string]string{command.TopicKey: command.LimitsTopic},
		Example: `  oauth-server limits set shop --user 10/60s --user 2/1s --client 100/60s
  oauth-server limits set shop --for-user nightly@example.com --user 500/60s
  oauth-server limits set --tier gold --user 100/60s --max-wait 2s`,
	}
	l.register(cmd, &f)
	RegisterOver(cmd)
	of.addUser(cmd)
	of.addTier(cmd, "tier of the client; without CLIENT, the tier to create or change")
	cmd.Flags().StringVar(&mode, "mode", "", "mode of the clients in a tier: enforce, dry_run or off")
	cmd.Flags().StringVar(&note, "note", "", "note for other operators")
	cmd.Flags().BoolVar(&hide, "hide-headers", false, "omit the RateLimit headers")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		doc, patch := map[string]any{}, map[string]any{}
		if err := cmp.Or(f.parse(doc), overInto(cmd, doc)); err != nil {
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
		if subject := of.of(args); subject == settings && len(doc) > 0 {
			patch["default"] = doc
		} else {
			maps.Copy(patch, doc)
		}
		return l.perform(cmd.Context(), of.of(args), http.MethodPatch, patch, of.of(args).set)
	}
	return l.changes(cmd)
}

// checkSet rejects flag combinations that "limits set" does not support.
func (f *subjectFlags) checkSet(cmd *cobra.Command, args []string, nothing bool) error {
	switch {
	case cmd.Flags().Changed(forUser):
		others := slices.Concat([]string{"client", "total", "source", "limit", "requests", "window", "preset"}, overNames, []string{"hide-headers", tierFlag})
		if err := f.checkForUser(cmd, args, others...); err != nil || !nothing {
			return err
		}
		return command.Usagef("limits set: nothing to set: give --user or --note with --%s", forUser)
	case cmd.Flags().Changed("mode") && (len(args) > 0 || f.tier == ""):
		return command.Usagef("limits set: --mode is only for a tier, without CLIENT; for a client or all clients use limits dry-run")
	case nothing:
		return command.Usagef("limits set: nothing to set: give --limit, --user, --client, --total, --source, --preset, --tier, --over-limit, --max-wait, --ban, --criticality, --hide-headers or --note")
	}
	return nil
}

func (l *limits) newCanary() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "canary PERCENT", Short: "Enforce on a share of the clients; the others are in dry-run", Args: command.Takes("PERCENT"),
		Long: `Enforce on a share of the clients; the others are in dry-run.

The client_id alone decides whether a client is in the share. It is the same on all instances,
and clients in a smaller share are also in a larger one. A client with its own mode keeps it.`,
		Example: "  oauth-server limits canary 5%\n  oauth-server limits canary 100% --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			share, err := syntax.ParsePercent(args[0])
			if err != nil {
				return err
			}
			done := fmt.Sprintf("Limits are now enforced on %v%% of the clients", share)
			return l.perform(cmd.Context(), settings, http.MethodPatch, map[string]any{"canary_percent": share}, done)
		},
	})
}
