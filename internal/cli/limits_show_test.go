package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// answers are what [readAPI] answers, by path.
var answers = map[string]string{
	"/clients": `{"since":"2026-03-01T11:50:00Z","clients":[
		{"client_id":"app","client_id_issued_at":1,"client_name":"The Shop","source":"none","activity":{"allowed":9}},
		{"client_id":"report","client_id_issued_at":1,"labels":{"team":"payments","tier":"1"},"source":"none","activity":{"allowed":5,"denied":2}},
		{"client_id":"shop","client_id_issued_at":1,"labels":{"team":"payments"},"source":"api","effective":{"tier":"gold","overrides":3},"activity":{"allowed":20,"would_deny":1}}]}`,
	"/unregistered": `{"version":3,"unregistered":[{"client_id":"gone","source":"file","candidate":false,"effective":{"mode":"enforce","trusted":true}}]}`,
	"/top": `{"since":"2026-03-01T11:50:00Z","talkers":[{"client_id":"shop","allowed":20,"denied":5,"reused":3,"would_reuse":1,"issued":40,"wasted":30,"early_refreshes":2}],
		"near_limit":[{"client_id":"report","username":"ada","limit":{"requests":5,"window":"60s"},"usage":1,"free_at":"2026-03-01T13:00:30+01:00"},
			{"client_id":"shop","username":null,"limit":{"requests":50,"window":"60s"},"usage":0.5}],
		"denied":[{"client_id":"shop","username":"ada","user_hash":"h4sh","denied":3,"would_deny":1},{"client_id":"shop","username":null,"denied":1}],
		"denied_others":{"denied":1}}`,
	"/audit":                 `{"entries":[]}`,
	"/instances":             `{"instances":[]}`,
	"/clients/shop/counters": `{"counters":[]}`,
	"/clients/report":        `{"client_id":"report","labels":{"team":"payments","tier":"1"}}`,
	"/users":                 `{"users":[{"username":"ada"},{"username":"ann"}]}`,
	"/tiers":                 `{"tiers":[{"name":"gold","user":[{"requests":20,"window":"60s"}],"clients":2,"note":"n"},{"name":"silver","mode":"off"}]}`,
	"/tiers/gold":            `{"name":"gold","mode":"dry_run","user":[{"requests":20,"window":"60s"}],"over_limit":"reuse","ban":{"denials":5},"criticality":"sheddable","clients":2}`,
	"/policies/shop": `{"client_id":"shop","tier":"gold","client":[{"name":"per-second","requests":3,"window":"1s"}],"meta":{"source":"api"},"effective":{
		"mode":"dry_run","tier":"gold","overrides":3,"user":[{"requests":20,"window":"60s"}],"client":[{"name":"per-second","requests":3,"window":"1s"}],"over_limit":"reuse","ban":{"denials":5},"criticality":"sheddable"}}`,
	"/policies/shop/users": `{"client_id":"shop","overrides":[{"username":"ada","user":[{"requests":1,"window":"60s"}],"note":"noisy"},
		{"username":"bob","user":[{"requests":500,"window":"60s"}]}]}`,
	"/user-hash": `{"username":"ada","user_hash":"h4sh"}`,
	"/presets":   `{"presets":[{"name":"okta","about":"Okta."},{"name":"zoho","about":"Zoho."}]}`,
}

// readAPI is an API with a few clients. asked has the queries, and the flags lead to it.
func readAPI(t *testing.T) (flags []string, asked *[]string) {
	t.Helper()
	return answering(t, answers)
}

// answering is an admin API with these answers: by path, or by path and what a page begins after.
func answering(t *testing.T, answers map[string]string) (flags []string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/admin/v1")
		*asked = append(*asked, path+"?"+r.URL.RawQuery)
		if after := r.URL.Query().Get("after"); after != "" {
			path += " after " + after
		}
		_, _ = w.Write([]byte(answers[path]))
	}))
	t.Cleanup(server.Close)
	return asOperator(server.URL), asked
}

// Table brings the columns of a text down to single spaces.
func table(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return out.String()
}

