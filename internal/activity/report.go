package activity

import (
	"cmp"
	"slices"
	"time"
)

// MaxReported bounds the clients of one report, and so the size of a heartbeat.
const MaxReported = 500

// reportedForWaste is how many clients are in a report because of their wasted tokens, if there are more
// clients than it has room for.
const reportedForWaste = 50

// Counts is the number of requests by outcome, of those tried against a candidate, and of tokens.
type Counts struct {
	Allowed   uint64 `json:"allowed"`
	Denied    uint64 `json:"denied"`
	WouldDeny uint64 `json:"would_deny"`
	// Reused requests were over the limit and answered with the client's last token; in dry-run, WouldReuse
	// ones would have been.
	Reused     uint64 `json:"reused"`
	WouldReuse uint64 `json:"would_reuse"`
	// Delayed requests were over the limit and admitted at their turn, for which they waited; in dry-run,
	// WouldDelay ones would have been.
	Delayed    uint64 `json:"delayed"`
	WouldDelay uint64 `json:"would_delay"`
	// Banned requests were denied by a ban; in dry-run, WouldBan ones would have been.
	Banned   uint64 `json:"banned"`
	WouldBan uint64 `json:"would_ban"`
	Trusted  uint64 `json:"trusted"`
	Off      uint64 `json:"off"`
	CandidateCounts
	// Shed requests were refused because the server was overloaded, before anything else was decided; in dry-run,
	// WouldShed ones would have been, and are counted above too. Both include requests to introspect and to revoke.
	Shed      uint64 `json:"shed"`
	WouldShed uint64 `json:"would_shed"`
	// Issued tokens do not include those that were handed out again. Wasted ones were issued while an equal
	// one had more than half of its life left, EarlyRefreshes of them in exchange for a refresh token.
	Issued         uint64 `json:"issued"`
	Wasted         uint64 `json:"wasted"`
	EarlyRefreshes uint64 `json:"early_refreshes"`
}

// CandidateCounts is the number of requests that were also decided by a candidate, and of those among them that it
// would not have admitted at once.
type CandidateCounts struct {
	Tried               uint64 `json:"tried"`
	CandidateWouldDeny  uint64 `json:"candidate_would_deny"`
	CandidateWouldReuse uint64 `json:"candidate_would_reuse"`
	CandidateWouldDelay uint64 `json:"candidate_would_delay"`
	CandidateWouldBan   uint64 `json:"candidate_would_ban"`
}

// Total is the number of requests that the limiter decided; Shed ones are none of them.
func (c Counts) Total() uint64 {
	return c.Allowed + c.Denied + c.WouldDeny + c.Reused + c.WouldReuse + c.Delayed + c.WouldDelay + c.Banned + c.WouldBan + c.Trusted + c.Off
}

// Plus adds both up.
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

// ClientReport is one client.
type ClientReport struct {
	ClientID string `json:"client_id"`
	Counts
	// TriedSince identifies the candidate of Tried and of the counts that begin with Candidate; zero for none.
	TriedSince time.Time    `json:"tried_since,omitzero"`
	Kinds      []KindReport `json:"kinds,omitempty"`
}

// Kind returns the report of one kind of request; false if there is none.
func (c ClientReport) Kind(k Kind) (KindReport, bool) {
	for _, kr := range c.Kinds {
		if kr.Kind == k {
			return kr, true
		}
	}
	return KindReport{}, false
}

// Report is the decisions from Since on.
type Report struct {
	Since time.Time `json:"since"`
	// Clients, those with most requests denied or shed, or that would have been, first. If not all are listed,
	// some of those with most wasted tokens are.
	Clients []ClientReport `json:"clients"`
	// Total is the number of clients with requests, including those that are not listed.
	Total int `json:"total"`
	// Incomplete is set if there were more clients than there is room for.
	Incomplete bool `json:"incomplete,omitempty"`
	// Denied are users with requests denied, or that would have been, those with most first: at most
	// some of each client, and MaxDenied.
	Denied []UserReport `json:"denied_users,omitempty"`
}

// Report returns the decisions of the window before now, of at most limit clients.
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

// since is when the oldest slot of the window began, or the recorder.
func (r *Recorder) since(now time.Time) time.Time {
	oldest := time.UnixMilli((number(now) - int64(slots) + 1) * slot.Milliseconds()).UTC()
	if r.started.After(oldest) {
		return r.started
	}
	return oldest
}

func (c *client) report(id string, now int64) ClientReport {
	cr := ClientReport{ClientID: id}
	for i := range c.slots {
		if live(c.slots[i].number, now) {
			cr.Counts = cr.Plus(c.slots[i].Counts)
		}
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

// refusals is what the clients of a report are ordered by first.
func (c Counts) refusals() uint64 {
	return c.Denied + c.WouldDeny + c.CandidateWouldDeny + c.Shed + c.WouldShed
}

// order sorts the clients by refusals, then by requests, and keeps the first limit; of these, some may be
// those who waste most.
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

// keepWasteful keeps limit clients, the first ones and those of the others who are among the reportedForWaste
// with most wasted tokens. The order stays.
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
