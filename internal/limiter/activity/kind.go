package activity

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Kind tells which of the two lists of a policy applied to a request.
type Kind string

// The kinds.
const (
	User   Kind = "user"   // of one user of the client
	Client Kind = "client" // of the client itself: client_credentials
)

var kinds = [...]Kind{User, Client}

// KindReport has the figures of a client's requests under the limits that were in force at its last
// request: its own list, then the limits of the source and of the total. For users with an override
// it has only Over and its parts.
type KindReport struct {
	Kind Kind `json:"kind"`
	// Since is when the list replaced another; zero if it is the first.
	Since time.Time `json:"since,omitzero"`
	// Over is how many requests were over a limit since then. Reused is how many of these got the
	// client's last token, or would have in dry-run. Delayed is how many were admitted after a
	// wait, or would have been.
	Over    uint64 `json:"over"`
	Reused  uint64 `json:"reused,omitempty"`
	Delayed uint64 `json:"delayed,omitempty"`
	Limits  []Peak `json:"limits"`
}

// Peak is a limit and the highest count inside its window, over all keys of the client and
// including the last request. If a request was denied, or would have been, Count is one more than
// the limit.
type Peak struct {
	Limit ratelimit.Limit `json:"limit"`
	Count int64           `json:"count"`
}

// SameShape reports whether two limits count in the same way, so that a count under one can be
// compared with the other. They may count requests of different grants, see [Covers].
func SameShape(a, b ratelimit.Limit) bool {
	return a.Window == b.Window && a.Frames == b.Frames && a.Algorithm == b.Algorithm && a.Strict == b.Strict
}

// Under reports whether k was counted under these limits, regardless of their on_outage and
// lease_wait. A limit for certain grants is missing from k if there was no request of these grants.
func (k KindReport) Under(limits []ratelimit.Limit) bool {
	will := make([]Peak, len(limits))
	for i, l := range limits {
		will[i].Limit = l
	}
	all, same := united(will, k.Limits, peakLimit)
	return same && len(all) == len(limits)
}

// peaks has the highest count of each slot.
type peaks struct{ window[int64] }

func (p *peaks) max(now int64) (most int64) {
	for count := range p.live(now) {
		most = max(most, *count)
	}
	return most
}

// uncut replaces peaks of limit+1 by the limit. They stand for an unknown number of requests beyond
// the limit, but the limit itself was certainly reached.
func (p *peaks) uncut(limit int64) {
	for i := range p.window {
		if count := &p.window[i].value; *count == limit+1 {
			*count = limit
		}
	}
}

// kindRecord has the figures of a KindReport by slot.
type kindRecord struct {
	since  time.Time
	over   window[over]
	limits []limitRecord
}

// over counts the requests over a limit as in KindReport.
type over struct{ all, reused, delayed uint64 }

type limitRecord struct {
	limit ratelimit.Limit
	peak  peaks
}

// kind returns the record of a kind, and creates it if necessary.
func (c *client) kind(k Kind) *kindRecord {
	i := 0
	if k == Client {
		i = 1
	}
	if c.kinds[i] == nil {
		c.kinds[i] = &kindRecord{}
	}
	return c.kinds[i]
}

func (k *kindRecord) record(now time.Time, n int64, d *ratelimit.Decision) {
	if !d.Overridden && !k.raise(n, d) {
		k.change(now, d)
		k.raise(n, d)
	}
	if d.Outcome == ratelimit.Allowed {
		return
	}
	at := k.over.at(n)
	at.all++
	if d.Outcome == ratelimit.Reused || d.Outcome == ratelimit.WouldReuse {
		at.reused++
	}
	if d.Outcome == ratelimit.Delayed || d.Outcome == ratelimit.WouldDelay {
		at.delayed++
	}
}

// raise raises the peaks to the counts of the decision. It returns false if the decision has other
// limits than the record.
func (k *kindRecord) raise(n int64, d *ratelimit.Decision) bool {
	i := 0
	for _, st := range d.Limits() {
		for ; i < len(k.limits) && !k.limits[i].limit.DeniesAs(st.Limit); i++ {
			if !k.limits[i].ofOthers() {
				return false
			}
		}
		if i == len(k.limits) {
			return false
		}
		count := st.Limit.Requests - st.Remaining
		if st.Remaining == 0 && d.Outcome != ratelimit.Allowed {
			count++
		}
		at := k.limits[i].peak.at(n)
		*at = max(*at, count)
		i++
	}
	for ; i < len(k.limits); i++ {
		if !k.limits[i].ofOthers() {
			return false
		}
	}
	return true
}

// change adds limits that only requests of the decision's grant show. If the decision differs from
// the record in another way, the record starts again with the limits of the decision. Peaks of
// limits of the same shape are kept.
func (k *kindRecord) change(now time.Time, d *ratelimit.Decision) {
	var shown []limitRecord
	for _, st := range d.Limits() {
		shown = append(shown, limitRecord{limit: st.Limit})
	}
	if all, same := united(k.limits, shown, recordLimit); same && k.limits != nil {
		k.limits = all
		return
	}
	for i := range shown {
		for _, old := range k.limits {
			if l := &shown[i]; SameShape(old.limit, l.limit) && old.limit.Grants == l.limit.Grants {
				l.peak = old.peak
				l.peak.uncut(old.limit.Requests)
			}
		}
	}
	if k.limits != nil {
		k.since = now.UTC()
	}
	k.over, k.limits = window[over]{}, shown
}

// report returns the figures of the window before now, or false if nothing was counted.
func (k *kindRecord) report(kind Kind, now int64) (r KindReport, known bool) {
	r = KindReport{Kind: kind, Since: k.since}
	for n := range k.over.live(now) {
		r.Over, r.Reused, r.Delayed = r.Over+n.all, r.Reused+n.reused, r.Delayed+n.delayed
	}
	for i := range k.limits {
		p := Peak{k.limits[i].limit, k.limits[i].peak.max(now)}
		if known = known || p.Count > 0; p.Count > 0 || !k.limits[i].ofOthers() {
			r.Limits = append(r.Limits, p)
		}
	}
	return r, known || r.Over > 0
}
