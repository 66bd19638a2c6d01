package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// ParseLimit reads
// REQUESTS/WINDOW[,name=N][,frames=N][,algorithm=A][,soft=S][,on_outage=O][,strict][,lease_wait=D][,grants=G+G].
// The error lists all problems with their fields.
func ParseLimit(spec string) (l adminapi.Limit, errs fielderr.Errors) {
	head, options, _ := strings.Cut(spec, ",")
	requests, window, ok := strings.Cut(head, "/")
	if !ok {
		errs.Add("", "limit %q: expected REQUESTS/WINDOW, such as 10/60s", spec)
		return l, errs
	}
	var err error
	if l.Requests, err = strconv.ParseInt(requests, 10, 64); err != nil {
		errs.Add("requests", "%q is not a number of requests", requests)
	}
	full := ratelimit.DefaultLimit()
	if full.Window, err = time.ParseDuration(window); err != nil {
		errs.Add("window", "%q is not a duration with a unit, such as 60s", window)
	} else {
		l.Name = nameOfWindow(full.Window, window)
	}
	l.Window = window
	var given []string
	for option := range strings.SplitSeq(options, ",") {
		name, _, _ := strings.Cut(option, "=")
		switch {
		case option == "":
			continue
		case slices.Contains(given, name):
			errs.Add("", "%s is given twice", name)
		default:
			setOption(&l, option, &errs)
		}
		given = append(given, name)
	}
	if l.Strict {
		full.MakeStrict()
	}
	full.Requests = l.Requests
	full.Name = cmp.Or(l.Name, full.Name)
	full.Frames = cmp.Or(int(l.Frames), full.Frames)
	full.Algorithm = cmp.Or(ratelimit.Algorithm(l.Algorithm), full.Algorithm)
	full.SoftRatio = cmp.Or(l.SoftRatio, full.SoftRatio)
	full.OnOutage = cmp.Or(ratelimit.OnOutage(l.OnOutage), full.OnOutage)
	full.Grants = l.Grants
	if l.LeaseWait != "" {
		if full.LeaseWait, err = time.ParseDuration(l.LeaseWait); err != nil {
			errs.Add("lease_wait", "%q is not a duration with a unit, such as 100ms", l.LeaseWait)
		}
	}
	errs.AddUnreported(fielderr.Of(full.Validate()))
	return l, errs
}

func setOption(l *adminapi.Limit, option string, errs *fielderr.Errors) {
	name, value, ok := strings.Cut(option, "=")
	if l.Strict = l.Strict || option == "strict"; option == "strict" {
		return
	}
	if slices.Contains(ratelimit.GrantNames(), option) {
		errs.Add("grants", "separate grants with +: grants=...+%s", option)
		return
	}
	if !ok {
		errs.Add("", "%q is not name=, frames=, algorithm=, soft=, on_outage=, strict, lease_wait= or grants=", option)
		return
	}
	var err error
	switch name {
	case "name":
		l.Name = value
	case "algorithm":
		l.Algorithm = value
	case "on_outage":
		l.OnOutage = value
	case "strict":
		errs.Add("strict", "takes no value; omit it for a limit that is not strict")
	case "lease_wait":
		l.LeaseWait = value
	case "grants":
		if err = l.Grants.SetList(strings.Split(value, "+")); err != nil {
			*errs = append(*errs, fielderr.Of(err).Under("grants")...)
		}
	case "frames":
		if l.Frames, err = strconv.ParseInt(value, 10, 64); err != nil {
			errs.Add("frames", "%q is not a number", value)
		} else if l.Frames < 1 { // 0 would be omitted from the JSON and mean the default
			errs.Add("frames", "must be at least 1, not %s", value)
		}
	case "soft":
		if l.SoftRatio, err = strconv.ParseFloat(value, 64); err != nil {
			errs.Add("soft_ratio", "%q is not a number", value)
		} else if l.SoftRatio <= 0 { // 0 would be omitted from the JSON and mean the default
			errs.Add("soft_ratio", "must be more than 0, not %s", value)
		}
	default:
		errs.Add("", "unknown option %q: the options are name, frames, algorithm, soft, on_outage, strict, lease_wait and grants", name)
	}
}

