package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/limiter/preset"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/strict/fielderr"
)

// simulation is the command "simulate".
type simulation struct {
	*command.Env
	logFlags
	policies     []string
	files        policyFiles // the policies
	asConfigured bool
	limits       []string
	presets      []string
	target, of   string
	write        string
	report       string
	lifetime     time.Duration
	maxKeys, top int
}

// logFlags describe how to read logs.
type logFlags struct {
	format, mapping, zone string
	strict                bool
}

// New makes the simulate command.
func New(c *command.Env) *cobra.Command {
	s := &simulation{Env: c}
	cmd := &cobra.Command{
		Use: "simulate LOG...", Short: "Show who limits would deny, by replaying a log", Args: cobra.ArbitraryArgs,
		Long: `Show who limits would deny, by replaying the token requests in a log of this server or of another
identity provider. It uses the same code as the server, but needs no server.

LOG is a file, which may be compressed with gzip or zstd; - reads standard input. Several files are
merged by time. Without --policies, the built-in limits apply. Compare limits with --limit and
--preset, or find the lowest limit that leaves most clients untouched with --target.
docs/simulate.md describes log formats and mappings.`,
		Example: `  oauth-server simulate keycloak.log.gz --limit 50/60s,100/60s,200/60s
  oauth-server simulate auth0.json --target 99.9% --write found.yaml`,
		RunE: s.run,
	}
	s.register(cmd)
	return cmd
}

// register adds the flags.
func (l *logFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.format, "format", events.Auto, "format of the log: "+strings.Join(events.Formats(), ", "))
	f.StringVar(&l.mapping, "map", "", "`FIELDS` of a JSON or CSV log, such as client=.app,user=.sub,time=.at")
	f.StringVar(&l.zone, "zone", "UTC", "time `ZONE` of times without one, such as Europe/Berlin")
	f.BoolVar(&l.strict, "strict", false, "stop at the first unreadable line")
}

func (s *simulation) register(cmd *cobra.Command) {
	f := cmd.Flags()
	s.logFlags.register(cmd)
	f.StringArrayVar(&s.policies, "policies", nil, "`FILE` of limits or configuration file; repeatable")
	f.BoolVar(&s.asConfigured, "as-configured", false, "apply dry-run and the canary share too, instead of enforcing everything")
	f.StringArrayVar(&s.limits, "limit", nil, "`LIMITS` to compare, such as 50/60s,100/60s; repeatable")
	f.StringArrayVar(&s.presets, "preset", nil, "`NAME` of a provider, to compare its limits: "+strings.Join(presetNames(), ", "))
	f.StringVar(&s.target, "target", "", "`SHARE` to leave untouched, such as 99.9%")
	f.StringVar(&s.of, "of", string(simulate.OfClients), "what --target is a share of: clients or requests")
	f.StringVar(&s.write, "write", "", "with --target: write the limits to `FILE`, for limits apply")
	f.DurationVar(&s.lifetime, "token-lifetime", time.Hour, "token lifetime, if the log does not show it")
	f.IntVar(&s.maxKeys, "max-keys", counting.DefaultMaxKeys, "most users and clients counted at once, like rate_limit.max_keys")
	f.IntVar(&s.top, "top", 0, "number of clients to show (default 20; 10,000 with -o json)")
	_ = cmd.MarkFlagFilename("policies", "yaml", "yml")
	_ = cmd.MarkFlagFilename("write", "yaml", "yml")
	f.StringVar(&s.report, "report", "", "write an HTML report to this `FILE`")
	_ = cmd.MarkFlagFilename("report", "html")
}

// Completions are the completions of the flags, by command and name.
func Completions() map[string]command.Completion {
	return map[string]command.Completion{
		"simulate format": command.Fixed(events.Formats()...), "simulate preset": command.Fixed(presetNames()...),
		"simulate of": command.Fixed(string(simulate.OfClients), string(simulate.OfRequests)),
	}
}

func presetNames() (names []string) {
	for _, p := range preset.All() {
		names = append(names, p.Name)
	}
	return names
}

func (s *simulation) run(cmd *cobra.Command, logs []string) error {
	options, err := s.options()
	if err != nil {
		return err
	}
	reader, err := s.open(logs)
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := errors.Join(s.outputsApart(logs), s.writableFiles()); err != nil {
		return err
	}
	const garbage = 10 // percent of the live heap: there is little garbage
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	bar := newProgress(s.Env, reader)
	options.Progress = bar.show
	result, failed := simulate.Run(cmd.Context(), reader, options)
	bar.clear()
	if result == nil {
		return failed
	}
	result.Lines = reader.Lines()
	if reader.Err() != nil { // a log stopped halfway: partial results are not an answer
		s.warnFormats(&result.Lines)
		return failed
	}
	if result.Under, result.Policies, err = s.files.applied(); err != nil {
		return err
	}
	result.Notes = append(result.Notes, s.files.absent(result)...)
	s.warn(result)
	if result.Lines.Read > 0 {
		return errors.Join(s.finish(result), failed)
	}
	err = noRequests(logs, &result.Lines)
	if s.Output == command.OutputJSON {
		err = errors.Join(err, s.JSON(result))
	}
	return err
}

// finish writes the results.
func (s *simulation) finish(result *simulate.Result) error {
	if len(result.Targets) > 0 {
		text, err := s.found(result)
		if err != nil {
			return err
		}
		result.Found = string(text)
	}
	if s.write != "" && len(result.Targets) > 0 { // without targets, the error explains why
		if err := s.writePolicies(result.Found); err != nil {
			return err
		}
	}
	wrong := s.writeReport(result)
	s.cut(result)
	if s.Output == command.OutputJSON {
		return errors.Join(wrong, s.JSON(result))
	}
	return errors.Join(wrong, s.show(result))
}

