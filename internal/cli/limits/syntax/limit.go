package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// ParseLimit reads
// REQUESTS/WINDOW[,name=N][,frames=N][,algorithm=A][,soft=S][,on_outage=O][,strict][,lease_wait=D][,grants=G+G].
// The error lists all problems with their fields.
func ParseLimit(spec string) (l ratelimit.Limit, errs fielderr.Errors) {
	head, text, _ := strings.Cut(spec, ",")
	requests, window, ok := strings.Cut(head, "/")
	if !ok {
		errs.Add("", "limit %q: expected REQUESTS/WINDOW, such as 10/60s", spec)
		return l, errs
	}
	var err error
	l = ratelimit.DefaultLimit()
	if l.Requests, err = strconv.ParseInt(requests, 10, 64); err != nil {
		errs.Add("requests", "%q is not a number of requests", requests)
	}
	if l.Window, err = time.ParseDuration(window); err != nil {
		errs.Add("window", "%q is not a duration with a unit, such as 60s", window)
	} else {
		l.Name = nameOfWindow(l.Window, window)
	}
	options := slices.DeleteFunc(strings.Split(text, ","), func(option string) bool { return option == "" })
	if slices.Contains(options, "strict") { // the other options take precedence
		l.MakeStrict()
	}
	var given []string
	for _, option := range options {
		name, _, _ := strings.Cut(option, "=")
		if slices.Contains(given, name) {
			errs.Add("", "%s is given twice", name)
		} else {
			setOption(&l, option, &errs)
		}
		given = append(given, name)
	}
	errs.AddUnreported(fielderr.Of(l.Validate()))
	return l, errs
}

func setOption(l *ratelimit.Limit, option string, errs *fielderr.Errors) {
	name, value, ok := strings.Cut(option, "=")
	if option == "strict" {
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
		l.Algorithm = ratelimit.Algorithm(value)
	case "on_outage":
		l.OnOutage = ratelimit.OnOutage(value)
	case "strict":
		errs.Add("strict", "takes no value; omit it for a limit that is not strict")
	case "lease_wait":
		if l.LeaseWait, err = time.ParseDuration(value); err != nil {
			errs.Add("lease_wait", "%q is not a duration with a unit, such as 100ms", value)
		}
	case "grants":
		if err = l.Grants.SetList(strings.Split(value, "+")); err != nil {
			*errs = append(*errs, fielderr.Of(err).Under("grants")...)
		}
	case "frames":
		if l.Frames, err = strconv.Atoi(value); err != nil {
			errs.Add("frames", "%q is not a number", value)
		} else if l.Frames < 1 {
			errs.Add("frames", "must be at least 1, not %s", value)
		}
	case "soft":
		if l.SoftRatio, err = strconv.ParseFloat(value, 64); err != nil {
			errs.Add("soft_ratio", "%q is not a number", value)
		} else if l.SoftRatio <= 0 {
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
func ParseLimits(flag string, specs []string) (out []ratelimit.Limit, errs fielderr.Errors) {
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
func ShowLimits(limits []ratelimit.Limit) string {
	out := make([]string, len(limits))
	for i, l := range limits {
		out[i] = ShowLimit(l)
	}
	return command.OrDash(out)
}

// ShowLimit writes a limit in the syntax of the flags, without defaults.
func ShowLimit(l ratelimit.Limit) string {
	usual := usualLimit(&l)
	spec := fmt.Sprintf("%d/%s", l.Requests, ratelimit.ShowWindow(l.Window))
	if !isUsualName(l.Name, l.Window) {
		spec += ",name=" + l.Name
	}
	if l.Frames != usual.Frames {
		spec += fmt.Sprintf(",frames=%d", l.Frames)
	}
	if l.Algorithm != usual.Algorithm {
		spec += ",algorithm=" + string(l.Algorithm)
	}
	if l.SoftRatio != usual.SoftRatio {
		spec += fmt.Sprintf(",soft=%v", l.SoftRatio)
	}
	if l.OnOutage != usual.OnOutage {
		spec += ",on_outage=" + string(l.OnOutage)
	}
	if l.Strict {
		spec += ",strict"
	}
	if l.LeaseWait != usual.LeaseWait {
		spec += ",lease_wait=" + l.LeaseWait.String()
	}
	if l.Grants != 0 {
		spec += ",grants=" + strings.Join(l.Grants.Names(), "+")
	}
	return spec
}

// usualLimit returns the defaults of a limit's optional fields. For a strict limit they depend on
// its window.
func usualLimit(l *ratelimit.Limit) ratelimit.Limit {
	usual := ratelimit.DefaultLimit()
	if usual.Window = l.Window; l.Strict {
		usual.MakeStrict()
	}
	return usual
}

// isUsualName reports whether name is the default name of a limit with that window. The window may
// have been written differently when the name was set.
func isUsualName(name string, window time.Duration) bool {
	if usual, is := windowNames[window]; is {
		return name == usual
	}
	text, _ := strings.CutPrefix(name, "per-")
	given, err := time.ParseDuration(text)
	return err == nil && given == window
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
