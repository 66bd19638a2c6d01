package cli

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// What was shed has columns where anything was, and a table of its own.
func TestTopShowsWhatWasShed(t *testing.T) {
	server, asked := answering(t, map[string]string{
		"/top": `{"since":"2026-03-01T11:50:00Z","talkers":[{"client_id":"shop","allowed":20,"shed":7},{"client_id":"app","off":4,"would_shed":2}]}`,
	})
	flags := asOperator(server)
	stdout, stderr, status := run(t, "", append([]string{"limits", "top", "--shed"}, flags...)...)
	check.Equal(t, "status", status, command.ExitOK)
	check.Equal(t, "errors", stderr, "")
	check.Equal(t, "asked", (*asked)[0], "/top?limit=20&sort=shed")
	check.Equal(t, "table", table(stdout), "CLIENT DECIDED BY LIMITS SHED WOULD SHED\nshop 20 7 0\napp 4 0 2\n\nrequests counted since 2026-03-01T11:50:00Z\n")

	stdout, _, _ = run(t, "", append([]string{"limits", "top"}, flags...)...)
	check.Equal(t, "columns", table(stdout)[:len(shedColumns)], shedColumns)
}

const shedColumns = `CLIENT REQUESTS ALLOWED DENIED WOULD DENY REUSED WOULD REUSE SHED WOULD SHED
shop 27 20 0 0 0 0 7 0
app 4 4 0 0 0 0 0 2
`

func TestTopWithNothingShed(t *testing.T) {
	server, _ := answering(t, map[string]string{"/top": `{"since":"2026-03-01T11:50:00Z","talkers":[]}`})
	_, stderr, status := run(t, "", "limits", "top", "--shed", "--token", "x", "--issuer", "http://127.0.0.1", "--server", server)
	check.Equal(t, "status", status, command.ExitOK)
	check.Equal(t, "note", stderr, "No client had requests refused because of overload.\n")
}
