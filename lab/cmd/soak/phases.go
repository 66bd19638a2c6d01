package main

import (
	"slices"
	"time"
)

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
// after the attacks. With only, the first phase and that of this name share the duration; nil if
// the name is unknown.
func phases(duration time.Duration, only string) []phase {
	part := duration / 40
	all := []phase{{name: "no attack", length: 4 * part}}
	for _, kind := range attackKinds() {
		length := 3 * part
		if kind == slowConnections || kind == signIns {
			length = 4 * part
		}
		all = append(all, phase{name: string(kind), length: length, attacks: []attackKind{kind}})
	}
	all = append(all,
		phase{name: "all at once", length: 10 * part, attacks: attackKinds()},
		phase{name: "all, from the same address", length: 4 * part, attacks: attackKinds(), sameAddress: true},
		phase{name: "after the attacks", length: 2 * part},
	)
	if only == "" {
		return all
	}
	i := slices.IndexFunc(all, func(p phase) bool { return p.name == only })
	if i < 1 {
		return nil
	}
	all[0].length, all[i].length = duration/2, duration/2
	return []phase{all[0], all[i]}
}
