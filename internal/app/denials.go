package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// wouldBeLines is the maximum number of logged would-be denials per second, because in dry-run mode
// every request may be one. Denials, reused tokens and delayed requests are all logged.
const wouldBeLines = 10

// denials records requests that were, or would have been, over a limit for the access log, and the
// users of other requests.
type denials struct {
	hash  func(username string) string
	names atomic.Bool // log usernames instead of hashes
	all   atomic.Bool // log the users of all requests

	mu      sync.Mutex
	second  int64
	lines   int    // in that second
	skipped uint64 // since the last line
}

// hashLength is the length of a username hash in characters of 6 bits.
const hashLength = 16

// userHash returns the hash that stands for a username in logs. It is the same on all instances and
// after restarts, and cannot be computed without the key.
func (f *foundation) userHash(username string) string {
	return f.mac.Derive("username in a log", username)[:hashLength]
}

// follow applies the settings about users in the log.
func (d *denials) follow(cfg *config.Config) {
	d.names.Store(cfg.LogUsernames)
	d.all.Store(cfg.LogUsers == config.LogAllUsers)
}

// note records a decision. If the request was admitted, it records only the user, if the
// configuration asks for it.
func (d *denials) note(ctx context.Context, now time.Time, x *limiter.Decided) {
	out, denied := d.denial(now, x)
	if x.Username != "" && (denied || d.all.Load()) {
		out.User, out.Hashed = d.shown(x.Username)
	}
	accesslog.NoteDenial(ctx, out)
}

// denial returns the log entry of a decision, and whether it is a denial. Only a sample of would-be
// denials is reported.
func (d *denials) denial(now time.Time, x *limiter.Decided) (out accesslog.Denial, denied bool) {
	binding, _ := x.Decision.BindingLimit()
	out = accesslog.Denial{Outcome: x.Decision.Outcome.String(), Limit: binding.Limit.Name}
	switch inDryRun := would(x.Decision.Outcome); {
	case slices.Contains([]ratelimit.Outcome{ratelimit.Denied, ratelimit.Reused, ratelimit.Delayed, ratelimit.Banned}, x.Decision.Outcome):
	case !inDryRun && !would(x.Tried.Outcome):
		return accesslog.Denial{}, false
	default:
		if !inDryRun {
			out.Outcome, out.Limit = "candidate_"+x.Tried.Outcome.String(), x.Tried.Limit
		}
		var sampled bool
		if out.Skipped, sampled = d.sample(now.Unix()); !sampled {
			return accesslog.Denial{}, false
		}
	}
	return out, true
}

// would reports whether enforcing the limits, or a candidate, would not have admitted the request at
// once.
func would(o ratelimit.Outcome) bool {
	return o == ratelimit.WouldDeny || o == ratelimit.WouldReuse || o == ratelimit.WouldDelay || o == ratelimit.WouldBan
}

// shown returns the text that stands for the user in the log, and whether it is a hash.
func (d *denials) shown(username string) (user string, hashed bool) {
	if d.names.Load() {
		return username, false
	}
	return d.hash(username), true
}

// user returns the log attribute of a user.
func (d *denials) user(username string) slog.Attr { return accesslog.User(d.shown(username)) }

// sample reports whether to log a would-be denial, and how many were skipped before it.
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
