package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/cli/command"
)

// The log of a server that was stopped has each request, even if a second signal ends it at once. A person who
// stops a server at a terminal, by Ctrl-C, does not wait for load balancers.
func TestStopWritesTheLog(t *testing.T) {
	const requests = 200
	for name, signals := range map[string][]syscall.Signal{"Ctrl-C": {syscall.SIGINT}, "two signals": {syscall.SIGTERM, syscall.SIGTERM}} {
		t.Run(name, func(t *testing.T) {
			p := launchOperated(t, "serve", "--data", storeFile(t), "--drain-delay", "1h")
			for range requests {
				page(t, p.clients+"/.well-known/jwks.json")
			}
			check.OK(t, p.Process.Signal(signals[0]))
			want := command.ExitOK
			if len(signals) > 1 {
				p.awaitLog(t, "msg=draining")
				check.OK(t, p.Process.Signal(signals[1]))
				want = -1
			}
			check.Equal(t, "status", p.status(t), want)
			check.Equal(t, "lines", strings.Count(p.log.String(), "path=/.well-known/jwks.json status=200"), requests)
		})
	}
}

// A log that cannot be written does not stop the server. Its exit status reports it.
func TestFullLog(t *testing.T) {
	r, unread, err := os.Pipe()
	check.OK(t, errors.Join(err, r.Close()))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this system has no /dev/full")
	}
	check.OK(t, err)
	for name, log := range map[string]*os.File{"full disk": full, "no reader": unread} {
		t.Run(name, func(t *testing.T) {
			defer func() { _ = log.Close() }()
			clients := testworld.FreeAddress(t)
			cmd := newProgram(t, "serve", "--listen", clients, "--admin-listen=", "--data", storeFile(t))
			cmd.Stderr = log
			check.OK(t, cmd.Start())
			check.Eventually(t, "it answers", func() bool {
				res, err := http.Get("http://" + clients + "/readyz")
				return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
			})
			check.OK(t, cmd.Process.Signal(syscall.SIGTERM))
			check.ErrorSays(t, cmd.Wait(), "exit status 1")
		})
	}
}

// TestSIGTERMDrains: readiness fails first, on both addresses, and for the whole delay every request
// is answered, on new connections too. A second signal, also of the other kind, ends the process at once.
func TestSIGTERMDrains(t *testing.T) {
	data := storeFile(t)
	shop := newClient(t, "shop", "--data", data)
	p := launchOperated(t, "serve", "--data", data, "--drain-delay", "1h")
	ready := func(want int) {
		t.Helper()
		for _, address := range []string{p.clients + "/readyz", p.operators + "/readyz"} {
			check.Equal(t, address, statusOf(t, address), want)
		}
	}
	ready(http.StatusOK)
	check.OK(t, p.Process.Signal(syscall.SIGTERM))
	p.awaitLog(t, "msg=draining")
	ready(http.StatusServiceUnavailable)
	for range 20 {
		http.DefaultClient.CloseIdleConnections()
		askToken(t, p.clients, shop)
	}
	check.Equal(t, "status of /healthz", statusOf(t, p.clients+"/healthz"), http.StatusOK)
	check.OK(t, p.Process.Signal(syscall.SIGINT))
	check.Equal(t, "status, which is that of a signal", p.status(t), -1)
}

// TestStopAfterTheDrain: after the delay the server stops as it does without one. It says each step once, and
// keeps standard output for answers.
func TestStopAfterTheDrain(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--drain-delay", "50ms")
	p.listening(t)
	p.stop(t)
	said := regexp.MustCompile(`msg=(listening|draining|stopping|stopped)`).FindAllString(p.log.String(), -1)
	check.Equal(t, "the log", said, []string{"msg=listening", "msg=draining", "msg=stopping", "msg=stopped"})
	check.Equal(t, "standard output", p.stdout.String(), "")
}

// configFile is a configuration file with a limit for clients, to be changed.
func configFile(t *testing.T, requests int, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oauth-server.yaml")
	writeLimit(t, path, requests, more...)
	return path
}

