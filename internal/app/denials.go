package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/config"
	"oauth-server/internal/judgement"
	"oauth-server/internal/metrics"
	"oauth-server/internal/ratelimit"
)

// wouldBeLines is how many would-be denials of a second stand in the log: in dry-run there may be as
// many as there are requests. Denials, answers with the last token and requests that waited are logged all.
const wouldBeLines = 10

// denials notes who was over a limit, or would have been, for the access log, and whom other requests are for.
type denials struct {
	hash  func(username string) string
	names atomic.Bool // log usernames, instead of hashes of them
	all   atomic.Bool // log the users of all requests

	mu      sync.Mutex
	second  int64
	lines   int    // in that second
	skipped uint64 // since the last line
}

// hashLength is how many characters of 6 bits a hash of a username has.
const hashLength = 16

// userHash is what stands for a username in logs. It is the same on all instances and after restarts,
// and cannot be computed without the key.
func (f *foundation) userHash(username string) string {
	return f.mac.Derive("username in a log", username)[:hashLength]
}

// follow takes over what the configuration says of users in the log.
func (d *denials) follow(cfg *config.Config) {
	d.names.Store(cfg.LogUsernames)
	d.all.Store(cfg.LogUsers == config.LogAllUsers)
}

// note notes the decision. Of one that admitted the request only the user is noted, if the configuration says so.
func (d *denials) note(ctx context.Context, now time.Time, x *judgement.Decided) {
	out, denied := d.denial(now, x)
	if x.Username != "" && (denied || d.all.Load()) {
		out.User, out.Hashed = d.shown(x.Username)
	}
	accesslog.NoteDenial(ctx, out)
}

// denial returns what the line says of the decision, and whether that is a denial; of would-be ones, those that are
// logged.
func (d *denials) denial(now time.Time, x *judgement.Decided) (out accesslog.Denial, denied bool) {
	binding, _ := x.Decision.BindingLimit()
	out = accesslog.Denial{Outcome: x.Decision.Outcome.String(), Limit: binding.Limit.Name}
	byCandidate := candidateOutcomes[x.Tried.Outcome]
	inDryRun := slices.Contains([]ratelimit.Outcome{
		ratelimit.WouldDeny, ratelimit.WouldReuse, ratelimit.WouldDelay, ratelimit.WouldBan,
	}, x.Decision.Outcome)
	switch {
	case slices.Contains([]ratelimit.Outcome{ratelimit.Denied, ratelimit.Reused, ratelimit.Delayed, ratelimit.Banned}, x.Decision.Outcome):
	case !inDryRun && byCandidate == "":
		return accesslog.Denial{}, false
	default:
		if !inDryRun {
			out.Outcome, out.Limit = byCandidate, x.Tried.Limit
		}
		var sampled bool
		if out.Skipped, sampled = d.sample(now.Unix()); !sampled {
			return accesslog.Denial{}, false
		}
	}
	return out, true
}

// candidateOutcomes are what a candidate would have done with a request that it would not have admitted at once.
var candidateOutcomes = map[ratelimit.Outcome]string{
	ratelimit.WouldDeny:  metrics.CandidateWouldDeny,
	ratelimit.WouldReuse: metrics.CandidateWouldReuse,
	ratelimit.WouldDelay: metrics.CandidateWouldDelay,
	ratelimit.WouldBan:   metrics.CandidateWouldBan,
}

// shown returns what stands for the user in the log, and whether it is a hash.
func (d *denials) shown(username string) (user string, hashed bool) {
	if d.names.Load() {
		return username, false
	}
	return d.hash(username), true
}

// user returns the attribute for the user in a line of the log.
func (d *denials) user(username string) slog.Attr { return accesslog.User(d.shown(username)) }

// sample reports whether a would-be denial is logged, and how many before it were not.
func (d *denials) sample(second int64) (skipped uint64, sampled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if second != d.second {
		d.second, d.lines = second, 0
	}
	if d.lines == wouldBeLines {
		d.skipped++
		return 0, false
	}
	d.lines++
	skipped, d.skipped = d.skipped, 0
	return skipped, true
}
