package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/check"
)

// TestPagesOfOneState: what is exported is of one state, also if it changes while its pages are read.
func TestPagesOfOneState(t *testing.T) {
	var asked []string
	version := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		if asked = append(asked, after); len(asked) == 2 {
			version = 2
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
		next := map[string]string{"": "policies/a", "policies/a": "policies/b"}[after]
		if next == "policies/b" {
			_, _ = fmt.Fprintf(w, `{"version":%d,"targets":[{"target":"policies/b","value":{"note":"of %d"}}]}`, version, version)
			return
		}
		_, _ = fmt.Fprintf(w, `{"version":%d,"targets":[{"target":"policies/a","value":{"note":"of %d"}}],"next":%q}`, version, version, next)
	}))
	t.Cleanup(server.Close)
	stdout := runOK(t, "", "limits", "export", "--token", "x", "--issuer", "http://127.0.0.1", "--server", server.URL)
	has(t, stdout, "as of change 2.", "  a:\n    note: of 2\n  b:\n    note: of 2\n")
	check.Equal(t, "asked", asked, []string{"", "policies/a", "", "policies/a"})
}
