// Package labels has the labels of clients.
package labels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/strict/fielderr"
)

// Limits on labels.
const (
	MostLabels  = 16 // per client
	labelLength = 63 // of a name, and of a value
)

// The characters of labels.
const (
	labelNameBytes  = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	labelValueBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + labelNameBytes
)

// Set is the labels of a client: names with values that operators use to find clients and to change
// them together. They have no meaning to the server. The text has one name=value per line, sorted,
// so labels can be compared, shared and stored like any string. It is empty without labels.
type Set string

// Of returns the labels for name=value pairs in any order. It does not validate them; see
// [oauth-server/internal/clientcfg.Client.Validate].
func Of(pairs []string) Set {
	pairs = slices.Clone(pairs)
	slices.Sort(pairs)
	return Set(strings.Join(pairs, "\n"))
}

// Parse is like [Of], and validates the pairs. Errors: [fielderr.Errors] under
// "labels".
func Parse(pairs []string) (Set, error) {
	pairs = slices.Sorted(slices.Values(pairs))
	return Of(pairs), Check(pairs).Err()
}

// PairsOf returns name=value for each label, in no particular order.
func PairsOf(values map[string]string) (pairs []string) {
	for name, value := range values {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// Pairs returns name=value for each label, sorted, or nil without labels.
func (l Set) Pairs() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), "\n")
}

// Values returns the values by name.
func (l Set) Values() map[string]string {
	pairs := l.Pairs()
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

// Has reports whether l has the label: name=value, or only a name, which matches any value.
func (l Set) Has(label string) bool {
	for pair := range strings.SplitSeq(string(l), "\n") {
		if rest, ok := strings.CutPrefix(pair, label); ok && (rest == "" || rest[0] == '=') {
			return true
		}
	}
	return false
}

// With returns l with the labels of more added. Values in more replace values with the same name.
func (l Set) With(more Set) Set {
	values := l.Values()
	maps.Copy(values, more.Values())
	return Of(PairsOf(values))
}

// Without returns l without the labels that have one of the names.
func (l Set) Without(names ...string) Set {
	values := l.Values()
	for _, name := range names {
		delete(values, name)
	}
	return Of(PairsOf(values))
}

// MarshalJSON writes an object.
func (l Set) MarshalJSON() ([]byte, error) { return json.Marshal(l.Values()) }

// UnmarshalJSON reads an object without validating it.
func (l *Set) UnmarshalJSON(text []byte) error {
	var values map[string]string
	err := json.Unmarshal(text, &values)
	*l = Of(PairsOf(values))
	return err
}

// CheckSelector returns why a text cannot select clients by label, as [Set.Has] does.
func CheckSelector(label string) error {
	if !strings.Contains(label, "=") {
		label += "="
	}
	_, err := checkPair(label)
	return err
}

// Check returns what is wrong with sorted pairs: duplicate names are adjacent.
func Check(pairs []string) (errs fielderr.Errors) {
	if len(pairs) > MostLabels {
		errs.Add("labels", "has %d, more than the maximum of %d", len(pairs), MostLabels)
	}
	before := ""
	for _, pair := range pairs {
		name, err := checkPair(pair)
		switch {
		case err != nil:
			errs.Add(fielderr.Join("labels", name), "%v", err)
		case name == before:
			errs.Add(fielderr.Join("labels", name), "is a duplicate")
		}
		before = name
	}
	return errs
}

// checkPair checks one pair. It returns the name even for an invalid pair.
func checkPair(pair string) (name string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	switch {
	case !ok:
		return name, fmt.Errorf("%q is not name=value", pair)
	case name == "" || len(name) > labelLength || strings.Trim(name, labelNameBytes) != "":
		return name, fmt.Errorf("the name %q must have 1 to %d characters of a-z, 0-9, '.', '_' and '-'", name, labelLength)
	case len(value) > labelLength || strings.Trim(value, labelValueBytes) != "":
		return name, fmt.Errorf("the value %q must have at most %d characters of A-Z, a-z, 0-9, '.', '_' and '-'", value, labelLength)
	}
	return name, nil
}
