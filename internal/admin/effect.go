package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// effect says whom a change would have hit, had it been made earlier.
type effect struct {
	// Widens says that enforcement reaches further than before, for any
	// client: only then can somebody be hit who was not before.
	Widens bool `json:"widens"`
	// Since is from when on there are figures.
	Since time.Time `json:"since"`
	// Clients is how many clients asked since then.
	Clients int `json:"clients"`
	// Hit are the clients that would have been denied something, those of
	// whom the most would have been denied first.
	Hit []hit `json:"hit"`
	// Unknown are clients that asked, and of which nothing can be said.
	Unknown []unknown `json:"unknown"`
	// Incomplete says that there were more clients than are counted.
	Incomplete bool   `json:"incomplete"`
	Summary    string `json:"summary"` // all of it in one sentence
}

type hit struct {
	ClientID string `json:"client_id"`
	// Requests would have been denied; at least one, if AtLeast is set: then
	// only the peak is known.
	Requests uint64 `json:"requests"`
	AtLeast  bool   `json:"at_least,omitempty"`
}

type unknown struct {
	ClientID string `json:"client_id"`
	Why      string `json:"why"`
}

// effectOf compares two snapshots by what was decided lately.
func effectOf(before, after *clientcfg.Policies, clients *clientcfg.Directory, r activity.Report, now time.Time) effect {
	e := effect{Since: r.Since, Clients: r.Total, Incomplete: r.Incomplete, Hit: []hit{}, Unknown: []unknown{}}
	for c := range clients.All() {
		e.Widens = e.Widens || widens(before.For(c.ID), after.For(c.ID))
	}
	for _, c := range r.Clients {
		requests, atLeast, why := judge(c, before, after)
		switch {
		case why != "":
			e.Unknown = append(e.Unknown, unknown{c.ClientID, why})
		case requests > 0:
			e.Hit = append(e.Hit, hit{c.ClientID, requests, atLeast})
		}
	}
	slices.SortStableFunc(e.Hit, func(a, b hit) int { return cmp.Compare(b.Requests, a.Requests) })
	e.Summary = e.summarize(now)
	return e
}

func enforced(e *ratelimit.Effective) bool { return e.Mode == ratelimit.Enforce && !e.Trusted }

// widens reports whether more can be denied than before.
func widens(was, will *ratelimit.Effective) bool {
	return enforced(will) && (!enforced(was) || stricter(was.User, will.User) || stricter(was.Client, will.Client))
}

// stricter reports whether a limit of the new list is not implied by one of
// the old.
func stricter(was, will *ratelimit.Limits) bool {
	old := was.All()
	for _, l := range will.All() {
		if !slices.ContainsFunc(old, func(o ratelimit.Limit) bool { return sameShape(o, l) && o.Requests <= l.Requests }) {
			return true
		}
	}
	return false
}

// sameShape reports whether two limits count alike.
func sameShape(a, b ratelimit.Limit) bool {
	return a.Window == b.Window && a.Frames == b.Frames && a.Algorithm == b.Algorithm
}

func equalLimits(a, b *ratelimit.Limits) bool { return slices.Equal(a.All(), b.All()) }

// judge says how much of what a client sent would have been denied, or why
// that cannot be told.
func judge(c activity.ClientReport, before, after *clientcfg.Policies) (requests uint64, atLeast bool, why string) {
	was, will := before.For(c.ClientID), after.For(c.ClientID)
	switch {
	case !widens(was, will):
		return 0, false, ""
	case tried(c, before, was, will):
		return c.CandidateWouldDeny, false, ""
	case was.Trusted:
		return 0, false, "it is trusted, so nothing of it was counted; try a candidate first"
	case was.Mode == ratelimit.Off:
		return 0, false, "its mode is off, so nothing of it was counted; try dry-run first"
	case equalLimits(was.User, will.User) && equalLimits(was.Client, will.Client):
		return c.WouldDeny, false, ""
	}
	for _, k := range []struct {
		kind activity.Kind
		will *ratelimit.Limits
	}{{activity.User, will.User}, {activity.Client, will.Client}} {
		above, unclear := judgePeaks(c.Peaks, k.kind, k.will)
		if above {
			return 1, true, ""
		}
		why = cmp.Or(why, unclear)
	}
	return 0, false, why
}

// tried reports whether the candidate in place is what would hold, so that its
// denials are the answer.
func tried(c activity.ClientReport, before *clientcfg.Policies, was, will *ratelimit.Effective) bool {
	t, ok := before.Trial(c.ClientID)
	if !ok || c.Tried == 0 {
		return false
	}
	same := func(isTried bool, cand, was, will *ratelimit.Limits) bool {
		return isTried && equalLimits(cand, will) || !isTried && equalLimits(was, will)
	}
	return same(t.User, t.Effective.User, was.User, will.User) && same(t.Client, t.Effective.Client, was.Client, will.Client) &&
		(enforced(was) || t.User && t.Client)
}

// judgePeaks compares what was counted with limits that did not hold then.
func judgePeaks(peaks []activity.Peak, kind activity.Kind, will *ratelimit.Limits) (above bool, why string) {
	for _, l := range will.All() {
		seen, told := false, false
		for _, p := range peaks {
			if p.Kind != kind {
				continue
			}
			seen = true
			if !sameShape(p.Limit, l) {
				continue
			}
			if p.Count > l.Requests {
				return true, ""
			}
			told = told || p.Count <= p.Limit.Requests // beyond its limit nobody knows how far it would have gone
		}
		if seen && !told {
			why = fmt.Sprintf("nothing was counted that tells about %d requests in %s; try a candidate first", l.Requests, showWindow(l.Window))
		}
	}
	return false, why
}

// named bounds how many clients a sentence names.
const named = 10

func (e *effect) summarize(now time.Time) string {
	if !e.Widens {
		return "enforcement is not widened: nobody is hit who was not before"
	}
	var b strings.Builder
	count := fmt.Sprint(len(e.Hit))
	if len(e.Hit) == 0 {
		count = "none"
	}
	clients := "clients"
	if e.Clients == 1 {
		clients = "client"
	}
	atLeast := ""
	if e.Incomplete {
		atLeast = "at least "
	}
	fmt.Fprintf(&b, "enforcing would have denied %s of %s%d %s in the last %s", count, atLeast, e.Clients, clients, ago(now.Sub(e.Since)))
	for i, h := range e.Hit[:min(named, len(e.Hit))] {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + h.String())
	}
	if more := len(e.Hit) - named; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	if n := len(e.Unknown); n > 0 {
		fmt.Fprintf(&b, "; unknown for %d", n)
		for i, u := range e.Unknown[:min(named, n)] {
			fmt.Fprintf(&b, "%s%s (%s)", []string{": ", ", "}[min(i, 1)], u.ClientID, u.Why)
		}
	}
	return b.String()
}

// String is the client with what it would have lost.
func (h hit) String() string {
	switch {
	case h.AtLeast:
		return fmt.Sprintf("%s (at least %d)", h.ClientID, h.Requests)
	case h.Requests == 1:
		return h.ClientID + " (1 request)"
	}
	return fmt.Sprintf("%s (%d requests)", h.ClientID, h.Requests)
}

// ago says a time as people do. The oldest half minute of the window is
// forgotten in part, so minutes are rounded.
func ago(d time.Duration) string {
	n, unit := int(d.Round(time.Minute)/time.Minute), "minute"
	if d < time.Minute {
		n, unit = max(int(d/time.Second), 1), "second"
	}
	if n == 1 {
		return unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
