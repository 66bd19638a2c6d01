package ratelimit

import (
	"cmp"
	"hash/fnv"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"oauth-server/internal/strict/fielderr"
)

// Compiled is [Settings] prepared for decisions. It is immutable and safe for concurrent use. Use
// [Compiled.Edit] to make a changed copy. Its cost depends on the changes, not on the number of
// clients.
type Compiled struct {
	byClient Map[*own]
	policies int // number of clients in byClient with a policy
	all      *common
}

// common is the compiled part that clients share: the settings for all of them, and the tiers.
type common struct {
	Settings // without Clients
	lists
	ban             *BanRule
	inside, outside *Effective // for clients without an own, inside and outside the canary share
	canary          uint64     // how many of the canaryBuckets are inside the share
	tiers           Map[*tier]
}

// own is the part that belongs to one client: a policy, overrides, or both. It is compiled separately,
// so a change of the common settings does not recompile it. The combination of both is computed on
// first use.
type own struct {
	*Policy                 // noPolicy if it sets nothing; nil: the client has no policy
	lists                   // of the policy; nil: the lists of the tier, or else those for all clients
	tier      string        // the tier that the policy names; empty: none
	ban       *BanRule      // of the policy; nil: the ban of the tier, or else the one for all clients
	overrides *Map[*Limits] // by username; nil: none
	last      atomic.Pointer[merged]
}

// noPolicy is a policy that sets nothing. Clients with only a tier have it.
var noPolicy = &Policy{}

// lists are the compiled lists of a policy. A list that the policy does not have is nil.
type lists struct{ user, client, total, source *Limits }

// merged is the combination of a client's own part with one version of the common settings.
type merged struct {
	Effective
	under *common
}

// Effective has the limits, mode and settings that apply to one client. It must not be changed.
type Effective struct {
	User        *Limits // of one user of the client, without an override
	Client      *Limits // of the client itself, for client_credentials
	Total       *Limits // of the client over all its users, itself included; nil: no limits
	Source      *Limits // of the client from one source address; nil: no limits
	Mode        Mode    // Enforce, DryRun or Off
	Trusted     bool
	OverLimit   OverLimit // never empty
	Wait        Wait
	Ban         *BanRule    // nil: none; see Bans
	Criticality Criticality // CriticalityUnset: not configured, so it depends on the request
	HideHeaders bool
	Tier        string // name of the client's tier, or empty

	overrides *Map[*Limits] // by username, as in bounded keys; nil: no overrides
	grant     Grants        // of the request, see ForRequest; 0: any
	SourceKey string        // source key of the request; empty: its source is not counted
}

// Compile validates the settings and prepares them for decisions. It returns the error of
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

// Edit starts a changed copy.
func (p *Compiled) Edit() *CompiledEdit {
	return &CompiledEdit{byClient: p.byClient.Edit(), policies: p.policies, all: p.all}
}

// CompiledEdit builds a [Compiled]. Only one goroutine may use it.
type CompiledEdit struct {
	byClient  *MapEdit[*own]
	policies  int
	all       *common
	tiers     *MapEdit[*tier]              // nil: unchanged, as in all
	overrides map[string]*MapEdit[*Limits] // changed overrides, by client; the others are in byClient
}

// SetCommon replaces everything except Clients. It returns the error of [Settings.Validate]; on
// error it changes nothing.
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
	base := Effective{User: c.user, Client: c.client, Total: c.total, Source: c.source, OverLimit: c.overLimit("", ""), Wait: wait(&s.Default), Ban: c.ban.inForce(), Criticality: s.Default.Criticality, HideHeaders: s.Default.Hides()}
	c.inside, c.outside = base.with(s.mode(Unset, true)), base.with(s.mode(Unset, false))
	e.all = c
	return nil
}