// TestLimitsAreShown: what is asked for, and what is printed of the answers.
func TestLimitsAreShown(t *testing.T) {
	const (
		since  = "\nrequests counted since 2026-03-01T11:50:00Z\n"
		denied = `CLIENT USER HASH IN THE LOG DENIED WOULD DENY CANDIDATE DENIES
shop ada h4sh 3 1 0
shop (the client itself) - 1 0 0
shop (others) - 1 0 0
`
		ban    = "denials=5,within=1m,for=5m,factor=2,max=24h,forget=24h"
		total  = `"total":[{"name":"all","requests":9,"window":"60s"}]`
		source = `"source":[{"name":"per-address","requests":5,"window":"60s"}]`
	)
	shared := map[string]string{
		"/policies/shop": `{"client_id":"shop",` + total + `,"effective":{"mode":"enforce","user":[],"client":[],` + total + `,` + source + `},"meta":{"source":"api"}}`,
		"/clients/shop/counters": `{"client_id":"shop","counters":[{"client_id":"shop","total":true,"limit":{"name":"all","requests":9,"window":"60s"}},
			{"client_id":"shop","source":"2001:db8::/64","limit":{"name":"per-address","requests":5,"window":"60s"}}]}`,
		"/clients": `{"clients":[{"client_id":"shop","source":"api","effective":{"mode":"enforce",` + total + `,` + source + `}},
			{"client_id":"app","source":"api","effective":{"mode":"enforce"}}]}`,
		"/unregistered":    `{}`,
		"/tiers":           `{"tiers":[{"name":"gold",` + source + `},{"name":"plain"}]}`,
		"/candidates/shop": `{"client_id":"shop",` + source + `}`,
	}
	shed := map[string]string{
		"/top": `{"since":"2026-03-01T11:50:00Z","talkers":[{"client_id":"shop","allowed":20,"shed":7},{"client_id":"app","off":4,"would_shed":2}]}`,
	}
	bans := map[string]string{
		"/bans": `{"bans":[{"client_id":"shop","username":"ada","active":true,"not_enforced":true,"bans_before":2,"since":"2026-03-01T12:00:00Z",` +
			`"until":"2026-03-01T12:20:00Z","forgotten_at":"2026-03-02T12:20:00Z"}],"next":"shop ada"}`,
		"/bans after shop ada": `{"bans":[{"client_id":"shop","active":false,"bans_before":0,"since":"2026-03-01T11:00:00Z","until":"2026-03-01T11:01:00Z",` +
			`"forgotten_at":"2026-03-02T11:05:00Z","lifted_at":"2026-03-01T11:01:00Z"}]}`,
	}
	for _, tt := range []struct {
		answers map[string]string
		args    string
		asked   string // by the last request; empty: not compared
		note    string // on standard error
		want    string // …: and more before or after it
	}{
		{answers, "top shop --limit 7", "/top?client_id=shop&limit=7", "", `CLIENT REQUESTS ALLOWED DENIED WOULD DENY REUSED WOULD REUSE
shop 29 20 5 0 3 1

CLIENT USER LIMIT ESTIMATE USED NEXT FREE
report ada 5/60s 0.0 100% 12:00:30Z
shop (the client itself) 50/60s 0.0 50% now

` + denied + since},
		{answers, "top --denied", "/top?limit=20", "", denied + "\nCLIENT REUSED WOULD REUSE\nshop 3 1\n" + since},
		{answers, "top shop --counters --limit 3", "/clients/shop/counters?limit=3", "", "CLIENT USER …"},
		{answers, "top --waste --limit 7", "/top?limit=7&sort=wasted", "", "CLIENT TOKENS ISSUED WASTED SHARE EARLY REFRESHES REUSED\nshop 40 30 75% 2 3\n" + since},
		{answers, "status --hash Ada", "/user-hash?username=Ada", "", "h4sh\n"},
		{answers, "list", "", "", "… changed here, tier gold, 3 users' own …"},
		{answers, "list --tiers", "", "", "TIER MODE USER LIMITS CLIENT LIMITS CLIENTS NOTE\ngold - 20/60s - 2 n\nsilver off - - 0\n"},
		{answers, "list --tiers -o json", "", "", `…"clients": 2,…`},
		{answers, "get --tier gold", "", "", `SETTING VALUE FROM
mode dry_run tier
user limits 20/60s tier
client limits - all clients
over limit reuse tier
ban ` + ban + ` tier
criticality sheddable tier
hide headers no all clients
clients 2
note
`},
		{answers, "get shop", "", "", `SETTING VALUE FROM
mode dry_run tier gold
trusted no all clients
user limits 20/60s tier gold
client limits 3/1s changed here
over limit reuse tier gold
ban ` + ban + ` tier gold
criticality sheddable tier gold
hide headers no all clients
user ada 1/60s changed here noisy
user bob 500/60s changed here
and 1 more
note
`},
		{map[string]string{
			"/clients": `{"since":"2026-03-01T11:50:00Z","clients":[{"client_id":"app","source":"none","activity":{"allowed":9}},
				{"client_id":"shop","source":"none","activity":{"allowed":20,"reused":3,"would_reuse":1}}]}`,
			"/unregistered": `{"unregistered":[]}`,
		}, "list", "", "", "CLIENT MODE USER LIMITS CLIENT LIMITS FROM ALLOWED DENIED WOULD DENY CANDIDATE DENIES REUSED WOULD REUSE\n" +
			"app - - default 9 0 0 - 0 0\nshop - - default 20 0 0 - 3 1\n" + since},
		{shed, "top --shed", "/top?limit=20&sort=shed", "", "CLIENT DECIDED BY LIMITS SHED WOULD SHED\nshop 20 7 0\napp 4 0 2\n" + since},
		{shed, "top", "", "", "CLIENT REQUESTS ALLOWED DENIED WOULD DENY REUSED WOULD REUSE SHED WOULD SHED\nshop 27 20 0 0 0 0 7 0\napp 4 4 0 0 0 0 0 2\n…"},
		{
			map[string]string{"/top": `{"since":"2026-03-01T11:50:00Z","talkers":[]}`},
			"top --shed", "",
			"No client had requests refused because of overload.\n", since,
		},
		{shared, "get shop", "", "", "…\ntotal limits 9/60s,name=all changed here\nsource limits 5/60s,name=per-address all clients\n…"},
		{shared, "top shop --counters", "", "", "…\nshop (all users) 9/60s,name=all …\nshop (from 2001:db8::/64) 5/60s,name=per-address …"},
		{shared, "list", "", "", "CLIENT … CLIENT LIMITS SHARED LIMITS FROM …\nshop enforce - - total 9/60s,name=all; source 5/60s,name=per-address changed here …\napp enforce - - - changed here …"},
		{
			shared, "list --tiers", "", "",
			"TIER MODE USER LIMITS CLIENT LIMITS SHARED LIMITS CLIENTS NOTE\ngold - - - source 5/60s,name=per-address 0\nplain - - - - 0\n",
		},
		{map[string]string{"/tiers": `{"tiers":[{"name":"plain"}]}`}, "list --tiers", "", "", "TIER MODE USER LIMITS CLIENT LIMITS CLIENTS NOTE\nplain - - - 0\n"},
		{shared, "get shop --candidate", "", "", "…\nclient limits -\nsource limits 5/60s,name=per-address\n…"},
		{bans, "bans shop --ended", "/bans?after=shop+ada&client_id=shop&ended=true&limit=1000", "", `CLIENT USER SINCE UNTIL FOR BANS BEFORE
shop ada 2026-03-01T12:00:00Z 2026-03-01T12:20:00Z, not enforced by the policy now 20m 2
shop - 2026-03-01T11:00:00Z 2026-03-01T11:01:00Z, lifted 1m 0
`},
		{bans, "bans --dry-run -o json", "/bans?after=shop+ada&limit=1000&mode=dry_run", "", `{…"username": "ada",…"lifted_at"…}…`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			flags, asked := answering(t, tt.answers)
			stdout, stderr, status := run(t, "", append(strings.Fields("limits "+tt.args), flags...)...)
			check.Equal(t, "status", status, command.ExitOK)
			check.Equal(t, "note", stderr, tt.note)
			if !strings.Contains(tt.want, "…") {
				check.Equal(t, "output", table(stdout), tt.want)
			}
			pattern := strings.ReplaceAll(regexp.QuoteMeta(tt.want), "…", "(?s:.*)")
			if !regexp.MustCompile("^" + pattern + "$").MatchString(table(stdout)) {
				t.Errorf("it prints\n%s\nwant\n%s", table(stdout), tt.want)
			}
			if tt.asked != "" {
				check.Equal(t, "asked for", (*asked)[len(*asked)-1], tt.asked)
			}
		})
	}
}

