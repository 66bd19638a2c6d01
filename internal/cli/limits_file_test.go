package cli

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// limitsServer is a running server with clients to limit, and the flags of an operator.
type limitsServer struct {
	operated
	t     *testing.T
	token string
	file  string // of limits
	data  string // the file of its store
}

// firstChange is the number of the first change of limits, after three clients and the first keys.
const firstChange = 5

func newLimitsServer(t *testing.T) *limitsServer {
	t.Helper()
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	for _, id := range []string{"shop", "batch"} {
		runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	}
	o := serving(t, "serve", "--data", data)
	return &limitsServer{o, t, askToken(t, o.clients, ops), filepath.Join(t.TempDir(), "limits.yaml"), data}
}

func (s *limitsServer) args(args string) []string {
	words := append([]string{"limits"}, strings.Fields(args)...)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "FILE", s.file)
	}
	return append(words, "--server", s.operators, "--token", s.token)
}

// limits runs a limits command, which must have that exit status.
func (s *limitsServer) limits(status int, args string) (stdout, stderr string) {
	s.t.Helper()
	stdout, stderr, got := run(s.t, "", s.args(args)...)
	if got != status {
		s.t.Fatalf("limits %s: status %d, want %d:\n%s%s", args, got, status, stdout, stderr)
	}
	return stdout, stderr
}

// version returns the version of all policies.
func (s *limitsServer) version() int64 {
	s.t.Helper()
	var set struct{ Version int64 }
	runJSON(s.t, &set, "", s.args("export")...)
	return set.Version
}

func (s *limitsServer) write(text string) {
	s.t.Helper()
	check.OK(s.t, os.WriteFile(s.file, []byte(text), 0o600))
}

// TestLimitsFile: what a pipeline does with a file, and what an operator does beside it.
func TestLimitsFile(t *testing.T) {
	s := newLimitsServer(t)
	stdout, _ := s.limits(0, "export")
	has(t, stdout, "{}\n")
	s.limits(0, "set --limit 90/60s --yes")
	s.limits(0, "set shop --user 10/60s,frames=6 --client 1000/24h,soft=0.5,name=daily --note agreed --yes")
	s.limits(0, "trust batch on")
	s.limits(0, "candidate set shop --user 5/1s")
	s.limits(0, "candidate set --user 50/60s")
	s.limits(0, "export -f FILE")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	again, _ := s.limits(0, "export")
	check.Equal(t, "exported again", again, string(text))
	check.Equal(t, "the file", withoutHeader(again), `settings:
  default:
    user:
      - name: per-minute
        requests: 90
        window: 60s
    client:
      - name: per-minute
        requests: 90
        window: 60s
policies:
  batch:
    trusted: true
  shop:
    user:
      - name: per-minute
        requests: 10
        window: 60s
        frames: 6
    client:
      - name: daily
        requests: 1000
        window: 24h
        soft_ratio: 0.5
    note: agreed
candidates:
  _default:
    user:
      - name: per-minute
        requests: 50
        window: 60s
  shop:
    user:
      - name: per-second
        requests: 5
        window: 1s
`)
	before := s.version()
	stdout, _ = s.limits(0, "diff -f FILE")
	check.Equal(t, "differences", stdout, "")
	for range 2 {
		stdout, _ = s.limits(0, "apply -f FILE --prune --yes")
		has(t, stdout, "nothing to change")
	}
	check.Equal(t, "version", s.version(), before)

	// The same, written in another way.
	s.write("policies:\n  shop: {note: agreed, client: [{name: daily, window: 1440m, requests: 1000, soft_ratio: 0.5}], user: [{requests: 10, frames: 6}], trusted: false}\n  batch: {trusted: true}\n")
	s.limits(0, "diff -f FILE")
	stdout, _ = s.limits(1, "diff -f FILE --prune")
	has(t, stdout, "settings", "candidates/_default", "removed")

	s.write("policies:\n  shop: {user: [{requests: 20}]}\n")
	stdout, _ = s.limits(1, "diff -f FILE")
	has(t, stdout, "policies/shop", "user 10/60s,frames=6 -> 20/60s", "no note (was agreed)")
	stdout, _ = s.limits(0, "apply -f FILE --check")
	has(t, stdout, "policies/shop", "In the last 10 minutes, this change would have denied no request")
	check.Equal(t, "version after questions", s.version(), before)
	stdout, _ = s.limits(0, "apply -f FILE --prune --yes --reason merged")
	has(t, stdout, "removed", "The limits in "+s.file+" are now applied")
	check.Equal(t, "version: one change", s.version(), before+1)
	stdout, _ = s.limits(0, "get batch")
	has(t, stdout, "trusted        no")
	stdout, _ = s.limits(0, "audit --limit 1")
	has(t, stdout, "update policies/batch", "update policies/shop", "update settings", "merged")

	stdout, _ = s.limits(0, "undo "+strings.Fields(strings.Split(stdout, "\n")[1])[0]+" --yes")
	has(t, stdout, "is undone")
	check.Equal(t, "after the undo", withoutHeader(exported(s)), withoutHeader(string(text)))
}

