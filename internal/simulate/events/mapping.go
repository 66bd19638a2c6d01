package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/simulate/traffic"
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

// condition is a text that lines must have in a field. Other lines are skipped.
type condition struct{ field, text string }

// The keys of a mapping.
const (
	keyClient = iota
	keyTime
	keyUser
	keyGrant
	keyStatus
	keySource
	keyScope
	keyLifetime
	keyCount
)

var keyNames = [keyCount]string{"client", "time", "user", "grant", "status", "source", "scope", "lifetime"}

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
			m.only = append(m.only, condition{field, want})
			continue
		}
		key, field, _ := strings.Cut(part, "=")
		switch {
		case field == "":
			return Mapping{}, fmt.Errorf("%q is not key=field or field==text", part)
		case !slices.Contains(keyNames[:], key):
			return Mapping{}, fmt.Errorf("unknown key %q: use %s", key, strings.Join(keyNames[:], ", "))
		case m.fields[key] != "":
			return Mapping{}, fmt.Errorf("the key %s is there twice", key)
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
			out.only = []condition{{"method", "POST"}, {"path", "*/token"}}
		}
	case len(m.fields) == 0:
		for _, key := range keyNames {
			out.fields[key] = key
		}
	}
	for key, field := range m.fields {
		out.fields[key] = field
	}
	return out
}

// mapped reads requests by a mapping.
type mapped struct {
	*fields
	slot    [keyCount]int // -1: absent
	only    []wanted
	missing [keyCount]*problem // of client and time
	badTime *problem
}

// wanted is a condition on the value in a slot.
type wanted struct {
	slot                int
	text                string
	anyBefore, anyAfter bool
}

// newMapped compiles a mapping. place returns the slot of a field, or an error.
func newMapped(m *Mapping, place func(field string) (slot int, err error)) (*mapped, error) {
	out := &mapped{}
	for key, name := range keyNames {
		out.slot[key] = -1
		field := m.fields[name]
		if field == "" {
			if key == keyClient || key == keyTime {
				return nil, fmt.Errorf("mapping: %s is missing: add %s=FIELD", name, name)
			}
			continue
		}
		slot, err := place(field)
		if err != nil {
			return nil, fmt.Errorf("mapping: %s: %w", name, err)
		}
		out.slot[key] = slot
		out.missing[key] = &problem{fieldOf(name, field), "is missing"}
	}
	out.badTime = &problem{fieldOf("time", m.fields["time"]), "is not a time"}
	for _, c := range m.only {
		slot, err := place(c.field)
		if err != nil {
			return nil, fmt.Errorf("mapping: %s==%s: %w", c.field, c.text, err)
		}
		w := wanted{slot: slot, text: c.text}
		w.text, w.anyBefore = strings.CutPrefix(w.text, "*")
		w.text, w.anyAfter = strings.CutSuffix(w.text, "*")
		out.only = append(out.only, w)
	}
	return out, nil
}

// fieldOf returns the name of a field, and its purpose if that is not clear from the name.
func fieldOf(key, field string) string {
	if strings.TrimPrefix(field, ".") == key {
		return field
	}
	return key + " (field " + field + ")"
}

// request reads a request from the values of a line.
func (m *mapped) request(r *traffic.Request) *problem {
	for i := range m.only {
		if w := &m.only[i]; !w.matches(string(m.text(w.slot))) {
			return skip
		}
	}
	if !m.has(m.slot[keyTime]) {
		return m.missing[keyTime]
	}
	if bad := m.time(r, m.missing[keyTime], m.badTime, m.slot[keyTime]); bad != nil {
		return bad
	}
	r.Client, r.Grant = m.key(keyClient), m.key(keyGrant)
	if r.Grant != "client_credentials" {
		r.User = m.key(keyUser)
	}
	r.Scope, r.Failed = m.key(keyScope), failed(m.key(keyStatus))
	if slot := m.slot[keySource]; slot >= 0 {
		r.Source = m.strings.addr(m.text(slot))
	}
	if slot := m.slot[keyLifetime]; slot >= 0 {
		r.Lifetime = m.seconds(slot).Round(time.Second)
	}
	return clientOr(r, m.missing[keyClient])
}

func (m *mapped) key(key int) string {
	if slot := m.slot[key]; slot >= 0 {
		return m.string(slot)
	}
	return ""
}

func (w *wanted) matches(text string) bool {
	switch {
	case w.anyBefore && w.anyAfter:
		return strings.Contains(text, w.text)
	case w.anyBefore:
		return strings.HasSuffix(text, w.text)
	case w.anyAfter:
		return strings.HasPrefix(text, w.text)
	}
	return text == w.text
}

// failed reports whether a request with that status failed for another reason than a limit. Such a
// status is an HTTP status of 400 or higher except 429, with or without its reason, or a word that
// does not mean success.
func failed(status string) bool {
	status = strings.Trim(status, " \"'+")
	code := status
	if strings.HasPrefix(status, "HTTP/") {
		_, code, _ = strings.Cut(status, " ")
	}
	if n, ok := statusCode(code); ok {
		return n >= 400 && n != 429 || n > 0 && n < 100
	}
	switch strings.ToLower(status) {
	case "", "-", "ok", "success", "successful", "succeeded", "true", "allow", "allowed", "none", "null", "nan":
		return false
	}
	return true
}

// statusCode reads a number, which text may follow as in 200 OK and 200-OK, or a class of numbers,
// such as 2xx.
func statusCode(text string) (n int, ok bool) {
	if len(text) == 3 && strings.EqualFold(text[1:], "xx") {
		n, ok = digits([]byte(text[:1]))
		return n * 100, ok
	}
	code, _, _ := strings.Cut(text, " ")
	if n, ok = whole([]byte(code)); ok || len(code) < 4 || !strings.ContainsAny(code[3:4], "-:;,./_(") {
		return n, ok
	}
	return digits([]byte(code[:3]))
}

// newMappedJSON returns the parser of lines of JSON.
func newMappedJSON(c *shared) (parser, error) {
	l := newLayout()
	m, err := newMapped(c.Mapping.orDefault(JSON), func(path string) (int, error) {
		slot := l.slots
		l.slots++
		_, err := l.add(slot, path)
		return slot, err
	})
	if err != nil {
		return nil, err
	}
	m.fields = newFields(l, c)
	return mappedJSON{m}, nil
}

type mappedJSON struct{ *mapped }

var errNoFields = &problem{wholeLine, "has none of the fields that are wanted"}

func (m mappedJSON) parse(line []byte, r *traffic.Request) *problem {
	if bad := m.pick(line); bad != nil {
		return bad
	}
	if !slices.ContainsFunc(m.values, value.present) {
		return errNoFields
	}
	return m.request(r)
}
