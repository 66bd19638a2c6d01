package activity

import (
	"cmp"
	"slices"
	"time"
)

// MaxReported bounds the clients in a report, and so the size of a heartbeat.
const MaxReported = 500

// reportedForWaste is how many clients a report has because of their wasted tokens, if not all
// clients fit.
const reportedForWaste = 50

// Counts has the numbers of requests by outcome, of requests by candidate outcome, and of tokens.
type Counts struct {
	Allowed    uint64 `json:"allowed"`     // admitted and counted
	Denied     uint64 `json:"denied"`      // answered with 429
	WouldDeny  uint64 `json:"would_deny"`  // denied in dry-run, and passed
	Reused     uint64 `json:"reused"`      // over the limit, and answered with the client's last token
	WouldReuse uint64 `json:"would_reuse"` // the same in dry-run
	Delayed    uint64 `json:"delayed"`     // over the limit, and admitted after a wait
	WouldDelay uint64 `json:"would_delay"` // the same in dry-run
	Banned     uint64 `json:"banned"`      // denied by a ban
	WouldBan   uint64 `json:"would_ban"`   // the same in dry-run
	Trusted    uint64 `json:"trusted"`     // passed because the client is trusted, not counted
	Off        uint64 `json:"off"`         // passed because the mode is off
	CandidateCounts
	// Refused because the server was overloaded, before any other decision. Includes requests to
	// introspect and to revoke.
	Shed           uint64 `json:"shed"`
	WouldShed      uint64 `json:"would_shed"`      // the same in dry-run; also counted above
	Issued         uint64 `json:"issued"`          // access tokens, without those that were returned again
	Wasted         uint64 `json:"wasted"`          // issued while an equal one had more than half of its life left
	EarlyRefreshes uint64 `json:"early_refreshes"` // wasted ones in exchange for a refresh token
}

// CandidateCounts has the number of requests that a candidate also decided, and the numbers of
// those that it would not have admitted at once.
type CandidateCounts struct {
	Tried              uint64 `json:"tried"`                // also decided by a candidate
	CandidateWouldDeny uint64 `json:"candidate_would_deny"` // denied by the candidate
	// answered with the last token under the candidate
	CandidateWouldReuse uint64 `json:"candidate_would_reuse"`
	CandidateWouldDelay uint64 `json:"candidate_would_delay"` // delayed under the candidate
	CandidateWouldBan   uint64 `json:"candidate_would_ban"`   // banned under the candidate
}

// Total returns the number of requests that the limiter decided. It excludes Shed.
func (c Counts) Total() uint64 {
	return c.Allowed + c.Denied + c.WouldDeny + c.Reused + c.WouldReuse + c.Delayed + c.WouldDelay + c.Banned + c.WouldBan + c.Trusted + c.Off
}

// Plus returns the sum of both.
func (c Counts) Plus(o Counts) Counts {
	c.Allowed += o.Allowed
	c.Denied += o.Denied
	c.WouldDeny += o.WouldDeny
	c.Reused += o.Reused
	c.WouldReuse += o.WouldReuse
	c.Delayed += o.Delayed
	c.WouldDelay += o.WouldDelay
	c.Banned += o.Banned
	c.WouldBan += o.WouldBan
	c.Trusted += o.Trusted
	c.Off += o.Off
	c.Tried += o.Tried
	c.CandidateWouldDeny += o.CandidateWouldDeny
	c.CandidateWouldReuse += o.CandidateWouldReuse
	c.CandidateWouldDelay += o.CandidateWouldDelay
	c.CandidateWouldBan += o.CandidateWouldBan
	c.Shed += o.Shed
	c.WouldShed += o.WouldShed
	c.Issued += o.Issued
	c.Wasted += o.Wasted
	c.EarlyRefreshes += o.EarlyRefreshes
	return c
}

// seen reports whether there was a request.
func (c Counts) seen() bool { return c.Total()+c.Shed+c.WouldShed > 0 }

// ClientReport is the report of one client.
type ClientReport struct {
	ClientID string `json:"client_id"`
	Counts
	// TriedSince identifies the candidate of CandidateCounts; zero: no candidate.
	TriedSince time.Time    `json:"tried_since,omitzero"`
	Kinds      []KindReport `json:"kinds,omitempty"`
}

