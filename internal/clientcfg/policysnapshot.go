package clientcfg

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
)

// PolicySnapshot is an immutable, validated snapshot of the configuration file, of what
// operators changed, and of what follows from both.
type PolicySnapshot struct {
	base     ratelimit.Settings
	digest   string // of base
	set      PolicySet
	upcoming int64              // number that the next entry would have; 0: not known
	resets   []Reset            // of the last entry
	leftOut  map[string]error   // why targets are not as they are stored; not modified
	settings ratelimit.Settings // for all clients
	live     *ratelimit.Compiled
	trial    *ratelimit.Compiled
	lasting  func() *PolicySnapshot // see Lasting
}

// Trial is a candidate in force: it has limits of its own and is never
// enforced.
type Trial struct {
	// ClientID replaces the client's in the candidate's keys. It contains a space, which no
	// client_id does, so that it is no other client's.
	ClientID  string
	Effective *ratelimit.Effective
	// User, Client, Total and Source say which of the lists are tried.
	User, Client, Total, Source bool
	// OverLimit, Waits and Ban say what of it is tried that becomes of requests over the limits. The rest is as it is in
	// force: see Over.
	OverLimit, Waits, Ban bool
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

// FixedPolicies returns the snapshot of settings that no operator changes. An error is or wraps [fielderr.Errors].
func FixedPolicies(settings ratelimit.Settings) (*PolicySnapshot, error) {
	d, err := newDraft(settings)
	if err != nil {
		return nil, err
	}
	return d.finish()
}

// Apply returns the snapshot after an event. It costs what the event changes, unless that is the
// settings for all clients. An error is or wraps [fielderr.Errors] or [ErrUnreadable].
func (p *PolicySnapshot) Apply(e *Event) (*PolicySnapshot, error) {
	d := p.edit()
	for i := range e.Changes {
		if err := d.put(e.Changes[i].Target, e.Changes[i].After, e.Number, e.At); err != nil {
			return nil, err
		}
	}
	d.set.Version = e.Number
	return d.finish()
}

// next is the number that the next entry has, or would have if nothing but policies were changed.
func (p *PolicySnapshot) next() int64 { return max(p.upcoming, p.Version()+1) }

// value is what a target is now, as [Change] has it.
func (p *PolicySnapshot) value(target string) (json.RawMessage, error) {
	c := Change{After: jsonNull}
	var err error
	if of, is := endOf(target); is {
		return p.endValue(of)
	}
	if target == SettingsTarget {
		c, err = ChangeSettings(p.set.Settings)
	} else if id, is := strings.CutPrefix(target, policyTargets); is {
		if own, ok := p.set.Clients.Get(id); ok {
			c, err = ChangePolicy(id, &own)
		}
	} else if name, is := strings.CutPrefix(target, candidateTargets); is {
		if own, ok := p.set.Candidates.Get(name); ok {
			c, err = ChangeCandidate(name, &own)
		}
	} else if name, is := TierOf(target); is {
		if own, ok := p.set.Tiers.Get(name); ok {
			c, err = ChangeTier(name, &own)
		}
	} else if id, username, is := OverrideOf(target); is {
		if own, ok := p.set.Overrides.Get(OverrideKey(id, username)); ok {
			c, err = ChangeOverride(id, username, &own)
		}
	}
	return c.After, err
}

// For returns what applies to the client, at the cost of a map lookup.
func (p *PolicySnapshot) For(clientID string) *ratelimit.Effective { return p.live.For(clientID) }

// ForUnknown is For with a client of which nothing is known but that its name is at that place of the canary share,
// in percent.
func (p *PolicySnapshot) ForUnknown(place float64) *ratelimit.Effective {
	return p.live.ForUnknown(place)
}

// Trial returns the candidate that the client's requests are tried against; false if there
// is none. The candidate for the default limits is tried on the clients that the default
// limits apply to: not on trusted ones, nor on those with limits of their own or of a tier. It is not for
// users with an override, whose limits no other change replaces.
func (p *PolicySnapshot) Trial(clientID string) (Trial, bool) {
	if p.set.Candidates.Len() == 0 {
		return Trial{}, false
	}
	c, ok := p.set.Candidates.Get(clientID)
	t := Trial{
		User: len(c.User) > 0, Client: len(c.Client) > 0, Total: len(c.Total) > 0, Source: len(c.Source) > 0,
		OverLimit: c.OverLimit != "", Waits: c.MaxWait != nil, Ban: c.Ban != nil,
	}
	if !ok || clientID == GlobalCandidate {
		c, _ = p.set.Candidates.Get(GlobalCandidate)
		own, _ := p.Policy(clientID)
		tier, _ := p.set.Tiers.Get(own.Tier)
		concerns := func(candidate, own, tier []ratelimit.Limit) bool {
			return len(candidate) > 0 && len(own) == 0 && len(tier) == 0
		}
		t.User, t.Client = concerns(c.User, own.User, tier.User), concerns(c.Client, own.Client, tier.Client)
		t.Total, t.Source = concerns(c.Total, own.Total, tier.Total), concerns(c.Source, own.Source, tier.Source)
		t.OverLimit = c.OverLimit != "" && own.OverLimit == "" && tier.OverLimit == ""
		t.Waits = c.MaxWait != nil && own.MaxWait == nil && tier.MaxWait == nil
		t.Ban = c.Ban != nil && own.Ban == nil && tier.Ban == nil
		if own.Trusted {
			return Trial{}, false
		}
	}
	if !t.User && !t.Client && !t.Total && !t.Source {
		return Trial{}, false
	}
	t.ClientID, t.Effective, t.Since = CandidateID(clientID), p.trial.For(clientID), c.Since
	if !t.Total && t.Effective.Total != nil || !t.Source && t.Effective.Source != nil {
		t.Effective = t.Effective.Only(true, t.Total, t.Source)
	}
	return t, true
}

// Of returns the key that a request of a user, or of the client itself if username is empty, is tried under, and
// the limits. It returns false if none concern it: those of a list that is not tried, and, as overrides replace
// no total and no limits of a source, all but those for a user with an override.
func (t *Trial) Of(username string, overridden bool) (ratelimit.Key, *ratelimit.Effective, bool) {
	k := ratelimit.Key{ClientID: t.ClientID, Username: username}
	switch {
	case !overridden && (username == "" && t.Client || username != "" && t.User):
		return k, t.Effective, true
	case t.Total || t.Source:
		return k, t.Effective.Only(false, true, true), true
	}
	return k, nil, false
}

// Over returns the limits that are tried, with what would become of requests over them: as the candidate says, and
// where it says nothing as it is under the limits in force.
func (t *Trial) Over(live, tried *ratelimit.Effective) *ratelimit.Effective {
	e := *tried
	if !t.OverLimit {
		e.OverLimit = live.OverLimit
	}
	if !t.Waits {
		e.Wait = live.Wait
	}
	if !t.Ban {
		e.Ban = live.Ban
	}
	return &e
}

// Set is what operators changed. It must not be modified.
func (p *PolicySnapshot) Set() PolicySet { return p.set }

// Base is what the configuration file says. It must not be modified.
func (p *PolicySnapshot) Base() ratelimit.Settings { return p.base }

// BaseDigest identifies the limits of the configuration file: those of two instances with different ones
// differ. The mode of a single instance is no part of it.
func (p *PolicySnapshot) BaseDigest() string { return p.digest }

// digestOf returns 16 hexadecimal digits.
func digestOf(base ratelimit.Settings) (string, error) {
	base.Instance = ""
	b, err := json.Marshal(base)
	if err != nil {
		return "", fmt.Errorf("clientcfg: encode the limits of the configuration file: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// Settings is what applies to all clients: the set on top of the base, without the policies of single
// clients. It must not be modified.
func (p *PolicySnapshot) Settings() ratelimit.Settings { return p.settings }

// Clients are those that have a policy of their own, in the set or in the file, sorted. If they are more than
// most, only those that are trusted; none if these are more than most too.
func (p *PolicySnapshot) Clients(most int) []string {
	if p.live.Len() <= most {
		return slices.Sorted(p.live.Clients())
	}
	var trusted []string
	for id, own := range p.set.Clients.All() {
		if own.Trusted {
			trusted = append(trusted, id)
		}
	}
	for id, own := range p.base.Clients {
		if _, changed := p.set.Clients.Get(id); own.Trusted && !changed {
			trusted = append(trusted, id)
		}
	}
	if len(trusted) > most {
		return nil
	}
	slices.Sort(trusted)
	return trusted
}

// AllClients yields those that have a policy of their own, in no order.
func (p *PolicySnapshot) AllClients() iter.Seq[string] { return p.live.Clients() }

// Concerned returns the clients whose limits in force the changes may change; all: those of every client. It
// looks at all policies, once, if tiers are changed.
func (p *PolicySnapshot) Concerned(changes []Change) (clientIDs []string, all bool) {
	tiers := map[string]bool{}
	for i := range changes {
		if _, everyone := changes[i].Concerns(); everyone {
			return nil, true
		}
		if name, is := TierOf(changes[i].Target); is {
			tiers[name] = true
		}
	}
	having := p.set.TierClients(tiers)
	for i := range changes {
		if name, is := TierOf(changes[i].Target); is {
			clientIDs = append(clientIDs, having[name]...)
		} else {
			id, _ := changes[i].Concerns()
			clientIDs = append(clientIDs, id)
		}
	}
	return clientIDs, false
}

// Resets returns the resets in the last entry; nothing if all policies were read instead of applying it.
func (p *PolicySnapshot) Resets() []Reset { return p.resets }

// LeftOut is how many targets are not as they are stored. See [PolicyStatus].
func (p *PolicySnapshot) LeftOut() int { return len(p.leftOut) }

// IsLeftOut reports whether what is stored of the target cannot be used.
func (p *PolicySnapshot) IsLeftOut(target string) bool { return p.leftOut[target] != nil }

// Version is the number of the last entry that changed policies; 0: there is none.
func (p *PolicySnapshot) Version() int64 { return p.set.Version }

// Policy returns the client's policy from the set or from the file, empty if there is
// none, and whether it comes from the set.
func (p *PolicySnapshot) Policy(clientID string) (own ClientPolicy, changed bool) {
	if own, changed = p.set.Clients.Get(clientID); changed {
		return own, true
	}
	return ClientPolicy{Policy: p.base.Clients[clientID]}, false
}

// newDraft begins the snapshot of an empty set on top of base.
func newDraft(base ratelimit.Settings) (*draft, error) {
	live, err := ratelimit.Compile(base)
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(base)
	if err != nil {
		return nil, err
	}
	empty := PolicySnapshot{base: base, digest: digest, settings: (&SettingsOverride{}).Over(base), live: live, trial: &ratelimit.Compiled{}}
	d := empty.edit()
	d.common = true
	return d, nil
}
