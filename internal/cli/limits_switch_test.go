package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/cli/command"

	"github.com/google/go-cmp/cmp"
)

// operatorAPI is an API that accepts every change and keeps the last one as "PATH BODY".
func operatorAPI(t *testing.T) (flags string, last *string) {
	t.Helper()
	last = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/clients"):
			_, _ = w.Write([]byte(`{"clients":[{"client_id":"shop"},{"client_id":"report"}]}`))
			return
		case r.Method == http.MethodPatch && !r.URL.Query().Has("validate"):
			*last = strings.TrimPrefix(r.URL.Path, "/admin/v1") + " " + string(body)
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return " --token x --issuer http://127.0.0.1 --server " + server.URL, last
}

func TestSwitches(t *testing.T) {
	flags, last := operatorAPI(t)
	for _, tt := range []struct{ args, want, stdout, stderr string }{
		{"dry-run on", `/settings {"mode":"dry_run"}`, "Dry-run is now on", ""},
		{"dry-run off", `/settings {"mode":"enforce"}`, "Dry-run is now off", ""},
		{"dry-run shop on", `/policies/shop {"mode":"dry_run"}`, "Dry-run is now on for shop", ""},
		{"dry-run shop off", `/policies/shop {"mode":"enforce"}`, "Dry-run is now off for shop", ""},
		// With a client named on or off, the last argument is the state.
		{"dry-run on off", `/policies/on {"mode":"enforce"}`, "Dry-run is now off for on", ""},
		{"dry-run off on", `/policies/off {"mode":"dry_run"}`, "Dry-run is now on for off", ""},
		{"dry-run on on", `/policies/on {"mode":"dry_run"}`, "Dry-run is now on for on", ""},
		{"trust shop on", `/policies/shop {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client shop is now trusted", ""},
		{"trust shop off", `/policies/shop {"trusted":false}`, "The client shop is no longer trusted", ""},
		{"trust shop", `/policies/shop {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client shop is now trusted", ""},
		{"trust off on", `/policies/off {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`, "The client off is now trusted", ""},
		{"trust on off", `/policies/on {"trusted":false}`, "The client on is no longer trusted", ""},

		{"dry-run shop", "", "", `oauth-server: limits dry-run: "shop" is neither on nor off; the order is [CLIENT] on|off`},
		{"dry-run shop maybe", "", "", `oauth-server: limits dry-run: "maybe" is neither on nor off; the order is [CLIENT] on|off`},
		{"dry-run on shop", "", "", `oauth-server: limits dry-run: the client comes before its state; write: oauth-server limits dry-run shop on`},
		{"dry-run maybe shop", "", "", `oauth-server: limits dry-run: "shop" is neither on nor off; the order is [CLIENT] on|off`},
		// A state without a client must not trust a client of that name.
		{"trust on", "", "", `oauth-server: limits trust: "on" is a state, and CLIENT is missing; write: oauth-server limits trust CLIENT on`},
		{"trust off", "", "", `oauth-server: limits trust: "off" is a state, and CLIENT is missing; write: oauth-server limits trust CLIENT off`},
		{"trust on shop", "", "", `oauth-server: limits trust: the client comes before its state; write: oauth-server limits trust shop on`},
		{"trust off shop", "", "", `oauth-server: limits trust: the client comes before its state; write: oauth-server limits trust shop off`},
		{"trust shop maybe", "", "", `oauth-server: limits trust: "maybe" is neither on nor off; the order is CLIENT [on|off]`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			*last = ""
			stdout, stderr, status := run(t, "", strings.Fields("limits "+tt.args+flags)...)
			if wrong := tt.want == ""; wrong != (status == command.ExitUsage) || wrong != (status != command.ExitOK) {
				t.Errorf("exit status %d", status)
			}
			if tt.stdout != "" {
				tt.stdout += "; every instance follows within two seconds."
			}
			if diff := cmp.Diff([]string{tt.want, tt.stdout, tt.stderr},
				[]string{*last, strings.TrimSpace(stdout), strings.TrimSpace(stderr)}); diff != "" {
				t.Errorf("change, stdout and stderr (-want +got):\n%s", diff)
			}
		})
	}
}

// A person reads what a change has changed, in a sentence.
func TestChangesAreSentences(t *testing.T) {
	flags, _ := operatorAPI(t)
	for _, tt := range []struct{ args, want string }{
		{"set --limit 5/60s", "The default limits are now set"},
		{"set shop --note x", "The policy of shop is now set"},
		{"unset", "The settings are now those of the configuration file"},
		{"unset shop", "The policy of shop is now that of the configuration file"},
		{"unset --field canary,mode", "The settings no longer set canary, mode"},
		{"unset shop --field mode", "The policy of shop no longer sets mode"},
		{"canary 5%", "Limits are now enforced on 5% of the clients"},
		{"candidate set shop --limit 5/60s", "The candidate for shop is now tried beside the live ones"},
		{"candidate promote", "The candidate for the default limits is now live"},
		{"unset shop --candidate", "The candidate for shop is no longer tried"},
		{"reset shop", "The counts of shop are now forgotten"},
		{"reset shop --user ada", "The counts of ada at shop are now forgotten"},
	} {
		stdout, stderr, status := run(t, "", strings.Fields("limits "+tt.args+flags)...)
		if want := tt.want + "; every instance follows within two seconds.\n"; stdout != want || stderr != "" || status != command.ExitOK {
			t.Errorf("limits %s: printed %q, want %q; exit status %d: %s", tt.args, stdout, want, status, stderr)
		}
	}
}

func TestSwitchCompletion(t *testing.T) {
	flags, _ := operatorAPI(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"dry-run", ""}, "shop report on off"},
		{[]string{"dry-run", "sh"}, "shop on off"}, // the shell drops what does not fit
		{[]string{"dry-run", "shop", ""}, "on off"},
		{[]string{"dry-run", "on", ""}, ""},
		{[]string{"dry-run", "shop", "on", ""}, ""},
		{[]string{"trust", ""}, "shop report"},
		{[]string{"trust", "shop", ""}, "on off"},
		{[]string{"trust", "on", ""}, "on off"},
		{[]string{"trust", "shop", "on", ""}, ""},
	} {
		all := append([]string{"__complete", "limits"}, strings.Fields(flags)...)
		stdout, _, status := run(t, "", append(all, tt.args...)...)
		offered, _, _ := strings.Cut(stdout, ":4\n")
		if got := strings.Join(strings.Fields(offered), " "); got != tt.want || status != command.ExitOK {
			t.Errorf("after %q: %q offered, want %q (exit status %d)", tt.args, got, tt.want, status)
		}
	}
}
