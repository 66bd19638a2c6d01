package clientcfg

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// draft is a snapshot under construction from another one. Every snapshot is made this way, from
// one entry or from everything stored.
type draft struct {
	next        PolicySnapshot
	version     int64
	settings    SettingsOverride
	clients     *ratelimit.MapEdit[ClientPolicy]
	candidates  *ratelimit.MapEdit[Candidate]
	tiers       *ratelimit.MapEdit[Tier]
	overrides   *ratelimit.MapEdit[Override]
	temporary   *ratelimit.MapEdit[Temporary]
	uses        map[string]int // policies that name a tier
	live, trial *ratelimit.CompiledEdit
	common      bool              // recompile everything that applies to all clients
	naming      map[string]string // tiers named by the changed policies, by client
	removed     map[string]bool   // removed tiers
	// reading is set if the values come from stored records. Then an invalid record affects only
	// its own target: records are not checked together, and a policy with a missing tier uses the
	// limits for all clients instead.
	reading bool

	errs, trialErrs fielderr.Errors
}

func (p *PolicySnapshot) edit() *draft {
	next := *p
	next.upcoming, next.leftOut = 0, maps.Clone(p.leftOut)
	return &draft{
		next: next, version: p.set.Version, settings: p.set.Settings,
		clients: p.set.Clients.Edit(), candidates: p.set.Candidates.Edit(), tiers: p.set.Tiers.Edit(),
		overrides: p.set.Overrides.Edit(), temporary: p.set.Temporary.Edit(), uses: maps.Clone(p.set.uses),
		live: p.live.Edit(), trial: p.trial.Edit(), naming: map[string]string{}, removed: map[string]bool{},
	}
}

// put sets a target to the value of an entry with that version. While the target has a
// temporary value, it becomes the value after that. put returns [ErrUnreadable] for an unreadable
// value. An invalid value is an error of finish. In both cases the target stays as it was. Temporary
// values must be put before all others.
func (d *draft) put(target string, value json.RawMessage, version int64) error {
	delete(d.next.leftOut, target)
	if of, is := temporaryOf(target); is {
		return d.putTemporary(of, value, version)
	}
	if t, is := d.temporary.Get(target); is {
		if t.lasting, t.since = bytes.Clone(value), version; isNull(value) {
			t.lasting, t.since = jsonNull, 0
		}
		d.temporary.Set(target, t)
		return nil
	}
	return d.putValue(target, value, version)
}

func (d *draft) putValue(target string, value json.RawMessage, version int64) error {
	if len(value) > MaxTargetSize {
		d.errs.Add(target, "takes %d bytes, more than the maximum of %d", len(value), MaxTargetSize)
		return nil
	}
	if _, is := countersOf(target); is { // a command, see [PolicySource]
		_, err := decodeValue[resetValue](target, value)
		return err
	}
	kind, name, _ := strings.Cut(target, "/")
	switch kind + "/" {
	case SettingsTarget + "/":
		if name == "" {
			return decoded(target, value, func(o *SettingsOverride) {
				if o == nil {
					o = &SettingsOverride{}
				}
				o.Changed = version
				d.putSettings(*o)
			})
		}
	case policyTargets:
		return decoded(target, value, func(p *ClientPolicy) { d.putPolicy(name, p, version) })
	case candidateTargets:
		return decoded(target, value, func(c *Candidate) { d.putCandidate(name, c, version) })
	case tierTargets:
		return decoded(target, value, func(t *Tier) { d.putTier(name, t, version) })
	case overrideTargets:
		if id, username, is := OverrideOf(target); is {
			return decoded(target, value, func(o *Override) { d.putOverride(id, username, o, version) })
		}
	}
	return fmt.Errorf("%w: %s is not a target", ErrUnreadable, target)
}

// decoded calls put with the decoded value, or with nil for null.
func decoded[V any](target string, value json.RawMessage, put func(*V)) error {
	if isNull(value) {
		put(nil)
		return nil
	}
	v, err := decodeValue[V](target, value)
	if err == nil {
		put(&v)
	}
	return err
}

// read adds a stored record.
func (d *draft) read(r *store.Record) {
	if r.Err == nil {
		d.version = max(d.version, r.Version)
	}
	if r.Key == versionKey {
		return
	}
	err := r.Err
	if err == nil {
		err = d.try(r.Key, r.Value, r.Version)
	}
	if err != nil {
		d.leaveOut(r.Key, err)
	}
}

func (d *draft) leaveOut(target string, why error) {
	if d.next.leftOut == nil {
		d.next.leftOut = map[string]error{}
	}
	d.next.leftOut[target] = fmt.Errorf("%s: %w", target, why)
}

// try is like put, but also skips an invalid value and returns the reason.
func (d *draft) try(target string, value json.RawMessage, version int64) error {
	err := d.put(target, value, version)
	if err == nil {
		err = d.problems()
	}
	d.errs, d.trialErrs = nil, nil
	return err
}

func (d *draft) putSettings(o SettingsOverride) {
	settings := o.Over(d.next.base)
	errs := without("default", o.Trusted, "trusted")
	if errs = append(errs, fielderr.Of(d.live.SetCommon(settings))...); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	d.settings, d.next.settings, d.common = o, settings, true
}

func (d *draft) putPolicy(clientID string, p *ClientPolicy, version int64) {
	var own *ratelimit.Policy
	var tier string
	if inFile, is := d.next.base.Clients[clientID]; is {
		own = &inFile
	}
	if p != nil {
		own, tier, p.Changed = &p.Policy, p.Tier, version
	}
	if errs := fielderr.Of(d.live.SetPolicy(clientID, own, tier)); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	// finish checks the tier, because the same entry may create it later.
	if d.naming[clientID] = tier; tier == "" {
		delete(d.naming, clientID)
	}
	before, _ := d.clients.Get(clientID)
	d.use(before.Tier, -1)
	d.use(tier, 1)
	give(d.clients, clientID, p)
}

