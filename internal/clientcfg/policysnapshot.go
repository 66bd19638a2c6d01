package clientcfg

import (
	"fmt"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
)

// PolicySnapshot is an immutable, validated snapshot of the configuration file, of what
// operators changed, and of what follows from both.
type PolicySnapshot struct {
	base     ratelimit.Settings
	set      PolicySet
	settings ratelimit.Settings
	live     *ratelimit.Compiled
	trial    *ratelimit.Compiled
	trials   trials
}

// trials is which candidates there are.
type trials struct {
	user, client bool // of the default limits
	own          map[string]Trial
}

// Trial is a candidate in force: it has limits of its own and is never
// enforced.
type Trial struct {
	// ClientID replaces the client's in the candidate's keys. It contains a space, which no
	// client_id does, so that it is no other client's.
	ClientID  string
	Effective *ratelimit.Effective
	// User and Client say which of the two lists is tried.
	User, Client bool
	// Since is when these limits began to be tried. It identifies the candidate: counts
	// start over when it changes.
	Since time.Time
}

// CandidateID is the name under which a client's requests are counted against
// its candidate.
func CandidateID(clientID string) string { return candidatePrefix + clientID }

const candidatePrefix = "candidate "

// CandidateOf is the inverse of [CandidateID]: the client of a key, and whether the key is
// its candidate's.
func CandidateOf(keyID string) (clientID string, candidate bool) {
	return strings.CutPrefix(keyID, candidatePrefix)
}

// NewPolicySnapshot validates the set on top of base, which is what the configuration file
// says. The error is or wraps [fielderr.Errors].
func NewPolicySnapshot(base ratelimit.Settings, set PolicySet) (*PolicySnapshot, error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	p := &PolicySnapshot{base: base, set: set, settings: set.Over(base)}
	var err error
	if p.live, err = ratelimit.Compile(p.settings); err != nil {
		return nil, err
	}
	if p.trial, err = ratelimit.Compile(set.trial(p.settings)); err != nil {
		return nil, fmt.Errorf("candidates: %w", err)
	}
	p.trials.own = make(map[string]Trial, len(set.Candidates))
	for name, c := range set.Candidates {
		if name == GlobalCandidate {
			p.trials.user, p.trials.client = len(c.User) > 0, len(c.Client) > 0
			continue
		}
		p.trials.own[name] = Trial{
			ClientID: CandidateID(name), Effective: p.trial.For(name),
			User: len(c.User) > 0, Client: len(c.Client) > 0, Since: c.Since,
		}
	}
	return p, nil
}

// For returns what applies to the client, at the cost of a map lookup.
func (p *PolicySnapshot) For(clientID string) *ratelimit.Effective { return p.live.For(clientID) }

// Trial returns the candidate that the client's requests are tried against; false if there
// is none. The candidate for the default limits is tried on the clients that the default
// limits apply to: not on trusted ones, nor on those with limits of their own.
func (p *PolicySnapshot) Trial(clientID string) (Trial, bool) {
	if t, ok := p.trials.own[clientID]; ok {
		return t, true
	}
	if !p.trials.user && !p.trials.client {
		return Trial{}, false
	}
	own := p.settings.Clients[clientID]
	t := Trial{
		User:   p.trials.user && len(own.User) == 0 && !own.Trusted,
		Client: p.trials.client && len(own.Client) == 0 && !own.Trusted,
	}
	if !t.User && !t.Client {
		return Trial{}, false
	}
	t.ClientID, t.Effective, t.Since = CandidateID(clientID), p.trial.For(clientID), p.set.Candidates[GlobalCandidate].Since
	return t, true
}

// Set is what operators changed. It must not be modified.
func (p *PolicySnapshot) Set() PolicySet { return p.set }

// Base is what the configuration file says. It must not be modified.
func (p *PolicySnapshot) Base() ratelimit.Settings { return p.base }

// Settings is what applies: the set on top of the base. It must not be modified.
func (p *PolicySnapshot) Settings() ratelimit.Settings { return p.settings }

// Version is the version of the set.
func (p *PolicySnapshot) Version() int64 { return p.set.Version }

// Policy returns the client's policy from the set or from the file, empty if there is
// none, and whether it comes from the set.
func (p *PolicySnapshot) Policy(clientID string) (own ClientPolicy, changed bool) {
	if own, changed = p.set.Clients[clientID]; changed {
		return own, true
	}
	return ClientPolicy{Policy: p.base.Clients[clientID]}, false
}