func TestListIsSortedAndFiltered(t *testing.T) {
	flags, _ := readAPI(t)
	for args, want := range map[string]string{
		"":                               "app report shop gone",
		"--sort name":                    "app report shop gone",
		"--sort requests":                "shop app report gone",
		"--sort denied":                  "report shop app gone",
		"--sort usage":                   "report shop app gone",
		"--filter SHOP":                  "app shop", // by its name, and by its ID
		"--filter shop --sort requests":  "shop app",
		"--filter nothing --sort denied": "",
	} {
		stdout := runOK(t, "", append(append([]string{"limits", "list"}, flags...), strings.Fields(args)...)...)
		rows, ok := strings.CutSuffix(stdout, "\n\nrequests counted since 2026-03-01T11:50:00Z\n")
		check.Equal(t, "says since when", ok, true)
		var got []string
		for _, line := range strings.Split(rows, "\n")[1:] {
			got = append(got, strings.Fields(line)[0])
		}
		check.Equal(t, args, strings.Join(got, " "), want)
	}
	var page struct {
		Since   time.Time
		Clients []struct {
			ID string `json:"client_id"`
		}
	}
	runJSON(t, &page, "", append([]string{"limits", "list", "--sort", "requests"}, flags...)...)
	if len(page.Clients) != 3 || page.Clients[0].ID != "shop" || page.Since.IsZero() {
		t.Errorf("as JSON: %+v", page)
	}
}

