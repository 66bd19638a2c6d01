package config

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

func (r RateLimit) check(ps *FieldErrors) {
	oneOf(ps, "rate_limit.mode", r.Mode, modes...)
	if !(r.CanaryPercent >= 0 && r.CanaryPercent <= 100) {
		ps.addf("rate_limit.canary_percent", "must be from 0 to 100, not %v", r.CanaryPercent)
	}
	checkLimits(ps, "rate_limit.default.user", r.Default.User)
	checkLimits(ps, "rate_limit.default.client", r.Default.Client)
	for _, id := range slices.Sorted(maps.Keys(r.Clients)) {
		r.Clients[id].check(ps, PolicyPath(id))
	}
}

// PolicyPath is the path of a client's policy, for problems found elsewhere.
func PolicyPath(clientID string) string { return join("rate_limit.clients", clientID) }

var modes = []string{"enforce", "dry_run", "off"}

func (p ClientPolicy) check(ps *FieldErrors, path string) {
	if p.Mode != "" {
		oneOf(ps, path+".mode", p.Mode, modes...)
	}
	if p.User != nil {
		checkLimits(ps, path+".user", p.User)
	}
	if p.Client != nil {
		checkLimits(ps, path+".client", p.Client)
	}
}

func checkLimits(ps *FieldErrors, path string, limits []Limit) {
	if len(limits) == 0 {
		ps.addf(path, "needs at least one limit; to never limit a client, say trusted: true, to limit nobody, mode: off")
	}
	names := map[string]bool{}
	for i, l := range limits {
		at := path + "[" + strconv.Itoa(i) + "]"
		l.check(ps, at)
		if names[l.Name] {
			ps.addf(at+".name", "%q is the name of another limit of this list", l.Name)
		}
		names[l.Name] = true
	}
}

func (l Limit) check(ps *FieldErrors, path string) {
	if l.Name == "" {
		ps.addf(path+".name", "is required: it tells limits apart in counters and metrics")
	}
	if l.Requests < 1 {
		ps.addf(path+".requests", "must be at least 1, not %d", l.Requests)
	}
	if l.Window.Std() <= 0 {
		ps.addf(path+".window", "must be longer than zero, not %s", l.Window)
	}
	if l.Frames < 1 {
		ps.addf(path+".frames", "must be at least 1, not %d", l.Frames)
	}
	if l.Frames > 0 && l.Window.Std()%(time.Duration(l.Frames)*time.Millisecond) != 0 {
		ps.addf(path+".frames", "%d frames do not divide a window of %s into whole milliseconds", l.Frames, l.Window)
	}
	oneOf(ps, path+".algorithm", l.Algorithm, "sliding", "weighted", "fixed")
	if !(l.SoftRatio > 0 && l.SoftRatio <= 1) {
		ps.addf(path+".soft_ratio", "must be above 0 and at most 1, not %v", l.SoftRatio)
	}
}
