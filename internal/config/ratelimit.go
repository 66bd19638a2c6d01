package config

import (
	"maps"
	"slices"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// PolicyPath is the path of a client's policy, for errors that other packages report.
func PolicyPath(clientID string) string { return fielderr.Join("rate_limit.clients", clientID) }

// maxMaxKeys is about 200 GiB of counters.
const maxMaxKeys = 1 << 30

// ErrorCodes are the OAuth error codes that a 429 can have; the first is the default. RFC 6749 has
// no code for it, and slow_down is from RFC 8628 section 3.5. The slice is read-only.
var ErrorCodes = []string{"temporarily_unavailable", "slow_down", "rate_limited", "invalid_request"}

// check reports the problems found by internal/ratelimit. It also reports values that are given but
// empty, which internal/ratelimit treats as absent.
func (r *RateLimit) check(es *fielderr.Errors) {
	*es = append(*es, fielderr.Of(r.Validate()).Under("rate_limit")...)
	if r.Mode == ratelimit.Unset {
		es.Add("rate_limit.mode", "must be enforce, dry_run or off")
	}
	if r.MaxKeys < 1 || r.MaxKeys > maxMaxKeys {
		es.Add("rate_limit.max_keys", "must be from 1 to %d, not %d", maxMaxKeys, r.MaxKeys)
	}
	oneOf(es, "rate_limit.error_code", r.ErrorCode, ErrorCodes...)
	for _, id := range slices.Sorted(maps.Keys(r.Clients)) {
		p := r.Clients[id]
		checkWritten(es, PolicyPath(id)+".user", p.User)
		checkWritten(es, PolicyPath(id)+".client", p.Client)
		checkWritten(es, PolicyPath(id)+".total", p.Total)
		checkWritten(es, PolicyPath(id)+".source", p.Source)
	}
}

func checkWritten(es *fielderr.Errors, path string, list []ratelimit.Limit) {
	if list != nil && len(list) == 0 {
		es.Add(path, "needs at least one limit; to never limit the client, say trusted: true")
	}
}
