//go:build unix

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestHangupWhileTheServerStarts: SIGHUP does not end a server that has not read its configuration file yet.
func TestHangupWhileTheServerStarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, syscall.Mkfifo(file, 0o600))
	p := launch(t, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin-listen", "", "--data", storeFile(t))
	var f *os.File
	check.Eventually(t, "the server reads its configuration", func() (opened bool) {
		var err error
		f, err = os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	check.OK(t, p.Process.Signal(syscall.SIGHUP))
	_, err := f.WriteString("log: { level: debug }\n")
	check.OK(t, err)
	check.OK(t, f.Close())
	p.listening(t)
	check.Eventually(t, "it is looked at after the start", func() bool {
		return strings.Contains(p.log.String(), "no configuration file to reload") // a pipe is read once
	})
	p.stop(t)
}

// TestFrozenInstanceIssuesNothingOfWorth: an instance that was stopped, and cannot reach the database when
// it runs again, accepts the old secret long after a revocation. What it issues is worthless to all others,
// and to itself once it has read its clients. So it is with one whose client was deleted and created anew.
func TestFrozenInstanceIssuesNothingOfWorth(t *testing.T) {
	r := newCluster(t, 2)
	proxy := mongotest.NewProxy(t, r.db[1])
	frozen := launchOperated(t, "serve", "--issuer", "http://127.0.0.1:9096", "--mongodb-uri", proxy.URI, r.db[2], r.db[3])
	for _, end := range []func(){
		func() {
			runJSON(t, &r.ops, "", r.on("client", "rotate-secret", "ops", "--revoke")...)
		},
		func() {
			runJSON(t, &struct{}{}, "", r.on("client", "delete", "ops", "--confirm", "ops")...)
			r.ops = newClient(t, "ops --admin", r.db...)
		},
	} {
		check.OK(t, frozen.Process.Signal(syscall.SIGSTOP))
		proxy.Break()
		old := r.ops
		end()
		check.OK(t, frozen.Process.Signal(syscall.SIGCONT))
		token := askToken(t, frozen.clients, old)
		for _, o := range r.instances {
			check.Eventually(t, "the instance has followed", func() bool { return tokenStatus(t, o.clients, r.ops) == http.StatusOK })
			check.Equal(t, "status", r.admin(o, token), http.StatusUnauthorized)
			check.Equal(t, "active", r.active(o, r.ops, token), false)
		}
		proxy.Restore()
		check.Eventually(t, "the instance has followed", func() bool { return tokenStatus(t, frozen.clients, r.ops) == http.StatusOK })
		check.Equal(t, "status", r.admin(frozen, token), http.StatusUnauthorized)
		r.good()
	}
}
