package ratelimit

import (
	"fmt"
	"slices"
	"strings"
)

// Criticality ranks requests while the server is overloaded: those of a lower one are refused first. It changes
// nothing about limits. The names are those of Beyer et al., Site Reliability Engineering (O'Reilly, 2016), ch. 21,
// Handling Overload; a higher value is more critical.
type Criticality int8

// The criticalities. The zero value is that none is set: the next less specific one applies, and at last the
// server decides by the kind of request.
const (
	CriticalityUnset Criticality = iota
	Sheddable                    // refused first
	SheddablePlus
	Critical
	CriticalPlus // refused last
)

var criticalityNames = [...]string{Sheddable: "sheddable", SheddablePlus: "sheddable_plus", Critical: "critical", CriticalPlus: "critical_plus"}

// CriticalityNames returns the names of all that can be set, highest first.
func CriticalityNames() []string {
	names := slices.Clone(criticalityNames[Sheddable:])
	slices.Reverse(names)
	return names
}

// ParseCriticality is the inverse of [Criticality.String]. An empty text is CriticalityUnset. The error for any
// other text names those that there are.
func ParseCriticality(text string) (Criticality, error) {
	for c := CriticalityUnset; c.valid(); c++ {
		if criticalityNames[c] == text {
			return c, nil
		}
	}
	return CriticalityUnset, noCriticality(text)
}

// noCriticality is the error for a text that names none.
func noCriticality(text string) error {
	return fmt.Errorf(`%.40q is none of "%s"`, text, strings.Join(CriticalityNames(), `", "`))
}

// String is the name, as in documents; empty if none is set.
func (c Criticality) String() string {
	if !c.valid() {
		return fmt.Sprintf("Criticality(%d)", int8(c))
	}
	return criticalityNames[c]
}

// MarshalText writes the name. A value that has none is an error.
func (c Criticality) MarshalText() ([]byte, error) {
	if !c.valid() {
		return nil, noCriticality(c.String())
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads what MarshalText writes, as [ParseCriticality] does.
func (c *Criticality) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCriticality(string(text))
	return err
}

func (c Criticality) valid() bool { return c >= CriticalityUnset && c <= CriticalPlus }
