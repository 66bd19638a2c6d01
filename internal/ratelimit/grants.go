package ratelimit

import (
	"encoding/json"
	"fmt"
	"strings"

	"oauth-server/internal/fielderr"
)

// Grants is a set of the grants that have a user, a bit for each. A limit with an empty set counts all of them.
type Grants uint8

// The grants, as in the grant_type parameter.
const (
	GrantCode     Grants = 1 << iota // authorization_code
	GrantRefresh                     // refresh_token
	GrantPassword                    // password
)

var grantNames = [...]string{"authorization_code", "refresh_token", "password"}

// GrantNames returns the names of all grants that a limit can be for.
func GrantNames() []string { return grantNames[:] }

// GrantOf returns the set of one grant, by its name; an empty set for a grant without a user.
func GrantOf(name string) Grants {
	for i, n := range grantNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// ParseGrants returns the set of these grants. A name that no grant with a user has, one that is there twice,
// and no name at all are errors.
func ParseGrants(names []string) (g Grants, err error) {
	if len(names) == 0 {
		return 0, fmt.Errorf("there is none: leave it out, and the limit counts all grants")
	}
	for _, name := range names {
		one := GrantOf(name)
		switch {
		case name == "client_credentials":
			return 0, fmt.Errorf("%q has no user: the limits for it are those of the list client", name)
		case one == 0:
			return 0, fmt.Errorf("%.40q is none of %s", name, strings.Join(grantNames[:], ", "))
		case g&one != 0:
			return 0, fmt.Errorf("%q is there twice", name)
		}
		g |= one
	}
	return g, nil
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

// EveryGrant is the set of all grants.
const EveryGrant Grants = 1<<len(grantNames) - 1

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
	err := json.Unmarshal(b, &names)
	if err == nil {
		*g, err = ParseGrants(names)
	}
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	return nil
}

// SetList sets g to the grants of these names. Package strict calls it with those that a document has.
func (g *Grants) SetList(names []string) (err error) {
	*g, err = ParseGrants(names)
	return err
}

// refuseGrants returns the problems of a list whose requests are not told apart by their grant.
func refuseGrants(field string, limits []Limit) (es fielderr.Errors) {
	for i := range limits {
		if limits[i].Grants != 0 {
			es.Add(fielderr.Item(field, i)+".grants", "only limits of the list user have it")
		}
	}
	return es
}
