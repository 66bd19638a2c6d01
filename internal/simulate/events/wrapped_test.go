package events_test

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// logins are events of Keycloak, one in an element.
func logins(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(`{"time":%d,"type":"CLIENT_LOGIN","realmId":"r","clientId":"c%d"}`, 1_700_000_000_000+1000*i, i))
	}
	return out
}

// Records are found however an API or a shipper puts them together.
func TestRecordsTogether(t *testing.T) {
	t.Parallel()
	all := logins(50)
	for name, text := range map[string]string{
		"one in a line":                 "{\"value\":[\n" + strings.Join(all, ",\n") + "\n]}\n",
		"one in a line, after a member": "{\"@odata.context\":\"x\",\"records\":[\n" + strings.Join(all, ",\n") + "\n]}\n",
		"all in one line":               `{"entries":[` + strings.Join(all, ",") + `]}`,
		"two answers":                   "{\"value\":[\n" + strings.Join(all[:20], ",\n") + "\n]}\n{\"value\":[\n" + strings.Join(all[20:], ",\n") + "\n]}\n",
		"nothing between them":          strings.Join(all, ""),
		"a blank between them":          strings.Join(all, " ") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := readAll(t, events.Options{Stdin: strings.NewReader(text)}, "-")
			check.Equal(t, "lines", summary(r.Lines()), "50 read, 0 skipped, 0 unread")
		})
	}
}

// A first line that is cut off is one line, whatever follows.
func TestFirstLineCutOff(t *testing.T) {
	t.Parallel()
	_, r := readAll(t, events.Options{Stdin: strings.NewReader(`{"a":"b` + "\n" + strings.Join(logins(3), "\n"))}, "-")
	check.Equal(t, "lines", summary(r.Lines()), "3 read, 0 skipped, 1 unread: -:1: line: is not valid JSON")
}
