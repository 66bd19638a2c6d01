package ratelimit

import "strconv"

// FieldNames are the names of the header fields of draft-ietf-httpapi-ratelimit-headers and of
// their parameters.
type FieldNames struct {
	Policy string // field with one item per limit
	Quota  string // its parameter for the requests per window
	Window string // its parameter for the length of the window, in seconds

	Limit     string // field with the state of each limit
	Available string // its parameter for the remaining requests
	Until     string // its parameter for the seconds until more are available
}

// draft is a version of the draft that has its own names.
type draft string

const (
	// draft08 covers drafts 08 to 11.
	draft08 draft = "08"
	// proposed is an unpublished proposal for the next draft. It renames r to a, and t to w. The
	// meaning changes too: w next to a is an effective window, not the time until more requests are
	// available.
	proposed draft = "proposed"
)

// namesOf maps each draft to its names.
var namesOf = map[draft]FieldNames{
	draft08:  {Policy: "RateLimit-Policy", Quota: "q", Window: "w", Limit: "RateLimit", Available: "r", Until: "t"},
	proposed: {Policy: "RateLimit-Policy", Quota: "q", Window: "w", Limit: "RateLimit", Available: "a", Until: "w"},
}

// spoken is the draft to use. To follow a later draft, change it here. Change the values too if the
// draft gives them another meaning: this package writes values as defined by draft 08. See
// [proposed].
const spoken = draft08

var fields = fieldsOf(spoken)

// Fields returns the names of the response fields, with their capitals, and of their parameters.
func Fields() FieldNames { return fields.FieldNames }

// fieldWriter writes the values of the fields.
type fieldWriter struct {
	FieldNames
	quota, window, available, until string // names with the separators around them
}

func fieldsOf(d draft) fieldWriter {
	n := namesOf[d]
	return fieldWriter{n, ";" + n.Quota + "=", ";" + n.Window + "=", ";" + n.Available + "=", ";" + n.Until + "="}
}

// policy returns the value of the RateLimit-Policy field.
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

// limit returns the value of the RateLimit field.
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