func TestAuditOfNothing(t *testing.T) {
	flags, _ := readAPI(t)
	for target, want := range map[string]string{
		"":              "There are no changes.\n",
		"policies/shop": "There are no changes of policies/shop.\n",
		"settings":      "There are no changes of settings.\n",
	} {
		stdout, stderr, status := run(t, "", append([]string{"limits", "audit", "--target", target}, flags...)...)
		if stdout != "" || stderr != want || status != command.ExitOK {
			t.Errorf("--target %q: printed %q and %q, status %d; want %q", target, stdout, stderr, status, want)
		}
	}
	for _, target := range []string{"foo", "policies/"} {
		want := "oauth-server: --target: " + strconv.Quote(target) + " is not a target: use settings, policies/CLIENT,"
		for output, entries := range map[string]string{"text": "", "json": `"entries": []`} {
			stdout, stderr, status := run(t, "", append([]string{"limits", "audit", "--target", target, "-o", output}, flags...)...)
			if (stdout == "") != (entries == "") || !strings.Contains(stdout, entries) || !strings.HasPrefix(stderr, want) || status != command.ExitUsage {
				t.Errorf("--target %q as %s: printed %q and %q, status %d; want %q", target, output, stdout, stderr, status, want)
			}
		}
	}
}

// watch runs a command line with --watch that is interrupted after so many views.
func watch(t *testing.T, terminal bool, views int, args ...string) (stdout string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &command.Env{In: strings.NewReader(""), Out: &out, ErrOut: &errs, Terminal: terminal, Environ: []string{"TERM=xterm"}}
	c.Pause = func(_ context.Context, d time.Duration) bool {
		if d != 2*time.Second {
			t.Errorf("a pause of %v", d)
		}
		views--
		return views > 0
	}
	status = execute(t.Context(), c, append(args, "--watch"))
	if errs.Len() > 0 {
		t.Log(errs.String())
	}
	return out.String(), status
}

