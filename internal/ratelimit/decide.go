package ratelimit

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request for more than the limit ever admits.
const Never = time.Duration(math.MaxInt64)

// Under sets the limits that the decision is made under: of the key's own list, of the source and of
// the total, each nil if there are none. skip has a bit for each limit of the own list that does not
// count the request.
func (d *Decision) Under(own *Limits, skip uint16, source, total *Limits) {
	if own == nil {
		own = noLimits
	}
	d.limits, d.skip, d.source, d.total = own, skip, source, total
}

// Settle completes the decision on n requests from the frames of their limits. It counts them if
// they are admitted.
func (d *Decision) Settle(all []Frames, ms, n int64, admit bool) {
	d.Outcome, d.Binding = Allowed, d.firstApplied()
	if !admit {
		d.Outcome = Denied
		d.RetryAfter, d.Binding = RetryAfter(all, ms, n)
	}
	for i := range all {
		if all[i].Rule != nil {
			all[i].record(ms, n, i, d)
		}
	}
}

// Admits reports whether n more requests fit.
func (f *Frames) Admits(r *Rule, n int64) bool {
	if f.Permits != nil {
		return n <= f.Usable
	}
	return f.Instances > 0 && n <= r.Requests && (n-1)*f.Instances < r.Requests-f.Used
}

// Room returns how many more requests fit, as far as this process knows.
func (f *Frames) Room(r *Rule) int64 {
	room := max(r.Requests-f.Used, 0)
	switch f.Instances {
	case 0:
		return 0
	case 1:
		return room
	}
	return (room + f.Instances - 1) / f.Instances
}

// countAdmitted counts n requests that were admitted.
func (f *Frames) countAdmitted(r *Rule, n int64) {
	switch {
	case f.Permits != nil:
		f.useLease(n)
	case r.Strict: // without permits; the newest frame is the next one
		f.Slots[1].Count(n)
		f.Whole += n
	default:
		f.count(n)
	}
}

// record counts n requests if they were admitted, and fills in the status of limit i. There is room
// for one more request when the estimate falls below its present value, rounded down.
func (f *Frames) record(ms, n int64, i int, d *Decision) {
	r := f.Rule
	if d.Outcome == Allowed {
		f.countAdmitted(r, n)
		if f.Used += n * f.Instances; r.Algorithm == Weighted {
			f.Used = f.Floor(r, ms)
		}
	} else if f.Instances > 0 && !f.Admits(r, n) && (d.RetryAfter == 0 || f.Full(r, n)) {
		d.exceeded |= 1 << i // a limit that lacks only permits is not exceeded if another one denies
	}
	st := &d.status[i]
	if f.Instances == 0 {
		st.Reset = Clamp(CeilSeconds(OutageRetry.Milliseconds()))
		return
	}
	if f.Used > 0 {
		free, target := f.free, min(f.Used, r.Requests)
		if free == 0 || target != f.target {
			free = f.FirstBelow(r, ms, target)
		}
		st.Reset = Clamp(CeilSeconds(free - ms))
	}
	st.Remaining = Clamp(f.Room(r))
	if f.Used >= r.SoftAt {
		d.Soft = true
	}
	if d.Outcome == Allowed && i > d.Binding && d.tighter(i) {
		d.Binding = i
	}
}

// RetryAfter returns how long to wait until n requests pass all limits, and the index of the limit
// that takes longest. It repeats until no limit moves the time on, because a weighted estimate can
// rise again while another limit still lacks room. Frames without a rule are skipped.
func RetryAfter(all []Frames, ms, n int64) (wait time.Duration, binding int) {
	for binding < len(all)-1 && all[binding].Rule == nil {
		binding++
	}
	free := ms
	for moved := true; moved; {
		moved = false
		for i := range all {
			f, r := &all[i], all[i].Rule
			if r == nil {
				continue
			}
			if f.Instances == 0 {
				return OutageRetry, i
			}
			if n > r.Requests {
				return Never, i
			}
			target := r.Requests - (n-1)*f.Instances
			if target < 1 { // more than the share of this instance
				return OutageRetry, i
			}
			t := f.FirstBelow(r, free, target)
			if free == ms {
				f.free, f.target = t, target
			}
			if t > free {
				free, binding, moved = t, i, len(all) > 1
			}
		}
	}
	return time.Duration(free-ms) * time.Millisecond, binding
}

// useLease takes n permits of the present frame.
func (f *Frames) useLease(n int64) {
	*f.Permits -= n
	f.Usable -= n
	f.Whole += n
}

// Full reports whether the limit has no room for n more requests, regardless of who holds the
// permits.
func (f *Frames) Full(r *Rule, n int64) bool {
	if f.Permits == nil || f.Instances == 0 {
		return !f.Admits(r, n)
	}
	return n > r.Requests-f.Used
}

// OutageRetry is the RetryAfter of a request that is denied only because its count cannot be
// shared.
const OutageRetry = 5 * time.Second

// Conclude completes a decision with the other settings of the policy.
func (d *Decision) Conclude(e *Effective) {
	d.hide = e.HideHeaders || e.Mode == DryRun
	if d.Outcome == Denied && e.Mode == DryRun {
		d.Outcome = WouldDeny
	}
}

// DenyNoRoom denies a request because one of its keys has no counter, not even an overflow counter.
// A key that cannot be counted must not pass without a limit. Call Under first.
func (d *Decision) DenyNoRoom() {
	d.Outcome, d.Binding = Denied, d.firstApplied()
	d.RetryAfter = d.rule(d.Binding).Window
	for i := range d.Count() {
		d.status[i].Reset = Clamp(CeilSeconds(d.rule(i).WindowMS))
	}
}

// LeaseRetry is the minimum RetryAfter of a request that is denied only because no permits arrived.
const LeaseRetry = time.Second

// LackPermits marks d as denied because no permits arrived. The request exceeds no limit.
func (d *Decision) LackPermits() {
	d.RetryAfter, d.Outage, d.exceeded = max(d.RetryAfter, LeaseRetry), true, 0
}
