package ratelimit

import (
	"iter"
	"math/bits"
	"strconv"
	"time"
)

// Outcome is what the limiter did with a request.
type Outcome uint8

// The outcomes. Only Denied and Banned stop a request. Package counting never returns the last
// six. Callers set Reused and WouldReuse in place of Denied and WouldDeny if they return an earlier
// token, and Delayed and WouldDelay if the request waits in a queue. Banned and WouldBan are
// decided without counters.
const (
	Passed     Outcome = iota // the mode is Off: not counted
	Trusted                   // the client is trusted: not counted
	Allowed                   // counted
	Denied                    // not counted; the answer is 429
	WouldDeny                 // denied in DryRun: not counted, but passed
	Reused                    // over the limit: not counted; the answer is the last token again
	WouldReuse                // Reused in DryRun: not counted, but passed
	Delayed                   // over the limit: waited, and was counted when it passed
	WouldDelay                // Delayed in DryRun: passed at once, and counted when it would have passed
	Banned                    // banned by a [Ban]: not counted; the answer is 429
	WouldBan                  // Banned in DryRun: not counted, but passed
)

var outcomeNames = [...]string{"off", "trusted", "allowed", "denied", "would_deny", "reused", "would_reuse", "delayed", "would_delay", "banned", "would_ban"}

// String returns the name of the outcome in metrics and logs.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// Decision is the decision on one request. Later requests do not change it.
type Decision struct {
	Outcome Outcome
	// Soft is set if the use of any limit has reached its SoftRatio, so the client should be
	// warned.
	Soft bool
	// Overridden is set if the limits are an override of this user: see [CompiledEdit.SetOverride].
	Overridden bool
	// RetryAfter is the exact time, in whole milliseconds, after which the same request passes if
	// nothing else is counted. One millisecond earlier it is denied. It is [Never] if the request
	// asks for more than a limit ever admits, and 0 if it was not denied.
	RetryAfter time.Duration
	// Outage is set if the OnOutage of a limit decided because counts cannot be shared.
	Outage bool
	// Binding is the index of the limit that decided. If the request was denied, it is the denying
	// limit that takes longest to have room. Otherwise it is the limit with the smallest remaining
	// share.
	Binding int

	hide     bool
	exceeded uint16  // bit i: the uncounted request is over limit i
	skip     uint16  // bit i: limit i does not count the request
	limits   *Limits // of the user or the client
	source   *Limits // of the client from the source address; nil: no limits
	total    *Limits // of the client over all its users; nil: no limits
	status   [MaxDecided]Status
}

// MaxDecided is the largest number of limits that can apply to one request.
const MaxDecided = MaxLimits + 2*MaxShared

// rule returns limit i. The limits of the user or the client come first, then the limits of the
// source, then the limits of the total.
func (d *Decision) rule(i int) *Rule {
	for _, ls := range [...]*Limits{d.limits, d.source} {
		n := ls.len()
		if i < n {
			return &ls.Rules[i]
		}
		i -= n
	}
	return &d.total.Rules[i]
}

// Count returns how many limits there are, including limits that do not count the request.
func (d *Decision) Count() int { return d.limits.len() + d.source.len() + d.total.len() }

func (ls *Limits) len() int {
	if ls == nil {
		return 0
	}
	return len(ls.Rules)
}

// applies reports whether limit i counts the request.
func (d *Decision) applies(i int) bool { return d.skip>>i&1 == 0 }

// firstApplied is the index of the first limit that counts the request.
func (d *Decision) firstApplied() int { return bits.TrailingZeros16(^d.skip) }

// Status returns the state of limit i after the decision.
func (d *Decision) Status(i int) *Status { return &d.status[i] }

// Status is the state of one limit after the decision.
type Status struct {
	Remaining uint32 // requests
	Reset     uint32 // seconds
}

// LimitStatus is the state of one limit after the decision.
type LimitStatus struct {
	Limit     Limit
	Remaining int64         // requests that would pass now
	Reset     time.Duration // until Remaining grows, in whole seconds, rounded up; 0 if nothing is used
}

