package overload

import "oauth-server/internal/ratelimit"

// Class is a kind of request, for metrics and costs.
type Class uint8

// The classes.
const (
	Refresh Class = iota
	Code
	Revocation
	ClientCredentials
	Introspection
	Password // the password grant
	Page     // pages for people: authorization, consent
	SignIn   // the form with the password
	Classes  = iota
)

// tiers is the number of tiers within one criticality.
const tiers = 4

var classes = [Classes]struct {
	name        string
	criticality ratelimit.Criticality // if no policy sets one
	tier        int                   // among requests of equal criticality; the lowest is refused first
}{
	Refresh:           {"refresh_token", ratelimit.CriticalPlus, 3},
	Code:              {"authorization_code", ratelimit.CriticalPlus, 3},
	Revocation:        {"revocation", ratelimit.Critical, 3},
	ClientCredentials: {"client_credentials", ratelimit.SheddablePlus, 2},
	Introspection:     {"introspection", ratelimit.Sheddable, 1},
	Password:          {"password", ratelimit.SheddablePlus, 0},
	Page:              {"page", ratelimit.Sheddable, 0},
	SignIn:            {"sign_in", ratelimit.Sheddable, 0},
}

// String returns the name for metrics. For a grant it is the grant_type.
func (c Class) String() string { return classes[c].name }

// criticality returns the criticality of a request: the one in the policy, if set, otherwise the
// one of the class. For a trusted client without a set criticality, it is at least critical.
func (c Class) criticality(set ratelimit.Criticality, trusted bool) ratelimit.Criticality {
	switch {
	case set != ratelimit.CriticalityUnset:
		return set
	case trusted:
		return max(classes[c].criticality, ratelimit.Critical)
	}
	return classes[c].criticality
}
