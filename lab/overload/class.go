package overload

// Class is a kind of request.
type Class int

// The classes. Those from WrongSecret on are measured alone, for what they cost.
const (
	Refresh Class = iota
	Code
	Client
	SignIn
	Greedy // client_credentials of the one client that is over its limit
	WrongSecret
	WrongPassword
	Denied  // over its limit
	Classes = iota
)

var classNames = [Classes]string{ //nolint:gosec // G101: names of grants, no credentials
	Refresh: "refresh_token", Code: "authorization_code", Client: "client_credentials", SignIn: "sign-in", Greedy: "over its limit",
	WrongSecret: "wrong client secret", WrongPassword: "sign-in, wrong password", Denied: "denied by a limit (429)",
}

// String is the name, as in tables.
func (c Class) String() string { return classNames[c] }

// wanted is the status of the answer that a caller of the class asks for. All else is a failure of the server, or a refusal.
func (c Class) wanted() int {
	switch c {
	case WrongSecret:
		return 401
	case WrongPassword:
		return 400
	case Denied:
		return 429
	default:
		return 200
	}
}

// Mix is the share of each class.
type Mix [Classes]float64

// The mixes. Refreshes and codes are half of their share each.
var (
	everything = Mix{Refresh: 0.2, Code: 0.2, Client: 0.4, SignIn: 0.2}
	tokensOnly = Mix{Refresh: 0.25, Code: 0.25, Client: 0.5}
)

// only is a mix of one class.
func only(c Class) (m Mix) {
	m[c] = 1
	return m
}

// beside returns a mix of requests at a rate, and others of one class at another rate.
func (m Mix) beside(rate float64, c Class, others float64) (both Mix, sum float64) {
	for i, share := range m {
		both[i] = share * rate / (rate + others)
	}
	both[c] += others / (rate + others)
	return both, rate + others
}