// Rejected reports whether the request must be answered with 429.
func (d *Decision) Rejected() bool { return d.Outcome == Denied || d.Outcome == Banned }

// Counted reports whether any limit applied: false for [Passed], [Trusted], [Banned] and [WouldBan].
func (d *Decision) Counted() bool { return d.limits != nil }

// Limits yields the limits that applied, in the order of the policy, with the limits of the source
// and of the total last. It yields none for [Passed] and [Trusted].
func (d *Decision) Limits() iter.Seq2[int, LimitStatus] {
	return func(yield func(int, LimitStatus) bool) {
		for i := range d.Count() {
			if !d.applies(i) {
				continue
			}
			st := LimitStatus{
				Limit:     d.rule(i).Limit,
				Remaining: int64(d.status[i].Remaining),
				Reset:     time.Duration(d.status[i].Reset) * time.Second,
			}
			if !yield(i, st) {
				return
			}
		}
	}
}

// BindingLimit returns the limit that decided, see Binding. It returns false if no limit applied.
func (d *Decision) BindingLimit() (LimitStatus, bool) {
	for i, st := range d.Limits() {
		if i == d.Binding {
			return st, true
		}
	}
	return LimitStatus{}, false
}

// OverTotal reports whether the binding limit is a limit of the total.
func (d *Decision) OverTotal() bool {
	return d.Binding >= d.limits.len()+d.source.len() && d.total.len() > 0
}

// OverShared reports whether the binding limit also counts requests of other keys: it is a limit of
// the source or of the total.
func (d *Decision) OverShared() bool { return d.Binding >= d.limits.len() && d.Counted() }

// WithoutSource returns the decision without the limits of the source, for a request from another
// address with an unknown count.
func (d Decision) WithoutSource() Decision {
	n, m := d.limits.len(), d.source.len()
	if m == 0 {
		return d
	}
	copy(d.status[n:], d.status[n+m:])
	own := uint16(1)<<n - 1
	d.exceeded = d.exceeded&own | d.exceeded>>m&^own
	switch {
	case d.Binding >= n+m:
		d.Binding -= m
	case d.Binding >= n:
		d.Binding = d.firstApplied()
	}
	d.source = nil
	return d
}

// WithShared returns the decision by a key's own limits, combined with the shared limits of another
// decision. Shared limits are the limits of the source and the total of the client. Their state is
// the state after that other decision.
func (d Decision) WithShared(of *Decision) Decision {
	own, before, shared := d.limits.len(), of.limits.len(), of.source.len()+of.total.len()
	if shared == 0 || d.Outcome == Passed || d.Outcome == Trusted {
		return d
	}
	if d.limits == nil {
		d.limits = noLimits
	}
	copy(d.status[own:own+shared], of.status[before:])
	d.source, d.total, d.Soft = of.source, of.total, d.Soft || of.Soft
	if d.Outcome != Allowed {
		return d
	}
	d.Binding = d.firstApplied()
	for i := range d.Count() {
		if d.applies(i) && d.tighter(i) {
			d.Binding = i
		}
	}
	return d
}

// Usage returns the used share of the binding limit, 0 to 1.
func (d *Decision) Usage() float64 {
	st, ok := d.BindingLimit()
	if !ok {
		return 0
	}
	return 1 - float64(st.Remaining)/float64(st.Limit.Requests)
}

// tighter reports whether limit i has a smaller share left than the binding limit.
func (d *Decision) tighter(i int) bool {
	b := d.Binding
	return int64(d.status[i].Remaining)*d.rule(b).Requests < int64(d.status[b].Remaining)*d.rule(i).Requests
}

