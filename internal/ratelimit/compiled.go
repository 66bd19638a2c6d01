package ratelimit

import "hash/fnv"

// Compiled is [Settings] made ready for decisions. It is immutable and safe for concurrent use.
type Compiled struct {
	byClient map[string]*Effective
	// For clients without a policy of their own, inside and outside of the canary share.
	inside, outside *Effective
	canary          uint64 // how many of the canaryBuckets are inside
}

// Effective is what applies to one client: limits, mode and settings. It must not be changed.
type Effective struct {
	User        *Limits // of one user of the client
	Client      *Limits // of the client itself, for client_credentials
	Mode        Mode    // Enforce, DryRun or Off
	Trusted     bool
	HideHeaders bool
}

// Compile validates the settings and prepares them for decisions. The error is that of
// [Settings.Validate].
func Compile(s Settings) (*Compiled, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p := &Compiled{
		byClient: make(map[string]*Effective, len(s.Clients)),
		canary:   uint64(s.CanaryPercent*canaryBuckets/100 + 0.5),
	}
	base := Effective{
		User: newLimits(s.Default.User), Client: newLimits(s.Default.Client),
		HideHeaders: s.Default.HideHeaders,
	}
	p.inside, p.outside = base.with(s.mode(Unset, true)), base.with(s.mode(Unset, false))
	for id, c := range s.Clients {
		e := base
		if len(c.User) > 0 {
			e.User = newLimits(c.User)
		}
		if len(c.Client) > 0 {
			e.Client = newLimits(c.Client)
		}
		e.Trusted, e.HideHeaders = c.Trusted, c.HideHeaders || base.HideHeaders
		p.byClient[id] = e.with(s.mode(c.Mode, p.inCanary(id)))
	}
	return p, nil
}

// Enforced returns limits that are enforced for every client: the first for keys with a Username, the
// second for others.
func Enforced(named, whole Limit) (*Effective, error) {
	p, err := Compile(Settings{
		Mode: Enforce, CanaryPercent: 100,
		Default: Policy{User: []Limit{named}, Client: []Limit{whole}},
	})
	if err != nil {
		return nil, err
	}
	return p.For(""), nil
}

// For returns what applies to the client. It costs a map lookup.
func (p *Compiled) For(clientID string) *Effective {
	if e, ok := p.byClient[clientID]; ok {
		return e
	}
	if p.inside.Mode == p.outside.Mode || p.inCanary(clientID) {
		return p.inside
	}
	return p.outside
}

// For returns the limits of the key: those of the client itself if it has no username.
func (e *Effective) For(k Key) *Limits {
	if k.Username == "" {
		return e.Client
	}
	return e.User
}

func (e Effective) with(m Mode) *Effective {
	e.Mode = m
	return &e
}

// mode returns the most specific mode that is set: instance, client, global. The canary share
// applies to the global one.
func (s *Settings) mode(client Mode, inCanary bool) Mode {
	global := s.Mode
	if global == Unset {
		global = Enforce
	}
	if global == Enforce && !inCanary {
		global = DryRun
	}
	for _, m := range []Mode{s.Instance, client} {
		if m != Unset {
			return m
		}
	}
	return global
}

// canaryBuckets is the number of buckets that clients are hashed into: a hundredth of a percent
// each.
const canaryBuckets = 10_000

// inCanary reports whether the client is in the canary share, by the 64-bit FNV-1a hash of its
// client_id. The bits are mixed once more because FNV leaves short names close together. It must
// never change: the share has the same clients on all instances and in all versions.
func (p *Compiled) inCanary(clientID string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(clientID)) // never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x%canaryBuckets < p.canary
}
