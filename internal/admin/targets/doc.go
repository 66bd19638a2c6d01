// Package targets has what operators set, as the admin API shows and changes it: the settings,
// tiers, policies, limits of single users and candidates. It reads a snapshot of the policies and
// returns documents of package adminapi, or the change that a document asks for. It never changes
// anything itself, and does no I/O.
//
//	t, ok := targets.Parse("policies/shop")
//	st := t.State(snapshot)                     // st.Doc is an adminapi.Policy
//	change, err := t.With(snapshot, value, now) // for clientcfg.PolicySource.Change
package targets