// Headers returns the values of the RateLimit-Policy and RateLimit fields
// (draft-ietf-httpapi-ratelimit-headers). Both are lists with one item per limit. They are empty if
// no limit applied, if the policy hides them, and in dry-run, which must not change what clients
// do.
func (d *Decision) Headers() (policy, limit string) {
	if d.hide || d.limits == nil {
		return "", ""
	}
	if d.skip == 0 && d.source.len() == 0 && d.total.len() == 0 { // nearly every decision
		return d.limits.policyField, d.limitField()
	}
	var all []Limit
	for _, st := range d.Limits() {
		all = append(all, st.Limit)
	}
	return policyField(all), d.limitField()
}

// Exceeded reports whether the request must be answered with 429 because it is over a limit. It is
// false if OnOutage denied the request, or if there was no room to count it.
func (d *Decision) Exceeded() bool { return d.Rejected() && d.anyExceeded() }

func (d *Decision) anyExceeded() bool { return d.exceeded != 0 }

// Over reports whether the request is over a limit that it can wait for. It includes dry-run.
func (d *Decision) Over() bool {
	return (d.Outcome == Denied || d.Outcome == WouldDeny) && d.RetryAfter < Never && d.anyExceeded()
}

// Violated returns the names of the limits that the request is over, in the order of the policy. It
// is nil if the request was not denied by a limit, see [Decision.Exceeded], and if the policy hides
// its limits.
func (d *Decision) Violated() (names []string) {
	if d.hide || !d.Rejected() {
		return nil
	}
	for i := range d.Count() {
		if d.exceeded>>i&1 != 0 {
			names = append(names, d.rule(i).Name)
		}
	}
	return names
}

// RetryAfterSeconds returns RetryAfter for the Retry-After field (RFC 9110, section 10.2.3), in
// seconds. It is rounded up, so a client that waits this long passes. It is at most 2 x
// [MaxWindow].
func (d *Decision) RetryAfterSeconds() int64 {
	return CeilSeconds(min(d.RetryAfter, 2*MaxWindow).Milliseconds())
}

// FieldNames are the names of the header fields of draft-ietf-httpapi-ratelimit-headers and of
// their parameters.
type FieldNames struct {
	Policy string // field with one item per limit
	Quota  string // its parameter for the requests per window
	Window string // its parameter for the length of the window, in seconds

	Limit     string // field with the state of each limit
	Available string // its parameter for the remaining requests
	Until     string // its parameter for the seconds until more are available
}

// fields follows drafts 08 to 11. To follow a later draft, change the names here, and the values if
// the draft gives them another meaning: this package writes values as defined by draft 08.
var fields = FieldNames{Policy: "RateLimit-Policy", Quota: "q", Window: "w", Limit: "RateLimit", Available: "r", Until: "t"}

// Fields returns the names of the response fields, with their capitals, and of their parameters.
func Fields() FieldNames { return fields }

// policyField returns the value of the RateLimit-Policy field.
func policyField(limits []Limit) string {
	var b []byte
	for i := range limits {
		b = appendName(b, i, limits[i].Name)
		b = appendParameter(b, fields.Quota)
		b = strconv.AppendInt(b, limits[i].Requests, 10)
		b = appendParameter(b, fields.Window)
		b = strconv.AppendInt(b, CeilSeconds(limits[i].Window.Milliseconds()), 10)
	}
	return string(b)
}

// limitField returns the value of the RateLimit field.
func (d *Decision) limitField() string {
	b := make([]byte, 0, 64)
	first := d.firstApplied()
	for i := first; i < d.Count(); i++ {
		if !d.applies(i) {
			continue
		}
		b = appendName(b, i-first, d.rule(i).Name)
		b = appendParameter(b, fields.Available)
		b = strconv.AppendUint(b, uint64(d.status[i].Remaining), 10)
		b = appendParameter(b, fields.Until)
		b = strconv.AppendUint(b, uint64(d.status[i].Reset), 10)
	}
	return string(b)
}

// appendName begins item i of a list of structured fields (RFC 9651) with its name.
func appendName(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// appendParameter begins a parameter of an item.
func appendParameter(b []byte, name string) []byte {
	return append(append(append(b, ';'), name...), '=')
}
