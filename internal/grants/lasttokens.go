package grants

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// Bounds of the tokens that are kept for over_limit: reuse.
const (
	maxLastTokens      = 16 << 20 // bytes, those of what belongs to a token included
	maxTokensOfClient  = 32       // one for each credential and scope set; those of a candidate count too
	lastTokenOverhead  = 256
	askedAboutTogether = 500 // tokens that one read of the store is about
)

// reusedUntil returns until when a token is handed out again: while a fifth of its life is left.
func reusedUntil(expires time.Time, life time.Duration) time.Time { return expires.Add(-life / 5) }

// lastTokens keeps, in memory, the token that was issued last for each credential, scope set and audience
// of the clients with over_limit: reuse. It is safe for concurrent use.
type lastTokens struct {
	key   [sha256.Size]byte  // of the hashes
	turns [1024]sync.RWMutex // by hash; see reuse

	mu       sync.Mutex
	byClient map[string][]lastToken
	size     int // bytes
}

// lastToken is a token that was issued. Where none is handed out, in dry-run and for a candidate, it says
// only that there was one.
type lastToken struct {
	id      tokenSet
	text    string // empty: not kept
	jti     string
	stamp   secret.Stamp // of the client when it was issued
	version int64        // of the client then
	expires time.Time
	until   time.Time // it is handed out until then
}

func (t *lastToken) size() int { return lastTokenOverhead + len(t.text) }

// tokenSet is a keyed hash of what equal tokens have in common.
type tokenSet [sha256.Size]byte

func newLastTokens() *lastTokens {
	l := &lastTokens{byClient: map[string][]lastToken{}}
	_, _ = rand.Read(l.key[:]) // never fails (crypto/rand)
	return l
}

// set returns the hash for tokens of the client with that credential and scope set. They count under the
// limits of keyID, which is the client's or that of its candidate, in force or tried since then.
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

// find returns the last token of the set that is good at now for the client as it is now.
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

// goodFor reports whether the client is as it was when the token was issued.
func (t *lastToken) goodFor(c *clientcfg.Client) bool {
	return t.version == c.Version && t.stamp == c.Stamp
}

// put keeps a token in place of the one of its set. If there is no room, others give way: of the client
// the one that ends first, and of all any.
func (l *lastTokens) put(clientID string, t lastToken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleteIf(clientID, func(o *lastToken) bool { return o.id == t.id })
	if len(l.byClient[clientID]) >= maxTokensOfClient {
		l.dropFirst(clientID)
	}
	for l.size+t.size() > maxLastTokens && l.size > 0 {
		for other := range l.byClient { // the order is random
			l.dropFirst(other)
			break
		}
	}
	l.byClient[clientID] = append(l.byClient[clientID], t)
	l.size += t.size()
}

// dropFirst drops the token of the client that ends first.
func (l *lastTokens) dropFirst(clientID string) {
	all := l.byClient[clientID]
	first := slices.MinFunc(all, func(a, b lastToken) int { return a.until.Compare(b.until) })
	l.deleteIf(clientID, func(t *lastToken) bool { return t.id == first.id })
}

// deleteIf drops the tokens of a client for which drop returns true. It may also change them.
func (l *lastTokens) deleteIf(clientID string, drop func(*lastToken) bool) {
	all, left := l.byClient[clientID], 0
	for i := range all {
		l.size -= all[i].size()
		if !drop(&all[i]) {
			all[left] = all[i]
			l.size += all[i].size()
			left++
		}
	}
	clear(all[left:]) // the tokens leave memory
	if left == 0 {
		delete(l.byClient, clientID)
		return
	}
	l.byClient[clientID] = all[:left]
}

// revoked drops a token that was revoked.
func (l *lastTokens) revoked(clientID, jti string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleteIf(clientID, func(t *lastToken) bool { return t.jti != "" && t.jti == jti })
}

// sweep drops what is not handed out any more: what is too old, of a client that has changed or is gone,
// or signed with a key that is not published, and the tokens, but not their times, of clients in dry-run.
func (l *lastTokens) sweep(now time.Time, clients Clients, policies *clientcfg.PolicySnapshot, published func(token string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.byClient {
		client, known := clients.Client(id)
		e := policies.For(id)
		l.deleteIf(id, func(t *lastToken) bool {
			if !known || !e.Reuses() || !t.goodFor(client) || !now.Before(t.until) || t.text != "" && !published(t.text) {
				return true
			}
			if e.Mode != ratelimit.Enforce {
				t.text = ""
			}
			return false
		})
	}
}

// kept are the tokens that are kept, as client_id by jti.
func (l *lastTokens) kept() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := map[string]string{}
	for id, all := range l.byClient {
		for i := range all {
			if all[i].text != "" {
				kept[all[i].jti] = id
			}
		}
	}
	return kept
}

// SweepLastTokens drops the tokens that are kept for over_limit: reuse and must not be handed out any
// more, because they are too old, were revoked, at another instance too, or their client, its policy or the
// signing keys have changed. The caller repeats it. Without tokens it reads nothing from the store.
func (s *Service) SweepLastTokens(ctx context.Context) error {
	if s.opts.Policies == nil {
		return nil
	}
	s.last.sweep(s.opts.Now(), s.opts.Clients, s.opts.Policies(), s.opts.Signer.Published)
	kept := s.last.kept()
	jtis := make([]string, 0, len(kept))
	for jti := range kept {
		jtis = append(jtis, jti)
	}
	for some := range slices.Chunk(jtis, askedAboutTogether) {
		revoked, err := s.revokedOf(ctx, some)
		if err != nil {
			return storeFailed("read revocations", err)
		}
		for _, jti := range revoked {
			s.last.revoked(kept[jti], jti)
		}
	}
	return nil
}

// revokedOf returns which of the tokens are revoked. The store says only whether any is, so those among
// many are found by halves.
func (s *Service) revokedOf(ctx context.Context, jtis []string) ([]string, error) {
	names := make([]string, len(jtis))
	for i, jti := range jtis {
		names[i] = tokenName(jti)
	}
	some, err := s.store.Revoked(ctx, names...)
	switch {
	case err != nil || !some:
		return nil, err
	case len(jtis) == 1:
		return jtis, nil
	}
	one, err := s.revokedOf(ctx, jtis[:len(jtis)/2])
	if err != nil {
		return nil, err
	}
	other, err := s.revokedOf(ctx, jtis[len(jtis)/2:])
	return append(one, other...), err
}
