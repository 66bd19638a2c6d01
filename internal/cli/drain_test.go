package cli

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

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