func TestWatch(t *testing.T) {
	flags, _ := readAPI(t)
	args := append([]string{"limits", "top", "--denied"}, flags...)
	once, _, _ := run(t, "", args...)
	if got, status := watch(t, false, 3, args...); got != once+"\n"+once+"\n"+once || status != command.ExitOK {
		t.Errorf("status %d, not a terminal:\n%s", status, got)
	}
	const clear = "\x1b[H\x1b[2J"
	got, _ := watch(t, true, 2, args...)
	if strings.Count(got, clear) != 2 || !strings.HasPrefix(got, clear) || strings.Count(got, ", every 2s\n\n") != 2 {
		t.Errorf("on a terminal: %q", got)
	}
	if strings.Contains(got, "\x1b[3J") {
		t.Errorf("clears what was scrolled away: %q", got)
	}
	single, _, _ := run(t, "", append([]string{"-o", "json"}, args...)...)
	if got, _ := watch(t, true, 2, append([]string{"-o", "json"}, args...)...); got != single+single {
		t.Errorf("as JSON: %q", got)
	}
	if got, status := watch(t, false, 3, "limits", "top", "--denied", "--token", "x", "--server", "http://127.0.0.1:1"); got != "" || status != command.ExitFailed {
		t.Errorf("without a server: status %d, %q", status, got)
	}
	for _, line := range []string{"list", "top", "top shop --counters", "status"} {
		if _, status := watch(t, false, 1, append(append([]string{"limits"}, strings.Fields(line)...), flags...)...); status != command.ExitOK {
			t.Errorf("limits %s --watch: status %d", line, status)
		}
	}
}

