package targets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// View returns the document with its read-only fields, except the activity of a candidate.
func (t Target) View(p *clientcfg.PolicySnapshot) any {
	switch t.kind {
	case settings:
		return settingsView(p)
	case tiers:
		set := p.Set()
		return TierView(p, t.id, set.TierUses())
	case policies:
		return PolicyView(p, t.id)
	case overrides:
		return OverrideView(p, t.id, t.user)
	}
	return CandidateView(p, t.id)
}

// settingsView returns the settings as operators see them.
func settingsView(p *clientcfg.PolicySnapshot) adminapi.Settings {
	own, view := p.Set().Settings, showSettings(p)
	view.Meta = meta(p, Settings(), &own)
	view.Meta.Changed = append([]string{}, own.Names()...)
	return view
}

// meta returns when the value of a target was set, and when it ends.
func meta(p *clientcfg.PolicySnapshot, t Target, own *clientcfg.Value) adminapi.Meta {
	return adminapi.Meta{Version: own.Changed, Until: Until(p, t.Name())}
}

// TierView returns a tier, given how many clients have each tier.
func TierView(p *clientcfg.PolicySnapshot, name string, uses map[string]int) adminapi.Tier {
	own, _ := Tier(name).value(p)
	view := showTier(name, &own)
	view.Clients, view.Meta = new(uses[name]), meta(p, Tier(name), &own)
	return view
}

// PolicyView returns the policy of a client.
func PolicyView(p *clientcfg.PolicySnapshot, clientID string) adminapi.Policy {
	own, _ := Policy(clientID).value(p)
	view := showPolicy(clientID, &own)
	view.Effective, view.Meta = new(adminapi.ShowEffective(p.For(clientID))), meta(p, Policy(clientID), &own)
	view.Meta.Source = Source(p, clientID)
	return view
}

// OverrideView returns the limits of one user of a client.
func OverrideView(p *clientcfg.PolicySnapshot, clientID, username string) adminapi.Override {
	t := Target{overrides, clientID, username}
	own, _ := t.value(p)
	view := showOverride(clientID, username, &own)
	view.Meta = meta(p, t, &own)
	return view
}

// CandidateView returns a candidate without its activity.
func CandidateView(p *clientcfg.PolicySnapshot, name string) adminapi.Candidate {
	own, _ := Candidate(name).value(p)
	view := showCandidate(name, &own)
	view.Since, view.Meta = own.Since, meta(p, Candidate(name), &own)
	return view
}

// Until returns when a target's temporary value ends, or zero for a permanent one.
func Until(p *clientcfg.PolicySnapshot, target string) time.Time {
	t, _ := p.Temporary(target)
	return t.Until
}

// Source returns where a client's policy comes from: api, file or none.
func Source(p *clientcfg.PolicySnapshot, clientID string) string {
	if _, changed := p.Policy(clientID); changed {
		return "api"
	}
	if _, inFile := p.Base().Clients[clientID]; inFile {
		return "file"
	}
	return "none"
}

// Value returns what operators have set, in the form that a change takes, or null.
func (t Target) Value(p *clientcfg.PolicySnapshot) json.RawMessage {
	if !t.IsSet(p) {
		return json.RawMessage("null")
	}
	return encoded(t, t.State(p).Base)
}

// Encoded returns the target in the form of the audit trail, or null if it does not exist.
func (t Target) Encoded(p *clientcfg.PolicySnapshot) json.RawMessage {
	st := t.State(p)
	if !st.Exists {
		return json.RawMessage("null")
	}
	return encoded(t, st.Doc)
}

func encoded(t Target, doc any) json.RawMessage {
	b, err := json.Marshal(doc)
	if err != nil { // it was decoded from JSON
		panic(fmt.Sprintf("targets: encode %s: %v", t.Name(), err))
	}
	return b
}

// Changes returns the changes in the form of the audit trail. It is never nil.
func Changes(made []clientcfg.Change, before, after *clientcfg.PolicySnapshot) []clientcfg.Change {
	out := []clientcfg.Change{}
	for _, name := range clientcfg.Targets(made) {
		if t, known := Parse(name); known {
			out = append(out, clientcfg.Change{Target: name, Before: t.Encoded(before), After: t.Encoded(after)})
		}
	}
	return out
}

// All yields the names of the targets that operators have set, or that will return to an earlier
// value, in any order.
func All(p *clientcfg.PolicySnapshot) iter.Seq[string] {
	set := p.Set()
	return func(yield func(string) bool) {
		if Settings().IsSet(p) && !yield(settings) {
			return
		}
		for name := range set.All() {
			if !yield(name) {
				return
			}
		}
		for name := range set.Temporary.Keys() { // of temporary removals
			if t, known := Parse(name); known && !t.IsSet(p) && !yield(name) {
				return
			}
		}
	}
}

// Conversions from stored values to the documents for operators.

func showSettings(p *clientcfg.PolicySnapshot) adminapi.Settings {
	s := p.Settings()
	mode := s.Mode
	if mode == ratelimit.Unset {
		mode = ratelimit.Enforce
	}
	return adminapi.Settings{
		Mode: string(mode), CanaryPercent: s.CanaryPercent, Note: p.Set().Settings.Note,
		Default: adminapi.Default{
			User: s.Default.User, Client: s.Default.Client, Total: s.Default.Total, Source: s.Default.Source,
			OverLimit: string(cmp.Or(s.Default.OverLimit, ratelimit.OverLimitDeny)), Ban: s.Default.Ban, HideHeaders: s.Default.Hides(),
			Criticality: s.Default.Criticality.String(),
			Waits:       adminapi.Waits{MaxWait: s.Default.MaxWait, MaxWaiting: s.Default.MaxWaiting},
		},
	}
}

func showTier(name string, t *clientcfg.Value) adminapi.Tier {
	return adminapi.Tier{Name: name, Mode: adminapi.Reference(t.Mode), Lists: adminapi.ShowLists(&t.Policy), HideHeaders: t.Hides(), Note: t.Note}
}

func showPolicy(clientID string, p *clientcfg.Value) adminapi.Policy {
	return adminapi.Policy{
		ClientID: clientID, Trusted: p.Trusted, Tier: adminapi.Reference(p.Tier), Mode: adminapi.Reference(p.Mode), Lists: adminapi.ShowLists(&p.Policy),
		HideHeaders: p.Hides(), Note: p.Note,
	}
}

func showOverride(clientID, username string, o *clientcfg.Value) adminapi.Override {
	return adminapi.Override{ClientID: clientID, Username: username, User: o.User, Note: o.Note}
}

func showCandidate(name string, c *clientcfg.Value) adminapi.Candidate {
	return adminapi.Candidate{ClientID: name, Lists: adminapi.ShowLists(&c.Policy), Note: c.Note}
}
