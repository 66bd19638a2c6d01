package admin

import (
	"strings"

	"oauth-server/internal/clientcfg"
)

// resourceOf returns the resource that a target of the audit trail is; false if it is none that can be
// changed so. It does not look whether the client that it names is registered.
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
