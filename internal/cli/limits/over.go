package limits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// overFlag is a flag for requests over the limit, or to an overloaded server. It sets the field of
// its name.
type overFlag struct {
	name, usage string
	values      []string // completions
	parse       func(text string) (value any, err error)
}

const maxWaitFlag = "max-wait"

func overFlags() []overFlag {
	overLimits := []string{string(ratelimit.OverLimitDeny), string(ratelimit.OverLimitReuse)}
	criticalities, usualBan := ratelimit.CriticalityNames(), ratelimit.DefaultBan()
	return []overFlag{
		{
			"over-limit", "answer over the client_credentials limit: deny, or reuse (the last token again)",
			overLimits, oneOf(overLimits),
		},
		{maxWaitFlag, "longest time a request over the limit may wait, such as 2s; 0: never wait", nil, parseWait},
		{"max-waiting", "with --" + maxWaitFlag + ": most requests of one key that wait at once (default 10)", nil, parseWaiting},
		{
			"ban", "ban clients that keep retrying: denials=20,within=60s,for=5m,factor=2,max=24h,forget=24h, or off",
			[]string{"off", showBan(&usualBan)},
			parseBan,
		},
		{
			"criticality", "priority during overload, highest first: " +
				strings.Join(criticalities, ", ") + " (default by the kind of request)",
			criticalities, oneOf(criticalities),
		},
	}
}

// overNames are the names of the flags.
var overNames = func() (names []string) {
	for _, f := range overFlags() {
		names = append(names, f.name)
	}
	return names
}()

// RegisterOver adds the flags to a command.
func RegisterOver(cmd *cobra.Command) {
	for _, f := range overFlags() {
		cmd.Flags().String(f.name, "", f.usage)
	}
	command.InTopic(command.LimitsTopic, cmd.Flags(), overNames...)
}

// overInto sets the fields of doc whose flags are given. Removing max_wait also removes max_waiting,
// which has no meaning without it.
func overInto(cmd *cobra.Command, doc map[string]any) error {
	for _, f := range overFlags() {
		flag := cmd.Flags().Lookup(f.name)
		if !flag.Changed {
			continue
		}
		value, err := f.parse(flag.Value.String())
		if errs := fielderr.Of(err); errs != nil {
			return errs.Under("--" + f.name)
		}
		if err != nil {
			return command.Usagef("--%s: %w", f.name, err)
		}
		doc[fieldOf(f.name)] = value
		if f.name == maxWaitFlag && value == "0s" {
			doc["max_waiting"] = nil
		}
	}
	return nil
}

// fieldOf returns the field that a flag sets.
func fieldOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

func oneOf(values []string) func(string) (any, error) {
	return func(text string) (any, error) {
		if !slices.Contains(values, text) {
			return nil, fmt.Errorf("%q is not one of %s", text, strings.Join(values, ", "))
		}
		return text, nil
	}
}

func parseWait(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a duration with a unit, such as 2s, and not 0", text)
	}
	return d.String(), nil
}

func parseWaiting(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

// BanSyntax describes the values of --ban.
const BanSyntax = `A ban refuses all requests of a client or user that keeps retrying after denials. Write it as
comma-separated options, or off for no ban:
  denials=N       this many denied requests (default 20)
  within=D        within this time start a ban (default 60s)
  for=D           length of the first ban (default 5m)
  factor=F        how much longer each further ban is (default 2)
  max=D           longest ban (default 24h)
  forget=D        time after a ban until the next is as short as a first one (default 24h)
Options you leave out keep their value, or have the default if the client or tier has no ban of
its own yet.`

// parseBan reads the given parts of a ban for a merge patch, or off. The error lists every problem
// with its field. The server validates the merged result.
func parseBan(spec string) (any, error) {
	if (&ratelimit.Ban{}).UnmarshalText([]byte(spec)) == nil {
		return spec, nil
	}
	var errs fielderr.Errors
	full, parts := ratelimit.DefaultBan(), map[string]any{}
	durations := map[string]*time.Duration{"within": &full.Within, "for": &full.For, "max": &full.Max, "forget": &full.Forget}
	for part := range strings.SplitSeq(spec, ",") {
		name, value, ok := strings.Cut(part, "=")
		_, twice := parts[name]
		d, isDuration := durations[name]
		var err error
		switch {
		case !ok || !isDuration && name != "denials" && name != "factor":
			errs.Add("", "%q is not off, denials=, within=, for=, factor=, max= or forget=", part)
		case twice:
			errs.Add(name, "is a duplicate")
		case isDuration:
			if *d, err = time.ParseDuration(value); err != nil {
				errs.Add(name, "%q is not a duration with a unit, such as 60s", value)
			}
			parts[name] = value
		case name == "denials":
			if full.Denials, err = strconv.ParseInt(value, 10, 64); err != nil {
				errs.Add(name, "%q is not a number of requests", value)
			}
			parts[name] = full.Denials
		default:
			if full.Factor, err = strconv.ParseFloat(value, 64); err != nil {
				errs.Add(name, "%q is not a number", value)
			}
			parts[name] = full.Factor
		}
	}
	for _, e := range fielderr.Of(full.Validate()) {
		if _, given := parts[e.Path]; given { // the server may have other values for the parts not given
			errs.AddUnreported(fielderr.Errors{e})
		}
	}
	return parts, errs.Err()
}

// showBan writes a ban in the syntax of the flag.
func showBan(b *ratelimit.Ban) string {
	switch {
	case b == nil:
		return "-"
	case b.Off:
		return "off"
	}
	return fmt.Sprintf("denials=%d,within=%s,for=%s,factor=%v,max=%s,forget=%s", b.Denials,
		ratelimit.FormatWindow(b.Within), ratelimit.FormatWindow(b.For), b.Factor, ratelimit.FormatWindow(b.Max), ratelimit.FormatWindow(b.Forget))
}