func exported(s *limitsServer) string {
	s.t.Helper()
	stdout, _ := s.limits(0, "export")
	return stdout
}

func withoutHeader(file string) string {
	_, rest, _ := strings.Cut(file, "\n")
	return rest
}

// A bad file changes nothing, and every problem has its line.
func TestBadLimitsFile(t *testing.T) {
	s := newLimitsServer(t)
	good := "policies:\n  batch: {trusted: true}\n"
	for text, says := range map[string]string{
		"":                                     "is empty; write {} to set nothing",
		"[]":                                   "must be an object…FILE:1",
		"policies: [":                          "did not find expected node content…FILE:2",
		good + "policy: {}\n":                  "policy: unknown field; the fields are settings, tiers, policies, overrides, candidates…FILE:3",
		good + "  batch: {}\n":                 "policies.batch: is a duplicate of line 2…FILE:3",
		good + "  shop:\n":                     "policies.shop: must be an object; write {} to set nothing…FILE:3",
		good + "settings:\n":                   "settings: must be an object; to set nothing, leave it out…FILE:3",
		good + "  shop:\n    usr: []\n":        "policies.shop.usr: unknown field…FILE:4",
		good + "  shop:\n    trusted: perhaps": "policies.shop.trusted: must be true or false…FILE:4",
		good + "  shop:\n    user:\n      - requests: 1\n        window: 2w\n": "policies.shop.user[0].window: must be a duration…FILE:6",
		good + "  shop:\n    user:\n      - requests: 0\n":                     "policies.shop.user[0].requests…FILE:5",
		good + "  shop:\n    user: [{requests: 1, frames: 0}]\n":               "policies.shop.user[0].frames…FILE:4",
		good + "  shpo: {}\n": `policies.shpo: client "shpo" does not exist…FILE:3`,
		"overrides:\n  shop ada: {user: [{requests: 1}]}\n  shop  ada: {user: [{requests: 1}]}\n": `overrides["shop  ada"].username: begins or ends with white space…FILE:3`,
		good + "  ops: {client: [{requests: 1, window: 24h}]}\n":                                  "lock out the admin client",
	} {
		s.write(text)
		_, stderr, status := run(t, "", s.args("apply -f FILE --yes")...)
		if status == command.ExitOK {
			t.Errorf("%q is applied", text)
		}
		has(t, stderr, strings.Split(strings.ReplaceAll(says, "FILE", "("+s.file), "…")...)
		s.limits(2, "diff -f FILE")
	}
	s.write(good + heavyTiers())
	_, stderr := s.limits(1, "apply -f FILE --yes")
	has(t, stderr, " changes 91 targets, but one change can have about a thousand")
	s.limits(1, "apply -f FILE.none --yes")
	s.limits(2, "diff -f FILE.none")
	s.limits(2, "apply")
	check.Equal(t, "version", s.version(), 0)
	runOK(t, good, s.args("apply -f - --yes")...)
	check.Equal(t, "version", s.version(), firstChange)
}

// heavyTiers is more than a request has room for.
func heavyTiers() string {
	var out strings.Builder
	out.WriteString("tiers:\n")
	for i := range 90 {
		fmt.Fprintf(&out, "  t%d: {note: %s}\n", i, strings.Repeat("x", 50_000))
	}
	return out.String()
}

