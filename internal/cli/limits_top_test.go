package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	"/policies/shop": `{"client_id":"shop","tier":"gold","client":[{"requests":3,"window":"1s"}],"meta":{"source":"api"},"effective":{
		"mode":"dry_run","tier":"gold","overrides":3,"user":[{"requests":20,"window":"60s"}],"client":[{"requests":3,"window":"1s"}],"over_limit":"reuse","ban":{"denials":5},"criticality":"sheddable"}}`,
	"/policies/shop/users": `{"client_id":"shop","overrides":[{"username":"ada","user":[{"requests":1,"window":"60s"}],"note":"noisy"},
		{"username":"bob","user":[{"requests":500,"window":"60s"}]}]}`,
	"/user-hash": `{"username":"ada","user_hash":"h4sh"}`,
}

// readAPI is an API with a few clients. asked has the queries, and the flags lead to it.
func readAPI(t *testing.T) (flags []string, asked *[]string) {
	t.Helper()
	server, asked := answering(t, answers)
	return asOperator(server), asked
}

// answering is the URL of an admin API with these answers, by path.
func answering(t *testing.T, answers map[string]string) (url string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/admin/v1")
		*asked = append(*asked, path+"?"+r.URL.RawQuery)
		_, _ = w.Write([]byte(answers[path]))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// Table brings the columns of a text down to single spaces.
func table(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return out.String()
}

func TestTopOfAClient(t *testing.T) {
	flags, asked := readAPI(t)
	stdout, stderr, status := run(t, "", append([]string{"limits", "top", "shop", "--limit", "7"}, flags...)...)
	want := `CLIENT REQUESTS ALLOWED DENIED WOULD DENY REUSED WOULD REUSE
shop 29 20 5 0 3 1

CLIENT USER LIMIT ESTIMATE USED NEXT FREE
report ada 5/60s 0.0 100% 12:00:30Z
shop (the client itself) 50/60s 0.0 50% now

CLIENT USER HASH IN THE LOG DENIED WOULD DENY CANDIDATE DENIES
shop ada h4sh 3 1 0
shop (the client itself) - 1 0 0
shop (others) - 1 0 0

requests counted since 2026-03-01T11:50:00Z
`
	if diff := cmp.Diff(want, table(stdout)); diff != "" || stderr != "" || status != command.ExitOK {
		t.Errorf("status %d, %s (-want +got):\n%s", status, stderr, diff)
	}
	check.Equal(t, "asked for", *asked, []string{"/top?client_id=shop&limit=7"})
	stdout, _, _ = run(t, "", append([]string{"limits", "top", "--denied"}, flags...)...)
	_, part, _ := strings.Cut(want, "\n\nCLIENT USER HASH")
	part = strings.Replace(part, "\n\nrequests", "\n\nCLIENT REUSED WOULD REUSE\nshop 3 1\n\nrequests", 1)
	if table(stdout) != "CLIENT USER HASH"+part {
		t.Errorf("denied printed:\n%s", stdout)
	}
	if stdout, _, _ = run(t, "", append([]string{"limits", "status", "--hash", "Ada"}, flags...)...); stdout != "h4sh\n" {
		t.Errorf("hash printed %q", stdout)
	}
	if last := (*asked)[len(*asked)-1]; last != "/user-hash?username=Ada" {
		t.Errorf("hash asked %s", last)
	}
	run(t, "", append([]string{"limits", "top", "shop", "--counters", "--limit", "3"}, flags...)...)
	check.Equal(t, "counters", (*asked)[len(*asked)-1], "/clients/shop/counters?limit=3")
}

// TestTopByWaste: the clients that waste tokens, in the order of the server.
func TestTopByWaste(t *testing.T) {
	flags, asked := readAPI(t)
	stdout, stderr, status := run(t, "", append([]string{"limits", "top", "--waste", "--limit", "7"}, flags...)...)
	want := `CLIENT TOKENS ISSUED WASTED SHARE EARLY REFRESHES REUSED
shop 40 30 75% 2 3

requests counted since 2026-03-01T11:50:00Z
`
	if diff := cmp.Diff(want, table(stdout)); diff != "" || stderr != "" || status != command.ExitOK {
		t.Errorf("status %d, %s (-want +got):\n%s", status, stderr, diff)
	}
	check.Equal(t, "asked for", *asked, []string{"/top?limit=7&sort=wasted"})
}

// TestListShowsReuse: in columns that are there if a client got its last token again.
func TestListShowsReuse(t *testing.T) {
	server, _ := answering(t, map[string]string{
		"/clients": `{"since":"2026-03-01T11:50:00Z","clients":[
			{"client_id":"app","source":"none","activity":{"allowed":9}},
			{"client_id":"shop","source":"none","activity":{"allowed":20,"reused":3,"would_reuse":1}}]}`,
		"/unregistered": `{"unregistered":[]}`,
	})
	stdout, stderr, status := run(t, "", "limits", "list", "--token", "x", "--issuer", "http://127.0.0.1", "--server", server)
	lines := strings.Split(table(stdout), "\n")
	for i, end := range []string{"CANDIDATE DENIES REUSED WOULD REUSE", "9 0 0 - 0 0", "20 0 0 - 3 1"} {
		if status != command.ExitOK || !strings.HasSuffix(lines[i], end) {
			t.Errorf("status %d, %s; line %d does not end in %q:\n%s", status, stderr, i, end, stdout)
		}
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
		stdout, stderr, status := run(t, "", append(append([]string{"limits", "list"}, flags...), strings.Fields(args)...)...)
		lines := strings.Split(stdout, "\n")
		var got []string
		for _, line := range lines[1:] {
			if id, _, found := strings.Cut(line, "  "); found {
				got = append(got, id)
			}
		}
		if strings.Join(got, " ") != want || status != command.ExitOK || !strings.HasSuffix(stdout, "\n\nrequests counted since 2026-03-01T11:50:00Z\n") {
			t.Errorf("limits list %s: %v, want %s; status %d %s\n%s", args, got, want, status, stderr, stdout)
		}
	}
	stdout, _, _ := run(t, "", append([]string{"limits", "list", "-o", "json", "--sort", "requests"}, flags...)...)
	var page struct {
		Since   time.Time
		Clients []struct {
			ID string `json:"client_id"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &page); err != nil || len(page.Clients) != 3 || page.Clients[0].ID != "shop" || page.Since.IsZero() {
		t.Errorf("as JSON %v: %s", err, stdout)
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
	c.Pause = func(_ context.Context, d time.Duration) error {
		if views--; views == 0 {
			return errors.New("interrupted")
		}
		if d != 2*time.Second {
			t.Errorf("a pause of %v", d)
		}
		return nil
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
	flags, _ := readAPI(t)
	server := flags[len(flags)-1]
	for _, tt := range []struct{ typed, want string }{
		{"limits list -o |", "text json"},
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
		var out, errs bytes.Buffer
		c := &command.Env{Out: &out, ErrOut: &errs, Environ: []string{"OAUTH_SERVER=" + server, "OAUTH_TOKEN=x", "OAUTH_ISSUER=http://127.0.0.1"}}
		args := strings.Split("__complete "+strings.TrimSuffix(tt.typed, "|"), " ")
		status := execute(t.Context(), c, args)
		offered, _, _ := strings.Cut(out.String(), ":")
		if got := strings.Join(strings.Fields(offered), " "); got != tt.want || status != command.ExitOK {
			t.Errorf("after %q: %q offered, want %q (status %d)", tt.typed, got, tt.want, status)
		}
	}
	stdout, _, _ := run(t, "", "__complete", "client", "show", "") // without a server
	if offered, _, _ := strings.Cut(stdout, ":"); offered != "" {
		t.Errorf("%q offered without a server", offered)
	}
}

// Without a home directory, as in a container, there is nowhere to cache a token, and none is cached.
func TestLimitsWithoutAHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			_, _ = w.Write([]byte(`{"issuer":"` + issuer.URL + `","token_endpoint":"` + issuer.URL + `/token"}`))
		case "/token":
			_, _ = w.Write([]byte(`{"access_token":"t","token_type":"Bearer","expires_in":60}`))
		default:
			_, _ = w.Write([]byte(answers["/user-hash"]))
		}
	}))
	t.Cleanup(issuer.Close)
	check.Equal(t, "output", runOK(t, "", "limits", "status", "--hash", "ada", "--client-id", "ops", "--client-secret", "x", "--issuer", issuer.URL, "--server", issuer.URL), "h4sh\n")
}