// use counts policies that name a tier.
func (d *draft) use(tier string, n int) {
	if tier == "" {
		return
	}
	if d.uses == nil {
		d.uses = map[string]int{}
	}
	if d.uses[tier] += n; d.uses[tier] == 0 {
		delete(d.uses, tier)
	}
}

func (d *draft) putTier(name string, t *Tier, version int64) {
	var errs fielderr.Errors
	if err := ValidateTierName(name); err != nil {
		errs.Add(fielderr.Join("tiers", name), "%v", err)
	} else if t == nil {
		errs = fielderr.Of(d.live.SetTier(name, nil))
	} else if errs = without(fielderr.Join("tiers", name), t.Trusted, "trusted"); len(errs) == 0 {
		t.Changed = version
		errs = fielderr.Of(d.live.SetTier(name, &t.Policy))
	}
	if len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	if d.removed[name] = true; t != nil {
		delete(d.removed, name)
	}
	give(d.tiers, name, t)
}

func (d *draft) putOverride(clientID, username string, o *Override, version int64) {
	if o != nil && len(o.User) == 0 {
		d.errs.Add(fielderr.Join("overrides", OverrideKey(clientID, username))+".user", "needs at least one limit")
		return
	}
	var own Override
	if o != nil {
		o.Changed = version
		own = *o
	}
	if errs := fielderr.Of(d.live.SetOverride(clientID, username, own.User)); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	give(d.overrides, OverrideKey(clientID, username), o)
}

func (d *draft) putCandidate(name string, c *Candidate, version int64) {
	if c != nil && len(c.User) == 0 && len(c.Client) == 0 && len(c.Total) == 0 && len(c.Source) == 0 {
		d.errs.Add(fielderr.Join("candidates", name), "needs limits under user, client, total or source")
		return
	}
	var errs fielderr.Errors
	if c != nil {
		errs = without(fielderr.Join("candidates", name), c.Trusted || c.Mode != ratelimit.Unset || c.HideHeaders, "trusted, mode and hide_headers")
	}
	switch {
	case len(errs) > 0:
	case name == GlobalCandidate && c != nil:
		trial := c.trial(d.next.settings)
		errs = fielderr.Of(trial.Validate())
	case name == GlobalCandidate:
	case c == nil:
		errs = fielderr.Of(d.trial.SetPolicy(name, nil, ""))
	default:
		tried := c.Tried()
		errs = fielderr.Of(d.trial.SetPolicy(name, &tried, ""))
	}
	if len(errs) > 0 {
		d.trialErrs = append(d.trialErrs, errs...)
		return
	}
	if c != nil {
		c.Changed = version
	}
	d.common = d.common || name == GlobalCandidate
	give(d.candidates, name, c)
}

// without returns an error if a value has fields that its kind cannot have.
func without(path string, has bool, fields string) (errs fielderr.Errors) {
	if has {
		errs.Add(path, "cannot have %s", fields)
	}
	return errs
}

// give sets a key to v, or removes it if v is nil.
func give[V any](e *ratelimit.MapEdit[V], key string, v *V) {
	if v == nil {
		e.Delete(key)
		return
	}
	e.Set(key, *v)
}

// finish validates the draft as a whole, and returns the snapshot. The error is or wraps
// [fielderr.Errors].
func (d *draft) finish() (*PolicySnapshot, error) {
	p := &d.next
	p.set = PolicySet{
		Version: d.version, Settings: d.settings, Clients: d.clients.Map(), Candidates: d.candidates.Map(),
		Tiers: d.tiers.Map(), Overrides: d.overrides.Map(), Temporary: d.temporary.Map(), uses: d.uses,
	}
	p.nextEnd = time.Time{}
	for _, t := range p.set.Temporary.All() {
		if p.nextEnd.IsZero() || t.Until.Before(p.nextEnd) {
			p.nextEnd = t.Until
		}
	}
	if !d.reading {
		d.errs = append(d.errs, p.set.checkCounts()...)
		d.errs = append(d.errs, p.set.checkTiers(d.naming, d.removed)...)
	}
	if d.common {
		c, _ := p.set.Candidates.Get(GlobalCandidate)
		errs := fielderr.Of(d.trial.SetCommon(c.trial(p.settings)))
		if d.reading && len(errs) > 0 {
			d.leaveOut(CandidateTarget(GlobalCandidate), errs.Err())
			p.set = p.set.WithCandidate(GlobalCandidate, nil)
			errs = fielderr.Of(d.trial.SetCommon((&Candidate{}).trial(p.settings)))
		}
		d.trialErrs = append(d.trialErrs, errs...)
	}
	if err := d.problems(); err != nil {
		return nil, err
	}
	p.live, p.trial = d.live.Compiled(), d.trial.Compiled()
	return p, nil
}

// problems returns the validation errors so far, as or wrapping [fielderr.Errors].
func (d *draft) problems() error {
	if err := inOrder(d.errs).Err(); err != nil {
		return err
	}
	if err := inOrder(d.trialErrs).Err(); err != nil {
		return fmt.Errorf("candidates: %w", err)
	}
	return nil
}

// inOrder sorts errors by path, because targets come in no particular order.
func inOrder(errs fielderr.Errors) fielderr.Errors {
	slices.SortStableFunc(errs, func(a, b fielderr.Error) int { return cmp.Compare(a.Path, b.Path) })
	return errs
}
