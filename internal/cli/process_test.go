package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/hashing"
)

// The test binary is the program when this variable is set, so that processes,
// signals and pasted lines are tested on the real thing without building it.
const beProgram = "BE_THE_PROGRAM"

// limitsAt is where the limits commands of a page work in the place of the default address, on which
// something else may listen here, unless the page names a server. OAUTH_SERVER would be where client and user work too.
const limitsAt = "TEST_LIMITS_AT"

func TestMain(m *testing.M) {
	if hashing.IsChild(os.Args) { // of a server in this binary: it has no other environment
		Main()
	}
	if os.Getenv(beProgram) != "" {
		if at := os.Getenv(limitsAt); at != "" && len(os.Args) > 1 && os.Args[1] == "limits" && os.Getenv("OAUTH_SERVER") == "" {
			_ = os.Setenv("OAUTH_SERVER", at)
		}
		Main()
		return
	}
	os.Exit(m.Run())
}

// process is a running oauth-server.
type process struct {
	*exec.Cmd
	stdout check.Buffer
	log    check.Buffer
	lines  chan string // of standard error
	done   chan error
}

// noDrain has servers stop at once after SIGTERM, in tests that are not about that.
const noDrain = "OAUTH_DRAIN_DELAY=0s"

// newProgram is oauth-server with those arguments and without our environment.
func newProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check.OK(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "OAUTH_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, beProgram+"=1", noDrain)
	return cmd
}

// launch starts a process and kills it when the test ends, if it still runs.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: newProgram(t, args...), lines: make(chan string, 1024), done: make(chan error, 1)}
	stderr, err := p.StderrPipe()
	check.OK(t, err)
	p.Stdout = &p.stdout
	check.OK(t, p.Start())
	go func() {
		lines := bufio.NewScanner(io.TeeReader(stderr, &p.log))
		for lines.Scan() {
			p.lines <- lines.Text()
		}
		close(p.lines)
		p.done <- p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		for range p.lines { // until it is gone
		}
	})
	return p
}

// listening waits for the line that says so and returns the address in it.
func (p *process) listening(t *testing.T) string {
	t.Helper()
	for line := range p.lines {
		if _, rest, ok := strings.Cut(line, "msg=listening address="); ok {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatalf("it ended without listening:\n%s", p.log.String())
	return ""
}

// awaitLog waits for a line that contains the text.
func (p *process) awaitLog(t *testing.T, text string) {
	t.Helper()
	for line := range p.lines {
		if strings.Contains(line, text) {
			return
		}
	}
	t.Fatalf("it ended without %q:\n%s", text, p.log.String())
}

// status waits for the end and returns the exit status, -1 for a signal's.
func (p *process) status(t *testing.T) int {
	t.Helper()
	err := <-p.done
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// stop ends the process by SIGTERM, which must succeed.
func (p *process) stop(t *testing.T) {
	t.Helper()
	check.OK(t, p.Process.Signal(syscall.SIGTERM))
	if status := p.status(t); status != command.ExitOK {
		t.Errorf("exit status %d after SIGTERM:\n%s", status, p.log.String())
	}
}

// run executes a command line in this process.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &command.Env{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs}
	status = execute(t.Context(), c, args)
	return out.String(), errs.String(), status
}

// runOK executes a command line that must succeed.
func runOK(t *testing.T, stdin string, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, status := run(t, stdin, args...)
	if status != command.ExitOK {
		t.Fatalf("%q: status %d: %s%s", args, status, stdout, stderr)
	}
	return stdout
}

// runFails executes a command line that must end with that status, and say why on standard error.
func runFails(t *testing.T, want int, says, stdin string, args ...string) (stderr string) {
	t.Helper()
	stdout, stderr, status := run(t, stdin, args...)
	if status != want || !strings.Contains(stderr, says) {
		t.Errorf("%q: status %d, want %d and %q: %s%s", args, status, want, says, stdout, stderr)
	}
	return stderr
}

// has fails the test unless the text contains each of the parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

// runJSON executes a command line that must succeed and decodes its answer.
func runJSON(t *testing.T, into any, stdin string, args ...string) {
	t.Helper()
	stdout := runOK(t, stdin, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		t.Fatalf("%v: %v in %q", args, err, stdout)
	}
}

// storeFile returns the path of a new data file.
func storeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: path}})
	check.OK(t, err)
	check.OK(t, store.Close())
	return path
}

// postForm posts a form as the client.
func postForm(t *testing.T, address string, as credentials, form url.Values) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	check.OK(t, err)
	req.SetBasicAuth(as.ClientID, as.ClientSecret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(t, req)
}

// send sends a request and reads the answer to its end.
func send(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	check.OK(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	check.OK(t, err)
	return res.StatusCode, string(text)
}

// askToken gets a token with client_credentials.
func askToken(t *testing.T, server string, as credentials) string {
	t.Helper()
	status, body := postForm(t, server+"/token", as, url.Values{"grant_type": {"client_credentials"}})
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &token); err != nil || status != http.StatusOK || token.AccessToken == "" {
		t.Fatalf("status %d: %s", status, body)
	}
	return token.AccessToken
}

// The answers of commands with -o json, as a script reads them.
type (
	credentials struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	shownKey struct {
		ID         string    `json:"kid"`
		State      string    `json:"state"`
		ActiveFrom time.Time `json:"active_from"`
		Encryption string    `json:"encryption"`
	}
	replaced struct {
		Made      []shownKey `json:"made"`
		Withdrawn []string   `json:"withdrawn"`
	}
	shownBackup struct {
		Bytes   int64          `json:"bytes"`
		Records map[string]int `json:"records"`
		Event   *time.Time     `json:"newest_event"`
	}
	shownMigration struct {
		Name      string     `json:"name"`
		AppliedAt *time.Time `json:"applied_at"`
		Commands  []string   `json:"commands"`
	}
	build struct {
		Version  string `json:"version"`
		Revision string `json:"revision"`
		Go       string `json:"go"`
	}
)