// windowNames are the default names of limits with common windows.
var windowNames = map[time.Duration]string{
	time.Second: "per-second", time.Minute: "per-minute", time.Hour: "per-hour", 24 * time.Hour: "per-day",
}

// nameOfWindow returns the default name of a limit.
func nameOfWindow(d time.Duration, text string) string {
	return cmp.Or(windowNames[d], "per-"+text)
}

// ParseLimits reads the values of a flag.
func ParseLimits(flag string, specs []string) (out []adminapi.Limit, errs fielderr.Errors) {
	for i, spec := range specs {
		l, wrong := ParseLimit(spec)
		if slices.Contains(SharedLists, flag) && !strings.Contains(spec, ",name=") {
			l.Name = flag + "-" + l.Name // keeps the names distinct from the other lists, which clients see too
		}
		out, errs = append(out, l), append(errs, wrong.Under(fielderr.Item("--"+flag, i))...)
	}
	return out, errs
}

// ShowLimits writes limits in the syntax of the flags, without defaults.
func ShowLimits(limits []adminapi.Limit) string {
	out := make([]string, len(limits))
	for i, l := range limits {
		out[i] = ShowLimit(l)
	}
	return command.OrDash(out)
}

// ShowLimit writes a limit in the syntax of the flags, without defaults.
func ShowLimit(l adminapi.Limit) string {
	l = withoutUsual(l, usualLimit(l))
	spec := fmt.Sprintf("%d/%s", l.Requests, l.Window)
	if !isUsualName(l.Name, l.Window) {
		spec += ",name=" + l.Name
	}
	if l.Frames != 0 {
		spec += fmt.Sprintf(",frames=%d", l.Frames)
	}
	if l.Algorithm != "" {
		spec += ",algorithm=" + l.Algorithm
	}
	if l.SoftRatio != 0 {
		spec += fmt.Sprintf(",soft=%v", l.SoftRatio)
	}
	if l.OnOutage != "" {
		spec += ",on_outage=" + l.OnOutage
	}
	if l.Strict {
		spec += ",strict"
	}
	if l.LeaseWait != "" {
		spec += ",lease_wait=" + l.LeaseWait
	}
	if l.Grants != 0 {
		spec += ",grants=" + strings.Join(l.Grants.Names(), "+")
	}
	return spec
}

// withoutUsual returns the limit without the optional fields that equal the defaults.
func withoutUsual(l, usual adminapi.Limit) adminapi.Limit {
	l.Frames, l.Algorithm = unlessUsual(l.Frames, usual.Frames), unlessUsual(l.Algorithm, usual.Algorithm)
	l.SoftRatio, l.OnOutage = unlessUsual(l.SoftRatio, usual.SoftRatio), unlessUsual(l.OnOutage, usual.OnOutage)
	l.LeaseWait = unlessUsual(l.LeaseWait, usual.LeaseWait)
	return l
}

// unlessUsual returns the value, or the zero value if it equals the default.
func unlessUsual[V comparable](value, usual V) (none V) {
	if value == usual {
		return none
	}
	return value
}

// usualLimit returns the defaults of a limit's optional fields. For a strict limit they depend on
// its window.
func usualLimit(l adminapi.Limit) adminapi.Limit {
	usual := ratelimit.DefaultLimit()
	if window, err := time.ParseDuration(l.Window); err == nil && l.Strict {
		usual.Window = window
		usual.MakeStrict()
	}
	return adminapi.ShowLimit(usual)
}

// isUsualName reports whether name is the default name of a limit with that window. The window may
// have been written differently when the name was set.
func isUsualName(name, window string) bool {
	if name == "" || name == "per-"+window {
		return true
	}
	d, err := time.ParseDuration(window)
	if err != nil {
		return false
	}
	if usual, is := windowNames[d]; is {
		return name == usual
	}
	text, _ := strings.CutPrefix(name, "per-")
	given, err := time.ParseDuration(text)
	return err == nil && given == d
}

// ParsePercent reads 5% or 5.
func ParsePercent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil {
		return 0, command.Usagef("%q is not a percentage, such as 5%%", s)
	}
	return v, nil
}

// SharedLists are the flags and fields of the lists with limits that several users share.
var SharedLists = []string{"total", "source"}
