package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/overload/hashing"
)

// TestWherePasswordsAreHashed by the server, as its processes and its log show it. How many were hashed where is not
// tested here: on a busy machine a process of the lowest priority may be late with each.
func TestWherePasswordsAreHashed(t *testing.T) {
	data := storeFile(t)
	var app credentials
	runJSON(t, &app, "", "client", "create", "app", "--grant", "password", "--data", data)
	runOK(t, adaPassword, "user", "create", "ada", "--password-stdin", "--data", data)
	supported := runtime.GOOS == "linux" && hashing.Quota(os.DirFS("/"), runtime.NumCPU()) == 0
	for setting, processes := range map[string]bool{"auto": supported, "off": false} {
		t.Run(setting, func(t *testing.T) {
			p := launchOperated(t, "serve", "--data", data, "--passwords-processes", setting)
			check.Equal(t, "it has processes that hash", hashes(t, p.Process.Pid), processes)
			for password, want := range map[string]int{adaPassword: http.StatusOK, "not " + adaPassword: http.StatusBadRequest} {
				status, body := postForm(t, p.clients+"/token", app, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}})
				check.Equal(t, "status with "+password+": "+body, status, want)
			}
			has(t, page(t, p.operators+"/metrics"), `oauth_password_hashes_total{place="`)
			p.stop(t)
			text := p.log.String()
			check.Equal(t, "a reason in the log", strings.Contains(text, `msg="hashing passwords in the server process" reason=`), !processes)
			if strings.Contains(text, adaPassword) {
				t.Error("the log has the password")
			}
		})
	}
}

// hashes reports whether a process has a child that hashes.
func hashes(t *testing.T, pid int) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check.OK(t, err)
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), hashing.Argument) {
			continue // it has ended, or is another program
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", pid)) {
			return true
		}
	}
	return false
}
