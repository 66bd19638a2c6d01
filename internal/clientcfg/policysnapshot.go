package clientcfg

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// PolicySnapshot is an immutable, validated snapshot of the configuration file and the operators'
// changes, with the limits compiled from both.
type PolicySnapshot struct {
	base     ratelimit.Settings
	digest   string // of base
	set      PolicySet
	upcoming int64              // number of the next entry; 0 if unknown
	leftOut  map[string]error   // why targets differ from their stored values; not modified
	settings ratelimit.Settings // for all clients
	live     *ratelimit.Compiled
	trial    *ratelimit.Compiled
	nextEnd  time.Time // of the next temporary value that ends; zero if there is none
}

// FixedPolicies returns the snapshot for settings without operator changes. The error is or wraps
// [fielderr.Errors].
func FixedPolicies(settings ratelimit.Settings) (*PolicySnapshot, error) {
	d, err := newDraft(settings)
	if err != nil {
		return nil, err
	}
	return d.finish()
}

// Apply returns the snapshot after an event. The cost depends only on the event's changes, unless
// they include the settings for all clients. The error is or wraps [fielderr.Errors] or
// [ErrUnreadable].
func (p *PolicySnapshot) Apply(e *Event) (*PolicySnapshot, error) {
	d := p.edit()
	for _, temporary := range []bool{true, false} {
		for i := range e.Changes {
			c := &e.Changes[i]
			if _, is := temporaryOf(c.Target); is != temporary {
				continue
			}
			if err := d.put(c.Target, c.After, e.Number); err != nil {
				return nil, err
			}
		}
	}
	d.version = e.Number
	return d.finish()
}

// next returns the number of the next entry, or the number that it would have if only policies were
// changed.
func (p *PolicySnapshot) next() int64 { return max(p.upcoming, p.Version()+1) }

// value returns the target's stored value in the form of [Change], with its version. For a target
// with a temporary value it is the permanent one.
func (p *PolicySnapshot) value(target string) (value json.RawMessage, version int64, err error) {
	if of, is := temporaryOf(target); is {
		if t, is := p.Temporary(of); is {
			value, err = json.Marshal(&t)
			return value, 0, err
		}
		return jsonNull, 0, nil
	}
	if t, is := p.Temporary(target); is {
		return t.lasting, t.since, nil
	}
	v, ok := p.Value(target)
	if !ok {
		return jsonNull, 0, nil
	}
	value, err = json.Marshal(&v)
	return value, v.Changed, err
}

// Value returns what operators have set for a target, for now or permanently, or false if they have
// set nothing. The settings for all clients always have a value.
func (p *PolicySnapshot) Value(target string) (v Value, ok bool) {
	switch kind, name, known := cutTarget(target); {
	case kind == SettingsTarget:
		return p.set.Settings, true
	case known:
		return p.set.kinds()[kind].Get(name)
	}
	return v, false
}

// For returns the limits that apply to the client. It costs a map lookup.
func (p *PolicySnapshot) For(clientID string) *ratelimit.Effective { return p.live.For(clientID) }

// SharedMode returns the mode of a client at instances without a mode of their own.
func (p *PolicySnapshot) SharedMode(clientID string) ratelimit.Mode {
	return p.live.SharedMode(clientID)
}

// ForUnknown is like For, for an unknown client at that place of the canary share, in percent.
func (p *PolicySnapshot) ForUnknown(place float64) *ratelimit.Effective {
	return p.live.ForUnknown(place)
}

// Trial returns the candidate that the client's requests are tried against, or false. The candidate
// for the default limits is tried on clients with the default limits: not on trusted clients, and
// not on clients with their own limits or a tier's. It does not apply to users with an override,
// because no other change replaces their limits.
func (p *PolicySnapshot) Trial(clientID string) (ratelimit.Trial, bool) {
	if p.set.Candidates.Len() == 0 {
		return ratelimit.Trial{}, false
	}
	c, ok := p.set.Candidates.Get(clientID)
	t := ratelimit.Trial{
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
			return ratelimit.Trial{}, false
		}
	}
	if !t.User && !t.Client && !t.Total && !t.Source {
		return ratelimit.Trial{}, false
	}
	t.ClientID, t.Effective, t.Since = ratelimit.CandidateID(clientID), p.trial.For(clientID), c.Since
	if !t.Total && t.Effective.Total != nil || !t.Source && t.Effective.Source != nil {
		t.Effective = t.Effective.Only(true, t.Total, t.Source)
	}
	return t, true
}

// Set returns the operators' changes. The caller must not modify them.
func (p *PolicySnapshot) Set() PolicySet { return p.set }

// Base returns the settings of the configuration file. The caller must not modify them.
func (p *PolicySnapshot) Base() ratelimit.Settings { return p.base }

// BaseDigest identifies the limits of the configuration file. Instances with different limits have
// different digests. The mode of a single instance is not included.
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

// Settings returns the settings for all clients: the set on top of the base, without policies of
// single clients. The caller must not modify them.
func (p *PolicySnapshot) Settings() ratelimit.Settings { return p.settings }

// Clients returns the sorted clients with their own policy, in the set or in the file. If there are
// more than most, it returns only the trusted ones, or nil if there are too many of those as well.
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

// AllClients yields the clients with their own policy, in no particular order.
func (p *PolicySnapshot) AllClients() iter.Seq[string] { return p.live.Clients() }

// Concerned returns the clients with limits in force that the changes may affect. all means every
// client. If tiers are changed, it looks at all policies once.
func (p *PolicySnapshot) Concerned(changes []Change) (clientIDs []string, all bool) {
	tiers := map[string]bool{}
	for i := range changes {
		id, everyone := changes[i].Concerns()
		if everyone {
			return nil, true
		}
		if name, is := TierOf(changes[i].Of()); is {
			tiers[name] = true
		} else {
			clientIDs = append(clientIDs, id)
		}
	}
	for _, having := range p.set.TierClients(tiers) {
		clientIDs = append(clientIDs, having...)
	}
	return clientIDs, false
}

// LeftOut returns how many targets differ from their stored values. See [PolicyStatus].
func (p *PolicySnapshot) LeftOut() int { return len(p.leftOut) }

// IsLeftOut reports whether the target's stored value cannot be used.
func (p *PolicySnapshot) IsLeftOut(target string) bool { return p.leftOut[target] != nil }

// Version is the number of the last entry that changed policies, or 0.
func (p *PolicySnapshot) Version() int64 { return p.set.Version }

// Policy returns the client's policy from the set or from the file, or an empty policy. changed
// reports whether it comes from the set.
func (p *PolicySnapshot) Policy(clientID string) (own Value, changed bool) {
	if own, changed = p.set.Clients.Get(clientID); changed {
		return own, true
	}
	return Value{Policy: p.base.Clients[clientID]}, false
}

// newDraft starts a snapshot with an empty set on top of base.
func newDraft(base ratelimit.Settings) (*draft, error) {
	live, err := ratelimit.Compile(base)
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(base)
	if err != nil {
		return nil, err
	}
	empty := PolicySnapshot{base: base, digest: digest, settings: (&Value{}).Over(base), live: live, trial: &ratelimit.Compiled{}}
	d := empty.edit()
	d.common = true
	return d, nil
}
