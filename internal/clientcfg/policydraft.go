package clientcfg

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// draft is a snapshot while it is made of another one: the only way in which one is made, whether of
// one entry or of all that is stored.
type draft struct {
	next        PolicySnapshot
	set         PolicySet
	clients     *cowmap.Edit[ClientPolicy] // nil: as in set
	candidates  *cowmap.Edit[Candidate]    // nil: as in set
	live, trial *ratelimit.CompiledEdit
	common      bool // what applies to all clients is compiled again

	errs, trialErrs fielderr.Errors
}

func (p *PolicySnapshot) edit() *draft {
	next := *p
	next.id, next.resets = "", nil
	return &draft{next: next, set: p.set, live: p.live.Edit(), trial: p.trial.Edit()}
}

// put gives a target the value that an entry of that version and time gives it. An error is
// [ErrUnreadable]; what is invalid is an error of finish.
func (d *draft) put(target string, value json.RawMessage, version int64, at time.Time) error {
	if len(value) > MaxTargetSize {
		d.errs.Add(target, "takes %d bytes, more than %d", len(value), MaxTargetSize)
		return nil
	}
	if target == SettingsTarget {
		o, err := optional[SettingsOverride](target, value)
		if o == nil {
			o = &SettingsOverride{}
		}
		o.Changed = version
		d.putSettings(*o)
		return err
	}
	if id, is := strings.CutPrefix(target, policyTargets); is {
		p, err := optional[ClientPolicy](target, value)
		if p != nil {
			p.Changed = version
		}
		d.putPolicy(id, p)
		return err
	}
	if name, is := strings.CutPrefix(target, candidateTargets); is {
		c, err := optional[Candidate](target, value)
		if c != nil {
			c.Changed = version
		}
		d.putCandidate(name, c)
		return err
	}
	if id, is := countersOf(target); is {
		r, err := decodeValue[resetValue](target, value)
		d.next.resets = append(d.next.resets, Reset{Version: version, ClientID: id, Username: r.Username, At: at})
		return err
	}
	return fmt.Errorf("%w: %s is no target", ErrUnreadable, target)
}

// optional decodes a value that may be none.
func optional[V any](target string, value json.RawMessage) (*V, error) {
	if isNull(value) {
		return nil, nil //nolint:nilnil // none, and no error
	}
	v, err := decodeValue[V](target, value)
	return &v, err
}

func (d *draft) putSettings(o SettingsOverride) {
	d.set.Settings, d.common = o, true
}

func (d *draft) putPolicy(clientID string, p *ClientPolicy) {
	if d.clients == nil {
		d.clients = d.set.Clients.Edit()
	}
	put(d.clients, clientID, p)
	var own *ratelimit.Policy
	if inFile, is := d.next.base.Clients[clientID]; is {
		own = &inFile
	}
	if p != nil {
		own = &p.Policy
	}
	d.errs = append(d.errs, fielderr.Of(d.live.SetPolicy(clientID, own))...)
}

func (d *draft) putCandidate(name string, c *Candidate) {
	if d.candidates == nil {
		d.candidates = d.set.Candidates.Edit()
	}
	put(d.candidates, name, c)
	if c != nil && len(c.User) == 0 && len(c.Client) == 0 {
		d.errs.Add(fielderr.Join("candidates", name), "needs limits under user, client or both")
	}
	if name == GlobalCandidate {
		d.common = true
		return
	}
	var own *ratelimit.Policy
	if c != nil {
		own = &ratelimit.Policy{User: c.User, Client: c.Client}
	}
	d.trialErrs = append(d.trialErrs, fielderr.Of(d.trial.SetPolicy(name, own))...)
}

// finish validates what concerns all, and returns the snapshot. The error is or wraps
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
	d.errs = append(d.errs, p.set.checkCounts()...)
	if d.common {
		p.settings = p.set.Settings.Over(p.base)
		d.errs = append(d.errs, fielderr.Of(d.live.SetCommon(p.settings))...)
		d.trialErrs = append(d.trialErrs, fielderr.Of(d.trial.SetCommon(p.set.trial(p.settings)))...)
	}
	if err := inOrder(d.errs).Err(); err != nil {
		return nil, err
	}
	if err := inOrder(d.trialErrs).Err(); err != nil {
		return nil, fmt.Errorf("candidates: %w", err)
	}
	p.live, p.trial = d.live.Compiled(), d.trial.Compiled()
	return p, nil
}

// inOrder sorts errors by path: targets come in no order.
func inOrder(errs fielderr.Errors) fielderr.Errors {
	slices.SortStableFunc(errs, func(a, b fielderr.Error) int { return cmp.Compare(a.Path, b.Path) })
	return errs
}
