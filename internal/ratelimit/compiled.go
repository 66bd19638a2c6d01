package ratelimit

import (
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/fielderr"
)

// Compiled is [Settings] made ready for decisions. It is immutable and safe for concurrent use. A
// changed copy, which [Compiled.Edit] begins, costs what is changed, however many clients there are.
type Compiled struct {
	byClient cowmap.Map[*own]
	all      *common
}

// common is the settings for all clients, compiled.
type common struct {
	Settings        // without Clients
	user, client    *Limits
	inside, outside *Effective // for clients without a policy of their own, inside and outside of the canary share
	canary          uint64     // how many of the canaryBuckets are inside
}

// own is the policy of one client, compiled by itself. So a change of the settings for all clients
// compiles none of them: what both come to together is made when it is first asked for.
type own struct {
	Policy
	user, client *Limits // nil: those for all clients
	last         atomic.Pointer[merged]
}

// merged is what applies to a client under certain common settings.
type merged struct {
	Effective
	under *common
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
	e := (&Compiled{}).Edit()
	errs := fielderr.Of(e.SetCommon(s))
	for _, id := range slices.Sorted(maps.Keys(s.Clients)) {
		p := s.Clients[id]
		errs = append(errs, fielderr.Of(e.SetPolicy(id, &p))...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return e.Compiled(), nil
}

// Edit begins a changed copy.
func (p *Compiled) Edit() *CompiledEdit { return &CompiledEdit{from: p, all: p.all} }

// CompiledEdit is a [Compiled] while it is made. Only one goroutine may use it.
type CompiledEdit struct {
	from     *Compiled
	byClient *cowmap.Edit[*own] // nil: as in from
	all      *common
}

// SetCommon replaces everything except Clients. An error is that of [Settings.Validate], and changes
// nothing.
func (e *CompiledEdit) SetCommon(s Settings) error {
	s.Clients = nil
	if err := s.Validate(); err != nil {
		return err
	}
	c := &common{
		Settings: s, user: newLimits(s.Default.User), client: newLimits(s.Default.Client),
		canary: uint64(s.CanaryPercent*canaryBuckets/100 + 0.5),
	}
	base := Effective{User: c.user, Client: c.client, HideHeaders: s.Default.HideHeaders}
	c.inside, c.outside = base.with(s.mode(Unset, true)), base.with(s.mode(Unset, false))
	e.all = c
	return nil
}

// SetPolicy gives a client a policy, or none if it is nil. An error has the problems of the policy, by
// their paths in the settings, and changes nothing.
func (e *CompiledEdit) SetPolicy(clientID string, p *Policy) error {
	if e.byClient == nil {
		e.byClient = e.from.byClient.Edit()
	}
	if p == nil {
		e.byClient.Delete(clientID)
		return nil
	}
	if errs := p.validate(); len(errs) > 0 {
		return errs.Under(fielderr.Join("clients", clientID)).Err()
	}
	o := &own{Policy: *p}
	if len(p.User) > 0 {
		o.user = newLimits(p.User)
	}
	if len(p.Client) > 0 {
		o.client = newLimits(p.Client)
	}
	e.byClient.Set(clientID, o)
	return nil
}

// Compiled returns what was made. SetCommon must have succeeded for it, or for what it was made from.
func (e *CompiledEdit) Compiled() *Compiled {
	p := &Compiled{byClient: e.from.byClient, all: e.all}
	if e.byClient != nil {
		p.byClient = e.byClient.Map()
	}
	return p
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
	if o, ok := p.byClient.Get(clientID); ok {
		return o.under(p.all, clientID)
	}
	if p.all.inside.Mode == p.all.outside.Mode || p.all.inCanary(clientID) {
		return p.all.inside
	}
	return p.all.outside
}

// Clients yields the clients that have a policy of their own, in no order.
func (p *Compiled) Clients() iter.Seq[string] { return p.byClient.Keys() }

// Len is how many clients have a policy of their own.
func (p *Compiled) Len() int { return p.byClient.Len() }

// under returns what applies to the client of the policy under common settings. It is made once, as
// long as nothing asks for it under others.
func (o *own) under(c *common, clientID string) *Effective {
	if m := o.last.Load(); m != nil && m.under == c {
		return &m.Effective
	}
	m := &merged{under: c, Effective: Effective{
		User: o.user, Client: o.client, Trusted: o.Trusted, HideHeaders: o.HideHeaders || c.Default.HideHeaders,
		Mode: c.mode(o.Mode, c.inCanary(clientID)),
	}}
	if m.User == nil {
		m.User = c.user
	}
	if m.Client == nil {
		m.Client = c.client
	}
	o.last.Store(m)
	return &m.Effective
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
func (c *common) inCanary(clientID string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(clientID)) // never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x%canaryBuckets < c.canary
}