// Kind returns the report of one kind of request, or false.
func (c ClientReport) Kind(k Kind) (KindReport, bool) {
	for _, kr := range c.Kinds {
		if kr.Kind == k {
			return kr, true
		}
	}
	return KindReport{}, false
}

// Report has the decisions since Since.
type Report struct {
	Since time.Time `json:"since"`
	// Clients is ordered by requests that were denied or shed, or would have been, the most first.
	// If not all clients are listed, it includes some with the most wasted tokens.
	Clients []ClientReport `json:"clients"`
	// Total is the number of clients with requests, including unlisted ones.
	Total int `json:"total"`
	// Incomplete is set if there was no room for some clients.
	Incomplete bool `json:"incomplete,omitempty"`
	// Denied lists users with requests that were denied, or would have been, the most first. It has
	// at most reportedUsers users of each client, and at most MaxDenied in total.
	Denied []UserReport `json:"denied_users,omitempty"`
}

// Report returns the decisions of the window before now, for at most limit clients.
func (r *Recorder) Report(now time.Time, limit int) Report {
	n := number(now)
	out := Report{Since: r.since(now)}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for id, c := range s.clients {
			if cr := c.report(id, n); cr.seen() {
				out.Clients = append(out.Clients, cr)
				out.Denied = c.denied(out.Denied, id, n)
			}
		}
		out.Incomplete = out.Incomplete || live(s.dropped, n)
		s.mu.Unlock()
	}
	out.Total = len(out.Clients)
	out.order(limit)
	orderUsers(out.Denied)
	out.Denied = out.Denied[:min(MaxDenied, len(out.Denied))]
	return out
}

// since returns the start of the oldest slot in the window, or of the recorder if that is later.
func (r *Recorder) since(now time.Time) time.Time {
	oldest := time.UnixMilli((number(now) - int64(slots) + 1) * slot.Milliseconds()).UTC()
	if r.started.After(oldest) {
		return r.started
	}
	return oldest
}

func (c *client) report(id string, now int64) ClientReport {
	cr := ClientReport{ClientID: id}
	for counts := range c.slots.live(now) {
		cr.Counts = cr.Plus(*counts)
	}
	if cr.Tried > 0 {
		cr.TriedSince = c.triedSince
	}
	for i, k := range c.kinds {
		if k == nil {
			continue
		}
		if kr, known := k.report(kinds[i], now); known {
			cr.Kinds = append(cr.Kinds, kr)
		}
	}
	return cr
}

// refusals returns the first sort key of the clients in a report.
func (c Counts) refusals() uint64 {
	return c.Denied + c.WouldDeny + c.CandidateWouldDeny + c.Shed + c.WouldShed
}

// order sorts the clients by refusals, then by requests, and keeps limit of them, including some
// with the most wasted tokens.
func (r *Report) order(limit int) {
	slices.SortFunc(r.Clients, func(a, b ClientReport) int {
		return cmp.Or(
			cmp.Compare(b.refusals(), a.refusals()),
			cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.ClientID, b.ClientID))
	})
	if len(r.Clients) > limit {
		r.keepWasteful(limit)
	}
}

// keepWasteful keeps limit clients in their order. It keeps up to reportedForWaste clients with the
// most wasted tokens, and otherwise the first ones.
func (r *Report) keepWasteful(limit int) {
	byWaste := slices.SortedStableFunc(slices.Values(r.Clients), func(a, b ClientReport) int { return cmp.Compare(b.Wasted, a.Wasted) })
	wasteful := map[string]bool{}
	for _, c := range byWaste[:min(limit/2, reportedForWaste)] {
		wasteful[c.ClientID] = c.Wasted > 0
	}
	others := limit
	for _, c := range r.Clients {
		if wasteful[c.ClientID] {
			others--
		}
	}
	r.Clients = slices.DeleteFunc(r.Clients, func(c ClientReport) bool {
		if wasteful[c.ClientID] {
			return false
		}
		others--
		return others < 0
	})
}
