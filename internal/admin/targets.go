package admin

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
)

// resourceOf returns the resource for an audit target. It returns false if the target cannot be
// changed this way. It does not check whether the client is registered.
func resourceOf(target string) (resource, bool) {
	if target == clientcfg.SettingsTarget {
		return settingsResource{}, true
	}
	kind, name, _ := strings.Cut(target, "/")
	if name == "" {
		return nil, false
	}
	switch kind + "/" {
	case clientcfg.PolicyTarget(""):
		return policyResource{name}, len(name) <= clientcfg.MaxIDLength
	case clientcfg.CandidateTarget(""):
		return candidateResource{name}, len(name) <= clientcfg.MaxIDLength
	case clientcfg.TierTarget(""):
		return tierResource{name}, clientcfg.ValidateTierName(name) == nil
	}
	id, username, is := clientcfg.OverrideOf(target)
	return overrideResource{id, username}, is && len(id) <= clientcfg.MaxIDLength
}

// resourceTyped is like resourceOf, with the username of an override in any spelling.
func resourceTyped(target string) (r resource, known bool, err error) {
	if r, known = resourceOf(target); known {
		if o, is := r.(overrideResource); is {
			r, err = override(o.clientID, o.username)
		}
	}
	return r, known, err
}

// clientOf returns the client of a resource, or "" if it applies to all.
func clientOf(r resource) string {
	switch r := r.(type) {
	case policyResource:
		return r.clientID
	case overrideResource:
		return r.clientID
	case candidateResource:
		if r.name != clientcfg.GlobalCandidate {
			return r.name
		}
	}
	return ""
}

// setTargets returns the first n targets after a target that operators have set, or that will
// return to an earlier value, in the order of a limits file. n = 0 returns all.
func setTargets(p *clientcfg.PolicySnapshot, after string, n int) (targets []string) {
	set := p.Set()
	if n == 0 {
		n = 1 + set.Clients.Len() + set.Candidates.Len() + set.Tiers.Len() + set.Overrides.Len() + set.Temporary.Len()
	}
	for _, section := range adminapi.Sections {
		targets = append(targets, lowest(n-len(targets), func(yield func(string) bool) {
			for target := range sectionTargets(p, section) {
				if adminapi.CompareTargets(target, after) > 0 && !yield(target) {
					return
				}
			}
		})...)
		if len(targets) == n {
			break
		}
	}
	return targets
}

// sectionTargets yields the targets of a section in any order, each once.
func sectionTargets(p *clientcfg.PolicySnapshot, section string) iter.Seq[string] {
	set := p.Set()
	names := map[string]iter.Seq[string]{
		"settings": func(func(string) bool) {},
		"tiers":    set.Tiers.Keys(),
		"policies": set.Clients.Keys(), "overrides": set.Overrides.Keys(),
		"candidates": set.Candidates.Keys(),
	}[section]
	return func(yield func(string) bool) {
		if section == clientcfg.SettingsTarget && !isUnset(settingsResource{}, p) && !yield(section) {
			return
		}
		for name := range names {
			if !yield(section + "/" + name) {
				return
			}
		}
		for of := range set.Temporary.Keys() { // of temporary removals
			kind, _, _ := strings.Cut(of, "/")
			if r, known := resourceOf(of); kind == section && known && isUnset(r, p) && !yield(of) {
				return
			}
		}
	}
}

// isUnset reports whether operators have not set the resource.
func isUnset(r resource, p *clientcfg.PolicySnapshot) bool {
	if _, is := r.(settingsResource); is {
		o := p.Set().Settings
		return len(o.Names()) == 0 && o.Note == ""
	}
	return !r.state(p).exists
}

// areRegistered returns, as field errors, which resources belong to clients that do not exist. It
// accepts a resource that is already set.
func (s *Server) areRegistered(ctx context.Context, resources map[string]resource) (errs fielderr.Errors, err error) {
	if s.o.ClientsElsewhere {
		return nil, nil
	}
	p, unknown := s.o.Policies.Snapshot(), map[string]string{}
	for field, r := range resources {
		if id := clientOf(r); id != "" && isUnset(r, p) && !s.o.Clients.Directory().Has(id) {
			unknown[field] = id
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	if err := s.o.Clients.Renew(ctx, 0); err != nil { // they may be new
		return nil, err
	}
	for _, field := range slices.Sorted(maps.Keys(unknown)) {
		if !s.o.Clients.Directory().Has(unknown[field]) {
			errs.Add(field, "there is no client %q", unknown[field])
		}
	}
	return errs, nil
}