// SetPolicy sets the policy of a client, or removes it if p is nil. Values that the policy does not
// set come from the named tier, if it exists. If the policy is invalid, SetPolicy returns its
// problems as [fielderr.Errors], with their paths in the settings, and changes nothing.
func (e *CompiledEdit) SetPolicy(clientID string, p *Policy, tier string) error {
	o := &own{}
	if p != nil {
		if errs := p.validate(); len(errs) > 0 {
			return errs.Under(fielderr.Join("clients", clientID)).Err()
		}
		o = &own{Policy: noPolicy, lists: p.compiled(), tier: tier, ban: compileBan(p.Ban)}
		if !reflect.ValueOf(p).Elem().IsZero() {
			o.Policy = new(*p)
		}
	}
	if was, ok := e.byClient.Get(clientID); ok {
		o.overrides = was.overrides
	}
	e.give(clientID, o)
	return nil
}

// compiled returns the lists of the policy.
func (p *Policy) compiled() (ls lists) {
	if len(p.User) > 0 {
		ls.user = NewLimits(p.User)
	}
	if len(p.Client) > 0 {
		ls.client = NewLimits(p.Client)
	}
	if len(p.Total) > 0 {
		ls.total = NewLimits(p.Total)
	}
	if len(p.Source) > 0 {
		ls.source = NewLimits(p.Source)
	}
	return ls
}

// give replaces the configuration of one client.
func (e *CompiledEdit) give(clientID string, o *own) {
	if was, ok := e.byClient.Get(clientID); ok && was.Policy != nil {
		e.policies--
	}
	if o.Policy != nil {
		e.policies++
	}
	if o.Policy == nil && o.overrides == nil {
		e.byClient.Delete(clientID)
		return
	}
	e.byClient.Set(clientID, o)
}

// Compiled returns the result and ends the edit. SetCommon must have succeeded on this edit, or on
// the one that made the original.
func (e *CompiledEdit) Compiled() *Compiled {
	e.giveOverrides()
	if e.tiers != nil {
		all := *e.all
		all.tiers = e.tiers.Map()
		e.all = &all
	}
	return &Compiled{byClient: e.byClient.Map(), policies: e.policies, all: e.all}
}

// Enforced returns limits that are enforced for every client: named for keys with a Username, whole
// for keys without one.
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

// For returns the limits and settings of the client. It costs one map lookup.
func (p *Compiled) For(clientID string) *Effective {
	if o, ok := p.byClient.Get(clientID); ok {
		return o.under(p.all, clientID)
	}
	if p.all.inside.Mode == p.all.outside.Mode || p.all.inCanary(clientID) {
		return p.all.inside
	}
	return p.all.outside
}

// ForUnknown returns the limits and settings of a client without configuration of its own. place is
// the client's place in the canary share, in percent.
func (p *Compiled) ForUnknown(place float64) *Effective {
	if place < p.all.CanaryPercent {
		return p.all.inside
	}
	return p.all.outside
}

// Clients yields the clients that have their own policy, in no particular order.
func (p *Compiled) Clients() iter.Seq[string] {
	return func(yield func(string) bool) {
		for id, o := range p.byClient.All() {
			if o.Policy != nil && !yield(id) {
				return
			}
		}
	}
}

// Owners yields the clients that have a policy or overrides of their own, in no particular order.
func (p *Compiled) Owners() iter.Seq[string] { return p.byClient.Keys() }

// Owns reports whether [Compiled.Owners] yields the client.
func (p *Compiled) Owns(clientID string) bool {
	_, ok := p.byClient.Get(clientID)
	return ok
}

// Len returns how many clients have their own policy.
func (p *Compiled) Len() int { return p.policies }

// under returns the combination of o and the common settings. The result is cached until it is
// called with other common settings.
func (o *own) under(c *common, clientID string) *Effective {
	m := o.last.Load()
	if m == nil || m.under != c {
		m = o.merge(c, clientID)
		o.last.Store(m)
	}
	return &m.Effective
}

