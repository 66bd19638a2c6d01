package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestPresets: a preset is given to a client, tried, and made a tier of. Its limits are written out; a list that it
// has not stays.
func TestPresets(t *testing.T) {
	s := newLimitsServer(t)
	stdout, _ := s.limits(0, "presets")
	has(t, table(stdout), "PRESET USER LIMITS CLIENT LIMITS SHARED LIMITS ABOUT\n", "okta 4/1s,grants=refresh_token+password - - Okta: ", "https://developer.okta.com/",
		"ebay 10000/24h,name=codes,grants=authorization_code 50000/24h,name=refreshes,grants=refresh_token 1000/24h - eBay: ")
	var all adminapi.Presets
	runJSON(t, &all, "", s.args("presets")...)
	check.Equal(t, "presets", len(all.Presets), 5)

	s.limits(0, "set shop --client 7/60s --yes")
	s.limits(0, "set shop --preset okta --note n --yes")
	s.limits(0, "set batch --preset auth0-free --yes")
	s.limits(0, "set --tier partners --preset zoho --yes")
	s.limits(0, "candidate set --preset ebay")
	for args, parts := range map[string][]string{
		"get shop":            {"user limits 4/1s,grants=refresh_token+password changed here", "client limits 7/60s changed here", "note n"},
		"get batch":           {"user limits 30/1s 300/60s changed here", "client limits 30/1s 300/60s changed here", "total limits 30/1s,name=total-per-second 300/60s,name=total-per-minute changed here"},
		"get --tier partners": {"user limits 10/10m,grants=refresh_token tier", "client limits - all clients"},
		"get --candidate":     {"user limits 10000/24h,name=codes,grants=authorization_code ", "client limits 1000/24h"},
	} {
		stdout, _ := s.limits(0, args)
		has(t, table(stdout), parts...)
	}
	stdout, _ = s.limits(0, "export")
	if strings.Contains(stdout, "okta") {
		t.Errorf("what is set refers to a preset:\n%s", stdout)
	}

	before := s.version()
	for args, says := range map[string]string{
		"set shop --preset oktta":                     `--preset: "oktta" is not one of auth0-free, ebay, entra, okta, zoho`,
		"set shop --preset=":                          "--preset is empty",
		"set shop --preset okta --user 1/60s":         "--preset cannot be used",
		"set shop --for-user ada --preset okta":       "--preset applies to the whole client",
		"set --tier partners --preset okta --limit x": "--preset cannot be used",
		"presets okta":                                "okta",
	} {
		_, stderr := s.limits(2, args)
		has(t, stderr, says)
	}
	check.Equal(t, "changes by what was refused", s.version(), before)
}

// TestWrongLimitsAreRefusedAtOnce: every flag and everything in it, with its place.
func TestWrongLimitsAreRefusedAtOnce(t *testing.T) {
	flags, asked := readAPI(t)
	args := "limits set shop --user 1/60s --user ten/60,burst=5 --user 0/1s,frames=61 --client x --limit 1/1s --window 60s --preset okta"
	stderr := runFails(t, command.ExitUsage, "", "", append(strings.Fields(args), flags...)...)
	check.Equal(t, "refused", strings.Split(strings.TrimSpace(strings.ReplaceAll(stderr, "oauth-server: ", "")), "\n"), []string{
		"--requests needs --window, and --window needs --requests",
		`--user[1].requests: "ten" is not a number of requests`,
		`--user[1].window: "60" is not a duration with a unit, such as 60s`,
		`--user[1]: unknown option "burst": the options are name, frames, algorithm, soft, on_outage, strict, lease_wait and grants`,
		`--user[2].requests: 0 is not between 1 and 1000000000`,
		`--user[2].frames: 61 is not between 1 and 60`,
		"--limit and --user cannot be used together",
		`--client[0]: limit "x": expected REQUESTS/WINDOW, such as 10/60s`,
		"--limit and --client cannot be used together",
		"--preset cannot be used together with flags for limits",
	})
	check.Equal(t, "asked", *asked, []string{})
}

// TestPresetIsCompleted: with what it is, for every command that takes one.
func TestPresetIsCompleted(t *testing.T) {
	raw, err := json.Marshal(adminapi.Presets{Presets: []adminapi.Preset{{Name: "okta", About: "Okta."}, {Name: "zoho", About: "Zoho."}}})
	check.OK(t, err)
	server, asked := answering(t, map[string]string{"/presets": string(raw)})
	for _, name := range []string{"set shop", "set --tier gold", "candidate set shop"} {
		var out bytes.Buffer
		c := &command.Env{Out: &out, ErrOut: &out, Environ: []string{"OAUTH_SERVER=" + server, "OAUTH_TOKEN=x", "OAUTH_ISSUER=http://127.0.0.1"}}
		check.Equal(t, "status", execute(t.Context(), c, append(append([]string{"__complete", "limits"}, strings.Fields(name)...), "--preset", "")), command.ExitOK)
		offered, _, _ := strings.Cut(out.String(), ":4")
		check.Equal(t, "offered after "+name, offered, "okta\tOkta.\nzoho\tZoho.\n")
	}
	check.Equal(t, "asked", slices.Compact(*asked), []string{"/presets?"}) // a server refuses a query
}

// TestPresetForSomeGrants: that requests of the others are not limited by user any more is said, and needs no confirmation.
func TestPresetForSomeGrants(t *testing.T) {
	s := newLimitsServer(t)
	s.limits(0, "set shop --user 2/1s --yes")
	_, stderr := s.limits(0, "set shop --preset okta")
	has(t, stderr, "Requests of authorization_code are no longer limited per user.")
}
