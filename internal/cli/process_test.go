package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"

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

// process is a running oauth-server: a process, or a server in this one.
type process struct {
	*exec.Cmd                         // nil: in this process
	end       context.CancelCauseFunc // of a server in this process
	hangups   chan os.Signal          // likewise: has it read its configuration file again
	stdout    check.Buffer
	log       check.Buffer
	lines     chan string // of the log, the newest thousands
	done      chan error
	ended     chan struct{}
}

func newProcess() *process {
	return &process{lines: make(chan string, 4096), done: make(chan error, 1), ended: make(chan struct{})}
}

// Write implements [io.Writer] for the log. It gets whole lines.
func (p *process) Write(b []byte) (int, error) {
	_, _ = p.log.Write(b)
	for line := range strings.Lines(string(b)) {
		select {
		case p.lines <- strings.TrimSuffix(line, "\n"):
		default: // nobody reads
		}
	}
	return len(b), nil
}

// finish notes how it ended.
func (p *process) finish(err error) {
	p.done <- err
	close(p.ended)
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

// launch starts a process and kills it when the test ends, if it still runs. It costs several times as
// much as [serving], so it is for signals, crashes and what a process does to itself.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := newProcess()
	p.Cmd = newProgram(t, args...)
	stderr, err := p.StderrPipe()
	check.OK(t, err)
	p.Stdout = &p.stdout
	check.OK(t, p.Start())
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			_, _ = p.Write(append(lines.Bytes(), '\n'))
		}
		p.finish(p.Wait())
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	return p
}

// operated is a running server with the address that operators are served on.
type operated struct {
	*process
	clients, operators string // base addresses
}

// anywhere are the flags for free addresses.
func anywhere(args []string) []string {
	return append(slices.Clone(args), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
}

// serving runs a server or gateway in this process until the test ends, with that command line.
func serving(t *testing.T, args ...string) operated {
	t.Helper()
	return servingAt(t, anywhere(args)...)
}

// servingAt is serving with the addresses of the command line.
func servingAt(t *testing.T, args ...string) operated {
	t.Helper()
	cmd := &cobra.Command{Use: args[0]}
	settings := command.AddSettings(cmd, func(config.Option) bool { return true })
	check.OK(t, cmd.ParseFlags(args[1:]))
	sources := settings.Sources([]string{noDrain})
	cfg, err := config.Load(sources)
	check.OK(t, err)
	p := newProcess()
	p.hangups = make(chan os.Signal, 1)
	ctx, end := context.WithCancelCause(context.Background())
	p.end = end
	o, listening := operated{process: p}, make(chan struct{})
	opts := app.Options{Sources: &sources, Reread: p.hangups, Level: &slog.LevelVar{}}
	opts.Logger = app.NewLeveledLogger(cfg.Log, opts.Level, p)
	var once sync.Once
	opts.Listening = func(s *app.Server) {
		once.Do(func() { // not after a restart
			_, operators, _ := strings.Cut(s.AdminURL(), "://")
			o.clients, o.operators = "http://"+s.Addr(), "http://"+operators
			close(listening)
		})
	}
	go func() { p.finish(app.Serve(ctx, cfg, opts)) }()
	t.Cleanup(func() {
		end(nil)
		<-p.ended
	})
	select {
	case <-listening:
	case <-p.ended:
		t.Fatalf("it ended without listening: %v\n%s", <-p.done, p.log.String())
	}
	return o
}

// launchOperated is [launch] of a server, which has free addresses.
func launchOperated(t *testing.T, args ...string) operated {
	t.Helper()
	p := launch(t, anywhere(args)...)
	line := p.awaitLog(t, "msg=listening address=")
	_, clients, _ := strings.Cut(line, " address=")
	_, operators, _ := strings.Cut(line, "admin_address=")
	return operated{p, "http://" + strings.Fields(clients)[0], "http://" + strings.Fields(operators)[0]}
}

// listening waits for the line that says so and returns the address in it.
func (p *process) listening(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(p.awaitLog(t, "msg=listening address="), " address=")
	return strings.Fields(rest)[0]
}

// awaitLog waits for a line that contains the text.
func (p *process) awaitLog(t *testing.T, text string) string {
	t.Helper()
	for {
		select {
		case line := <-p.lines:
			if strings.Contains(line, text) {
				return line
			}
			continue
		default:
		}
		select {
		case line := <-p.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-p.ended:
			if len(p.lines) == 0 {
				t.Fatalf("it ended without %q:\n%s", text, p.log.String())
			}
		}
	}
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

// stop ends it as SIGTERM does, which must succeed.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.Cmd == nil {
		p.end(app.ErrTerminated)
	} else {
		check.OK(t, p.Process.Signal(syscall.SIGTERM))
	}
	if status := p.status(t); status != command.ExitOK {
		t.Errorf("exit status %d after SIGTERM:\n%s", status, p.log.String())
	}
}

// run executes a command line in this process.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return runWith(t, nil, stdin, args...)
}

