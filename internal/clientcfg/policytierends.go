package clientcfg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/fielderr"
)

// CheckEnds reports, as [fielderr.Errors], which of the changes that led to this snapshot would
// prevent a temporary change from ending when due: the tier that a policy returns to would be
// missing then, or a tier would be removed that a policy still names. Use it for new requests of
// operators, never for stored changes.
func (p *PolicySnapshot) CheckEnds(changes []Change) (es fielderr.Errors) {
	if p.set.Ends.Len() == 0 {
		return nil
	}
	concerned, tiers := map[string]bool{}, map[string]bool{}
	for i := range changes {
		target := changes[i].Target
		if of, is := endOf(target); is {
			target = of
		}
		if id, is := strings.CutPrefix(target, policyTargets); is {
			concerned[id] = true
		} else if name, is := TierOf(target); is && !p.tierIn(name).always() {
			tiers[name] = true
		}
	}
	p.naming(tiers, concerned)
	for _, id := range slices.Sorted(maps.Keys(concerned)) {
		es = append(es, p.checkTiersOf(id)...)
	}
	return es
}

// tierTime is whether a tier exists now, and after its end, if it has one.
type tierTime struct {
	now, then bool
	end       time.Time
}

func (t tierTime) always() bool { return t.now && t.then }

func (p *PolicySnapshot) tierIn(name string) tierTime {
	_, now := p.set.Tiers.Get(name)
	if e, temporary := p.End(TierTarget(name)); temporary {
		return tierTime{now: now, then: !isNull(e.Value), end: e.Until}
	}
	return tierTime{now: now, then: now}
}

// naming adds the clients with policies that name one of the tiers, now or after the end of a
// temporary change. It looks at all policies once.
func (p *PolicySnapshot) naming(tiers, clients map[string]bool) {
	if len(tiers) == 0 {
		return
	}
	for _, ids := range p.set.TierClients(tiers) {
		for _, id := range ids {
			clients[id] = true
		}
	}
	for target, e := range p.set.Ends.All() {
		if id, is := strings.CutPrefix(target, policyTargets); is && e.Left == 0 && tiers[tierOf(e.Value)] {
			clients[id] = true
		}
	}
}

// tierOf returns the tier that a policy's value names. It returns "" for an unreadable value,
// because such an end is reported when it is due.
func tierOf(policy json.RawMessage) string {
	var named struct {
		Tier string `json:"tier"`
	}
	if json.Unmarshal(policy, &named) != nil {
		return ""
	}
	return named.Tier
}

// checkTiersOf reports tiers that the client's policy names at a time when they do not exist.
func (p *PolicySnapshot) checkTiersOf(clientID string) (es fielderr.Errors) {
	own, _ := p.set.Clients.Get(clientID)
	policy, temporary := p.End(PolicyTarget(clientID))
	if t := p.tierIn(own.Tier); own.Tier != "" && t.now && !t.then && (!temporary || policy.Until.After(t.end)) {
		es.Add(fielderr.Join("clients", clientID)+".tier",
			"the tier %q is temporary, until %s: let it last, by a change of it without an end, or let the policy end no later",
			own.Tier, t.end.Format(time.RFC3339))
	}
	if !temporary {
		return es
	}
	back := tierOf(policy.Value)
	if t := p.tierIn(back); back == "" || t.then && (t.now || !policy.Until.Before(t.end)) {
		return es
	}
	remedy := "let this change end later, or last"
	if policy.Change != p.Version() { // from an earlier change
		remedy = fmt.Sprintf("undo change %d, or change %s without an end, first", policy.Change, PolicyTarget(clientID))
	}
	es.Add(fielderr.Join("tiers", back), "%s returns to the tier %q at %s, when that would not be there: %s",
		PolicyTarget(clientID), back, policy.Until.Format(time.RFC3339), remedy)
	return es
}
