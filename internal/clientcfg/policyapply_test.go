package clientcfg_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// everyClient has the clients that the property below checks. shop has a policy in the file.
var everyClient = []string{"shop", "a", "b", "c", "d", "e", "none"}

// drawChange draws a change of any target, usually a valid one.
func drawChange(t *rapid.T) (clientcfg.Change, error) {
	list := func(name string) []ratelimit.Limit {
		if n := rapid.Int64Range(-3, 20).Draw(t, name); n >= 0 {
			return limits(n)
		}
		return nil
	}
	mode := rapid.SampledFrom([]ratelimit.Mode{ratelimit.Unset, ratelimit.Off, ratelimit.DryRun, ratelimit.Enforce})
	critical := rapid.SampledFrom([]ratelimit.Criticality{ratelimit.CriticalityUnset, ratelimit.CriticalityUnset, ratelimit.Sheddable, ratelimit.CriticalPlus})
	id := rapid.SampledFrom(everyClient[:6]).Draw(t, "client")
	remove := rapid.IntRange(0, 3).Draw(t, "remove") == 0
	tiers := []string{"gold", "silver", "bronze"}
	switch rapid.IntRange(0, 13).Draw(t, "kind") {
	case 0:
		o := clientcfg.Value{Policy: ratelimit.Policy{User: list("default user"), Client: list("default client")}}
		o.Mode = mode.Draw(t, "global mode")
		canary, hide := rapid.Float64Range(0, 110).Draw(t, "canary"), rapid.Bool().Draw(t, "hide")
		o.CanaryPercent, o.HideHeaders = &canary, &hide
		o.Criticality = critical.Draw(t, "criticality of all")
		return clientcfg.SetTarget(clientcfg.SettingsTarget, &o)
	case 1, 2, 3:
		if rapid.IntRange(0, 2).Draw(t, "for all") == 0 {
			id = clientcfg.GlobalCandidate
		}
		if remove {
			return clientcfg.SetTarget(clientcfg.CandidateTarget(id), nil)
		}
		return clientcfg.SetTarget(clientcfg.CandidateTarget(id), &clientcfg.Value{Policy: ratelimit.Policy{User: list("tried user"), Client: list("tried client"), Criticality: critical.Draw(t, "tried criticality")}})
	case 4:
		return clientcfg.ResetCounters(id, nil)
	case 5, 6:
		name := rapid.SampledFrom(tiers).Draw(t, "tier")
		if remove {
			return clientcfg.SetTarget("tiers/"+name, nil)
		}
		return clientcfg.SetTarget("tiers/"+name, &clientcfg.Value{Policy: ratelimit.Policy{User: list("tier user"), Client: list("tier client"), Mode: mode.Draw(t, "tier mode"), Criticality: critical.Draw(t, "tier criticality")}})
	case 7, 8:
		username := rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "username")
		if remove {
			return clientcfg.SetTarget(clientcfg.OverrideTarget(id, username), nil)
		}
		return clientcfg.SetTarget(clientcfg.OverrideTarget(id, username), &clientcfg.Value{Policy: ratelimit.Policy{User: list("override")}})
	case 9:
		return clientcfg.SetTarget(clientcfg.PolicyTarget(id), &clientcfg.Value{Tier: rapid.SampledFrom(tiers).Draw(t, "only the tier")})
	case 10:
		if remove {
			return stored(clientcfg.TemporaryTarget(clientcfg.PolicyTarget(id)), "null"), nil
		}
		return stored(clientcfg.TemporaryTarget(clientcfg.PolicyTarget(id)),
			fmt.Sprintf(`{"until":"2126-05-01T06:00:00Z","value":{"note":"%d"}}`, rapid.Int64().Draw(t, "note"))), nil
	}
	if remove {
		return clientcfg.SetTarget(clientcfg.PolicyTarget(id), nil)
	}
	name := rapid.SampledFrom([]string{"", "", "gold", "silver"}).Draw(t, "tier of the policy")
	return clientcfg.SetTarget(clientcfg.PolicyTarget(id), &clientcfg.Value{Tier: name, Note: strconv.Itoa(rapid.Int().Draw(t, "note")), Policy: ratelimit.Policy{
		User: list("user"), Client: list("client"), Trusted: rapid.Bool().Draw(t, "trusted"), Mode: mode.Draw(t, "mode"), HideHeaders: new(rapid.Bool().Draw(t, "hide")),
		OverLimit:   rapid.SampledFrom([]ratelimit.OverLimit{"", "", ratelimit.OverLimitDeny, ratelimit.OverLimitReuse}).Draw(t, "over limit"),
		Criticality: critical.Draw(t, "criticality"),
		MaxWait:     rapid.SampledFrom([]*ratelimit.Duration{nil, nil, new(ratelimit.Duration(0)), new(ratelimit.Duration(time.Second))}).Draw(t, "max wait"),
	}})
}