func writeLimit(t *testing.T, path string, requests int, more ...string) {
	t.Helper()
	text := fmt.Sprintf("rate_limit: { default: { client: [ { name: per-hour, requests: %d, window: 1h } ] } }\n", requests)
	check.OK(t, os.WriteFile(path, []byte(text+strings.Join(more, "\n")), 0o600))
}

// A configuration file that changes while the server runs: limits are others and no count is lost, an invalid
// one is refused, and what needs a restart is named; all without a restart.
func TestConfigurationFileChangesWhileServing(t *testing.T) {
	t.Parallel() // it mostly waits
	file := configFile(t, 6)
	o := newManaged(t, "--config", file)
	shop := newClient(t, "app", "--data", o.data)
	passed := func(n int) (passed int) {
		t.Helper()
		for range n {
			if tokenStatus(t, o.clients, shop) == http.StatusOK {
				passed++
			}
		}
		return passed
	}
	check.Equal(t, "passed of 6", passed(5), 5)

	writeLimit(t, file, 8)
	o.awaitLog(t, `msg="configuration file reloaded" changed=[rate_limit.default.client]`)
	check.Equal(t, "passed after 6 became 8", passed(5), 3)

	writeLimit(t, file, 9)
	o.hangups <- syscall.SIGHUP
	o.awaitLog(t, `msg="configuration file unchanged"`)
	check.Equal(t, "passed after 8 became 9", passed(5), 1)

	writeLimit(t, file, 100, "drain_delay: x", "no_such_field: 1")
	o.awaitLog(t, `level=ERROR msg="configuration file rejected; keeping the last valid one"`)
	check.Equal(t, "passed", passed(1), 0)
	has(t, o.log.String(), "oauth-server.yaml:2", "oauth-server.yaml:3")
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"),
		`{"status":"ready","checks":{"configuration_file":"the changed file is refused; the last good one stays in use"}}`)
	o.shows("status", ", the newest is invalid: ")

	writeLimit(t, file, 10, "tokens: { access_ttl: 5m }")
	o.awaitLog(t, `need a restart; all other changes are applied" fields=[tokens.access_ttl]`)
	check.Equal(t, "passed after 9 became 10", passed(5), 1)
	o.shows("status", ", restart needed for tokens.access_ttl")
}

// Two instances with different files: limits status says which, and the metrics differ, until both have one.
func TestInstancesWithDifferentFiles(t *testing.T) {
	db, shop := databaseWithShop(t)
	ops := newClient(t, "ops --admin", db...)
	files := []string{configFile(t, 600), configFile(t, 700)}
	var all []operated
	for _, file := range files {
		all = append(all, serving(t, append([]string{"serve", "--config", file, "--issuer", "http://127.0.0.1:9096"}, db...)...))
	}
	token := askToken(t, all[0].clients, ops)
	instances := func() string {
		text, _, _ := run(t, "", "limits", "status", "--server", all[0].operators, "--token", token)
		return text
	}
	hash := func(o operated) string {
		return regexp.MustCompile(`\noauth_config_limits_hash .*`).FindString(page(t, o.operators+"/metrics"))
	}
	check.Eventually(t, "it says which differ", func() bool {
		return strings.Contains(instances(), "\n\nThe limits in the configuration files differ: ")
	})
	if hash(all[0]) == hash(all[1]) {
		t.Errorf("both have the hash %s", hash(all[0]))
	}
	// What comes of a change is the same, wherever it is made, except for what the files say.
	for _, o := range all {
		run(t, "", "limits", "set", "shop", "--client", "5/1h", "--yes", "--server", o.operators, "--token", token)
	}
	writeLimit(t, files[1], 600)
	all[1].hangups <- syscall.SIGHUP
	check.Eventually(t, "they agree", func() bool {
		text := instances()
		return strings.Count(text, "current") == 2 && !strings.Contains(text, "differ")
	})
	check.Equal(t, "hashes", hash(all[0]), hash(all[1]))
	for _, o := range all {
		check.Eventually(t, "the limit set by an operator holds", func() bool {
			return tokenStatus(t, o.clients, shop) == http.StatusTooManyRequests
		})
	}
}
