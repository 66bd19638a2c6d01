package ratelimit

import (
	"encoding/json"
	"fmt"
	"strings"

	"oauth-server/internal/fielderr"
)

// Grants is a set of grants that have a user, a bit for each. A limit with an empty set counts all of them.
type Grants uint16

// The grants that a limit can be for, as in the grant_type parameter.
const (
	GrantCode     Grants = 1 << iota // authorization_code
	GrantRefresh                     // refresh_token
	GrantPassword                    // password
	GrantDevice                      // urn:ietf:params:oauth:grant-type:device_code, RFC 8628
	GrantExchange                    // urn:ietf:params:oauth:grant-type:token-exchange, RFC 8693
	GrantJWT                         // urn:ietf:params:oauth:grant-type:jwt-bearer, RFC 7523
	GrantCIBA                        // urn:openid:params:grant-type:ciba
	GrantUMA                         // urn:ietf:params:oauth:grant-type:uma-ticket
	grantOther                       // any other: only limits for all grants count it

	// AllGrants is the set of those that this server has. The others are for gateways.
	AllGrants = GrantCode | GrantRefresh | GrantPassword
)

var grantNames = [...]string{
	"authorization_code", "refresh_token", "password",
	"urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange",
	"urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:openid:params:grant-type:ciba",
	"urn:ietf:params:oauth:grant-type:uma-ticket",
}

// GrantNames returns the names of all grants that a limit can be for.
func GrantNames() []string { return grantNames[:] }

// GrantOf returns the set of the grant of a request, by its name. It is empty if the name is, so that the grant is not
// known, and for client_credentials, which has no user.
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

// ParseGrants returns the set of these grants. A name that no grant with a user has, one that is there twice,
// and no name at all are errors: all of them as [fielderr.Errors], with the indices of the names.
func ParseGrants(names []string) (g Grants, err error) {
	var es fielderr.Errors
	if len(names) == 0 {
		es.Add("", "there is none: leave it out, and the limit counts all grants")
	}
	for i, name := range names {
		one, path := GrantOf(name), fielderr.Item("", i)
		switch {
		case name == "client_credentials":
			es.Add(path, "%q has no user, and only limits of the list user have it: the limits for it are those of the list client, without grants", name)
		case one == 0, one == grantOther:
			es.Add(path, "%.40q is none of %s", name, strings.Join(grantNames[:], ", "))
		case g&one != 0:
			es.Add(path, "%q is there twice", name)
		}
		g |= one
	}
	return g, es.Err()
}

// Names returns the names of the grants of the set; nil if it is empty.
func (g Grants) Names() (names []string) {
	for i, name := range grantNames {
		if g>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Count reports whether a limit for the grants of the set counts a request of the grant; 0: it is not known, and every
// limit counts it.
func (g Grants) Count(grant Grants) bool { return g == 0 || grant == 0 || g&grant != 0 }

// MarshalJSON writes the names.
func (g Grants) MarshalJSON() ([]byte, error) { return json.Marshal(g.Names()) }

// UnmarshalJSON reads what MarshalJSON writes. It refuses what [ParseGrants] refuses.
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

// SetList sets g to the grants of these names, of those that there are if it returns an error. Package strict calls it with
// those that a document has.
func (g *Grants) SetList(names []string) (err error) {
	*g, err = ParseGrants(names)
	return err
}

// refuseGrants returns the problems of a list whose requests are not told apart by their grant.
func refuseGrants(field string, limits []Limit) (es fielderr.Errors) {
	for i := range judged(limits) {
		if limits[i].Grants != 0 {
			es.Add(fielderr.Item(field, i)+".grants", "only limits of the list user have it")
		}
	}
	return es
}
