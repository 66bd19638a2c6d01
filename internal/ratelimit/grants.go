package ratelimit

import (
	"encoding/json"
	"fmt"
	"strings"

	"oauth-server/internal/strict/fielderr"
)

// Grants is a bit set of grants that have a user. A limit with an empty set counts all grants.
type Grants uint16

// The grants that a limit can be restricted to, as in the grant_type parameter.
const (
	GrantCode     Grants = 1 << iota // authorization_code
	GrantRefresh                     // refresh_token
	GrantPassword                    // password
	GrantDevice                      // urn:ietf:params:oauth:grant-type:device_code, RFC 8628
	GrantExchange                    // urn:ietf:params:oauth:grant-type:token-exchange, RFC 8693
	GrantJWT                         // urn:ietf:params:oauth:grant-type:jwt-bearer, RFC 7523
	GrantCIBA                        // urn:openid:params:grant-type:ciba
	GrantUMA                         // urn:ietf:params:oauth:grant-type:uma-ticket
	grantOther                       // any other grant: only limits for all grants count it

	// AllGrants is the set of grants that this server implements. The others are for gateways.
	AllGrants = GrantCode | GrantRefresh | GrantPassword
)

var grantNames = [...]string{
	"authorization_code", "refresh_token", "password",
	"urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange",
	"urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:openid:params:grant-type:ciba",
	"urn:ietf:params:oauth:grant-type:uma-ticket",
}

// GrantNames returns the names of all grants that a limit can be restricted to.
func GrantNames() []string { return grantNames[:] }

// GrantOf returns the set with the named grant of a request. It is empty if the name is empty (an
// unknown grant), and for client_credentials, which has no user.
func GrantOf(name string) Grants {
	switch name {
	case "", "client_credentials":
		return 0
	}
	for i, n := range grantNames {
		if n == name {
			return 1 << i
		}
	}
	return grantOther
}

// ParseGrants returns the set of the named grants. It returns [fielderr.Errors], with the index of
// each bad name, for names that are not grants with a user and for duplicates. An empty list is an
// error too.
func ParseGrants(names []string) (g Grants, err error) {
	var es fielderr.Errors
	if len(names) == 0 {
		es.Add("", "must not be empty: omit it to count all grants")
	}
	for i, name := range names {
		one, path := GrantOf(name), fielderr.Item("", i)
		switch {
		case name == "client_credentials":
			es.Add(path, "%q has no user: limit it in the list client, without grants", name)
		case one == 0, one == grantOther:
			es.Add(path, "%.40q is not one of %s", name, strings.Join(grantNames[:], ", "))
		case g&one != 0:
			es.Add(path, "%q is a duplicate", name)
		}
		g |= one
	}
	return g, es.Err()
}

// Names returns the names of the grants in the set, or nil if it is empty.
func (g Grants) Names() (names []string) {
	for i, name := range grantNames {
		if g>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Count reports whether a limit for the grants in g counts a request with this grant. Every limit
// counts requests with an unknown grant (0).
func (g Grants) Count(grant Grants) bool { return g == 0 || grant == 0 || g&grant != 0 }

// MarshalJSON writes the names.
func (g Grants) MarshalJSON() ([]byte, error) { return json.Marshal(g.Names()) }

// UnmarshalJSON reads the output of MarshalJSON. It returns the errors of [ParseGrants].
func (g *Grants) UnmarshalJSON(b []byte) error {
	if string(b) == "null" { // by convention
		return nil
	}
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	err := g.SetList(names)
	return fielderr.Of(err).Under("grants").Err()
}

// SetList sets g to the named grants. If it returns an error, g has the valid ones. Package strict
// calls it with the names in a document.
func (g *Grants) SetList(names []string) (err error) {
	*g, err = ParseGrants(names)
	return err
}

// refuseGrants returns a problem for each limit with Grants in a list that does not support them.
func refuseGrants(field string, limits []Limit) (es fielderr.Errors) {
	for i := range validated(limits) {
		if limits[i].Grants != 0 {
			es.Add(fielderr.Item(field, i)+".grants", "is allowed only in the list user")
		}
	}
	return es
}