// TestFileAndTemporaryChanges: a file neither ends nor extends temporary changes, unless it says
// otherwise.
func TestFileAndTemporaryChanges(t *testing.T) {
	s := newLimitsServer(t)
	s.limits(0, "set shop --user 10/60s --yes")
	s.limits(0, "export -f FILE")
	stdout, _ := s.limits(0, "set shop --user 50/60s --for 2h")
	has(t, stdout, "The policy of shop is now set, until 2")
	stdout, _ = s.limits(0, "get shop")
	has(t, stdout, "until ")
	stdout, _ = s.limits(0, "list")
	has(t, stdout, "changed here, until ")
	stdout, _ = s.limits(0, "audit --limit 1")
	has(t, stdout, "update policies/shop, until ")
	has(t, exported(s), "# policies/shop is temporary until ", "requests: 10\n")
	s.limits(0, "diff -f FILE --prune")
	s.limits(0, "apply -f FILE --prune --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, stdout, "until ", "50/60s")
	_, stderr := s.limits(0, "set shop --note x --check")
	has(t, stderr, "The value being changed was temporary, until ", "The new one is permanent")
	_, stderr = s.limits(0, "set shop --note x")
	has(t, stderr, "The value being changed was temporary, until ", "The new one is permanent")
	s.limits(1, "diff -f FILE")
	s.limits(0, "apply -f FILE --for 7d --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, stdout, "until ", "10/60s")
	s.limits(0, "set shop --user 10/60s --yes") // it lasts
	s.limits(0, "set shop --user 20/60s --for 2h --yes")
	s.write("policies: {shop: {user: [{requests: 20, window: 60s}]}, batch: {note: x}}")
	stdout, _ = s.limits(1, "diff -f FILE")
	has(t, stdout, "policies/shop   lasts (was until 2", "policies/batch  note x")
	stdout, _ = s.limits(0, "apply -f FILE --for 3h --yes")
	has(t, stdout, "policies/shop, for 3h   was until 2", "policies/batch, for 3h  note x", "The limits in "+s.file+" are now applied, until 2")
	stdout, _ = s.limits(0, fmt.Sprintf("undo %d --yes", s.version()))
	has(t, stdout, "policies/shop, until 2", "removed (note x); was until 2")
	_, stderr = s.limits(1, "unset shop --candidate")
	has(t, stderr, "shop: no candidate exists\n")
	stdout, _ = s.limits(0, "set --tier gold --user 1/60s --yes")
	has(t, stdout, "for all its clients; in effect")
	stdout, _ = s.limits(0, "unset --tier gold --for 2h --yes")
	has(t, stdout, "is now removed, for 2h; in effect")
	s.limits(1, "set shop --user 1/60s --for 30s")
	s.limits(2, "undo x")
	s.limits(1, "undo 99")
}

// TestExportAsJSON: a file is written in either form.
func TestExportAsJSON(t *testing.T) {
	s := newLimitsServer(t)
	s.limits(0, "set shop --user 10/60s --yes")
	shown, _ := s.limits(0, "export -o json")
	stdout, _ := s.limits(0, "export -f FILE -o json")
	check.Equal(t, "standard output", stdout, "")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	check.Equal(t, "file", string(text), shown)
	has(t, shown, fmt.Sprintf("\n  \"version\": %d,\n", firstChange))
}

// TestApplyBesideAnotherChange: nothing of the file is applied if there was a change after the plan.
func TestApplyBesideAnotherChange(t *testing.T) {
	s := newLimitsServer(t)
	s.write("policies:\n  shop: {trusted: true}\n  batch: {trusted: true}\n")
	address, err := url.Parse(s.operators)
	check.OK(t, err)
	forward := httputil.NewSingleHostReverseProxy(address)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !r.URL.Query().Has("validate") {
			s.limits(0, "dry-run shop on")
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	stderr := runFails(t, command.ExitFailed, "", "", "limits", "apply", "-f", s.file, "--yes", "--server", between.URL, "--token", s.token)
	has(t, stderr, "shop: changed by ops ", fmt.Sprintf("(change %d: mode dry_run); check it and run the command again", firstChange))
	check.Equal(t, "version", s.version(), firstChange)
	stdout, _ := s.limits(0, "get batch")
	has(t, stdout, "trusted        no")
}

// TestApplyThatIsKilled: a process that dies between the plan and the change has changed nothing, and the
// next one applies all of it.
func TestApplyThatIsKilled(t *testing.T) {
	s := newLimitsServer(t)
	s.write("policies:\n  shop: {client: [{requests: 1}]}\n  batch: {client: [{requests: 1}]}\n")
	cmd := newProgram(t, s.args("apply -f FILE")...)
	answer, err := cmd.StdinPipe()
	check.OK(t, err)
	questions, err := cmd.StderrPipe()
	check.OK(t, err)
	cmd.Stdout = io.Discard
	check.OK(t, cmd.Start())
	asked, err := bufio.NewReader(questions).ReadString('?')
	check.OK(t, err, asked)
	check.OK(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_ = answer.Close()
	check.Equal(t, "version", s.version(), 0)
	stdout, _ := s.limits(0, "apply -f FILE --yes")
	has(t, stdout, "are now applied")
	check.Equal(t, "version", s.version(), firstChange)
}

// TestLimitsFileWithTiers: a file makes a tier and gives it to clients in one change, whatever their order,
// and an undo takes both back.
func TestLimitsFileWithTiers(t *testing.T) {
	s := newLimitsServer(t)
	const file = `tiers:
  gold:
    user:
      - name: per-minute
        requests: 20
        window: 60s
    note: contract
policies:
  shop:
    tier: gold
overrides:
  shop ada:
    user:
      - name: per-minute
        requests: 2
        window: 60s
`
	s.write(file)
	s.limits(0, "apply -f FILE --yes")
	stdout, _ := s.limits(0, "get shop")
	has(t, stdout, "tier gold", "user ada", "2/60s")
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported", withoutHeader(stdout), file)
	stdout, _ = s.limits(0, "apply -f FILE")
	has(t, stdout, "There is nothing to change.")
	made := s.version()

	s.write("policies:\n  shop:\n    tier: silver\n")
	_, stderr := s.limits(2, "apply -f FILE --yes")
	has(t, stderr, "silver", s.file+":3")
	check.Equal(t, "version after a file with a tier that there is not", s.version(), made)

	s.write("overrides:\n  shop ADA:\n    user:\n      - requests: 2\n        window: 60s\n        name: per-minute\n")
	s.limits(0, "apply -f FILE --yes")
	check.Equal(t, "version after a user in another form", s.version(), made)
	s.write(strings.Replace(file, "shop ada", "shop ADA", 1))
	stdout, _ = s.limits(0, "diff -f FILE --prune")
	check.Equal(t, "difference of a user in another form", stdout, "")
	_, override, _ := strings.Cut(file, "  shop ada")
	s.write(file + "  shop Ada" + override)
	_, stderr = s.limits(2, "diff -f FILE")
	has(t, stderr, "duplicates an entry that spells the name differently")

	s.write("{}\n")
	s.limits(0, "apply -f FILE --prune --yes")
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported after all was removed", withoutHeader(stdout), "{}\n")
	s.limits(0, fmt.Sprintf("undo %d --yes", s.version()))
	stdout, _ = s.limits(0, "export")
	check.Equal(t, "exported after the undo", withoutHeader(stdout), file)

	s.limits(0, "set --tier gold --user 30/60s --for 2h --yes")
	stdout, _ = s.limits(0, "get --tier gold")
	has(t, stdout, "30/60s", "until")
	stdout, _ = s.limits(0, "export -f FILE")
	check.Equal(t, "output", stdout, "")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	has(t, string(text), "# tiers/gold is temporary until ", "\n"+file)
}

// TestCriticalityOfARunningServer: it is set, shown, exported, compared, applied and undone.
func TestCriticalityOfARunningServer(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	shows := func(args string, parts ...string) {
		t.Helper()
		stdout, _ := s.limits(0, args)
		has(t, table(stdout), parts...)
	}
	shows("get", "criticality - configuration file\n")
	shows("get shop", "criticality - all clients\n")
	s.limits(0, "set --criticality sheddable_plus --yes")
	s.limits(0, "set --tier gold --criticality critical --yes")
	s.limits(0, "set shop --tier gold --yes")
	s.limits(0, "trust shop on --yes")
	shows("get", "criticality sheddable_plus changed here\n")
	shows("get batch", "criticality sheddable_plus all clients\n")
	shows("get shop", "trusted yes changed here\n", "criticality critical tier gold\n")
	s.limits(0, "set shop --criticality critical_plus --for 1h --yes")
	shows("get shop", "criticality critical_plus changed here\n", "until ")
	s.limits(0, "unset shop --field criticality --yes")
	s.limits(0, "set batch --criticality sheddable --note low --yes")
	shows("audit --limit 1", "policies/batch criticality sheddable; note low\n")
	stdout, _ := s.limits(0, "export")
	check.Equal(t, "the file", withoutHeader(stdout), `settings:
  default:
    criticality: sheddable_plus
tiers:
  gold:
    criticality: critical
policies:
  batch:
    criticality: sheddable
    note: low
  shop:
    tier: gold
    trusted: true
`)
	s.limits(0, fmt.Sprintf("undo %d --yes", s.version()))
	shows("get batch", "criticality sheddable_plus all clients\n")
	s.write(strings.Replace(stdout, "criticality: critical\n", "criticality: critical_plus\n", 1))
	stdout, _ = s.limits(1, "diff -f FILE")
	has(t, table(stdout), "criticality critical -> critical_plus", "criticality sheddable; note low\n")
	s.limits(0, "apply -f FILE --yes")
	shows("get shop", "criticality critical_plus tier gold\n")
	shows("get batch", "criticality sheddable changed here\n")
	s.write("policies:\n  batch: {criticality: high}\n")
	_, stderr := s.limits(2, "apply -f FILE --yes")
	has(t, stderr, `policies.batch.criticality: "high" is not one of "critical_plus", "critical", "sheddable_plus", "sheddable"`, ":2)")
}

// TestCriticalityOfACandidate: it comes into force when the candidate is promoted.
func TestCriticalityOfACandidate(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	s.limits(0, "candidate set shop --limit 5/60s --criticality critical")
	stdout, _ := s.limits(0, "get shop --candidate")
	has(t, table(stdout), "criticality critical, when it is promoted\n")
	stdout, _ = s.limits(0, "get shop")
	has(t, table(stdout), "criticality - all clients\n")
	s.limits(0, "candidate promote shop --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, table(stdout), "criticality critical changed here\n")
}

// TestCandidateOverItsLimits: what becomes of requests over the limits that are tried is tried as the flags say.
func TestCandidateOverItsLimits(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	s.limits(0, "candidate set shop --limit 5/60s --over-limit deny --max-wait 2s --max-waiting 4 --ban denials=7")
	stdout, _ := s.limits(0, "get shop --candidate")
	has(t, table(stdout), "over the limit deny\n", "max wait 2s, 4 at once\n", "ban denials=7,")
	s.write("policies:\n  shop: {client: [{requests: 9}], over_limit: deny}\n")
	s.limits(0, "candidate set shop --file FILE --over-limit reuse")
	stdout, _ = s.limits(0, "get shop --candidate")
	has(t, table(stdout), "client limits 9/60s\n", "over the limit reuse\n")
	for _, args := range []string{"--over-limit wait", "--max-wait soon", "--ban denials=x"} {
		s.limits(2, "candidate set shop --limit 5/60s "+args)
	}
}

// TestPolicyOfADeletedClient: a server whose configuration names a client that is deleted, or not
// registered yet, starts and serves. It says so in its log, /readyz, the metrics and limits list.
func TestPolicyOfADeletedClient(t *testing.T) {
	data := storeFile(t)
	var ops, shop credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
	runJSON(t, &credentials{}, "", "client", "create", "gone", "--data", data)
	runJSON(t, &map[string]any{}, "", "client", "delete", "gone", "--data", data)
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit:\n  clients:\n    shop: { trusted: true }\n    gone: { trusted: true }\n"), 0o600))

	o := serving(t, "serve", "--config", file, "--data", data, "--issuer", "http://127.0.0.1:9096")
	askToken(t, o.clients, shop)
	const ready = `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: \"gone\""}}`
	check.Equal(t, "/readyz for operators", strings.TrimSpace(page(t, o.operators+"/readyz")), ready)
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"), `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: 1"}}`)
	has(t, page(t, o.operators+"/metrics"), "\noauth_policies_unregistered 1\n")
	check.Eventually(t, "the log names it", func() bool {
		return strings.Contains(o.log.String(), "level=WARN msg=\"configuration has a policy for an unregistered client\" client_id=gone field=rate_limit.clients.gone")
	})
	token := askToken(t, o.clients, ops)
	listed := unregisteredIn(t, "--server", o.operators, "--token", token)
	check.Equal(t, "unregistered", listed, []string{"gone not registered, trusted 100/60s 100/60s configuration file 0 0 0 -"})
	o.stop(t)
}

// unregisteredIn returns the rows of the limits list of a server that are of clients which are not registered.
// As JSON it has the same clients.
func unregisteredIn(t *testing.T, flags ...string) (rows []string) {
	t.Helper()
	list := append([]string{"limits", "list"}, flags...)
	text, _, _ := run(t, "", list...)
	var names []string
	for line := range strings.Lines(table(text)) {
		if strings.Contains(line, " not registered") {
			rows, names = append(rows, strings.TrimSpace(line)), append(names, strings.Fields(line)[0])
		}
	}
	var listed struct {
		Unregistered []string                      `json:"unregistered"`
		Limits       []adminapi.UnregisteredClient `json:"limits_of_unregistered"`
	}
	runJSON(t, &listed, "", list...)
	check.Equal(t, "names as JSON", slices.Equal(listed.Unregistered, names), true)
	check.Equal(t, "limits as JSON", slices.EqualFunc(listed.Limits, names, func(c adminapi.UnregisteredClient, id string) bool { return c.ClientID == id }), true)
	return rows
}

// TestLimitsListHasDeletedClients: a client that is deleted is listed as not registered as long as anything is
// left of what operators have set for it, and no longer if it is registered again.
func TestLimitsListHasDeletedClients(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	o := serving(t, "serve", "--data", data, "--issuer", "http://127.0.0.1:9096")
	at := []string{"--server", o.operators, "--token", askToken(t, o.clients, ops)}
	does := func(line string, flags ...string) {
		t.Helper()
		runOK(t, "", append(strings.Fields(line), flags...)...)
	}
	for _, id := range []string{"policy", "tried", "user", "back"} {
		does("client create "+id, "--data", data)
	}
	does("limits set --tier gold --user 9/60s --yes", at...)
	does("limits set policy --tier gold --client 8/60s --yes", at...)
	does("limits candidate set tried --client 7/60s", at...)
	does("limits set user --for-user ada --user 6/60s --yes", at...)
	does("limits trust back on", at...)
	check.Equal(t, "unregistered while all are there", unregisteredIn(t, at...), nil)
	for _, id := range []string{"policy", "tried", "user", "back"} {
		does("client delete "+id, "--data", data)
	}
	does("client create back", "--data", data)
	check.Equal(t, "unregistered", unregisteredIn(t, at...), []string{
		"policy not registered, enforce 9/60s 8/60s changed here, tier gold 0 0 0 -",
		"tried not registered, enforce 100/60s 100/60s default 0 0 0 0",
		"user not registered, enforce 100/60s 100/60s default, 1 user's own 0 0 0 -",
	})
	check.Equal(t, "of those with a name", len(unregisteredIn(t, append(at, "--filter", "RIE")...)), 1)
	does("limits unset policy --yes", at...)
	does("limits unset user --for-user ada", at...)
	does("limits unset tried --candidate", at...)
	check.Equal(t, "unregistered after the removal", unregisteredIn(t, at...), nil)
	o.stop(t)
}

// TestUnregisteredClientsAreReadByThePage: all pages, and those are listed that the filter has.
func TestUnregisteredClientsAreReadByThePage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		switch strings.TrimPrefix(r.URL.Path, adminapi.Prefix) {
		case "/clients":
			_, _ = w.Write([]byte(`{"clients":[]}`))
		case "/unregistered":
			asked = append(asked, after)
			next := map[string]string{"": "b1", "b1": "b2"}[after]
			_, _ = fmt.Fprintf(w, `{"unregistered":[{"client_id":"a%[1]s"},{"client_id":"c%[1]s"}],"next":%[2]q}`, after, next)
		}
	}))
	t.Cleanup(server.Close)
	flags := asOperator(server.URL)
	check.Equal(t, "rows", len(unregisteredIn(t, append(flags, "--filter", "c")...)), 3)
	check.Equal(t, "asked, by two commands", asked, []string{"", "b1", "b2", "", "b1", "b2"})
}
