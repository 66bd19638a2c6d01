package limits

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// banFlag sets the ban of a policy.
const banFlag = "ban"

// BanSyntax describes its values.
const BanSyntax = `A ban keeps out who goes on after being denied. It has these parts, with commas between,
or is off, for none:
  denials=N       so many denied requests (default 20)
  within=D        in so long begin a ban (default 60s)
  for=D           length of the first ban (default 5m)
  factor=F        each further one is longer by it (default 2)
  max=D           length of the longest (default 24h)
  forget=D        so long after its end, the next one is a first one again (default 24h)
A part that is not given stays as it is. Where there is no ban yet, it has its default: what a
tier or all clients have is replaced as a whole.`

func registerBan(cmd *cobra.Command) {
	cmd.Flags().String(banFlag, "", "ban who goes on after being denied: denials=20,within=60s,for=5m,factor=2,max=24h,forget=24h, or off")
}

// banInto sets the field ban of doc if the flag is given.
func banInto(cmd *cobra.Command, doc map[string]any) error {
	flag := cmd.Flags().Lookup(banFlag)
	if !flag.Changed {
		return nil
	}
	ban, errs := parseBan(flag.Value.String())
	if err := errs.Under("--" + banFlag).Err(); err != nil {
		return err
	}
	doc["ban"] = ban
	return nil
}

// parseBan reads the given parts of a ban for a merge patch, or off. The error lists every problem
// with its field. The server validates the merged result.
func parseBan(spec string) (ban any, errs fielderr.Errors) {
	if (&ratelimit.Ban{}).UnmarshalText([]byte(spec)) == nil {
		return spec, nil
	}
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
			errs.Add(name, "is given twice")
		case isDuration:
			if *d, err = time.ParseDuration(value); err != nil {
				errs.Add(name, "%q is not a duration with its unit, such as 60s", value)
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
	return parts, errs
}

// banValues are the completions of the flag.
func banValues() []string {
	usual := ratelimit.DefaultBan()
	return []string{"off", showBan(&usual)}
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
