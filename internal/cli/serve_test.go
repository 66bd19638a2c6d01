package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/cli/command"
)

func TestServeListensAndStopsOnASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t))
			addr := p.listening(t)
			res, err := http.Get("http://" + addr + "/healthz")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", res, err)
			}
			_ = res.Body.Close()
			check.OK(t, p.Process.Signal(signal))
			if status := p.status(t); status != command.ExitOK {
				t.Errorf("status %d:\n%s", status, p.log.String())
			}
			if out := p.stdout.String(); out != "" {
				t.Errorf("standard output is for answers: %q", out)
			}
			if n := strings.Count(p.log.String(), "listening"); n != 1 {
				t.Errorf("%d lines say listening", n)
			}
		})
	}
}

// The log of a server that was stopped has each request, even if a second signal ends it at once.
func TestStopWritesTheLog(t *testing.T) {
	const requests = 200
	for name, signals := range map[string]int{"one signal": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--drain-delay", "1h")
			addr := p.listening(t)
			for range requests {
				res, err := http.Get("http://" + addr + "/.well-known/jwks.json")
				check.OK(t, err)
				_, err = io.Copy(io.Discard, res.Body)
				check.OK(t, errors.Join(err, res.Body.Close()))
			}
			want := command.ExitOK
			if signals == 1 {
				check.OK(t, p.Process.Signal(syscall.SIGINT))
			} else {
				check.OK(t, p.Process.Signal(syscall.SIGTERM))
				p.awaitLog(t, "msg=draining")
				check.OK(t, p.Process.Signal(syscall.SIGTERM))
				want = -1
			}
			check.Equal(t, "status", p.status(t), want)
			check.Equal(t, "lines", strings.Count(p.log.String(), "path=/.well-known/jwks.json status=200"), requests)
		})
	}
}

// A log that cannot be written does not stop the server. Its exit status reports it.
func TestFullLog(t *testing.T) {
	for name, open := range map[string]func() (*os.File, error){
		"full disk": func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) },
		"no reader": func() (*os.File, error) {
			r, w, err := os.Pipe()
			return w, errors.Join(err, r.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := open()
			if errors.Is(err, os.ErrNotExist) {
				t.Skip("this system has no /dev/full")
			}
			check.OK(t, err)
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

func TestSecondSignalQuitsAtOnce(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--shutdown-timeout", "1h")
	conn, err := net.Dial("tcp", p.listening(t))
	check.OK(t, err)
	defer func() { _ = conn.Close() }()
	// A request whose body never comes keeps the graceful stop waiting.
	_, err = fmt.Fprint(conn, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	check.OK(t, err)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.awaitLog(t, "msg=stopping")
	_ = p.Process.Signal(syscall.SIGTERM)
	if status := p.status(t); status != -1 {
		t.Errorf("status %d, want to be ended by the signal:\n%s", status, p.log.String())
	}
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

// TestSIGTERMDrains: readiness fails first, on both addresses, and for the whole delay every request
// is answered, on new connections too. A second signal, of either kind, ends the process at once.
func TestSIGTERMDrains(t *testing.T) {
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("then "+second.String(), func(t *testing.T) {
			data := storeFile(t)
			var shop credentials
			runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
			p := launchOperated(t, "serve", "--data", data, "--drain-delay", "1h")
			readiness := []string{p.clients + "/readyz", p.operators + "/readyz"}
			for _, address := range readiness {
				check.Equal(t, address, statusOf(t, address), http.StatusOK)
			}
			check.OK(t, p.Process.Signal(syscall.SIGTERM))
			p.awaitLog(t, "msg=draining")
			for _, address := range readiness {
				check.Equal(t, address, statusOf(t, address), http.StatusServiceUnavailable)
			}
			for range 20 {
				http.DefaultClient.CloseIdleConnections()
				askToken(t, p.clients, shop)
			}
			check.Equal(t, "status of /healthz", statusOf(t, p.clients+"/healthz"), http.StatusOK)
			check.OK(t, p.Process.Signal(second))
			if status := p.status(t); status != -1 {
				t.Errorf("status %d, want to be ended by the signal:\n%s", status, p.log.String())
			}
		})
	}
}

// TestStopAfterTheDrain: after the delay the server stops as it does without one.
func TestStopAfterTheDrain(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--drain-delay", "50ms")
	p.listening(t)
	p.stop(t)
	var said []string
	for line := range strings.Lines(p.log.String()) {
		for _, msg := range []string{"draining", "stopping", "stopped"} {
			if strings.Contains(line, "msg="+msg) {
				said = append(said, msg)
			}
		}
	}
	check.Equal(t, "the log", said, []string{"draining", "stopping", "stopped"})
}

// TestCtrlCDoesNotDrain: a person who stops a server at a terminal does not wait for load balancers.
func TestCtrlCDoesNotDrain(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--drain-delay", "1h")
	p.listening(t)
	check.OK(t, p.Process.Signal(syscall.SIGINT))
	check.Equal(t, "status", p.status(t), command.ExitOK)
	if strings.Contains(p.log.String(), "draining") {
		t.Errorf("it drained:\n%s", p.log.String())
	}
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
	data := storeFile(t)
	var shop, ops credentials
	runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	file := configFile(t, 6)
	o := serving(t, "serve", "--config", file, "--data", data, "--issuer", "http://127.0.0.1:9096")
	token := askToken(t, o.clients, ops)
	passed := func(n int) (passed int) {
		t.Helper()
		for range n {
			if status, _ := postForm(t, o.clients+"/token", shop, url.Values{"grant_type": {"client_credentials"}}); status == http.StatusOK {
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
	instances := []string{"limits", "status", "--server", o.operators, "--token", token}
	has(t, runOK(t, "", instances...), ", the newest is invalid: ")

	writeLimit(t, file, 10, "tokens: { access_ttl: 5m }")
	o.awaitLog(t, `need a restart; all other changes are applied" fields=[tokens.access_ttl]`)
	check.Equal(t, "passed after 9 became 10", passed(5), 1)
	has(t, runOK(t, "", instances...), ", restart needed for tokens.access_ttl")
	o.stop(t)
}

// Two instances with different files: limits status says which, and the metrics differ, until both have one.
func TestInstancesWithDifferentFiles(t *testing.T) {
	db, shop := databaseWithShop(t)
	var ops credentials
	runJSON(t, &ops, "", append([]string{"client", "create", "ops", "--admin"}, db...)...)
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
		_, rest, _ := strings.Cut(page(t, o.operators+"/metrics"), "\noauth_config_limits_hash ")
		value, _, _ := strings.Cut(rest, "\n")
		return value
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
			status, _ := postForm(t, o.clients+"/token", shop, url.Values{"grant_type": {"client_credentials"}})
			return status == http.StatusTooManyRequests
		})
	}
}
