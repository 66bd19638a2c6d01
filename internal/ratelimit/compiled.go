package ratelimit

import (
	"cmp"
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
	policies int // how many in byClient have a policy
	all      *common
}

// common is what clients have in common, compiled: the settings for all of them, and the tiers.
type common struct {
	Settings // without Clients
	lists
	ban             *BanRule
	inside, outside *Effective // for clients with nothing of their own, inside and outside of the canary share
	canary          uint64     // how many of the canaryBuckets are inside
	tiers           cowmap.Map[*tier]
}

// own is what one client has of its own, compiled by itself. So a change of what clients have in common
// compiles none of them: what both come to together is made when it is first asked for.
type own struct {
	given
	last atomic.Pointer[merged]
}

// given is what a client was given: a policy, overrides, or both.
type given struct {
	Policy
	lists                          // of the policy; nil: those of the tier, or else those for all clients
	policy    bool                 // there is one
	tier      string               // that it names; empty: none
	ban       *BanRule             // likewise
	overrides *cowmap.Map[*Limits] // by username; nil: none
	shared    bool                 // it is that of all clients that have nothing but the tier
}

// lists are the compiled lists of a policy; nil for one that it does not have.
type lists struct{ user, client, total, source *Limits }

// merged is what applies to a client under certain common settings.
type merged struct {
	Effective
	outside *Effective // outside of the canary share; nil: the same, or of one client only
	under   *common
}

// Effective is what applies to one client: limits, mode and settings. It must not be changed.
type Effective struct {
	User        *Limits // of one user of the client, without an override
	Client      *Limits // of the client itself, for client_credentials
	Total       *Limits // of the client over all its users, and of itself; nil: there are none
	Source      *Limits // of the client from one source address; nil: there are none
	Mode        Mode    // Enforce, DryRun or Off
	Trusted     bool
	OverLimit   OverLimit // never empty
	Wait        Wait
	Ban         *BanRule    // nil: none; see Bans
	Criticality Criticality // CriticalityUnset: nobody sets one, and it depends on the request
	HideHeaders bool
	Tier        string // whose values apply where the client has none of its own; empty: there is none

	overrides *cowmap.Map[*Limits] // by username, as keys have it; nil: there are none
	grant     Grants               // of the request that this is for, see ForRequest; 0: any
	source    string               // its address; empty: it is not counted by its source
}

