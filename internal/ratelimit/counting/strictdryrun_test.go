package counting

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// dryRun returns the limits of a process for dry-run.
func (p *tenant) dryRun() *ratelimit.Effective {
	p.t.Helper()
	settings := ratelimit.Settings{Mode: ratelimit.DryRun, Default: ratelimit.Policy{User: p.eff.User.All(), Client: p.eff.Client.All()}}
	return defaultsWith(p.t, settings).For("client")
}

// TestStrictInDryRun: a strict limit takes no permits in dry-run, so no request waits. It admits
// the room that the known counts leave, with frames that count in full. It denies where enforcement
// would.
func TestStrictInDryRun(t *testing.T) {
	t.Parallel()
	p := leaseFrom(t, strictly(3, time.Minute))
	p.eff = p.dryRun()
	for range 3 {
		d, waited := p.c.Await(t.Context(), p.now, p.k, p.eff, 1)
		check.Equal(t, "outcome", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "waited", waited, 0)
	}
	p.take(1, ratelimit.WouldDeny)
	p.pass(60 * time.Second) // the frame is still partly inside
	p.take(1, ratelimit.WouldDeny)
	p.pass(time.Second)
	p.take(1, ratelimit.Allowed)
	check.Equal(t, "refund", p.c.Refund(p.now, p.now, p.k, p.eff, 1), true)

	d := p.c.Take(p.now, ratelimit.Key{ClientID: "client", Username: "other"}, p.eff, 1)
	st, _ := d.BindingLimit()
	check.Equal(t, "limit", st.Limit, strictly(3, time.Minute))
}

// TestStrictInDryRunIsShared: requests of other processes count, and requests admitted in dry-run
// are written for them.
func TestStrictInDryRunIsShared(t *testing.T) {
	t.Parallel()
	p := leaseFrom(t, strictly(3, time.Minute))
	p.eff = p.dryRun()
	p.others(60_000, 2)
	p.take(1, ratelimit.Allowed)
	for p.c.Usage(p.now, p.k)[0].Known < 3 {
		task := p.begin()
		check.Equal(t, "waited for", task.Lease, false)
		p.finish(task, p.store(&task))
	}
	p.take(1, ratelimit.WouldDeny)
	check.Equal(t, "counted", p.counted(), int64(3))
}

// TestStrictOutOfDryRun: requests admitted in dry-run count when the limit is enforced. Permits
// held under enforcement are not used in dry-run.
func TestStrictOutOfDryRun(t *testing.T) {
	t.Parallel()
	p := leaseFrom(t, strictly(10, time.Minute))
	enforced := p.eff
	p.take(4, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "held", p.held(), int64(4))
	p.eff = p.dryRun()
	p.take(6, ratelimit.Allowed)
	p.take(1, ratelimit.WouldDeny)
	check.Equal(t, "held", p.held(), int64(0))
	p.eff = enforced
	p.take(1, ratelimit.Denied)
	for p.counted() < 10 {
		task := p.begin()
		p.finish(task, p.store(&task))
	}
	p.take(1, ratelimit.Denied)
	check.Equal(t, "counted", p.counted(), int64(10))
}

// TestStrictInDryRunWouldDeny: it would deny if enforcement could admit nothing. This is the case
// if the store is away, the clock is too uncertain, or there is no document.
func TestStrictInDryRunWouldDeny(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(p *tenant){
		"no answers":         func(p *tenant) { p.y.SetLost(true) },
		"an outage":          func(p *tenant) { p.y.Stalled(); p.pass(20 * time.Second) },
		"an uncertain clock": func(p *tenant) { p.y.SetUncertainty(p.now, time.Second) },
		"no room":            func(p *tenant) { p.c.all.maxKeys = 0 },
	} {
		p := leaseFrom(t, strictly(3, time.Minute))
		p.eff = p.dryRun()
		if name == "an outage" { // known counts stay valid for a while
			p.take(1, ratelimit.Allowed)
			p.y.SetUncertainty(p.now.Add(20*time.Second), time.Millisecond)
		}
		prepare(p)
		d := p.c.Take(p.now, p.k, p.eff, 1)
		check.Equal(t, name, d.Outcome, ratelimit.WouldDeny)
		check.Equal(t, name+": outage", d.Outage, true)
	}
}

// TestStrictOverrideInDryRun: overrides take no permits either.
func TestStrictOverrideInDryRun(t *testing.T) {
	t.Parallel()
	e := (&ratelimit.Compiled{}).Edit()
	settings := ratelimit.DefaultSettings()
	settings.Mode = ratelimit.DryRun
	check.OK(t, e.SetCommon(settings))
	check.OK(t, e.SetOverride("client", "user", []ratelimit.Limit{strictly(1, time.Minute)}))
	p := leaseFrom(t, strictly(1, time.Minute))
	p.eff = e.Compiled().For("client")
	p.take(1, ratelimit.Allowed)
	p.take(1, ratelimit.WouldDeny)
}

// TestDenialForWantOfPermits: a request that lacks only permits exceeds no limit, so the decision
// names none.
func TestDenialForWantOfPermits(t *testing.T) {
	t.Parallel()
	p := leaseFrom(t, strictly(3, time.Minute))
	d := p.c.Take(p.now, p.k, p.eff, 1)
	check.Equal(t, "outcome", d.Outcome, ratelimit.Denied)
	check.Equal(t, "outage", d.Outage, true)
	check.Equal(t, "over a limit", d.Exceeded(), false)
	check.Equal(t, "violated", d.Violated(), nil)
}