// merge combines o with the common settings. Each value comes from the policy, or else from its
// tier, or else from the settings for all clients.
func (o *own) merge(c *common, clientID string) *merged {
	t, ok := c.tiers.Get(o.tier)
	if !ok {
		t = noTier
	}
	p := cmp.Or(o.Policy, noPolicy)
	all := Effective{
		User: cmp.Or(o.user, t.user, c.user), Client: cmp.Or(o.client, t.client, c.client), Total: cmp.Or(o.total, t.total, c.total),
		Source:  cmp.Or(o.source, t.source, c.source),
		Trusted: p.Trusted, OverLimit: c.overLimit(p.OverLimit, t.OverLimit),
		Wait: wait(p, &t.Policy, &c.Default), HideHeaders: p.Hides() || t.Hides() || c.Default.Hides(),
		Ban: cmp.Or(o.ban, t.ban, c.ban).inForce(), Criticality: cmp.Or(p.Criticality, t.Criticality, c.Default.Criticality),
		Tier: t.name, overrides: o.overrides,
	}
	return &merged{*all.with(c.mode(cmp.Or(p.Mode, t.Mode), c.inCanary(clientID))), c}
}

// overLimit returns the most specific choice that is set.
func (c *common) overLimit(own, ofTier OverLimit) OverLimit {
	return cmp.Or(own, ofTier, c.Default.OverLimit, OverLimitDeny)
}

// Reuses reports whether the client gets its last token again for a client_credentials request over
// its limit, or would get it in dry-run.
func (e *Effective) Reuses() bool {
	return e.OverLimit == OverLimitReuse && !e.Trusted && e.Mode != Off
}

// with returns a copy of e for the mode. The lists of e must be those for enforcement.
func (e Effective) with(m Mode) *Effective {
	e.Mode = m
	if m == DryRun {
		e.User, e.Client = e.User.forDryRun(), e.Client.forDryRun()
	}
	return &e
}

// mode returns the most specific mode that is set: instance, client, global. The canary share
// applies to the global mode.
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

// SharedMode returns the mode of the client on instances without their own mode.
func (p *Compiled) SharedMode(clientID string) Mode {
	shared, client := p.all.Settings, Unset
	shared.Instance = Unset
	if o, ok := p.byClient.Get(clientID); ok {
		client = cmp.Or(o.Policy, noPolicy).Mode
		if t, ok := p.all.tiers.Get(o.tier); ok {
			client = cmp.Or(client, t.Mode)
		}
	}
	return shared.mode(client, p.all.inCanary(clientID))
}

// canaryBuckets is the number of buckets that clients are hashed into. Each is a hundredth of a
// percent.
const canaryBuckets = 10_000

// inCanary reports whether the client is in the canary share. It uses the 64-bit FNV-1a hash of the
// client_id and mixes the bits once more, because FNV puts short names close together. The
// algorithm must never change: all instances and all versions must have the same clients in the
// share.
func (c *common) inCanary(clientID string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(clientID)) // never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x%canaryBuckets < c.canary
}

// ForRequest returns the limits and settings for one request of the client. grant is the grant of
// the request; 0 means unknown. source is the source address in the format of limiter.SourceOf; if
// it is empty, the source is not counted. ForRequest returns e itself if neither makes a
// difference.
func (e *Effective) ForRequest(grant Grants, source string) *Effective {
	if !e.tellsGrants() {
		grant = 0
	}
	if source != "" && e.Source != nil {
		source = SourceUser + source
	} else {
		source = ""
	}
	if grant == e.grant && source == e.SourceKey {
		return e
	}
	asked := *e
	asked.grant, asked.SourceKey = grant, source
	return &asked
}

// tellsGrants reports whether any limit for users of the client may be restricted to certain
// grants.
func (e *Effective) tellsGrants() bool { return e.User != nil && e.User.grants || e.overrides != nil }

// Grant returns the grant that ForRequest was called with, or 0 if the grant makes no difference.
func (e *Effective) Grant() Grants { return e.grant }

// Only returns a copy of e that counts a request only against the chosen lists: own is the list of
// the user or of the client itself. The copy has no overrides. Without own it has no Wait either.
func (e *Effective) Only(own, total, source bool) *Effective {
	some := *e
	some.overrides = nil
	if !own {
		some.User, some.Client, some.Wait = nil, nil, Wait{}
	}
	if !total {
		some.Total = nil
	}
	if !source {
		some.Source = nil
	}
	return &some
}

// Own returns a copy of e that counts a request only against its own key (the user or the client
// itself). It keeps the overrides.
func (e *Effective) Own() *Effective {
	own := *e
	own.Total, own.Source, own.SourceKey = nil, nil, ""
	return &own
}