// Compile validates the settings and prepares them for decisions. The error is that of
// [Settings.Validate].
func Compile(s Settings) (*Compiled, error) {
	e := (&Compiled{}).Edit()
	errs := fielderr.Of(e.SetCommon(s))
	for _, id := range slices.Sorted(maps.Keys(s.Clients)) {
		p := s.Clients[id]
		errs = append(errs, fielderr.Of(e.SetPolicy(id, &p, ""))...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return e.Compiled(), nil
}

// Edit begins a changed copy.
func (p *Compiled) Edit() *CompiledEdit {
	return &CompiledEdit{byClient: p.byClient.Edit(), policies: p.policies, all: p.all}
}

// CompiledEdit is a [Compiled] while it is made. Only one goroutine may use it.
type CompiledEdit struct {
	byClient  *cowmap.Edit[*own]
	policies  int
	all       *common
	tiers     *cowmap.Edit[*tier]              // nil: as in all
	overrides map[string]*cowmap.Edit[*Limits] // by client; those of others as in byClient
}

// SetCommon replaces everything except Clients. An error is that of [Settings.Validate], and changes
// nothing.
func (e *CompiledEdit) SetCommon(s Settings) error {
	s.Clients = nil
	if err := s.Validate(); err != nil {
		return err
	}
	c := &common{
		Settings: s, lists: s.Default.compiled(),
		ban:    compileBan(s.Default.Ban),
		canary: uint64(s.CanaryPercent*canaryBuckets/100 + 0.5),
	}
	if e.all != nil {
		c.tiers = e.all.tiers
	}
	base := Effective{User: c.user, Client: c.client, Total: c.total, Source: c.source, OverLimit: c.overLimit("", ""), Wait: wait(&s.Default), Ban: c.ban.inForce(), Criticality: s.Default.Criticality, HideHeaders: s.Default.HideHeaders}
	c.inside, c.outside = base.with(s.mode(Unset, true)), base.with(s.mode(Unset, false))
	e.all = c
	return nil
}

// SetPolicy gives a client a policy, or none if it is nil. What the policy leaves open comes from the tier
// of that name, if there is one. An error has the problems of the policy, by their paths in the settings,
// and changes nothing.
func (e *CompiledEdit) SetPolicy(clientID string, p *Policy, tier string) error {
	var g given
	if p != nil {
		if errs := p.validate(); len(errs) > 0 {
			return errs.Under(fielderr.Join("clients", clientID)).Err()
		}
		g = given{Policy: *p, lists: p.compiled(), policy: true, tier: tier}
		g.ban = compileBan(p.Ban)
	}
	if was, ok := e.byClient.Get(clientID); ok {
		g.overrides = was.overrides
	}
	e.give(clientID, &g)
	return nil
}

// compiled returns the lists of the policy.
func (p *Policy) compiled() (ls lists) {
	if len(p.User) > 0 {
		ls.user = newLimits(p.User)
	}
	if len(p.Client) > 0 {
		ls.client = newLimits(p.Client)
	}
	if len(p.Total) > 0 {
		ls.total = newLimits(p.Total)
	}
	if len(p.Source) > 0 {
		ls.source = newLimits(p.Source)
	}
	return ls
}

// give replaces what a client has of its own.
func (e *CompiledEdit) give(clientID string, g *given) {
	if was, ok := e.byClient.Get(clientID); ok && was.policy {
		e.policies--
	}
	if g.policy {
		e.policies++
	}
	if !g.policy && g.overrides == nil {
		e.byClient.Delete(clientID)
		return
	}
	o := e.bare(g)
	if o == nil {
		o = &own{given: *g}
	}
	e.byClient.Set(clientID, o)
}

// Compiled returns what was made, and ends the edit. SetCommon must have succeeded for it, or for what it
// was made from.
func (e *CompiledEdit) Compiled() *Compiled {
	e.giveOverrides()
	if e.tiers != nil {
		all := *e.all
		all.tiers = e.tiers.Map()
		e.all = &all
	}
	return &Compiled{byClient: e.byClient.Map(), policies: e.policies, all: e.all}
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

// ForUnknown returns what applies to a client with nothing of its own whose name is at that place of the canary
// share, in percent.
func (p *Compiled) ForUnknown(place float64) *Effective {
	if place < p.all.CanaryPercent {
		return p.all.inside
	}
	return p.all.outside
}

// Clients yields the clients that have a policy of their own, in no order.
func (p *Compiled) Clients() iter.Seq[string] {
	return func(yield func(string) bool) {
		for id, o := range p.byClient.All() {
			if o.policy && !yield(id) {
				return
			}
		}
	}
}

// Owners yields the clients that have anything of their own, a policy or overrides, in no order.
func (p *Compiled) Owners() iter.Seq[string] { return p.byClient.Keys() }

// Owns reports whether the client is one of the Owners.
func (p *Compiled) Owns(clientID string) bool {
	_, ok := p.byClient.Get(clientID)
	return ok
}

// Len is how many clients have a policy of their own.
func (p *Compiled) Len() int { return p.policies }

// under returns what applies to the client under common settings. It is made once, as long as nothing
// asks for it under others.
func (o *own) under(c *common, clientID string) *Effective {
	m := o.last.Load()
	if m == nil || m.under != c {
		m = o.merge(c, clientID)
		o.last.Store(m)
	}
	if m.outside == nil || c.inCanary(clientID) {
		return &m.Effective
	}
	return m.outside
}

// merge returns what applies to the client: each value from the policy, or else from its tier, or else
// from the settings for all clients.
func (o *own) merge(c *common, clientID string) *merged {
	t, ok := c.tiers.Get(o.tier)
	if !ok {
		t = noTier
	}
	all := Effective{
		User: cmp.Or(o.user, t.user, c.user), Client: cmp.Or(o.client, t.client, c.client), Total: cmp.Or(o.total, t.total, c.total),
		Source:  cmp.Or(o.source, t.source, c.source),
		Trusted: o.Trusted, OverLimit: c.overLimit(o.OverLimit, t.OverLimit),
		Wait: wait(&o.Policy, &t.Policy, &c.Default), HideHeaders: o.HideHeaders || t.HideHeaders || c.Default.HideHeaders,
		Ban: cmp.Or(o.ban, t.ban, c.ban).inForce(), Criticality: cmp.Or(o.Criticality, t.Criticality, c.Default.Criticality),
		Tier: t.name, overrides: o.overrides,
	}
	m := &merged{under: c}
	mode := cmp.Or(o.Mode, t.Mode)
	if !o.shared {
		m.Effective = *all.with(c.mode(mode, c.inCanary(clientID)))
		return m
	}
	m.Effective = *all.with(c.mode(mode, true))
	if outside := c.mode(mode, false); outside != m.Mode {
		m.outside = all.with(outside)
	}
	return m
}

// overLimit returns the most specific choice that is set.
func (c *common) overLimit(own, ofTier OverLimit) OverLimit {
	return cmp.Or(own, ofTier, c.Default.OverLimit, OverLimitDeny)
}

// Reuses reports whether the client gets its last token again for client_credentials over its limit, or
// would in dry-run.
func (e *Effective) Reuses() bool {
	return e.OverLimit == OverLimitReuse && !e.Trusted && e.Mode != Off
}

// with returns what applies in the mode; e has the lists that are to be enforced.
func (e Effective) with(m Mode) *Effective {
	e.Mode = m
	if m == DryRun {
		e.User, e.Client = e.User.forDryRun(), e.Client.forDryRun()
	}
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

// SharedMode returns the mode of the client at instances without a mode of their own.
func (p *Compiled) SharedMode(clientID string) Mode {
	shared, client := p.all.Settings, Unset
	shared.Instance = Unset
	if o, ok := p.byClient.Get(clientID); ok {
		client = o.Mode
		if t, ok := p.all.tiers.Get(o.tier); ok {
			client = cmp.Or(client, t.Mode)
		}
	}
	return shared.mode(client, p.all.inCanary(clientID))
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
