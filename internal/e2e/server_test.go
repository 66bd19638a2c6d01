package e2e

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// startTimeout is how long a server may take to listen, and to stop. A slow
// machine needs some of it; nothing asserts how fast it is.
const startTimeout = 30 * time.Second

// unlimited is a configuration for tests that are about something else.
const unlimited = "rate_limit: { mode: \"off\" }\n"

// quiet is a configuration for benchmarks: without a log line per request.
const quiet = "log: { level: error }\n"

// buildFlags are handed to go build.
var buildFlags []string

// server is the command, running on a store of its own.
type server struct {
	tb     testing.TB
	Issuer string
	file   string     // the configuration
	quiet  bool       // logs no more than errors
	binary string     // the command, if it is not that under test
	files  []*os.File // that it inherits, as descriptors from 3 on
	args   []string
	cmd    *exec.Cmd
	logs   *logs
	exited chan struct{} // closed when the process has ended
}

// start runs a server with the configuration text on a copy of the fixture.
func start(tb testing.TB, config string) *server {
	tb.Helper()
	dir := tb.TempDir()
	data, err := os.ReadFile(fixture)
	check.OK(tb, err)
	store := filepath.Join(dir, "store.db")
	check.OK(tb, os.WriteFile(store, data, 0o600))
	file := filepath.Join(dir, "config.yaml")
	address := testworld.FreeAddress(tb)
	s := &server{tb: tb, Issuer: "http://" + address, file: file, quiet: strings.Contains(config, quiet)}
	s.configure(config)
	s.args = []string{"serve", "--config", file, "--listen", address}
	if !strings.Contains(config, "admin_listen:") { // something else may have the default one
		s.args = append(s.args, "--admin-listen", "127.0.0.1:0")
	}
	s.args = append(s.args, "--issuer", s.Issuer, "--data", store)
	s.up()
	tb.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if tb.Failed() {
			tb.Logf("end of the log of the server:\n%s", s.logs.tail(30))
		}
	})
	return s
}

// data is the path of its store.
func (s *server) data() string { return s.args[len(s.args)-1] }

// configure changes the configuration for the next start.
func (s *server) configure(text string) {
	s.tb.Helper()
	check.OK(s.tb, os.WriteFile(s.file, []byte(text), 0o600))
}

// up starts the process and waits until it says that it listens.
func (s *server) up() {
	s.tb.Helper()
	s.launch()
	s.await()
}

// launch starts the process.
func (s *server) launch() {
	s.tb.Helper()
	s.logs = newLogs("listening")
	s.cmd = exec.Command(cmp.Or(s.binary, binary), s.args...)
	s.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 "+os.Getenv("GORACE"), "OAUTH_DRAIN_DELAY=0s")
	if i := slices.Index(s.args, "--config"); i < 0 || !configuresOverload(s.args[i+1]) {
		// These tests overload the machine, which is not their subject, and processes of the lowest priority have no time beside them.
		s.cmd.Env = append(s.cmd.Env, "OAUTH_OVERLOAD_MODE=off", "OAUTH_PASSWORDS_PROCESSES=off")
	}
	s.cmd.ExtraFiles = s.files
	stderr, err := s.cmd.StderrPipe()
	check.OK(s.tb, err)
	check.OK(s.tb, s.cmd.Start())
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, logs *logs, exited chan<- struct{}) {
		defer close(exited)
		logs.read(bufio.NewScanner(stderr))
		_ = cmd.Wait() // ProcessState says the same
	}(s.cmd, s.logs, s.exited)
}

func configuresOverload(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(text), "overload:")
}

// await waits until the process says that it listens.
func (s *server) await() {
	s.tb.Helper()
	select {
	case <-s.listening():
	case <-s.exited:
		state := s.cmd.ProcessState
		s.cmd = nil
		s.tb.Fatalf("the server did not start: %v\n%s", state, s.logs)
	case <-time.After(startTimeout):
		s.tb.Fatalf("the server does not listen:\n%s", s.logs)
	}
}

// listening is closed when the server answers: when its log says so, or, if
// it is not to log that much, when a connection succeeds.
func (s *server) listening() <-chan struct{} {
	if !s.quiet {
		return s.logs.seen
	}
	answers := make(chan struct{})
	go func() {
		for {
			conn, err := net.Dial("tcp4", strings.TrimPrefix(s.Issuer, "http://"))
			if err == nil {
				_ = conn.Close()
				close(answers)
				return
			}
			select {
			case <-s.exited:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return answers
}

// kill is kill -9.
func (s *server) kill() {
	s.tb.Helper()
	check.OK(s.tb, s.cmd.Process.Kill())
	<-s.exited
	s.cmd = nil
}

// stop sends SIGTERM and returns the exit status.
func (s *server) stop() int {
	s.tb.Helper()
	s.terminate()
	return s.ended()
}

// terminate is SIGTERM.
func (s *server) terminate() {
	s.tb.Helper()
	check.OK(s.tb, s.cmd.Process.Signal(syscall.SIGTERM))
}

// ended waits for the end and returns the exit status.
func (s *server) ended() int {
	s.tb.Helper()
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		s.tb.Fatalf("the server does not stop:\n%s", s.logs)
	}
	status := s.cmd.ProcessState.ExitCode()
	s.cmd = nil
	return status
}

// logs collects what the server writes to stderr.
type logs struct {
	word string
	seen chan struct{} // closed when the word was there

	mu   sync.Mutex
	text strings.Builder
}

func newLogs(word string) *logs { return &logs{word: word, seen: make(chan struct{})} }

func (l *logs) read(lines *bufio.Scanner) {
	found := false
	for lines.Scan() {
		l.mu.Lock()
		l.text.WriteString(lines.Text() + "\n")
		l.mu.Unlock()
		if !found && strings.Contains(lines.Text(), l.word) {
			found = true
			close(l.seen)
		}
	}
}

// String is everything so far.
func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail is the last lines.
func (l *logs) tail(n int) string {
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// newHTTPClient keeps its connections to itself and follows no redirect.
func newHTTPClient(tb testing.TB) *http.Client {
	tb.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       startTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
