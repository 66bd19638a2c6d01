package clientcfg

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// draft is a snapshot under construction from another one. Every snapshot is made this way, from
// one entry or from everything stored.
type draft struct {
	next        PolicySnapshot
	set         PolicySet
	clients     *cowmap.Edit[ClientPolicy] // nil if unchanged in set
	candidates  *cowmap.Edit[Candidate]    // nil if unchanged in set
	tiers       *cowmap.Edit[Tier]         // nil if unchanged in set
	overrides   *cowmap.Edit[Override]     // nil if unchanged in set
	ends        *cowmap.Edit[End]          // nil if unchanged in set
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
	next.upcoming, next.resets, next.leftOut = 0, nil, maps.Clone(p.leftOut)
	return &draft{next: next, set: p.set, live: p.live.Edit(), trial: p.trial.Edit()}
}

// put sets a target to the value of an entry with that version and time. It returns [ErrUnreadable]
// for an unreadable value. An invalid value is an error of finish. In both cases the target stays
// as it was.
func (d *draft) put(target string, value json.RawMessage, version int64, at time.Time) error {
	delete(d.next.leftOut, target)
	if of, is := endOf(target); is {
		return d.putEnd(of, value)
	}
	if len(value) > MaxTargetSize {
		d.errs.Add(target, "takes %d bytes, more than %d", len(value), MaxTargetSize)
		return nil
	}
	if target == SettingsTarget {
		o, err := optional[SettingsOverride](target, value)
		if err != nil {
			return err
		}
		if o == nil {
			o = &SettingsOverride{}
		}
		o.Changed = version
		d.putSettings(*o)
		return nil
	}
	if id, is := strings.CutPrefix(target, policyTargets); is {
		p, err := optional[ClientPolicy](target, value)
		if err != nil {
			return err
		}
		if p != nil {
			p.Changed = version
		}
		d.putPolicy(id, p)
		return nil
	}
	if name, is := strings.CutPrefix(target, candidateTargets); is {
		c, err := optional[Candidate](target, value)
		if err != nil {
			return err
		}
		if c != nil {
			c.Changed = version
		}
		d.putCandidate(name, c)
		return nil
	}
	if id, is := countersOf(target); is {
		r, err := decodeValue[resetValue](target, value)
		if err != nil {
			return err
		}
		d.next.resets = append(d.next.resets, Reset{Version: version, ClientID: id, Username: r.Username, At: at})
		return nil
	}
	return d.putTierOrOverride(target, value, version)
}

// read adds a stored record.
func (d *draft) read(r *store.Record) {
	if r.Err == nil {
		d.set.Version = max(d.set.Version, r.Version)
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
	err := d.put(target, value, version, time.Time{})
	if err == nil {
		err = d.problems()
	}
	d.errs, d.trialErrs = nil, nil
	return err
}

// optional decodes a value that may be null.
func optional[V any](target string, value json.RawMessage) (*V, error) {
	if isNull(value) {
		return nil, nil //nolint:nilnil // none, and no error
	}
	v, err := decodeValue[V](target, value)
	return &v, err
}

func (d *draft) putSettings(o SettingsOverride) {
	settings := o.Over(d.next.base)
	if errs := fielderr.Of(d.live.SetCommon(settings)); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	d.set.Settings, d.next.settings, d.common = o, settings, true
}

func (d *draft) putPolicy(clientID string, p *ClientPolicy) {
	var own *ratelimit.Policy
	var tier string
	if inFile, is := d.next.base.Clients[clientID]; is {
		own = &inFile
	}
	if p != nil {
		own, tier = &p.Policy, p.Tier
	}
	if errs := fielderr.Of(d.live.SetPolicy(clientID, own, tier)); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	if d.clients == nil {
		d.clients = d.set.Clients.Edit()
	}
	d.names(clientID, tier)
	put(d.clients, clientID, p)
}

func (d *draft) putCandidate(name string, c *Candidate) {
	if c != nil && len(c.User) == 0 && len(c.Client) == 0 && len(c.Total) == 0 && len(c.Source) == 0 {
		d.errs.Add(fielderr.Join("candidates", name), "needs limits under user, client, total or source")
		return
	}
	var errs fielderr.Errors
	switch {
	case name == GlobalCandidate && c != nil:
		trial := c.trial(d.next.settings)
		errs = fielderr.Of(trial.Validate())
	case name == GlobalCandidate:
	case c == nil:
		errs = fielderr.Of(d.trial.SetPolicy(name, nil, ""))
	default:
		tried := c.Policy()
		errs = fielderr.Of(d.trial.SetPolicy(name, &tried, ""))
	}
	if len(errs) > 0 {
		d.trialErrs = append(d.trialErrs, errs...)
		return
	}
	d.common = d.common || name == GlobalCandidate
	if d.candidates == nil {
		d.candidates = d.set.Candidates.Edit()
	}
	put(d.candidates, name, c)
}

// finish validates the draft as a whole, and returns the snapshot. The error is or wraps
// [fielderr.Errors].
func (d *draft) finish() (*PolicySnapshot, error) {
	p := &d.next
	p.set = d.set
	if d.clients != nil {
		p.set.Clients = d.clients.Map()
	}
	if d.candidates != nil {
		p.set.Candidates = d.candidates.Map()
	}
	if d.tiers != nil {
		p.set.Tiers = d.tiers.Map()
	}
	if d.overrides != nil {
		p.set.Overrides = d.overrides.Map()
	}
	if d.ends != nil {
		p.set.Ends = d.ends.Map()
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
	p.lasting = sync.OnceValue(func() *PolicySnapshot {
		next, _, _ := p.ended(maps.Collect(p.set.Ends.All()))
		return next
	})
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
