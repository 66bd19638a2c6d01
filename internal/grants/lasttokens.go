package grants

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// Bounds of a table of tokens kept for over_limit: reuse.
const (
	maxLastTokens     = 16 << 20 // bytes, including the overhead of each token
	maxTokensOfClient = 32       // one token for each credential and scope set
	lastTokenOverhead = 256
)

// lastTokens keeps in memory the last token issued for each credential, scope set and audience of
// the clients with over_limit: reuse, and the requests that may issue one. It is safe for concurrent
// use.
type lastTokens struct {
	key [sha256.Size]byte // of the hashes

	mu       sync.Mutex
	byClient map[string][]lastToken
	size     int64 // bytes
	underWay map[tokenSet][]*reuse
}

// lastToken is a token that was issued. In dry-run and for a candidate nothing is handed out, so it
// only records that there was a token.
type lastToken struct {
	id      tokenSet
	text    string       // empty if not kept
	length  int          // of the token; a prediction takes as much room as the token that it predicts
	jti     string       // empty if no token was issued although a candidate would have admitted the request
	stamp   secret.Stamp // the client's stamp at issue
	version int64        // the client's version at issue
	expires time.Time
	until   time.Time // when it is no longer handed out
}

func (t *lastToken) size() int64 { return int64(lastTokenOverhead + t.length) }

// tokenSet is a keyed hash of the properties that equal tokens share.
type tokenSet [sha256.Size]byte

func newLastTokens() *lastTokens {
	l := &lastTokens{byClient: map[string][]lastToken{}, underWay: map[tokenSet][]*reuse{}}
	_, _ = rand.Read(l.key[:]) // never fails (crypto/rand)
	return l
}

// set returns the hash for tokens of client c with that credential and scope set. keyID identifies
// the policy that counts them: the client's ID or its candidate's. since is when the candidate's
// trial began, or zero for the policy in force.
func (l *lastTokens) set(keyID string, c *clientcfg.Client, credential secret.Digest, scopes []string, since time.Time) (id tokenSet) {
	h := hmac.New(sha256.New, l.key[:])
	texts := [][]string{{keyID, string(credential[:])}, slices.Sorted(slices.Values(scopes)), c.Audience}
	for _, list := range texts {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(list)))) // a hash never fails to write
		for _, text := range list {
			_, _ = h.Write(append(binary.AppendUvarint(nil, uint64(len(text))), text...))
		}
	}
	_, _ = h.Write(binary.AppendVarint(binary.AppendVarint(nil, since.Unix()), int64(since.Nanosecond())))
	h.Sum(id[:0])
	return id
}

// begin registers a request that may issue a token.
func (l *lastTokens) begin(r *reuse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay[r.id] = append(l.underWay[r.id], r)
}

// end releases the requests that wait for r, and returns the equal requests that are still under
// way. It may be called again.
func (l *lastTokens) end(r *reuse) []*reuse {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.underWay[r.id]
	i := slices.Index(all, r)
	if i < 0 {
		return nil
	}
	close(r.done)
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(l.underWay, r.id)
		return nil
	}
	l.underWay[r.id] = all
	return slices.Clone(all)
}

// find returns the last token of the set. ok is false if there is none, the client has changed
// since, or the token is too old to hand out.
func (l *lastTokens) find(c *clientcfg.Client, id tokenSet, now time.Time) (t lastToken, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.byClient[c.ID] {
		if t.id == id {
			return t, t.goodFor(c) && now.Before(t.until)
		}
	}
	return t, false
}

// goodFor reports whether the client is unchanged since the token was issued.
func (t *lastToken) goodFor(c *clientcfg.Client) bool {
	return t.version == c.Version && t.stamp == c.Stamp
}

// put stores a token in place of the last token of its set. If the client has too many, the token
// that ends first makes room. If the table is too large, it drops the tokens of other clients.
func (l *lastTokens) put(clientID string, t lastToken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens, replaced := l.byClient[clientID], t.id
	if !slices.ContainsFunc(tokens, func(o lastToken) bool { return o.id == t.id }) && len(tokens) >= maxTokensOfClient {
		replaced = slices.MinFunc(tokens, func(a, b lastToken) int { return a.until.Compare(b.until) }).id
	}
	if i := slices.IndexFunc(tokens, func(o lastToken) bool { return o.id == replaced }); i >= 0 {
		l.size -= tokens[i].size()
		tokens[i] = t
	} else {
		l.byClient[clientID] = append(tokens, t)
	}
	l.size += t.size()
	for other := range l.byClient { // in random order
		if l.size <= maxLastTokens {
			break
		}
		if other != clientID {
			l.dropIf(other, func(*lastToken) bool { return true })
		}
	}
}

// dropIf drops the tokens of a client for which drop returns true. The caller holds the lock.
func (l *lastTokens) dropIf(clientID string, drop func(*lastToken) bool) {
	tokens := l.byClient[clientID]
	size := l.size
	left := slices.DeleteFunc(tokens, func(t lastToken) bool {
		dropped := drop(&t)
		if dropped {
			l.size -= t.size()
		}
		return dropped
	})
	switch {
	case len(left) == 0:
		delete(l.byClient, clientID)
	case l.size < size:
		l.byClient[clientID] = slices.Clone(left) // releases the memory of the others
	}
}

