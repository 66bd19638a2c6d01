package main

import (
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/hashing"
)

// TestWherePasswordsAreHashed by the server, as its metrics show it.
func TestWherePasswordsAreHashed(t *testing.T) {
	data := storeFile(t)
	var app credentials
	runJSON(t, &app, "", "client", "create", "app", "--grant", "password", "--data", data)
	_, stderr, status := run(t, adaPassword, "user", "create", "ada", "--password-stdin", "--data", data)
	check.Equal(t, stderr, status, exitOK)
	usual := "process"
	if runtime.GOOS != "linux" || hashing.Quota(os.DirFS("/"), runtime.NumCPU()) > 0 {
		usual = "server"
	}
	for _, tt := range []struct{ setting, place string }{{"auto", usual}, {"off", "server"}} {
		t.Run(tt.setting, func(t *testing.T) {
			p := launchOperated(t, "serve", "--data", data, "--passwords-processes", tt.setting)
			check.Eventually(t, "hashed in the "+tt.place, func() bool { // not with the first, if the machine is too busy
				for password, want := range map[string]int{adaPassword: http.StatusOK, "not " + adaPassword: http.StatusBadRequest} {
					status, body := postForm(t, p.clients+"/token", app, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}})
					check.Equal(t, "status with "+password+": "+body, status, want)
				}
				return !strings.Contains(page(t, p.operators+"/metrics"), `oauth_password_hashes_total{place="`+tt.place+`"} 0`+"\n")
			})
			p.stop(t)
			text := p.log.String()
			check.Equal(t, "a reason in the log", strings.Contains(text, `msg="passwords are hashed in the server" reason=`), tt.place == "server")
			if strings.Contains(text, adaPassword) {
				t.Error("the log has the password")
			}
		})
	}
}

// TestProcessesAreInTheMemoryLimit that the environment sets.
func TestProcessesAreInTheMemoryLimit(t *testing.T) {
	old := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(old)
	for others, want := range map[int64]int64{0: 1 << 30, 1 << 28: 3 << 28, 1 << 40: 1 << 29} {
		restore := shareMemory(others)
		check.Equal(t, "limit", debug.SetMemoryLimit(-1), want)
		restore()
		check.Equal(t, "limit afterwards", debug.SetMemoryLimit(-1), int64(1<<30))
	}
}
