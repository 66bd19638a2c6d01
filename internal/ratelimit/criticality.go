package ratelimit

import (
	"fmt"
	"slices"
	"strings"
)

// Criticality ranks requests while the server is overloaded: the server refuses requests of a lower
// criticality first. It does not affect limits. A higher value is more critical. The names are from
// Beyer et al., Site Reliability Engineering (O'Reilly, 2016), ch. 21, Handling Overload.
type Criticality int8

// The criticalities. If none is set, the next less specific one applies. If there is no such
// setting, the server decides by the kind of request.
const (
	CriticalityUnset Criticality = iota
	Sheddable                    // refused first
	SheddablePlus
	Critical
	CriticalPlus // refused last
)

var criticalityNames = [...]string{Sheddable: "sheddable", SheddablePlus: "sheddable_plus", Critical: "critical", CriticalPlus: "critical_plus"}

// CriticalityNames returns the names that can be set, highest first.
func CriticalityNames() []string {
	names := slices.Clone(criticalityNames[Sheddable:])
	slices.Reverse(names)
	return names
}

// ParseCriticality is the inverse of [Criticality.String]. An empty text is CriticalityUnset. The
// error for an unknown text lists the valid names.
func ParseCriticality(text string) (Criticality, error) {
	for c := CriticalityUnset; c.valid(); c++ {
		if criticalityNames[c] == text {
			return c, nil
		}
	}
	return CriticalityUnset, noCriticality(text)
}

// noCriticality returns the error for a text that is not a valid name.
func noCriticality(text string) error {
	return fmt.Errorf(`%.40q is none of "%s"`, text, strings.Join(CriticalityNames(), `", "`))
}

// String returns the name, as in documents. It is empty for CriticalityUnset.
func (c Criticality) String() string {
	if !c.valid() {
		return fmt.Sprintf("Criticality(%d)", int8(c))
	}
	return criticalityNames[c]
}

// MarshalText writes the name. An invalid value is an error.
func (c Criticality) MarshalText() ([]byte, error) {
	if !c.valid() {
		return nil, noCriticality(c.String())
	}
	return []byte(c.String()), nil
}

// UnmarshalText parses the text with [ParseCriticality].
func (c *Criticality) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCriticality(string(text))
	return err
}

func (c Criticality) valid() bool { return c >= CriticalityUnset && c <= CriticalPlus }
