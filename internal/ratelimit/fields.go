package ratelimit

import "strconv"

// FieldNames are the names that draft-ietf-httpapi-ratelimit-headers gives to its header fields and to their
// parameters.
type FieldNames struct {
	Policy string // field with one item for each limit
	Quota  string // its parameter for the requests of a window
	Window string // its parameter for the length of the window, in seconds

	Limit     string // field with how each limit stands
	Available string // its parameter for the requests that are left
	Until     string // its parameter for the seconds until there are more
}

// draft is a version of the draft, as far as it has names of its own.
type draft string

const (
	// draft08 is drafts 08 to 11.
	draft08 draft = "08"
	// proposed is what is proposed for the one after, and not published: r becomes a, and t becomes w. Meanings
	// change with the names: w beside a is an effective window, and not the time until more requests are left.
	proposed draft = "proposed"
)

// namesOf has the names of every draft.
var namesOf = map[draft]FieldNames{
	draft08:  {Policy: "RateLimit-Policy", Quota: "q", Window: "w", Limit: "RateLimit", Available: "r", Until: "t"},
	proposed: {Policy: "RateLimit-Policy", Quota: "q", Window: "w", Limit: "RateLimit", Available: "a", Until: "w"},
}

// spoken is the draft whose names are sent. To follow a later draft, change it here, and the values too where the
// draft has given them another meaning: those of this package are of draft 08. See [proposed].
const spoken = draft08

var fields = fieldsOf(spoken)

// Fields returns the names of the fields of answers, with their capitals, and of their parameters.
func Fields() FieldNames { return fields.FieldNames }

// fieldWriter writes the values of the fields.
type fieldWriter struct {
	FieldNames
	quota, window, available, until string // with what stands around the names
}

func fieldsOf(d draft) fieldWriter {
	n := namesOf[d]
	return fieldWriter{n, ";" + n.Quota + "=", ";" + n.Window + "=", ";" + n.Available + "=", ";" + n.Until + "="}
}

// policy returns the value of the field for the policy.
func (w *fieldWriter) policy(limits []Limit) string {
	var b []byte
	for i := range limits {
		b = appendName(b, i, limits[i].Name)
		b = append(b, w.quota...)
		b = strconv.AppendInt(b, limits[i].Requests, 10)
		b = append(b, w.window...)
		b = strconv.AppendInt(b, ceilSeconds(limits[i].Window.Milliseconds()), 10)
	}
	return string(b)
}

// limit returns the value of the field for how the limits stand.
func (w *fieldWriter) limit(d *Decision) string {
	b := make([]byte, 0, 64)
	first := d.firstApplied()
	for i := first; i < d.count(); i++ {
		if !d.applies(i) {
			continue
		}
		b = appendName(b, i-first, d.rule(i).Name)
		b = append(b, w.available...)
		b = strconv.AppendUint(b, uint64(d.status[i].remaining), 10)
		b = append(b, w.until...)
		b = strconv.AppendUint(b, uint64(d.status[i].reset), 10)
	}
	return string(b)
}

// appendName begins item i of a list of structured fields (RFC 9651) with its name.
func appendName(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}