// runWith is run with an environment.
func runWith(t *testing.T, environ []string, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &command.Env{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs, Environ: environ}
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

// runSays executes a command line that must succeed, and returns what it writes to standard error.
func runSays(t *testing.T, stdin string, args ...string) (stderr string) {
	t.Helper()
	stdout, stderr, status := run(t, stdin, args...)
	if status != command.ExitOK {
		t.Fatalf("%q: status %d: %s%s", args, status, stdout, stderr)
	}
	return stderr
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

// hasNot fails the test if the text contains one of the parts.
func hasNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("it says %q:\n%s", part, text)
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

// managed is a running server with the clients shop and batch, and with an operator.
type managed struct {
	operated
	t     *testing.T
	ops   credentials
	token string
	file  string // a place for a file of limits
	data  string // the file of its store
}

// firstChange is the number of the first change of limits, after three clients and the first keys.
const firstChange = 5

// newManaged starts a server with these flags.
func newManaged(t *testing.T, flags ...string) *managed {
	t.Helper()
	s := &managed{t: t, data: storeFile(t), file: filepath.Join(t.TempDir(), "limits.yaml")}
	s.ops = newClient(t, "ops --admin", "--data", s.data)
	newClient(t, "shop", "--data", s.data)
	newClient(t, "batch", "--data", s.data)
	s.operated = serving(t, append([]string{"serve", "--data", s.data}, flags...)...)
	s.token = askToken(t, s.clients, s.ops)
	return s
}

// at returns a command line for the server with the token of the operator.
func (s *managed) at(args string) []string {
	return append(strings.Fields(args), "--server", s.operators, "--token", s.token)
}

// environ has the address of the server and the credentials of the operator.
func (s *managed) environ() []string {
	return []string{"OAUTH_SERVER=" + s.operators, "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=" + s.ops.ClientSecret}
}

// args returns a limits command for the server. FILE stands for the file of limits.
func (s *managed) args(args string) []string {
	return s.at("limits " + strings.ReplaceAll(args, "FILE", s.file))
}

// limits runs a limits command, which must have that exit status.
func (s *managed) limits(status int, args string) (stdout, stderr string) {
	s.t.Helper()
	stdout, stderr, got := run(s.t, "", s.args(args)...)
	if got != status {
		s.t.Fatalf("limits %s: status %d, want %d:\n%s%s", args, got, status, stdout, stderr)
	}
	return stdout, stderr
}

// shows runs a limits command that must succeed, and checks its output, with single spaces between the columns.
func (s *managed) shows(args string, parts ...string) {
	s.t.Helper()
	s.prints(0, args, parts...)
}

// prints is shows for a command with that exit status.
func (s *managed) prints(status int, args string, parts ...string) {
	s.t.Helper()
	stdout, _ := s.limits(status, args)
	has(s.t, table(stdout), parts...)
}

// says runs a limits command, which must have that exit status and write that to standard error.
func (s *managed) says(status int, args string, parts ...string) {
	s.t.Helper()
	_, stderr := s.limits(status, args)
	has(s.t, stderr, parts...)
}

// version returns the version of all policies.
func (s *managed) version() int64 {
	s.t.Helper()
	var set struct{ Version int64 }
	runJSON(s.t, &set, "", s.args("export")...)
	return set.Version
}

// write writes the file of limits.
func (s *managed) write(text string) {
	s.t.Helper()
	check.OK(s.t, os.WriteFile(s.file, []byte(text), 0o600))
}

// newClient registers a client in a store, and returns its credentials.
func newClient(t *testing.T, args string, store ...string) (made credentials) {
	t.Helper()
	runJSON(t, &made, "", append(strings.Fields("client create "+args), store...)...)
	return made
}

// on returns a command line with the data file.
func on(data, args string) []string { return append(strings.Fields(args), "--data", data) }

// adaPassword is the password of the users that [addUsers] adds.
const adaPassword = "correct horse battery staple"

// addUsers adds users with [adaPassword]. An imported hash saves what the check of a password costs.
func addUsers(t *testing.T, flags []string, names ...string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(adaPassword), bcrypt.MinCost)
	check.OK(t, err)
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, `{"username": %q, "password_hash": %q}`+"\n", name, hash)
	}
	runOK(t, lines.String(), append([]string{"user", "import", "-"}, flags...)...)
}

// storeFile returns the path of a new data file.
func storeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	inStore(t, path, func(app.Store) {})
	return path
}

// inStore opens a data file for what no command can do.
func inStore(t *testing.T, path string, do func(app.Store)) {
	t.Helper()
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: path}})
	check.OK(t, err)
	do(store)
	check.OK(t, store.Close())
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

// page is the body that an address answers a GET with.
func page(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	check.OK(t, err)
	status, body := send(t, req)
	check.Equal(t, "status of "+address, status, http.StatusOK)
	return body
}

// statusOf returns the status of an answer on a connection of its own, as a load balancer's probe and
// a new client have one.
func statusOf(t *testing.T, address string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	check.OK(t, err)
	req.Close = true
	status, _ := send(t, req)
	return status
}

// adminStatus is the status that the admin API answers a token with.
func adminStatus(t *testing.T, operators, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, operators+"/admin/v1/settings", http.NoBody)
	check.OK(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	status, _ := send(t, req)
	return status
}

// tokenStatus is the status of a request with client_credentials.
func tokenStatus(t *testing.T, server string, as credentials) int {
	t.Helper()
	status, _ := postForm(t, server+"/token", as, url.Values{"grant_type": {"client_credentials"}})
	return status
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
