package clientcfg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/fielderr"
)

// The bounds of labels.
const (
	MostLabels  = 16 // of a client
	labelLength = 63 // of a name, and of a value
)

// The characters of labels.
const (
	labelNameBytes  = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	labelValueBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + labelNameBytes
)

// Labels are names with values by which operators find clients, and change them together. They say
// nothing to the server itself. The text has one name=value on each line, sorted, so that labels can be
// compared, shared and kept in memory as any text; it is empty if there are none.
type Labels string

// LabelsOf returns the labels of name=value pairs in any order. It does not check them, as
// [Client.Validate] does.
func LabelsOf(pairs []string) Labels {
	pairs = slices.Clone(pairs)
	slices.Sort(pairs)
	return Labels(strings.Join(pairs, "\n"))
}

// ParseLabels is [LabelsOf] for what is not known to be valid. Errors: [fielderr.Errors] under "labels".
func ParseLabels(pairs []string) (Labels, error) {
	pairs = slices.Sorted(slices.Values(pairs))
	return LabelsOf(pairs), checkPairs(pairs).Err()
}

// LabelPairs returns name=value of each, in no order.
func LabelPairs(values map[string]string) (pairs []string) {
	for name, value := range values {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// Pairs returns name=value of each label, sorted; nil if there are none.
func (l Labels) Pairs() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), "\n")
}

// Values returns the values by their names.
func (l Labels) Values() map[string]string {
	pairs := l.Pairs()
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

// Has reports whether there is that label: name=value, or a name, which may have any value.
func (l Labels) Has(label string) bool {
	for pair := range strings.SplitSeq(string(l), "\n") {
		if rest, ok := strings.CutPrefix(pair, label); ok && (rest == "" || rest[0] == '=') {
			return true
		}
	}
	return false
}

// With returns the labels with those of more, whose values replace those of the same names.
func (l Labels) With(more Labels) Labels {
	values := l.Values()
	maps.Copy(values, more.Values())
	return LabelsOf(LabelPairs(values))
}

// Without returns the labels that do not have one of the names.
func (l Labels) Without(names ...string) Labels {
	values := l.Values()
	for _, name := range names {
		delete(values, name)
	}
	return LabelsOf(LabelPairs(values))
}

// MarshalJSON writes an object.
func (l Labels) MarshalJSON() ([]byte, error) { return json.Marshal(l.Values()) }

// UnmarshalJSON reads an object, and does not check it.
func (l *Labels) UnmarshalJSON(text []byte) error {
	var values map[string]string
	err := json.Unmarshal(text, &values)
	*l = LabelsOf(LabelPairs(values))
	return err
}

// CheckSelector returns why a text cannot choose clients by a label, as [Labels.Has] does.
func CheckSelector(label string) error {
	if !strings.Contains(label, "=") {
		label += "="
	}
	_, err := checkPair(label)
	return err
}

// checkPairs checks pairs that are sorted, in which a name that is given twice follows itself.
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

// checkPair returns the name, also of what is no label.
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
