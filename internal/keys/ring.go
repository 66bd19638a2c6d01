package keys

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Options configure [Open]. Issuer is required. Any other zero value means the default noted beside
// the field.
type Options struct {
	Issuer        string
	Algorithm     Algorithm        // ES256
	TokenLifetime time.Duration    // 1h: the longest lifetime of a signed token
	RotateEvery   time.Duration    // 90 days: how long a key signs
	Secrets       Secrets          // if empty, keys are stored in clear
	Now           func() time.Time // time.Now
	Logger        *slog.Logger     // discards
}

func (o Options) withDefaults() Options {
	o.Algorithm = cmp.Or(o.Algorithm, Algorithms()[0])
	o.TokenLifetime = cmp.Or(o.TokenLifetime, time.Hour)
	o.RotateEvery = cmp.Or(o.RotateEvery, 90*24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// PublishAhead returns how long a key is published before it signs: 24 hours, but at most half of the
// time that keys sign.
func PublishAhead(rotateEvery time.Duration) time.Duration { return min(24*time.Hour, rotateEvery/2) }

// Ring holds all published keys and signs with the active one. It is safe for concurrent use.
type Ring struct {
	store   Store
	opts    Options
	reading sync.Mutex // held from reading the store to updating current, so current never goes back to older keys
	current atomic.Pointer[snapshot]
}

// snapshot has the values derived from one read of the store.
type snapshot struct {
	own  []*key // keys of the configured algorithm, newest generation first; never empty
	byID map[string]*key
	jwks []byte
}

// Open loads the keys, and makes the first one if there are none. It skips unreadable records with
// a warning, as long as one key remains. A key that cannot be decrypted or parsed is an error. Open
// never makes a key in place of a damaged one.
func Open(ctx context.Context, store Store, opts Options) (*Ring, error) {
	r := &Ring{store: store, opts: opts.withDefaults()}
	if err := r.Maintain(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Sign returns the token for c, signed with the key that is active at c.IssuedAt.
func (r *Ring) Sign(c Claims) (string, error) {
	return r.current.Load().active(c.IssuedAt).sign(c.wire(r.opts.Issuer))
}

// Verify returns the claims of a token that this server has signed. It checks the signature against
// the published keys, and the algorithm, typ, iss and exp, without leeway. Errors:
// [ErrInvalidToken].
func (r *Ring) Verify(token string, now time.Time) (Claims, error) {
	return r.current.Load().verify(token, r.opts.Issuer, now)
}

// Published reports whether the key of a token is still published. The token must come from Sign.
// Published checks nothing else.
func (r *Ring) Published(token string) bool {
	header, _, _ := strings.Cut(token, ".")
	return r.current.Load().signedBy(header) != nil
}

// InClear returns the IDs of the keys that were not encrypted in the store when it was last read.
func (r *Ring) InClear() (ids []string) {
	for id, k := range r.current.Load().byID {
		if r.opts.Secrets.Of(k.record) == Plain {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// JWKS returns the published key set (RFC 7517 5) as JSON. The caller must not change it.
func (r *Ring) JWKS() []byte { return r.current.Load().jwks }

// newSnapshot indexes the keys. It returns an error if no key has the algorithm alg.
func newSnapshot(all []*key, alg Algorithm) (*snapshot, error) {
	s := &snapshot{byID: make(map[string]*key, len(all))}
	var set jose.JSONWebKeySet
	for _, k := range all {
		s.byID[k.record.ID] = k
		set.Keys = append(set.Keys, k.jwk)
		if k.record.Algorithm == alg {
			s.own = append(s.own, k)
		}
	}
	if len(s.own) == 0 {
		return nil, fmt.Errorf("keys: no key for %s", alg)
	}
	slices.SortFunc(s.own, func(a, b *key) int { return cmp.Compare(b.record.Generation, a.record.Generation) })
	slices.SortFunc(set.Keys, func(a, b jose.JSONWebKey) int { return cmp.Compare(a.KeyID, b.KeyID) })
	var err error
	if s.jwks, err = json.Marshal(set); err != nil {
		return nil, fmt.Errorf("keys: encode key set: %w", err)
	}
	return s, nil
}

// active returns the newest key with an ActiveFrom not after at, or else the oldest key.
func (s *snapshot) active(at time.Time) *key {
	for _, k := range s.own {
		if !k.record.ActiveFrom.After(at) {
			return k
		}
	}
	return s.own[len(s.own)-1]
}
