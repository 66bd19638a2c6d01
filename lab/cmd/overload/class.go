package main

// class is a kind of request.
type class int

// The classes. Those from wrongSecret on are measured alone, for what they cost.
const (
	refresh class = iota
	code
	clientOnly
	signIn
	wrongSecret
	wrongPassword
	denied  // over its limit
	classes = iota
)

var classNames = [classes]string{ //nolint:gosec // G101: names of grants, no credentials
	refresh: "refresh_token", code: "authorization_code", clientOnly: "client_credentials", signIn: "sign-in",
	wrongSecret: "wrong client secret", wrongPassword: "sign-in, wrong password", denied: "denied by a limit (429)",
}

// String is the name, as in tables.
func (c class) String() string { return classNames[c] }

// wanted is the status of the answer that a caller of the class asks for. All else is a failure of the server, or a refusal.
func (c class) wanted() int {
	switch c {
	case wrongSecret:
		return 401
	case wrongPassword:
		return 400
	case denied:
		return 429
	default:
		return 200
	}
}

// mix is the share of each class.
type mix [classes]float64

// The mixes. Refreshes and codes are half of their share each.
var (
	everything = mix{refresh: 0.2, code: 0.2, clientOnly: 0.4, signIn: 0.2}
	tokensOnly = mix{refresh: 0.25, code: 0.25, clientOnly: 0.5}
)

// only is a mix of one class.
func only(c class) (m mix) {
	m[c] = 1
	return m
}
