package clientcfg

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

// Labels are names with values that operators use to find clients and to change them together. They
// have no meaning to the server. The text has one name=value per line, sorted, so labels can be
// compared, shared and stored like any string. It is empty without labels.
type Labels string

// LabelsOf returns the labels for name=value pairs in any order. It does not validate them; see
// [Client.Validate].
func LabelsOf(pairs []string) Labels {
	pairs = slices.Clone(pairs)
	slices.Sort(pairs)
	return Labels(strings.Join(pairs, "\n"))
}

// ParseLabels is like [LabelsOf], and validates the pairs. Errors: [fielderr.Errors] under
// "labels".
func ParseLabels(pairs []string) (Labels, error) {
	pairs = slices.Sorted(slices.Values(pairs))
	return LabelsOf(pairs), checkPairs(pairs).Err()
}

// LabelPairs returns name=value for each label, in no particular order.
func LabelPairs(values map[string]string) (pairs []string) {
	for name, value := range values {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// Pairs returns name=value for each label, sorted, or nil without labels.
func (l Labels) Pairs() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), "\n")
}

// Values returns the values by name.
func (l Labels) Values() map[string]string {
	pairs := l.Pairs()
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

// Has reports whether l has the label: name=value, or only a name, which matches any value.
func (l Labels) Has(label string) bool {
	for pair := range strings.SplitSeq(string(l), "\n") {
		if rest, ok := strings.CutPrefix(pair, label); ok && (rest == "" || rest[0] == '=') {
			return true
		}
	}
	return false
}

// With returns l with the labels of more added. Values in more replace values with the same name.
func (l Labels) With(more Labels) Labels {
	values := l.Values()
	maps.Copy(values, more.Values())
	return LabelsOf(LabelPairs(values))
}

// Without returns l without the labels that have one of the names.
func (l Labels) Without(names ...string) Labels {
	values := l.Values()
	for _, name := range names {
		delete(values, name)
	}
	return LabelsOf(LabelPairs(values))
}

// MarshalJSON writes an object.
func (l Labels) MarshalJSON() ([]byte, error) { return json.Marshal(l.Values()) }

// UnmarshalJSON reads an object without validating it.
func (l *Labels) UnmarshalJSON(text []byte) error {
	var values map[string]string
	err := json.Unmarshal(text, &values)
	*l = LabelsOf(LabelPairs(values))
	return err
}

// CheckSelector returns why a text cannot select clients by label, as [Labels.Has] does.
func CheckSelector(label string) error {
	if !strings.Contains(label, "=") {
		label += "="
	}
	_, err := checkPair(label)
	return err
}

// checkPairs checks sorted pairs: duplicate names are adjacent.
func checkPairs(pairs []string) (errs fielderr.Errors) {
	if len(pairs) > MostLabels {
		errs.Add("labels", "has %d, more than %d", len(pairs), MostLabels)
	}
	before := ""
	for _, pair := range pairs {
		name, err := checkPair(pair)
		switch {
		case err != nil:
			errs.Add(fielderr.Join("labels", name), "%v", err)
		case name == before:
			errs.Add(fielderr.Join("labels", name), "is given twice")
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
		return name, fmt.Errorf("the name %q needs 1 to %d characters of a-z, 0-9, '.', '_' and '-'", name, labelLength)
	case len(value) > labelLength || strings.Trim(value, labelValueBytes) != "":
		return name, fmt.Errorf("the value %q may have %d characters at most, of A-Z, a-z, 0-9, '.', '_' and '-'", value, labelLength)
	}
	return name, nil
}