func TestColours(t *testing.T) {
	flags, _ := readAPI(t)
	plain, _, _ := run(t, "", append([]string{"limits", "list"}, flags...)...)
	for name, tt := range map[string]struct {
		terminal bool
		environ  string
		coloured bool
	}{
		"a terminal": {true, "TERM=xterm", true}, "a pipe": {false, "TERM=xterm", false},
		"NO_COLOR": {true, "NO_COLOR=1", false}, "a dumb terminal": {true, "TERM=dumb", false}, "NO_COLOR, but empty": {true, "NO_COLOR=", true},
	} {
		var out bytes.Buffer
		c := &command.Env{Out: &out, ErrOut: &out, Terminal: tt.terminal, Environ: []string{tt.environ}}
		execute(t.Context(), c, append([]string{"limits", "list"}, flags...))
		if !tt.coloured && out.String() != plain {
			t.Errorf("%s: %q", name, out.String())
		}
		if tt.coloured && (!strings.Contains(out.String(), "\x1b[31m2\x1b[0m") || strings.Count(out.String(), "\x1b[") != 6) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

func TestCompletions(t *testing.T) {
	flags, asked := readAPI(t)
	for _, tt := range []struct{ typed, want string }{
		{"limits list -o |", "text json"},
		{"limits dry-run |", "app report shop on off"},
		{"limits dry-run sh|", "shop on off"}, // the shell drops what does not fit
		{"limits dry-run shop |", "on off"},
		{"limits dry-run on |", ""},
		{"limits dry-run shop on |", ""},
		{"limits trust |", "app report shop"},
		{"limits trust shop |", "on off"},
		{"limits trust on |", "on off"},
		{"limits trust shop on |", ""},
		{"limits set shop --preset |", "okta Okta. zoho Zoho."},
		{"limits set --tier gold --preset |", "okta Okta. zoho Zoho."},
		{"limits candidate set shop --preset |", "okta Okta. zoho Zoho."},
		{"limits list --sort |", "name requests denied usage"},
		{"limits top |", "app report shop"},
		{"limits top s|", "shop"},
		{"limits unset --field |", "user client total source mode over-limit max-wait max-waiting ban criticality hide-headers note canary"},
		{"limits unset shop --field mode,|", "mode,user mode,client mode,total mode,source mode,tier mode,mode mode,trusted mode,over-limit mode,max-wait mode,max-waiting mode,ban mode,criticality mode,hide-headers mode,note"},
		{"limits set shop --tier |", "gold silver"},
		{"limits set shop --over-limit |", "deny reuse"},
		{"limits set shop --ban |", "off denials=20,within=1m,for=5m,factor=2,max=24h,forget=24h"},
		{"limits set --tier gold --over-limit |", "deny reuse"},
		{"limits set shop --criticality |", "critical_plus critical sheddable_plus sheddable"},
		{"limits set --tier gold --criticality |", "critical_plus critical sheddable_plus sheddable"},
		{"limits candidate set shop --criticality |", "critical_plus critical sheddable_plus sheddable"},
		{"limits get --tier |", "gold silver"},
		{"limits set --tier gold --mode |", "enforce dry_run off"},
		{"limits audit --target |", "settings policies/ candidates/ tiers/ overrides/ bans/ clients/ users/ store"},
		{"limits audit --target tiers/|", "tiers/gold tiers/silver"},
		{"limits audit --target users/a|", "users/ada users/ann"},
		{"limits audit --target policies/s|", "policies/shop"},
		{"limits audit --target clients/s|", "clients/shop clients/shop/counters"},
		{"limits audit --target x/|", ""},
		{"client create x --grant |", "authorization_code client_credentials refresh_token password"},
		{"token --grant |", "authorization_code client_credentials refresh_token password"},
		{"serve --log-level |", "debug info warn error"},
		{"client show s|", "shop"},
		{"client create s|", ""},
		{"client rotate-secret s|", "shop"},
		{"client list --label |", "team=payments tier=1"},
		{"client create x --label ti|", "tier=1"},
		{"client update report --remove-label t|", "team tier"},
		{"client update --remove-label |", ""},
		{"user show a|", "ada ann"},
		{"user create a|", ""},
		{"user operator |", "ada ann"},
		{"user operator ada |", "on read off"},
		{"limits status --hash a|", "ada ann"},
		{"limits reset shop --user a|", "ada ann"},
	} {
		check.Equal(t, "after "+tt.typed, completed(t, tt.typed, "OAUTH_SERVER="+flags[len(flags)-1], "OAUTH_TOKEN=x", "OAUTH_ISSUER=http://127.0.0.1"), tt.want)
	}
	presets := slices.DeleteFunc(*asked, func(query string) bool { return !strings.HasPrefix(query, "/presets") })
	check.Equal(t, "asked for presets", slices.Compact(presets), []string{"/presets?"}) // a server refuses a query
	check.Equal(t, "without a server", completed(t, "client show |"), "")
}

// completed returns what is offered where the line has a bar, with that environment.
func completed(t *testing.T, typed string, environ ...string) string {
	t.Helper()
	stdout, stderr, status := runWith(t, environ, "", strings.Split("__complete "+strings.TrimSuffix(typed, "|"), " ")...)
	check.Equal(t, "status", status, command.ExitOK)
	hasNot(t, stderr, "using")
	offered, _, _ := strings.Cut(stdout, "\n:")
	if strings.HasPrefix(stdout, ":") {
		return ""
	}
	return strings.Join(strings.Fields(offered), " ")
}

// TestCompletedFiles: a shell offers the names of files only where a command takes one.
func TestCompletedFiles(t *testing.T) {
	for typed, want := range map[string]string{
		"limits undo ": ":4\n", "records ": ":4\n", "version ": ":4\n", "client create ": ":4\n", "serve --demo ": ":4\n",
		"restore ": ":0\n", "backup ": ":0\n", "simulate a.log ": ":0\n", "serve --config ": ":0\n",
	} {
		stdout, _, _ := run(t, "", strings.Split("__complete "+typed, " ")...)
		check.Equal(t, typed, stdout, want)
	}
}

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

// TestResetOfASource: it is shown, and so is that of the total, as in the counters. A name that cannot be printed is refused.
func TestResetOfASource(t *testing.T) {
	s := newManaged(t)
	s.shows("reset shop --source 2001:db8::9", "The counts of shop from 2001:db8::/64 are now forgotten")
	s.shows("audit --target clients/shop/counters", " reset clients/shop/counters (from 2001:db8::/64)\n")
	s.limits(0, "reset shop --total")
	s.shows("audit --target clients/shop/counters", " reset clients/shop/counters (all users)\n")
	s.says(1, "reset shop --user x\x1by", "username: has an unprintable character")
}

// TestGrantsAndSourcesInAFile: what is set by flags is exported, and applied again; it is undone; what cannot be is refused
// with its line.
func TestGrantsAndSourcesInAFile(t *testing.T) {
	s := newManaged(t)
	s.limits(0, "set --source 500/60s --yes")
	s.limits(0, "set shop --user 10/10m,grants=refresh_token+password --total 900/60s --source 200/60s --yes")
	s.limits(0, "set shop --for-user ada --user 20/10m,grants=refresh_token --yes")
	s.limits(0, "set --tier gold --source 300/60s --yes")
	s.limits(0, "candidate set shop --source 100/60s")
	s.shows("get shop", "user limits 10/10m,grants=refresh_token+password changed here\n", "\ntotal limits 900/60s,name=total-per-minute changed here\nsource limits 200/60s,")
	s.keep()
	has(t, s.exported(), `settings:
  default:
    source:
      - name: source-per-minute
        requests: 500
        window: 60s
`, `    user:
      - name: per-10m
        requests: 10
        window: 10m
        grants:
          - refresh_token
          - password
`)
	before := s.version()
	s.limits(0, "apply -f FILE --prune --yes")
	check.Equal(t, "version", s.version(), before)
	s.limits(0, "set shop --user 10/10m --yes")
	s.prints(1, "diff -f FILE", "10/10m -> 10/10m,grants=refresh_token+password")
	s.limits(0, "apply -f FILE --prune --yes")
	s.limits(0, "unset shop --field source --yes")
	s.shows("get shop", "source limits 500/60s,name=source-per-minute all clients")
	s.undo()
	s.limits(0, "diff -f FILE") // no difference

	s.says(1, "set shop --limit 5/60s,grants=password --total 5/60s,name=per-minute", "client[0].grants: is allowed only in the list user", "total[0].name: ")

	s.write(`policies:
  shop:
    user:
      - { requests: 5, grants: [ refresh ] }
    client:
      - { requests: 5, grants: [ password ] }
    source:
      - { requests: 5 }
`)
	_, stderr := s.limits(2, "apply -f FILE --yes")
	has(t, stderr, `policies.shop.user[0].grants[0]: "refresh" is not one of`, s.file+":4)", "policies.shop.client[0].grants: is allowed only in the list user", s.file+":6)",
		"policies.shop.source[0].name: ", s.file+":8)")
}

// TestPresets: a preset is given to a client, tried, and made a tier of. Its limits are written out; a list that it
// has not stays.
func TestPresets(t *testing.T) {
	s := newManaged(t)
	s.shows("presets", "PRESET USER LIMITS CLIENT LIMITS SHARED LIMITS ABOUT\n", "okta 4/1s,grants=refresh_token+password - - Okta: ", "https://developer.okta.com/",
		"ebay 10000/24h,name=codes,grants=authorization_code 50000/24h,name=refreshes,grants=refresh_token 1000/24h - eBay: ")
	var all adminapi.Presets
	runJSON(t, &all, "", s.args("presets")...)
	check.Equal(t, "presets", len(all.Presets), 5)

	s.limits(0, "set shop --user 2/1s --client 7/60s --yes")
	s.says(0, "set shop --preset okta --note n", "Requests of authorization_code are no longer limited per user.") // without a confirmation
	s.limits(0, "set batch --preset auth0-free --yes")
	s.limits(0, "set --tier partners --preset zoho --yes")
	s.limits(0, "candidate set --preset ebay")
	for args, parts := range map[string][]string{
		"get shop":            {"user limits 4/1s,grants=refresh_token+password changed here", "client limits 7/60s changed here", "note n"},
		"get batch":           {"user limits 30/1s 300/60s changed here", "client limits 30/1s 300/60s changed here", "total limits 30/1s,name=total-per-second 300/60s,name=total-per-minute changed here"},
		"get --tier partners": {"user limits 10/10m,grants=refresh_token tier", "client limits - all clients"},
		"get --candidate":     {"user limits 10000/24h,name=codes,grants=authorization_code ", "client limits 1000/24h"},
	} {
		s.shows(args, parts...)
	}
	stdout, _ := s.limits(0, "export")
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
		s.says(2, args, says)
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
