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

// TestLimitsFile: what a pipeline does with a file, and what an operator does beside it.
func TestLimitsFile(t *testing.T) {
	s := newManaged(t)
	check.Equal(t, "nothing", s.exported(), "{}\n")
	s.shows("get", "criticality - configuration file\n")
	s.limits(0, "set --limit 90/60s --criticality sheddable_plus --yes")
	s.limits(0, "set shop --user 10/60s,frames=6 --client 1000/24h,soft=0.5,name=daily --criticality critical_plus --note agreed --yes")
	s.limits(0, "trust batch on")
	s.limits(0, "candidate set shop --user 5/1s")
	s.limits(0, "candidate set --user 50/60s")
	s.shows("get shop", "criticality critical_plus changed here\n")
	s.shows("get batch", "trusted yes changed here\n", "criticality sheddable_plus all clients\n")
	before := s.exported()
	check.Equal(t, "the file", before, `settings:
  default:
    user:
      - name: per-minute
        requests: 90
        window: 60s
    client:
      - name: per-minute
        requests: 90
        window: 60s
    criticality: sheddable_plus
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
    criticality: critical_plus
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
	s.keep()
	version := s.version()
	s.limits(0, "diff -f FILE")
	s.shows("apply -f FILE --prune --yes", "nothing to change")
	check.Equal(t, "version", s.version(), version)

	// The same, written in another way.
	s.write("policies:\n  shop: {note: agreed, criticality: critical_plus, client: [{name: daily, window: 1440m, requests: 1000, soft_ratio: 0.5}], user: [{requests: 10, frames: 6}], trusted: false}\n  batch: {trusted: true}\n")
	s.limits(0, "diff -f FILE")
	s.prints(1, "diff -f FILE --prune", "settings", "candidates/_default", "removed")

	s.write("policies:\n  shop: {user: [{requests: 20}], criticality: critical}\n")
	s.prints(1, "diff -f FILE", "policies/shop", "criticality critical_plus -> critical", "user 10/60s,frames=6 -> 20/60s", "no note (was agreed)")
	s.shows("apply -f FILE --check", "policies/shop", "In the last 10 minutes, this change would have denied no request")
	check.Equal(t, "version after questions", s.version(), version)
	s.shows("apply -f FILE --prune --yes --reason merged", "removed", "The limits in "+s.file+" are now applied")
	check.Equal(t, "version: one change", s.version(), version+1)
	s.shows("get batch", "trusted no")
	s.shows("audit --limit 1", "update policies/batch", "update policies/shop", "update settings", "merged")

	s.undo()
	check.Equal(t, "after the undo", s.exported(), before)

	shown, _ := s.limits(0, "export -o json")
	stdout, _ := s.limits(0, "export -f FILE -o json")
	check.Equal(t, "standard output", stdout, "")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	check.Equal(t, "file", string(text), shown)
	has(t, shown, fmt.Sprintf("\n  \"version\": %d,\n", s.version()))
}

// exported is what export prints below the first line, which has the server and the version.
func (s *managed) exported() string {
	s.t.Helper()
	stdout, _ := s.limits(0, "export")
	_, rest, _ := strings.Cut(stdout, "\n")
	return rest
}

// undo takes back the last change.
func (s *managed) undo() {
	s.t.Helper()
	s.shows(fmt.Sprintf("undo %d --yes", s.version()), "is undone")
}

// keep exports to the file of limits.
func (s *managed) keep() {
	s.t.Helper()
	stdout, _ := s.limits(0, "export -f FILE")
	check.Equal(s.t, "standard output", stdout, "")
}

// A bad file changes nothing, and every problem has its line.
func TestBadLimitsFile(t *testing.T) {
	s := newManaged(t)
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
	s.says(1, "apply -f FILE --yes", " changes 91 targets, but one change can have about a thousand")
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
	s := newManaged(t)
	s.limits(0, "set shop --user 10/60s --yes")
	s.keep()
	s.shows("set shop --user 50/60s --for 2h", "The policy of shop is now set, until 2")
	s.shows("get shop", "until ")
	s.shows("list", "changed here, until ")
	s.shows("audit --limit 1", "update policies/shop, until ")
	has(t, s.exported(), "# policies/shop is temporary until ", "requests: 10\n")
	s.limits(0, "diff -f FILE --prune")
	s.limits(0, "apply -f FILE --prune --yes")
	s.shows("get shop", "until ", "50/60s")
	s.says(0, "set shop --note x --check", "The value being changed was temporary, until ", "The new one is permanent")
	s.says(0, "set shop --note x", "The value being changed was temporary, until ", "The new one is permanent")
	s.limits(1, "diff -f FILE")
	s.limits(0, "apply -f FILE --for 7d --yes")
	s.shows("get shop", "until ", "10/60s")
	s.limits(0, "set shop --user 10/60s --yes") // it lasts
	s.limits(0, "set shop --user 20/60s --for 2h --yes")
	s.write("policies: {shop: {user: [{requests: 20, window: 60s}]}, batch: {note: x}}")
	s.prints(1, "diff -f FILE", "policies/shop lasts (was until 2", "policies/batch note x")
	s.shows("apply -f FILE --for 3h --yes", "policies/shop, for 3h was until 2", "policies/batch, for 3h note x", "The limits in "+s.file+" are now applied, until 2")
	s.shows(fmt.Sprintf("undo %d --yes", s.version()), "policies/shop, until 2", "removed (note x); was until 2")
	s.says(1, "unset shop --candidate", "shop: no candidate exists\n")
	s.shows("set --tier gold --user 1/60s --yes", "for all its clients; in effect")
	s.shows("unset --tier gold --for 2h --yes", "is now removed, for 2h; in effect")
	s.limits(1, "set shop --user 1/60s --for 30s")
	s.limits(2, "undo x")
	s.limits(1, "undo 99")
}

// TestApplyBesideAnotherChange: nothing of the file is applied if there was a change after the plan.
func TestApplyBesideAnotherChange(t *testing.T) {
	s := newManaged(t)
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
	s.shows("get batch", "trusted no")
}

// TestApplyThatIsKilled: a process that dies between the plan and the change has changed nothing, and the
// next one applies all of it.
func TestApplyThatIsKilled(t *testing.T) {
	s := newManaged(t)
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
	s.shows("apply -f FILE --yes", "are now applied")
	check.Equal(t, "version", s.version(), firstChange)
}

// TestLimitsFileWithTiers: a file makes a tier and gives it to clients in one change, whatever their order,
// and an undo takes both back.
func TestLimitsFileWithTiers(t *testing.T) {
	s := newManaged(t)
	const file = `tiers:
  gold:
    user:
      - name: per-minute
        requests: 20
        window: 60s
    criticality: critical
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
	s.shows("get shop", "criticality critical tier gold", "user ada", "2/60s")
	check.Equal(t, "exported", s.exported(), file)
	s.shows("apply -f FILE", "There is nothing to change.")
	made := s.version()

	s.write("policies:\n  shop:\n    tier: silver\n")
	s.says(2, "apply -f FILE --yes", "silver", s.file+":3")
	check.Equal(t, "version after a file with a tier that there is not", s.version(), made)

	s.write("overrides:\n  shop ADA:\n    user:\n      - requests: 2\n        window: 60s\n        name: per-minute\n")
	s.limits(0, "apply -f FILE --yes")
	check.Equal(t, "version after a user in another form", s.version(), made)
	s.write(strings.Replace(file, "shop ada", "shop ADA", 1))
	s.limits(0, "diff -f FILE --prune") // no difference
	_, override, _ := strings.Cut(file, "  shop ada")
	s.write(file + "  shop Ada" + override)
	s.says(2, "diff -f FILE", "duplicates an entry that spells the name differently")

	s.write("{}\n")
	s.limits(0, "apply -f FILE --prune --yes")
	check.Equal(t, "exported after all was removed", s.exported(), "{}\n")
	s.undo()
	check.Equal(t, "exported after the undo", s.exported(), file)

	s.limits(0, "set --tier gold --user 30/60s --for 2h --yes")
	s.shows("get --tier gold", "30/60s", "until")
	has(t, s.exported(), "# tiers/gold is temporary until ", "\n"+file)
}

// TestCandidate: what becomes of requests over the limits that are tried is tried as the flags say. The criticality comes
// into force when the candidate is promoted.
func TestCandidate(t *testing.T) {
	t.Parallel()
	s := newManaged(t)
	s.limits(0, "candidate set shop --limit 5/60s --over-limit deny --max-wait 2s --max-waiting 4 --ban denials=7 --criticality critical")
	s.shows("get shop", "criticality - all clients\n")
	s.shows("get shop --candidate", "criticality critical, when it is promoted\n", "over the limit deny\n", "max wait 2s, 4 at once\n", "ban denials=7,")
	s.limits(0, "candidate promote shop --yes")
	s.shows("get shop", "criticality critical changed here\n")
	s.write("policies:\n  shop: {client: [{requests: 9}], over_limit: deny}\n")
	s.limits(0, "candidate set shop --file FILE --over-limit reuse")
	s.shows("get shop --candidate", "client limits 9/60s\n", "over the limit reuse\n")
	for _, args := range []string{"--over-limit wait", "--max-wait soon", "--ban denials=x"} {
		s.limits(2, "candidate set shop --limit 5/60s "+args)
	}
}

// TestPolicyOfADeletedClient: a server whose configuration names a client that is deleted, or not
// registered yet, starts and serves. It says so in its log, /readyz, the metrics and limits list.
func TestPolicyOfADeletedClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit:\n  clients:\n    shop: { trusted: true }\n    gone: { trusted: true }\n"), 0o600))
	o := newManaged(t, "--config", file)
	const ready = `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: \"gone\""}}`
	check.Equal(t, "/readyz for operators", strings.TrimSpace(page(t, o.operators+"/readyz")), ready)
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"), `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: 1"}}`)
	has(t, page(t, o.operators+"/metrics"), "\noauth_policies_unregistered 1\n")
	check.Eventually(t, "the log names it", func() bool {
		return strings.Contains(o.log.String(), "level=WARN msg=\"configuration has a policy for an unregistered client\" client_id=gone field=rate_limit.clients.gone")
	})
	check.Equal(t, "unregistered", unregisteredIn(t, o.at("")...), []string{"gone not registered, trusted 100/60s 100/60s configuration file 0 0 0 -"})
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
	s := newManaged(t)
	does := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if strings.HasPrefix(line, "client ") {
				runOK(t, "", on(s.data, line)...)
			} else {
				s.limits(0, line)
			}
		}
	}
	does("client create policy", "client create tried", "client create user", "client create back",
		"set --tier gold --user 9/60s --yes", "set policy --tier gold --client 8/60s --yes", "candidate set tried --client 7/60s",
		"set user --for-user ada --user 6/60s --yes", "trust back on")
	at := s.at("")
	check.Equal(t, "unregistered while all are there", unregisteredIn(t, at...), nil)
	does("client delete policy", "client delete tried", "client delete user", "client delete back", "client create back")
	check.Equal(t, "unregistered", unregisteredIn(t, at...), []string{
		"policy not registered, enforce 9/60s 8/60s changed here, tier gold 0 0 0 -",
		"tried not registered, enforce 100/60s 100/60s default 0 0 0 0",
		"user not registered, enforce 100/60s 100/60s default, 1 user's own 0 0 0 -",
	})
	check.Equal(t, "of those with a name", len(unregisteredIn(t, append(at, "--filter", "RIE")...)), 1)
	does("unset policy --yes", "unset user --for-user ada", "unset tried --candidate")
	check.Equal(t, "unregistered after the removal", unregisteredIn(t, at...), nil)
}

// TestUnregisteredClientsAreReadByThePage: all pages, and those are listed that the filter has.
func TestUnregisteredClientsAreReadByThePage(t *testing.T) {
	flags, asked := answering(t, map[string]string{
		"/clients":               `{"clients":[]}`,
		"/unregistered":          `{"unregistered":[{"client_id":"a"},{"client_id":"c"}],"next":"b1"}`,
		"/unregistered after b1": `{"unregistered":[{"client_id":"ab1"},{"client_id":"cb1"}],"next":"b2"}`,
		"/unregistered after b2": `{"unregistered":[{"client_id":"ab2"},{"client_id":"cb2"}]}`,
	})
	check.Equal(t, "rows", len(unregisteredIn(t, append(flags, "--filter", "c")...)), 3)
	check.Equal(t, "asked, by two commands", len(*asked), 2*4)
}
