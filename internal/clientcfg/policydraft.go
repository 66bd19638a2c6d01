package clientcfg

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	settings    Value
	values      map[string]*ratelimit.MapEdit[Value] // by kind of target, except the settings
	temporary   *ratelimit.MapEdit[Temporary]
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
	d := &draft{
		next: next, version: p.set.Version, settings: p.set.Settings, values: map[string]*ratelimit.MapEdit[Value]{},
		temporary: p.set.Temporary.Edit(),
		live:      p.live.Edit(), trial: p.trial.Edit(), naming: map[string]string{}, removed: map[string]bool{},
	}
	for kind, values := range p.set.kinds() {
		d.values[kind] = values.Edit()
	}
	return d
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
	kind, name, known := cutTarget(target)
	if !known {
		return fmt.Errorf("%w: %s is not a target", ErrUnreadable, target)
	}
	var v *Value
	if !isNull(value) {
		read, err := decodeValue[Value](target, value)
		if err != nil {
			return err
		}
		v = &read
	} else if target == SettingsTarget { // always has one
		v = &Value{}
	}
	if v != nil {
		v.Changed = version
	}
	d.set(kind, name, v)
	return nil
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

// set sets a target to a value, or removes its value if v is nil. If the value is invalid, the
// target stays as it was.
func (d *draft) set(kind, name string, v *Value) {
	switch errs := fielderr.Of(d.compile(kind, name, v)); {
	case len(errs) > 0 && kind == candidateTargets:
		d.trialErrs = append(d.trialErrs, errs...)
	case len(errs) > 0:
		d.errs = append(d.errs, errs...)
	case kind == SettingsTarget:
		d.settings = *v
	case v == nil:
		d.values[kind].Delete(name)
	default:
		d.values[kind].Set(name, *v)
	}
}

// compile makes a value part of the compiled limits. The error is [fielderr.Errors].
func (d *draft) compile(kind, name string, v *Value) error {
	if v != nil && !v.fits(kind) {
		return fielderr.Errors{{Path: kind + name, Message: "has fields that it cannot have"}}
	}
	var p *ratelimit.Policy
	if v != nil {
		p = &v.Policy
	}
	switch kind {
	case SettingsTarget:
		return d.compileSettings(v)
	case policyTargets:
		return d.compilePolicy(name, v)
	case tierTargets:
		if err := ValidateTierName(name); err != nil {
			return fielderr.Errors{{Path: fielderr.Join("tiers", name), Message: err.Error()}}
		}
		if d.removed[name] = true; v != nil {
			delete(d.removed, name)
		}
		return d.live.SetTier(name, p)
	case overrideTargets:
		return d.compileOverride(name, p)
	}
	return d.compileCandidate(name, v)
}

func (d *draft) compileSettings(v *Value) error {
	settings := v.Over(d.next.base)
	if err := d.live.SetCommon(settings); err != nil {
		return err
	}
	d.next.settings, d.common = settings, true
	return nil
}

func (d *draft) compilePolicy(clientID string, v *Value) error {
	var own *ratelimit.Policy
	var tier string
	if v != nil {
		own, tier = &v.Policy, v.Tier
	} else if inFile, is := d.next.base.Clients[clientID]; is {
		own = &inFile
	}
	if err := d.live.SetPolicy(clientID, own, tier); err != nil {
		return err
	}
	// finish checks the tier, because the same entry may create it later.
	if d.naming[clientID] = tier; tier == "" {
		delete(d.naming, clientID)
	}
	return nil
}

func (d *draft) compileOverride(key string, p *ratelimit.Policy) error {
	id, username, _ := OverrideOf(overrideTargets + key)
	var limits []ratelimit.Limit
	if p != nil {
		if limits = p.User; len(limits) == 0 {
			return fielderr.Errors{{Path: fielderr.Join("overrides", key) + ".user", Message: "needs at least one limit"}}
		}
	}
	return d.live.SetOverride(id, username, limits)
}

func (d *draft) compileCandidate(name string, c *Value) error {
	var err error
	switch {
	case c != nil && len(c.User) == 0 && len(c.Client) == 0 && len(c.Total) == 0 && len(c.Source) == 0:
		return fielderr.Errors{{Path: fielderr.Join("candidates", name), Message: "needs limits under user, client, total or source"}}
	case name == GlobalCandidate && c != nil:
		trial := c.trial(d.next.settings)
		err = trial.Validate()
	case name == GlobalCandidate:
	case c == nil:
		err = d.trial.SetPolicy(name, nil, "")
	default:
		tried := c.Tried()
		err = d.trial.SetPolicy(name, &tried, "")
	}
	d.common = d.common || name == GlobalCandidate
	return err
}

// finish validates the draft as a whole, and returns the snapshot. The error is or wraps
// [fielderr.Errors].
func (d *draft) finish() (*PolicySnapshot, error) {
	p := &d.next
	p.set = PolicySet{Version: d.version, Settings: d.settings, Temporary: d.temporary.Map()}
	for kind, values := range p.set.kinds() {
		*values = d.values[kind].Map()
	}
	clients := PolicySet{Clients: p.set.Clients}
	p.set.uses, p.nextEnd = sync.OnceValue(clients.countTiers), time.Time{}
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
			d.values[candidateTargets].Delete(GlobalCandidate)
			p.set.Candidates = d.values[candidateTargets].Map()
			errs = fielderr.Of(d.trial.SetCommon((&Value{}).trial(p.settings)))
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
