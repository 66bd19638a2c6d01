package grants

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// bannedFor is the reason of a ban, for the client.
func bannedFor(x *issuance) string {
	if x.auth.Username == "" {
		return "This client is banned for a time, because it repeatedly exceeded its token rate limit"
	}
	return "This client and user are banned for a time, because they repeatedly exceeded their token rate limit"
}

// banLimit stands for a ban in the log, in the place of the name of a limit.
const banLimit = "ban"

// banned returns the decision on a request of who is banned, or would be in dry-run; false: it is not. Nothing
// is counted then, except by a candidate.
func (s *Service) banned(now time.Time, x *issuance, e *ratelimit.Effective) (ratelimit.Decision, bool) {
	if s.opts.Bans == nil {
		return ratelimit.Decision{}, false
	}
	return s.opts.Bans.Decide(now, x.quota(), e)
}

// bannedAlready denies a request of who is banned before its password is hashed, as deniedAlready does one
// over its limit.
func (s *Service) bannedAlready(ctx context.Context, now time.Time, policies *clientcfg.PolicySnapshot, x *issuance) error {
	d, banned := s.banned(now, x, x.asked().under(policies))
	if !banned || !d.Rejected() {
		return nil
	}
	_, err := s.decided(ctx, now, x, &Decided{Decision: d, Tried: s.tryCandidate(ctx, now, policies, x)})
	return err
}

// bannedMeanwhile has a ban that began while a request waited take the place of the decision. Its turn is that of the
// next.
func (s *Service) bannedMeanwhile(x *issuance, t *turns.Turn) {
	if t.Waited == 0 {
		return
	}
	e := x.asked().under(s.opts.Policies())
	d, banned := s.banned(s.opts.Clock(), x, e)
	if !banned || !d.Rejected() {
		return
	}
	if t.Outcome == ratelimit.Delayed {
		s.turns.GiveBack(x.quota(), t)
	}
	t.Decision = d
}

// countDenial counts a request that a limit denied towards a ban. The password grant is left out, also in
// dry-run: who is over the limit is denied before the password is verified, so that it may be anybody. So is what
// was to wait for its turn: the stop of this process denies all that do.
func (s *Service) countDenial(x *issuance, e *ratelimit.Effective, t *turns.Turn) {
	// The clock is read again, because the request may have waited for permits.
	if s.opts.Bans != nil && x.grant != clientcfg.Password && !t.Held && t.ThroughLimit() {
		s.opts.Bans.Denied(s.opts.Clock(), x.quota(), e)
	}
}
