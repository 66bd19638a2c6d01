package simulate

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// lastTokens has, by client, the time until which its last token for a set of scopes is returned
// again. The server also distinguishes credentials, which a log does not have.
type lastTokens map[string][]lastToken

// maxTokensOfClient is how many tokens the server keeps per client.
const maxTokensOfClient = 32

type lastToken struct {
	scopes uint64 // a hash
	until  time.Time
}

var seed = maphash.MakeSeed()

// scopesOf returns a hash of a set of scopes.
func scopesOf(scope string) (sum uint64) {
	if !strings.Contains(scope, " ") {
		return maphash.String(seed, scope)
	}
	names := strings.Fields(scope)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		sum += maphash.String(seed, name)
	}
	return sum
}

// find reports whether there is a token to return again.
func (l lastTokens) find(r *traffic.Request, now time.Time) bool {
	i := l.index(r)
	return i >= 0 && now.Before(l[r.Client][i].until)
}

func (l lastTokens) index(r *traffic.Request) int {
	all := l[r.Client]
	if len(all) == 0 {
		return -1
	}
	scopes := scopesOf(r.Scope)
	return slices.IndexFunc(all, func(t lastToken) bool { return t.scopes == scopes })
}

// keep records an issued token.
func (l lastTokens) keep(r *traffic.Request, now time.Time, life time.Duration) {
	expires := now.Add(life).Truncate(time.Second) // tokens carry times in seconds
	t := lastToken{scopesOf(r.Scope), ratelimit.ReusedUntil(expires, life)}
	all := l[r.Client]
	if i := l.index(r); i >= 0 {
		all = slices.Delete(all, i, i+1)
	} else if len(all) >= maxTokensOfClient {
		first := slices.IndexFunc(all, func(t lastToken) bool {
			return !slices.ContainsFunc(all, func(o lastToken) bool { return o.until.Before(t.until) })
		})
		all = slices.Delete(all, first, first+1)
	}
	l[r.Client] = append(all, t)
}

// sweep drops the tokens that are no longer returned.
func (l lastTokens) sweep(now time.Time) {
	for id, all := range l {
		all = slices.DeleteFunc(all, func(t lastToken) bool { return !now.Before(t.until) })
		if l[id] = all; len(all) == 0 {
			delete(l, id)
		}
	}
}