// options reads the flags. The error lists all problems with them and with the policy files.
func (s *simulation) options() (o simulate.Options, err error) {
	var errs fielderr.Errors
	if o.Policies, err = s.readPolicies(); err != nil {
		if errs = fielderr.Of(err); errs == nil {
			return o, err
		}
	}
	if !s.asConfigured {
		o.Policies = o.Policies.Enforced()
	}
	forms, wrong := parseForms(s.limits)
	errs = append(errs, wrong...)
	for _, f := range forms {
		o.Trials = append(o.Trials, simulate.TrialOf(f.Spec, f.Limit))
	}
	for _, name := range s.presets {
		i := slices.Index(presetNames(), name)
		if i < 0 {
			errs.Add("--preset", "unknown preset %q; the presets are %s", name, strings.Join(presetNames(), ", "))
			continue
		}
		p := preset.All()[i]
		o.Trials = append(o.Trials, simulate.Trial{Name: p.Name, User: p.User, Client: p.Client, Total: p.Total})
	}
	o.Goal, wrong = s.goal(forms)
	errs = append(errs, wrong...)
	if s.lifetime < time.Second {
		errs.Add("--token-lifetime", "%v is less than a second", s.lifetime)
	}
	if most := 1 << 30; s.maxKeys < 1 || s.maxKeys > most { // same bound as rate_limit.max_keys
		errs.Add("--max-keys", "%d is not from 1 to %d", s.maxKeys, most)
	}
	if s.top < 0 {
		errs.Add("--top", "%d is less than 0", s.top)
	}
	o.TokenLifetime, o.MaxKeys = s.lifetime, s.maxKeys
	return o, errs.Err()
}

// goal returns what --target searches for; nil without that flag.
func (s *simulation) goal(forms []simulate.Form) (g *simulate.Goal, errs fielderr.Errors) {
	of := simulate.Of(s.of)
	if of != simulate.OfClients && of != simulate.OfRequests {
		errs.Add("--of", "%q is neither clients nor requests", s.of)
	}
	if s.target == "" {
		if s.write != "" {
			errs.Add("--write", "needs --target")
		}
		if of == simulate.OfRequests {
			errs.Add("--of", "needs --target")
		}
		return nil, errs
	}
	percent, err := syntax.ParsePercent(s.target)
	switch {
	case err != nil || !(percent > 0 && percent <= 100):
		errs.Add("--target", "%q is not a share above 0%% and up to 100%%, such as 99.9%%", s.target)
		return nil, errs
	case percent <= 1 && !strings.HasSuffix(s.target, "%"):
		errs.Add("--target", "%s is ambiguous: write %s%% or %s%%", s.target, s.target, strconv.FormatFloat(100*percent, 'g', 10, 64))
		return nil, errs
	}
	if len(forms) == 0 {
		forms = []simulate.Form{{Spec: "100/60s", Limit: ratelimit.DefaultLimit()}}
	}
	g = &simulate.Goal{Share: percent / 100, Of: of}
	for _, f := range forms { // one of each form
		_, form, _ := strings.Cut(f.Spec, "/")
		if !slices.ContainsFunc(g.Limits, func(o simulate.Form) bool { return strings.HasSuffix(o.Spec, "/"+form) }) {
			g.Limits = append(g.Limits, f)
		}
	}
	return g, errs
}

// parseForms reads the values of --limit: comma-separated limits as in "limits set".
func parseForms(values []string) (forms []simulate.Form, errs fielderr.Errors) {
	for _, value := range values {
		if slices.Contains(strings.Split(value, ","), "") {
			errs.Add("--limit", "%q has a comma with nothing before or after it", value)
			return nil, errs
		}
	}
	for _, spec := range splitLimits(values) {
		shown, wrong := syntax.ParseLimit(spec)
		errs = append(errs, wrong.Under("--limit "+spec)...)
		if len(wrong) > 0 {
			continue
		}
		var l ratelimit.Limit
		b, err := json.Marshal(shown)
		if err = cmp.Or(err, json.Unmarshal(b, &l)); err != nil {
			errs.Add("--limit "+spec, "%v", err)
			continue
		}
		forms = append(forms, simulate.Form{Spec: spec, Limit: l})
	}
	return forms, errs
}

// splitLimits splits lists of limits. Each limit starts with REQUESTS/WINDOW.
func splitLimits(values []string) (specs []string) {
	for _, value := range values {
		for i, part := range strings.Split(value, ",") {
			head, _, _ := strings.Cut(part, "=")
			if i == 0 || strings.Contains(head, "/") {
				specs = append(specs, part)
			} else {
				specs[len(specs)-1] += "," + part
			}
		}
	}
	return specs
}

// open opens the logs.
func (s *simulation) open(logs []string) (*events.Reader, error) {
	if len(logs) == 0 {
		return nil, command.Usagef("simulate: LOG is missing; use - for standard input")
	}
	mapping, err := events.ParseMapping(s.mapping)
	if err != nil {
		return nil, command.Usagef("--map: %w", err)
	}
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		return nil, command.Usagef("--zone: unknown time zone %q: give a name such as Europe/Berlin", s.zone)
	}
	if !slices.Contains(events.Formats(), s.format) {
		return nil, command.Usagef("--format: %q is not one of %s", s.format, strings.Join(events.Formats(), ", "))
	}
	r, err := events.Open(logs, events.Options{Format: s.format, Mapping: mapping, Zone: zone, Strict: s.strict, Stdin: s.In})
	if wrong := (*events.MappingError)(nil); errors.As(err, &wrong) {
		err = command.Usage(err)
	}
	return r, err
}
