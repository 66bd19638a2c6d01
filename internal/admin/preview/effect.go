package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/targets"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

// effect collects the clients that a change would have hit, had it been made earlier.
type effect struct {
	adminapi.Effect
	// normally and outage are set if the change widens enforcement while counts are shared, or
	// during an outage.
	normally, outage bool
	lost             ratelimit.Grants // see unlimited
}

// Change is a change of limits that was made or is to be made, and what is known of the requests
// before it.
type Change struct {
	Before, After *clientcfg.PolicySnapshot
	Made          []clientcfg.Change
	Directory     *clientcfg.Directory // the registered clients
	Elsewhere     bool                 // the limited clients are registered with another server
	Recent        activity.Report      // of all instances
	Now           time.Time
}

// mostListed is how many clients the effect lists at most.
const mostListed = 1000

// Effect returns the clients that the change would have hit in the last ten minutes. If it enforces
// more only after temporary changes end, it evaluates that state.
func (c *Change) Effect() adminapi.Effect {
	e := c.effect(c.Before, c.After)
	if was, will := c.Before.Lasting(), c.After.Lasting(); !e.Widens && (was != c.Before || will != c.After) {
		later := c.effect(was, will)
		if later.Widens {
			later.Summary = "Once temporary values end, this change denies more requests. " + later.Summary
			e = later
		}
	}
	e.Warnings = append(c.unseen(), c.ineffective()...)
	return e
}

// concerned yields the clients that the change may affect and that can send requests: the
// registered ones or, if clients are registered elsewhere, all with any setting. Some are yielded
// twice.
func (c *Change) concerned(yield func(string) bool) {
	ids, all := c.Before.Concerned(c.Made)
	for _, id := range ids {
		if (c.Elsewhere || c.Directory.Has(id)) && !yield(id) {
			return
		}
	}
	if !all {
		return
	}
	for client := range c.Directory.All() {
		if !yield(client.ID) {
			return
		}
	}
	for _, p := range []*clientcfg.PolicySnapshot{c.Before, c.After} {
		if !c.Elsewhere {
			return
		}
		for id := range p.Unregistered(c.Directory) {
			if !yield(id) {
				return
			}
		}
	}
}

// effect compares two snapshots using the decisions of the last ten minutes. It compares the
// concerned clients and the recently active ones, because only these can differ. If clients are
// registered elsewhere, unknown names can differ too.
func (c *Change) effect(before, after *clientcfg.PolicySnapshot) adminapi.Effect {
	r := &c.Recent
	var e effect
	e.Since, e.Clients, e.Incomplete = r.Since, r.Total, r.Incomplete
	e.Hit, e.Unknown = []adminapi.Hit{}, []adminapi.Unknown{}
	for id := range c.concerned {
		e.compare(before.For(id), after.For(id))
	}
	if c.Elsewhere {
		for _, share := range []float64{0, before.Settings().CanaryPercent, after.Settings().CanaryPercent} {
			e.compare(before.ForUnknown(share), after.ForUnknown(share))
		}
	}
	dryRun := e // compares as if the limits that stay in dry-run were enforced
	for _, c := range r.Clients {
		was, will := before.For(c.ClientID), after.For(c.ClientID)
		trial, _ := before.Trial(c.ClientID)
		e.compare(was, will)
		e.add(c.ClientID, assess(c, was, will, trial))
		if watched(was) && watched(will) && otherLimits(was, will) {
			enforced := *will
			enforced.Mode = ratelimit.Enforce
			dryRun.normally = true
			dryRun.add(c.ClientID, assess(c, was, &enforced, trial))
		}
	}
	byRequests := func(a, b adminapi.Hit) int { return cmp.Compare(b.Requests, a.Requests) }
	slices.SortStableFunc(e.Hit, byRequests)
	slices.SortStableFunc(dryRun.Hit, byRequests)
	e.Widens = e.normally || e.outage
	e.Unlimited = e.lost.Names()
	e.Summary = e.summarize(c.Now)
	if !e.Widens && dryRun.normally {
		e.Summary += " " + dryRun.figures("enforcing its limits would have denied", c.Now)
	}
	e.Summary += unlimitedText(e.Unlimited)
	e.HitTotal, e.UnknownTotal = len(e.Hit), len(e.Unknown)
	e.Hit, e.Unknown = e.Hit[:min(len(e.Hit), mostListed)], e.Unknown[:min(len(e.Unknown), mostListed)]
	return e.Effect
}

