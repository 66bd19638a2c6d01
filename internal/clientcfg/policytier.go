package clientcfg

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/strict/fielderr"
)

// Limits on tiers and overrides.
const (
	MaxTiers          = 1_000
	MaxTierNameLength = 64
	MaxOverrides      = 100_000 // of all clients together
)

// The targets of tiers and overrides.
const (
	tierTargets     = "tiers/"
	overrideTargets = "overrides/"
)

// TierOf returns the tier of a target.
func TierOf(target string) (name string, ok bool) { return strings.CutPrefix(target, tierTargets) }

// OverrideTarget returns the target for an override. username is the one in the keys of the
// counters.
func OverrideTarget(clientID, username string) string {
	return KeyedOverrideTarget(OverrideKey(clientID, username))
}

// KeyedOverrideTarget returns the target for the override with that [OverrideKey].
func KeyedOverrideTarget(key string) string { return overrideTargets + key }

// OverrideOf is the inverse of [OverrideTarget].
func OverrideOf(target string) (clientID, username string, ok bool) {
	key, ok := strings.CutPrefix(target, overrideTargets)
	if !ok {
		return "", "", false
	}
	clientID, username, _ = strings.Cut(key, " ")
	return clientID, username, clientID != "" && username != ""
}

// OverrideKey returns the key of an override in a [PolicySet]. It is unambiguous, because
// client_ids contain no spaces.
func OverrideKey(clientID, username string) string { return clientID + " " + username }

// ValidateTierName returns an error if a name is not allowed for a tier.
func ValidateTierName(name string) error {
	if name == "" || len(name) > MaxTierNameLength {
		return fmt.Errorf("must have 1 to %d characters", MaxTierNameLength)
	}
	for _, r := range name {
		if r <= 0x20 || r > 0x7e {
			return fmt.Errorf("%q is not a visible ASCII character", r)
		}
	}
	return nil
}

// TierUses returns how many policies name each tier. The first call for a snapshot's set looks at all
// policies. The caller must not modify the result.
func (s *PolicySet) TierUses() map[string]int {
	if s.uses == nil { // an empty set
		return nil
	}
	return s.uses()
}

func (s *PolicySet) countTiers() map[string]int {
	uses := map[string]int{}
	for _, p := range s.Clients.All() {
		if p.Tier != "" {
			uses[p.Tier]++
		}
	}
	return uses
}

// TierClients returns the clients with policies that name one of these tiers, by tier and sorted.
// It looks at all policies once.
func (s *PolicySet) TierClients(names map[string]bool) map[string][]string {
	ids := map[string][]string{}
	if len(names) == 0 {
		return ids
	}
	for id, p := range s.Clients.All() {
		if names[p.Tier] {
			ids[p.Tier] = append(ids[p.Tier], id)
		}
	}
	for _, list := range ids {
		slices.Sort(list)
	}
	return ids
}

// namedUsers is how many clients an error lists at most.
const namedUsers = 5

// checkTiers reports, as [fielderr.Errors], which of these policies name a missing tier, and which
// of the removed tiers policies still name.
func (s *PolicySet) checkTiers(naming map[string]string, removed map[string]bool) (es fielderr.Errors) {
	for id, name := range naming {
		if _, ok := s.Tiers.Get(name); !ok {
			es.Add(fielderr.Join("clients", id)+".tier", "%s", noSuchTier(name))
		}
	}
	left := s.TierClients(removed)
	for _, name := range slices.Sorted(maps.Keys(left)) {
		ids := left[name]
		more := ""
		if n := len(ids) - namedUsers; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		es.Add(fielderr.Join("tiers", name), "is the tier of %s: %s%s; first give them another one, or none",
			clientsText(len(ids)), strings.Join(ids[:min(namedUsers, len(ids))], ", "), more)
	}
	return es
}

func noSuchTier(name string) string { return fmt.Sprintf("tier %q does not exist", name) }

func clientsText(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}
