package main

import "time"

// attackKind names an attack.
type attackKind string

const (
	slowConnections attackKind = "slow connections"
	signIns         attackKind = "sign-ins"
	unknownClients  attackKind = "unknown clients"
	randomTokens    attackKind = "random refresh tokens"
	spentTokens     attackKind = "spent refresh tokens"
	introspections  attackKind = "introspection"
)

// attackKinds returns all attacks.
func attackKinds() []attackKind {
	return []attackKind{slowConnections, signIns, unknownClients, randomTokens, spentTokens, introspections}
}

// phase is a part of the soak.
type phase struct {
	name    string
	length  time.Duration
	attacks []attackKind
	// sameAddress makes the attacks come from the address of the good clients.
	sameAddress bool
}

// phases divides the duration. The first phase measures the machine, the last one what stays
// after the attacks.
func phases(duration time.Duration) []phase {
	part := duration / 40
	all := []phase{{name: "no attack", length: 4 * part}}
	for _, kind := range attackKinds() {
		length := 3 * part
		if kind == slowConnections || kind == signIns {
			length = 4 * part
		}
		all = append(all, phase{name: string(kind), length: length, attacks: []attackKind{kind}})
	}
	return append(all,
		phase{name: "all at once", length: 10 * part, attacks: attackKinds()},
		phase{name: "all, from the same address", length: 4 * part, attacks: attackKinds(), sameAddress: true},
		phase{name: "after the attacks", length: 2 * part},
	)
}