// picture returns everything that can be read from a snapshot.
func picture(p *clientcfg.PolicySnapshot) (lines []string) {
	set := p.Set()
	lines = append(lines, fmt.Sprintf("version %d, %s, %+v of %d, %d candidates, tiers used %v", p.Version(), asJSON(p.Settings()), p.Clients(100), set.Clients.Len(), set.Candidates.Len(), set.TierUses()))
	for _, id := range everyClient {
		own, changed := p.Policy(id)
		trial, tried := p.Trial(id)
		line := fmt.Sprintf("%s: %s, %v; %s; tried: %v", id, show(own), changed, effective(p.For(id)), tried)
		if tried {
			line += fmt.Sprintf(" %v %v since %v, %s", trial.User, trial.Client, trial.Since, effective(trial.Effective))
		}
		candidate, _ := set.Candidates.Get(id)
		end, _ := p.Temporary(clientcfg.PolicyTarget(id))
		lines = append(lines, line, fmt.Sprintf("%s, %+v", show(candidate), end))
	}
	for target, v := range set.All() {
		lines = append(lines, target+": "+show(v))
	}
	slices.Sort(lines)
	return lines
}

func show(v clientcfg.Value) string { return fmt.Sprintf("%s of version %d", asJSON(v), v.Changed) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	return fmt.Sprint(string(b), err)
}

// effective returns a client's limits as text.
func effective(e *ratelimit.Effective) string {
	text := fmt.Sprintf("%s %v %s %q %v %v %q of %d overrides, client %v", e.Mode, e.Trusted, e.OverLimit, e.Criticality, e.Wait, e.HideHeaders, e.Tier, e.Overridden(), e.Client.All())
	for _, username := range []string{"ada", "bob", "eve"} {
		text += fmt.Sprintf(", %s %v", username, e.For(ratelimit.Key{Username: username}).All())
	}
	return text
}

// TestChangesOneByOne: a snapshot that followed the entries one by one equals one made from the
// stored policies, and one compiled from the same set. Earlier snapshots stay unchanged.
func TestChangesOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, err := clientcfg.NewPolicySnapshot(fileSettings(), clientcfg.PolicySet{})
		requireNone(rt, err)
		store := newPolicyStore(t)
		var former []*clientcfg.PolicySnapshot
		var pictures [][]string
		for range rapid.IntRange(1, 12).Draw(rt, "entries") {
			var changes []clientcfg.Change
			for range rapid.IntRange(1, 3).Draw(rt, "changes") {
				c, err := drawChange(rt)
				requireNone(rt, err)
				if !slices.ContainsFunc(changes, func(other clientcfg.Change) bool { return other.Target == c.Target }) {
					changes = append(changes, c)
				}
			}
			next, err := p.Apply(entry(p.Version()+1, changes...))
			if err != nil {
				continue // an invalid one is never stored
			}
			former, pictures = append(former, p), append(pictures, picture(p))
			p = next
			store.put(changes...)
		}
		read := newPolicySource(t, store)
		compiled, err := clientcfg.NewPolicySnapshot(fileSettings(), p.Set())
		requireNone(rt, err)
		if diff := cmp.Diff(picture(read.Snapshot()), picture(p)); diff != "" {
			rt.Errorf("as it is stored, one by one (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(picture(compiled), picture(p)); diff != "" {
			rt.Errorf("compiled, one by one (-want +got):\n%s", diff)
		}
		for i := range former {
			if !slices.Equal(pictures[i], picture(former[i])) {
				rt.Errorf("the snapshot of version %d has changed", former[i].Version())
			}
		}
	})
}

func requireNone(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