// sweep drops the tokens for which drop returns true, and returns the IDs of the others. It locks
// for one client at a time.
func (l *lastTokens) sweep(drop func(clientID string) func(*lastToken) bool) (jtis []string) {
	l.mu.Lock()
	clients := slices.Collect(maps.Keys(l.byClient))
	l.mu.Unlock()
	for _, id := range clients {
		drop := drop(id)
		l.mu.Lock()
		l.dropIf(id, drop)
		for _, t := range l.byClient[id] {
			jtis = append(jtis, t.jti)
		}
		l.mu.Unlock()
	}
	return jtis
}

// askedAboutTogether is how many tokens one read of revocations covers.
const askedAboutTogether = 500

// revocationsKnownFor is how long tokens are handed out again after the last successful read of
// revocations. An instance that is cut off from the store does not learn of revocations at other
// instances.
const revocationsKnownFor = 10 * time.Second

// reuseTables holds the tokens kept for over_limit: reuse. Each table has its own bounds, so
// predictions never displace tokens that are handed out.
type reuseTables struct {
	enforced *lastTokens // tokens that are handed out
	dryRun   *lastTokens // tokens that enforce would hand out, without their texts
	tried    *lastTokens // tokens that candidate policies would hand out, without their texts

	read atomic.Pointer[time.Time] // when revocations were last read; has a monotonic clock reading
}

func newReuseTables(now time.Time) *reuseTables {
	r := &reuseTables{enforced: newLastTokens(), dryRun: newLastTokens(), tried: newLastTokens()}
	r.read.Store(&now) // there are no tokens yet
	return r
}

// in returns the table for clients in mode m.
func (r *reuseTables) in(m ratelimit.Mode) *lastTokens {
	if m == ratelimit.Enforce {
		return r.enforced
	}
	return r.dryRun
}

func (r *reuseTables) all() [3]*lastTokens { return [...]*lastTokens{r.enforced, r.dryRun, r.tried} }

// revoked drops a revoked token of a client.
func (r *reuseTables) revoked(clientID, jti string) {
	for _, l := range r.all() {
		l.mu.Lock()
		l.dropIf(clientID, func(t *lastToken) bool { return t.jti == jti })
		l.mu.Unlock()
	}
}

// SweepLastTokens drops the tokens kept for over_limit: reuse that can no longer be handed out:
// they are too old, were revoked at any instance, or their client, its policy or the signing keys
// have changed. Call it periodically. If there are no tokens, it does not read the store.
func (s *Service) SweepLastTokens(ctx context.Context) error {
	if s.opts.Policies == nil {
		return nil
	}
	now := s.opts.Now()
	var names []string
	for _, jti := range s.dropUnused(now) {
		if jti != "" {
			names = append(names, tokenName(jti))
		}
	}
	gone := map[string]bool{}
	for some := range slices.Chunk(names, askedAboutTogether) {
		revoked, err := s.store.RevokedOf(ctx, some)
		if err != nil {
			return storeFailed("read revocations", err)
		}
		for _, name := range revoked {
			gone[name] = true
		}
	}
	if len(gone) > 0 {
		for _, l := range s.last.all() {
			l.sweep(func(string) func(*lastToken) bool {
				return func(t *lastToken) bool { return gone[tokenName(t.jti)] }
			})
		}
	}
	s.last.read.Store(&now)
	return nil
}

// dropUnused drops tokens that are no longer handed out: expired tokens, tokens of a client that
// was changed, removed or given another policy, and tokens signed with an unpublished key. It returns
// the IDs of the others.
func (s *Service) dropUnused(now time.Time) (jtis []string) {
	policies := s.opts.Policies()
	sweep := func(l *lastTokens, inUse func(clientID string, e *ratelimit.Effective) bool) {
		jtis = append(jtis, l.sweep(func(id string) func(*lastToken) bool {
			client, known := s.opts.Clients.Client(id)
			known = known && inUse(id, policies.For(id))
			return func(t *lastToken) bool {
				return !known || !t.goodFor(client) || !now.Before(t.until) || t.text != "" && !s.opts.Signer.Published(t.text)
			}
		})...)
	}
	sweep(s.last.enforced, func(_ string, e *ratelimit.Effective) bool { return e.Reuses() && e.Mode == ratelimit.Enforce })
	sweep(s.last.dryRun, func(_ string, e *ratelimit.Effective) bool { return e.Reuses() && e.Mode != ratelimit.Enforce })
	sweep(s.last.tried, func(id string, e *ratelimit.Effective) bool {
		trial, ok := policies.Trial(id)
		return ok && trial.Client && trial.Over(e, trial.Effective).OverLimit == ratelimit.OverLimitReuse
	})
	return jtis
}
