package grants

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Bounds of a table of tokens kept for over_limit: reuse.
const (
	maxLastTokens     = 16 << 20 // bytes, including the overhead of each token
	maxTokensOfClient = 32       // one token for each credential and scope set
	lastTokenOverhead = 256
)

// lastTokens keeps in memory the last token issued for each credential, scope set and audience of
// the clients with over_limit: reuse. It is safe for concurrent use.
type lastTokens struct {
	key    [sha256.Size]byte // of the hashes
	under  [1024]underWay    // indexed by hash; see reuse
	seed   maphash.Seed
	shards [64]lastShard // by client
	size   atomic.Int64  // bytes, of all shards
}

// lastShard has the tokens of some of the clients. A sweep blocks only the requests of one shard at
// a time.
type lastShard struct {
	mu       sync.Mutex
	byClient map[string][]lastToken
	size     *atomic.Int64
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
	l := &lastTokens{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].byClient, l.shards[i].size = map[string][]lastToken{}, &l.size
	}
	_, _ = rand.Read(l.key[:]) // never fails (crypto/rand)
	return l
}

// shard returns the index of the client's shard.
func (l *lastTokens) shard(clientID string) int {
	return int(maphash.String(l.seed, clientID) % uint64(len(l.shards)))
}

// underWayFor returns the requests under way for a set. A few other sets share the same underWay.
func (l *lastTokens) underWayFor(id tokenSet) *underWay {
	return &l.under[int(binary.LittleEndian.Uint16(id[:]))%len(l.under)]
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

// find returns the last token of the set. ok is false if there is none, the client has changed
// since, or the token is too old to hand out.
func (l *lastTokens) find(c *clientcfg.Client, id tokenSet, now time.Time) (t lastToken, ok bool) {
	s := &l.shards[l.shard(c.ID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byClient[c.ID] {
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

// put stores a token in place of the last token of its set. To make room it drops, of the same
// client, the token that ends first. If all shards together are too large, it drops tokens of any
// client, from the same shard first.
func (l *lastTokens) put(clientID string, t lastToken) {
	at := l.shard(clientID)
	l.shards[at].put(clientID, t)
	for i := 1; i < len(l.shards) && l.size.Load() > maxLastTokens; i++ {
		s := &l.shards[(at+i)%len(l.shards)]
		s.mu.Lock()
		s.shrink()
		s.mu.Unlock()
	}
}

func (s *lastShard) put(clientID string, t lastToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteIf(clientID, func(o *lastToken) bool { return o.id == t.id })
	if len(s.byClient[clientID]) >= maxTokensOfClient {
		s.dropFirst(clientID)
	}
	s.size.Add(t.size())
	s.shrink()
	s.byClient[clientID] = append(s.byClient[clientID], t)
}

// shrink drops tokens of any clients until all shards together fit, or this shard is empty.
func (s *lastShard) shrink() {
	for s.size.Load() > maxLastTokens && len(s.byClient) > 0 {
		for id := range s.byClient { // map order is random
			s.dropFirst(id)
			break
		}
	}
}

// dropFirst drops the client's token that ends first.
func (s *lastShard) dropFirst(clientID string) {
	all := s.byClient[clientID]
	first := slices.MinFunc(all, func(a, b lastToken) int { return a.until.Compare(b.until) })
	s.deleteIf(clientID, func(t *lastToken) bool { return t.id == first.id })
}

// deleteIf deletes the tokens of a client for which drop returns true.
func (s *lastShard) deleteIf(clientID string, drop func(*lastToken) bool) {
	all, left := s.byClient[clientID], 0
	for i := range all {
		if drop(&all[i]) {
			s.size.Add(-all[i].size())
			continue
		}
		all[left] = all[i]
		left++
	}
	clear(all[left:]) // release the deleted tokens
	switch {
	case left == 0:
		delete(s.byClient, clientID)
	case left < cap(all)/4:
		s.byClient[clientID] = slices.Clone(all[:left])
	default:
		s.byClient[clientID] = all[:left]
	}
}

// revoked drops a revoked token.
func (l *lastTokens) revoked(clientID, jti string) {
	s := &l.shards[l.shard(clientID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteIf(clientID, func(t *lastToken) bool { return t.jti == jti })
}

// sweep drops the tokens for which drop returns true. It locks one shard at a time.
func (l *lastTokens) sweep(drop func(clientID string) func(*lastToken) bool) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for id := range s.byClient {
			s.deleteIf(id, drop(id))
		}
		s.mu.Unlock()
	}
}

// addIDs adds the client_id of each issued token to ids, by its jti.
func (l *lastTokens) addIDs(ids map[string]string) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for id, all := range s.byClient {
			for j := range all {
				if all[j].jti != "" {
					ids[all[j].jti] = id
				}
			}
		}
		s.mu.Unlock()
	}
}