// unseen returns a warning for each client that may be misspelled: the change sets something for
// it, nothing was set for it before, it is not registered, and it has no recorded requests.
func (c *Change) unseen() (warnings []string) {
	if !c.Elsewhere {
		return nil
	}
	known, of := map[string]bool{}, map[string]bool{}
	for i := range c.Made {
		if t, is := targets.Parse(c.Made[i].Target); is && !c.Made[i].IsNull() {
			if id := t.Client(); id != "" && !c.Directory.Has(id) {
				of[id] = true
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	for id := range c.Before.Unregistered(c.Directory) {
		known[id] = true
	}
	for _, r := range c.Recent.Clients {
		known[r.ClientID] = true
	}
	maps.DeleteFunc(of, func(id string, _ bool) bool { return known[id] })
	all := slices.Sorted(maps.Keys(known))
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if len(warnings) == named {
			return append(warnings, fmt.Sprintf("%d more clients are unknown.", len(of)-named))
		}
		text := fmt.Sprintf("Client %q is unknown: it had no requests in the last 10 minutes and no settings", id)
		warnings = append(warnings, text+cmp.Or(strict.Suggest(id, all), "."))
	}
	return warnings
}

// ineffective returns a warning for each setting that the change adds for clients of another server
// and that a gateway ignores, because it keeps no tokens and cannot check who sent a request.
func (c *Change) ineffective() (warnings []string) {
	if !c.Elsewhere {
		return nil
	}
	var reuse, ban bool
	look := func(id string) {
		reusedBefore, bannedBefore := ignored(c.Before, id)
		reuses, bans := ignored(c.After, id)
		reuse, ban = reuse || reuses && !reusedBefore, ban || bans && !bannedBefore
	}
	for id := range c.concerned {
		if !c.Directory.Has(id) {
			look(id)
		}
	}
	for i := range c.Made { // a candidate is in force for no client
		if t, is := targets.Parse(c.Made[i].Target); is && !c.Directory.Has(t.Client()) {
			look(cmp.Or(t.Client(), clientcfg.GlobalCandidate))
		}
	}
	if reuse {
		warnings = append(warnings, "over_limit: reuse has no effect at a gateway, which keeps no tokens.")
	}
	if ban {
		warnings = append(warnings, "A ban has no effect at a gateway, which cannot check who sent a request.")
	}
	return warnings
}

// ignored reports whether a client has last tokens again and a ban, in force or as a candidate.
func ignored(p *clientcfg.PolicySnapshot, id string) (reuse, ban bool) {
	e := p.For(id)
	reuse, ban = e.OverLimit == ratelimit.OverLimitReuse, e.Ban != nil
	if t, tried := p.Trial(id); tried {
		reuse, ban = reuse || t.Effective.OverLimit == ratelimit.OverLimitReuse, ban || t.Effective.Ban != nil
	}
	return reuse, ban
}

// add adds the verdict on one client.
func (e *effect) add(clientID string, v verdict) {
	if v.since.After(e.Since) {
		e.Since = v.since
	}
	switch {
	case v.requests > 0:
		e.Hit = append(e.Hit, adminapi.Hit{ClientID: clientID, Requests: v.requests, AtLeast: v.atLeast})
	case v.why != "":
		e.Unknown = append(e.Unknown, adminapi.Unknown{ClientID: clientID, Why: v.why})
	}
}

// compare records the differences for one client.
func (e *effect) compare(was, will *ratelimit.Effective) {
	e.normally = e.normally || widens(was, will)
	e.outage = e.outage || widensOnOutage(was, will)
	e.lost |= unlimited(was, will)
}

func enforced(e *ratelimit.Effective) bool { return e.Mode == ratelimit.Enforce && !e.Trusted }

// watched reports whether denials are recorded but not enforced.
func watched(e *ratelimit.Effective) bool { return e.Mode == ratelimit.DryRun && !e.Trusted }

// otherLimits reports whether a client's limits differ from before for all its users.
func otherLimits(was, will *ratelimit.Effective) bool {
	differ := func(was, will *ratelimit.Limits) bool { return !equalLimits(was, will) }
	return anyList(was, will, differ) || was.OverLimit != will.OverLimit || was.Wait != will.Wait
}

// widens reports whether more can be denied than before.
func widens(was, will *ratelimit.Effective) bool {
	return widensForAll(was, will) || enforced(will) && anyOverride(was, will, stricter)
}

// widensForAll is widens for the lists that all users share and the list of the client itself.
func widensForAll(was, will *ratelimit.Effective) bool {
	return enforced(will) && (!enforced(was) || anyList(was, will, stricter) ||
		was.Reuses() && !will.Reuses() || waitsLess(was, will) || bansMore(was, will))
}

// anyList reports whether is returns true for any list of a client except overrides.
func anyList(was, will *ratelimit.Effective, is func(was, will *ratelimit.Limits) bool) bool {
	return is(was.User, will.User) || is(was.Client, will.Client) || is(was.Total, will.Total) || is(was.Source, will.Source)
}

// waitsLess reports whether a request can be denied that would have been queued before.
func waitsLess(was, will *ratelimit.Effective) bool {
	return will.Wait.Longest < was.Wait.Longest || will.Wait.AtOnce < was.Wait.AtOnce
}

// bansMore reports whether more can be banned than before, or for longer.
func bansMore(was, will *ratelimit.Effective) bool {
	o, n := was.Bans(), will.Bans()
	return n != nil && (o == nil || n.Denials < o.Denials || n.Within > o.Within ||
		n.For > o.For || n.Factor > o.Factor || n.Max > o.Max || n.Forget > o.Forget)
}

// anyOverride reports whether is returns true for the list of any user with an override before or
// after.
func anyOverride(was, will *ratelimit.Effective, is func(was, will *ratelimit.Limits) bool) bool {
	for _, e := range []*ratelimit.Effective{was, will} {
		for username := range e.Overrides() {
			k := ratelimit.Key{Username: username}
			if before, after := was.For(k), will.For(k); before != after && is(before, after) {
				return true
			}
		}
	}
	return false
}

// stricter reports whether the new list has a limit that no limit of the old list implies.
func stricter(was, will *ratelimit.Limits) bool {
	old := was.All()
	for _, l := range will.All() {
		if !slices.ContainsFunc(old, func(o ratelimit.Limit) bool {
			return activity.SameShape(o, l) && activity.Covers(o, l) && o.Requests <= l.Requests
		}) {
			return true
		}
	}
	return false
}

// widensOnOutage reports whether more can be denied than before during an outage, because of
// on_outage.
func widensOnOutage(was, will *ratelimit.Effective) bool {
	if !enforced(will) {
		return false
	}
	if !enforced(was) {
		none := &ratelimit.Effective{}
		return anyList(none, will, deniesOnOutage) || anyOverride(none, will, deniesOnOutage)
	}
	return anyList(was, will, harder) || anyOverride(was, will, harder)
}

func deniesOnOutage(_, will *ratelimit.Limits) bool {
	return slices.ContainsFunc(will.All(), func(l ratelimit.Limit) bool { return l.OnOutage == ratelimit.Deny })
}

// harder reports whether the new list is stricter in an outage for requests of any grant.
func harder(was, will *ratelimit.Limits) bool {
	return slices.ContainsFunc(ratelimit.GrantNames(), func(name string) bool {
		of := ratelimit.Limit{Grants: ratelimit.GrantOf(name)}
		return severity(will, of) > severity(was, of)
	})
}

var severityOf = map[ratelimit.OnOutage]int{ratelimit.Memory: 0, ratelimit.Share: 1, ratelimit.Deny: 2}

// severity returns how strict a list of limits is in an outage for requests of the grants of one
// limit. It is the strictness of the strictest limit that counts them, because a request must pass
// all limits.
func severity(ls *ratelimit.Limits, of ratelimit.Limit) (most int) {
	for _, l := range ls.All() {
		if activity.Covers(l, of) {
			most = max(most, severityOf[l.OnOutage])
		}
	}
	return most
}

// equalLimits reports whether two lists deny the same requests while counts are shared.
func equalLimits(a, b *ratelimit.Limits) bool {
	return slices.EqualFunc(a.All(), b.All(), ratelimit.Limit.DeniesAs)
}

// verdict is how many of a client's requests would have been denied.
type verdict struct {
	requests uint64
	atLeast  bool      // the count is a lower bound
	why      string    // why the count is unknown; empty if it is known
	since    time.Time // since when the count is complete; zero for always
}

// ofUsersUnknown is the reason if the users that overrides would have hit are unknown.
const ofUsersUnknown = "requests per user are not recorded; see limits top --counters"

// assess compares a client's limits. trial is the candidate that was tried on the client, or zero.
func assess(c activity.ClientReport, was, will *ratelimit.Effective, trial ratelimit.Trial) verdict {
	switch {
	case !widens(was, will):
		return verdict{}
	case !widensForAll(was, will):
		return verdict{why: ofUsersUnknown}
	case trial.Effective != nil && trial.Since.Equal(c.TriedSince) && isWhatWasTried(trial, was, will):
		return verdict{requests: c.CandidateWouldDeny + c.CandidateWouldBan, since: c.TriedSince}
	case was.Trusted:
		return verdict{why: "it is trusted, so its requests are not counted; try a candidate first"}
	case was.Mode == ratelimit.Off:
		return verdict{why: "its mode is off, so its requests are not counted; try dry-run first"}
	}
	v := assessKind(c, activity.User, will.User, was, will).waiting(c, activity.User, was, will)
	v = v.and(assessClient(c, was, will))
	if v.requests == 0 && bansMore(was, will) {
		v.why = cmp.Or(v.why, "bans cannot be predicted; try dry-run first")
	}
	if v.requests == 0 && anyOverride(was, will, stricter) {
		v.why = cmp.Or(v.why, ofUsersUnknown)
	}
	return v
}

// isWhatWasTried reports whether the change would make the candidate's limits live. Then the
// candidate's denials are the answer.
func isWhatWasTried(t ratelimit.Trial, was, will *ratelimit.Effective) bool {
	same := func(isTried bool, cand, was, will *ratelimit.Limits) bool {
		return isTried && equalLimits(cand, will) || !isTried && equalLimits(was, will)
	}
	if tried := t.Over(was, t.Effective); tried.OverLimit != will.OverLimit || tried.Wait != will.Wait || bansMore(tried, will) || bansMore(will, tried) {
		return false
	}
	return same(t.User, t.Effective.User, was.User, will.User) && same(t.Client, t.Effective.Client, was.Client, will.Client) &&
		same(t.Total, t.Effective.Total, was.Total, will.Total) && same(t.Source, t.Effective.Source, was.Source, will.Source) &&
		(enforced(was) || t.User && t.Client && (t.Total || will.Total == nil) && (t.Source || will.Source == nil))
}

// assessKind evaluates one kind of request, with list as its own new list. The peaks of the source
// are the highest of any single address.
func assessKind(c activity.ClientReport, kind activity.Kind, list *ratelimit.Limits, was, will *ratelimit.Effective) verdict {
	k, asked := c.Kind(kind)
	if !asked {
		return verdict{}
	}
	own := was.User
	if kind == activity.Client {
		own = was.Client
	}
	v := assessPeaks(peaksOf(k, own, was.Source, was.Total), list.All()).
		and(assessPeaks(peaksOf(k, was.Source, own, was.Total), will.Source.All())).
		and(assessPeaks(peaksOf(k, was.Total, own, was.Source), will.Total.All()))
	if k.Under(slices.Concat(list.All(), will.Source.All(), will.Total.All())) {
		v.why, v.since = "", k.Since
		if k.Over > 0 {
			v.requests, v.atLeast = k.Over, false
		}
	}
	return v
}

// peaksOf returns the peaks of one list, by the names of its limits, because the last request may
// predate the addition or removal of another list. It skips names that another list uses too,
// because their peaks are ambiguous.
func peaksOf(k activity.KindReport, list *ratelimit.Limits, others ...*ratelimit.Limits) (out []activity.Peak) {
	for _, p := range k.Limits {
		has := func(list *ratelimit.Limits) bool {
			return slices.ContainsFunc(list.All(), func(l ratelimit.Limit) bool { return l.Name == p.Limit.Name })
		}
		if has(list) && !slices.ContainsFunc(others, has) {
			out = append(out, p)
		}
	}
	return out
}

// assessClient evaluates client_credentials, where the client may get its last token again.
func assessClient(c activity.ClientReport, was, will *ratelimit.Effective) verdict {
	v := assessKind(c, activity.Client, will.Client, was, will).waiting(c, activity.Client, was, will)
	if !will.Reuses() || v.requests == 0 {
		return v
	}
	if k, _ := c.Kind(activity.Client); was.Reuses() && k.Under(slices.Concat(will.Client.All(), will.Source.All(), will.Total.All())) {
		v.requests -= min(v.requests, k.Reused)
		return v
	}
	return verdict{why: "the number of requests answered with the last token is unknown; try a candidate or dry-run first"}
}

// waiting removes requests that would be queued from a verdict.
func (v verdict) waiting(c activity.ClientReport, kind activity.Kind, was, will *ratelimit.Effective) verdict {
	key, list := ratelimit.Key{}, will.Client
	if kind == activity.User {
		key.Username, list = "any", will.User
	}
	if v.requests == 0 || !will.Waits(key) {
		return v
	}
	if k, _ := c.Kind(kind); was.Wait == will.Wait && k.Under(list.All()) {
		v.requests -= min(v.requests, k.Delayed)
		return v
	}
	return verdict{why: "the number of requests that would wait is unknown; try dry-run first"}
}

// assessPeaks compares peaks with limits that were not in force at the time. The peak of a limit is
// an upper bound for a limit that counts fewer grants, and a lower bound for one that counts more.
func assessPeaks(peaks []activity.Peak, will []ratelimit.Limit) (v verdict) {
	for _, l := range will {
		known := false
		for _, p := range peaks {
			if !activity.SameShape(p.Limit, l) {
				continue
			}
			over := p.Count > l.Requests
			if over && activity.Covers(l, p.Limit) {
				return verdict{requests: 1, atLeast: true}
			}
			// Beyond the limit, the count does not show how many requests there would have been.
			known = known || !over && p.Count <= p.Limit.Requests && activity.Covers(p.Limit, l)
		}
		if !known {
			v.why = fmt.Sprintf("no counter shows %d requests%s in %s; try a candidate first", l.Requests, ofGrants(l.Grants), ratelimit.ShowWindow(l.Window))
		}
	}
	return v
}

// ofGrants returns the names of the grants that a limit counts, or "" if it counts all.
func ofGrants(g ratelimit.Grants) string {
	if g == 0 {
		return ""
	}
	return " of " + strings.Join(g.Names(), " and ")
}

// and adds the verdict on the other kind of request.
func (v verdict) and(o verdict) verdict {
	sum := verdict{requests: v.requests + o.requests, atLeast: v.atLeast || o.atLeast, why: cmp.Or(v.why, o.why), since: v.since}
	if o.since.After(sum.since) {
		sum.since = o.since
	}
	return sum
}

// unlimited returns the grants with requests that are limited by user before a change but not after
// it, because a list for some grants replaces one for all grants. It covers the list that all users
// share, and the lists of users with overrides.
func unlimited(was, will *ratelimit.Effective) (g ratelimit.Grants) {
	if !enforced(was) || !enforced(will) {
		return 0
	}
	lost := func(was, will *ratelimit.Limits) bool {
		g |= counted(was) &^ counted(will)
		return false
	}
	lost(was.User, will.User)
	anyOverride(was, will, lost)
	return g
}

// counted returns the grants that at least one limit of the list counts.
func counted(list *ratelimit.Limits) (g ratelimit.Grants) {
	for _, l := range list.All() {
		if g |= l.Grants; l.Grants == 0 {
			g |= ratelimit.AllGrants
		}
	}
	return g
}

// unlimitedText returns a sentence about such grants, to follow other sentences, or "".
func unlimitedText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	last := len(names) - 1
	text := names[last]
	if last > 0 {
		text = strings.Join(names[:last], ", ") + " and " + text
	}
	return " Requests of " + text + " are no longer limited per user."
}

// named is how many clients the summary lists at most.
const named = 10

// summarize describes the effect of the change in sentences.
func (e *effect) summarize(now time.Time) string {
	switch {
	case !e.Widens:
		return "This change does not deny more requests."
	case !e.normally:
		return "This change denies more requests only during a store outage."
	}
	text := e.figures("this change would have denied", now)
	if e.outage {
		text += " It also denies more requests during a store outage."
	}
	return text
}

// figures returns the sentences about the clients that are hit. what is their subject and verb.
func (e *effect) figures(what string, now time.Time) string {
	var b strings.Builder
	denied, atLeast, clients := fmt.Sprintf("requests of %d", len(e.Hit)), "", "clients"
	if len(e.Hit) == 0 {
		denied = "no request"
	}
	if e.Incomplete {
		atLeast = "at least "
	}
	if e.Clients == 1 {
		clients = "client"
	}
	fmt.Fprintf(&b, "In the last 10 minutes, %s %s of %s%d active %s",
		what, denied, atLeast, e.Clients, clients)
	b.WriteString(list(e.Hit, hitText))
	if n := len(e.Unknown); n > 0 {
		fmt.Fprintf(&b, " It is unknown for %d%s", n, list(e.Unknown, unknownText))
	}
	// The oldest half minute is always partly forgotten.
	if age := now.Sub(e.Since); age < activity.Window-time.Minute {
		fmt.Fprintf(&b, " The figures cover only the last %s.", duration(age))
	}
	return b.String()
}

// list ends a sentence with the first few items.
func list[T any](items []T, text func(T) string) string {
	if len(items) == 0 {
		return "."
	}
	texts, more := make([]string, min(named, len(items))), ""
	for i := range texts {
		texts[i] = text(items[i])
	}
	if n := len(items) - named; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return ": " + strings.Join(texts, ", ") + more + "."
}

// longestName is the maximum length of a client_id in the summary, because a gateway accepts names
// of up to 255 bytes from anyone.
const longestName = 64

// short truncates a client_id for the summary.
func short(clientID string) string {
	if len(clientID) <= longestName {
		return clientID
	}
	return strings.ToValidUTF8(clientID[:longestName], "") + "…"
}

// hitText returns the client and how many of its requests would have been denied.
func hitText(h adminapi.Hit) string {
	switch {
	case h.AtLeast:
		return fmt.Sprintf("%s (at least %d)", short(h.ClientID), h.Requests)
	case h.Requests == 1:
		return short(h.ClientID) + " (1 request)"
	}
	return fmt.Sprintf("%s (%d requests)", short(h.ClientID), h.Requests)
}

// unknownText returns the client and the reason.
func unknownText(u adminapi.Unknown) string { return short(u.ClientID) + " (" + u.Why + ")" }

// duration formats a duration in words: 2 minutes.
func duration(d time.Duration) string {
	n, unit := int(d.Round(time.Minute)/time.Minute), "minute"
	if d < time.Minute {
		n, unit = max(int(d/time.Second), 1), "second"
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
