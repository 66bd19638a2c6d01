package ratelimit

import "hash/fnv"

// Policies is a compiled, immutable [Settings]. It is safe for concurrent use.
type Compiled struct {
	byClient map[string]*Effective
	// What applies to clients without a policy of their own: inside the
	// canary share, and outside of it.
	inside, outside *Effective
	canary          uint64 // buckets of canaryBuckets that are inside
}

// Effective is what applies to one client. It must not be changed.
type Effective struct {
	User        *Limits // of one user of the client
	Client      *Limits // of the client itself, for client_credentials
	Mode        Mode    // Enforce, DryRun or Off
	Trusted     bool
	HideHeaders bool
}

// Compile validates the settings and prepares them for use. The error is what
// [Settings.Validate] returns.
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

// For returns what applies to the client, at the cost of a map lookup.
func (p *Compiled) For(clientID string) *Effective {
	if e, ok := p.byClient[clientID]; ok {
		return e
	}
	if p.inside.Mode == p.outside.Mode || p.inCanary(clientID) {
		return p.inside
	}
	return p.outside
}

// For returns the limits of the key: the client's own if it has no username.
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

// mode is the most specific mode that is set: instance, client, global. The
// canary share qualifies the global one.
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

// canaryBuckets is how finely clients are divided: a hundredth of a percent.
const canaryBuckets = 10_000

// inCanary places the client by the 64-bit FNV-1a hash of its client_id, its
// bits mixed once more because FNV leaves short names close together. It must never change: on all
// instances and in all versions the same clients are in the share.
func (p *Compiled) inCanary(clientID string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(clientID)) // never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x%canaryBuckets < p.canary
}
