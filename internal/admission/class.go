package admission

import "oauth-server/internal/ratelimit"

// Class is a kind of request, as metrics and costs tell them apart.
type Class uint8

// The classes, in the order in which requests of equal criticality are refused, from last to first.
const (
	Refresh Class = iota
	Code
	Revocation
	ClientCredentials
	Password // the grant
	Introspection
	Page    // of people: authorization, consent
	SignIn  // the form with the password
	Classes = iota
)

var classNames = [Classes]string{
	Refresh: "refresh_token", Code: "authorization_code", Revocation: "revocation", ClientCredentials: "client_credentials",
	Password: "password", Introspection: "introspection", Page: "page", SignIn: "sign_in",
}

// String is the name, as in metrics: of a grant, its grant_type.
func (c Class) String() string { return classNames[c] }

// classCriticality is the criticality of a class where no policy sets one.
var classCriticality = [Classes]ratelimit.Criticality{
	Refresh: ratelimit.CriticalPlus, Code: ratelimit.CriticalPlus, Revocation: ratelimit.Critical,
	ClientCredentials: ratelimit.SheddablePlus, Password: ratelimit.SheddablePlus,
	Introspection: ratelimit.Sheddable, Page: ratelimit.Sheddable, SignIn: ratelimit.Sheddable,
}

// Criticality returns the criticality of a request: that of the policy if it sets one; otherwise at least critical
// for a trusted client, and that of the class.
func (c Class) Criticality(set ratelimit.Criticality, trusted bool) ratelimit.Criticality {
	switch {
	case set != ratelimit.CriticalityUnset:
		return set
	case trusted:
		return max(classCriticality[c], ratelimit.Critical)
	}
	return classCriticality[c]
}
