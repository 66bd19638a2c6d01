package events

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Mapping has the places of a token request's fields in a log: paths for JSON, columns for tables,
// parts of a line for logs of web servers. The zero value means fields with the names of the keys.
type Mapping struct {
	fields map[string]string // by key
	only   []condition
}

// MappingError means that a mapping is incomplete, or does not fit the log or its format.
type MappingError struct{ err error }

// Error implements error.
func (e *MappingError) Error() string { return e.err.Error() }

// condition is a text that a field must have, or not have. A * at its beginning or end stands for
// anything.
type condition struct {
	field, text string
	not         bool
}

// conditionOf reads FIELD==TEXT or FIELD!=TEXT.
func conditionOf(text string) condition {
	if field, want, is := strings.Cut(text, "!="); is {
		return condition{field, want, true}
	}
	field, want, _ := strings.Cut(text, "==")
	return condition{field, want, false}
}

// matches reports whether a text meets the condition.
func (c *condition) matches(text []byte) bool {
	want, anyBefore := strings.CutPrefix(c.text, "*")
	want, anyAfter := strings.CutSuffix(want, "*")
	i := bytes.Index(text, []byte(want))
	if anyBefore {
		i = bytes.LastIndex(text, []byte(want))
	}
	return (i >= 0 && (anyBefore || i == 0) && (anyAfter || i+len(want) == len(text))) != c.not
}

// ParseMapping reads a mapping: pairs of a key and a field, separated by commas, such as
// client=.app.id,time=.at,user=.sub. The keys are client and time, which are required, and user,
// grant, status, source, scope and lifetime. A part field==text keeps only lines with the text in
// the field. A * at the beginning or end of the text matches anything.
func ParseMapping(text string) (m Mapping, err error) {
	if text == "" {
		return m, nil
	}
	m.fields = map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if field, want, is := strings.Cut(part, "=="); is {
			if field == "" {
				return Mapping{}, fmt.Errorf("%q has no field", part)
			}
			m.only = append(m.only, condition{field, want, false})
			continue
		}
		key, field, _ := strings.Cut(part, "=")
		switch {
		case field == "":
			return Mapping{}, fmt.Errorf("%q is not key=field or field==text", part)
		case !slices.Contains(keyNames[:mappable], key):
			return Mapping{}, fmt.Errorf("unknown key %q: use %s", key, strings.Join(keyNames[:mappable], ", "))
		case m.fields[key] != "":
			return Mapping{}, fmt.Errorf("duplicate key %s", key)
		}
		m.fields[key] = field
	}
	return m, nil
}

func (m *Mapping) empty() bool { return len(m.fields)+len(m.only) == 0 }

// orDefault fills in defaults. For logs of web servers it fills in each missing key, for other
// formats all keys if the mapping is empty.
func (m *Mapping) orDefault(f Format) *Mapping {
	out := &Mapping{fields: map[string]string{}, only: m.only}
	switch {
	case f == Common || f == Combined:
		for key, field := range map[string]string{
			"client": "user", "time": "time", "status": "status", "source": "host", "grant": "query.grant_type",
		} {
			out.fields[key] = field
		}
		if len(out.only) == 0 {
			out.only = []condition{{"method", "POST", false}, {"path", "*/token", false}}
		}
	case len(m.fields) == 0:
		for _, key := range keyNames[:mappable] {
			out.fields[key] = key
		}
	}
	for key, field := range m.fields {
		out.fields[key] = field
	}
	return out
}

// apply compiles a mapping. place assigns a slot to a field of the log, or returns an error.
func (p *parser) apply(m *Mapping, place func(field string, slot int) error) error {
	slots := map[string]int{}
	slotOf := func(purpose, field string) (int, error) {
		if slots[field] == 0 {
			if err := place(field, len(slots)+1); err != nil {
				return 0, fmt.Errorf("mapping: %s: %w", purpose, err)
			}
			slots[field] = len(slots) + 1
		}
		return slots[field], nil
	}
	var err error
	for key, name := range keyNames[:mappable] {
		field := m.fields[name]
		if field == "" && (key == keyClient || key == keyTime) {
			return fmt.Errorf("mapping: %s is missing: add %s=FIELD", name, name)
		}
		if field == "" {
			continue
		}
		if p.slot[key], err = slotOf(name, field); err != nil {
			return err
		}
	}
	for _, c := range m.only {
		slot, err := slotOf(c.field+"=="+c.text, c.field)
		if err != nil {
			return err
		}
		c.not = !c.not
		p.rules = append(p.rules, compiledRule{effect{problem: skip}, []wanted{{slot, c}}})
	}
	p.scanner = newScanner(len(slots) + 1)
	p.missing = &problem{purposeOf("client", m.fields["client"]), "is missing"}
	p.noTime, p.badTime = timeProblems(purposeOf("time", m.fields["time"]))
	return nil
}

// purposeOf returns the name of a field, and its purpose if that is not clear from the name.
func purposeOf(key, field string) string {
	if strings.TrimPrefix(field, ".") == key {
		return field
	}
	return key + " (field " + field + ")"
}

// timeProblems returns the problems of a line without a time, and with an invalid one.
func timeProblems(field string) (missing, invalid *problem) {
	return &problem{field, "is missing"}, &problem{field, "is not a time with a date"}
}

// mapJSON prepares for lines of JSON.
func (p *parser) mapJSON(m *Mapping) error {
	p.root, p.decode = &node{}, p.decodeJSON
	p.foreign = &problem{wholeLine, "has none of the wanted fields"}
	return p.apply(m.orDefault(JSON), func(path string, slot int) error { return p.root.add(path, slot, 0) })
}
