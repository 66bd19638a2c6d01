package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

func TestVersion(t *testing.T) {
	var b build
	runJSON(t, &b, "", "version")
	if b.Version == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("%+v", b)
	}
	if out, _, _ := run(t, "", "version"); !strings.HasPrefix(out, "oauth-server ") || strings.Contains(out, "  ") {
		t.Error(out)
	}
}

const healthy = `{"status":"ok"}`

// checkHealth runs the command health with that environment on a machine whose root is that directory.
func checkHealth(t *testing.T, root string, environ []string, args ...string) (out string, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &command.Env{Out: &stdout, ErrOut: &stderr, Environ: environ}
	if root != "" {
		c.Root = os.DirFS(root)
	}
	status = execute(t.Context(), c, append([]string{"health"}, args...))
	return strings.TrimSpace(stdout.String() + stderr.String()), status
}

// TestHealthOfAGateway: the gateway says that it is healthy, and not its upstream, wherever its settings come from.
func TestHealthOfAGateway(t *testing.T) {
	cert, key := selfSigned(t, "login.example")
	upstream := tokenUpstream(t)
	gateway := []string{"gateway", "--upstream", upstream, "--token-path", "/oauth2/token"}
	for name, flags := range map[string][]string{
		"gateway, TLS": append(gateway, "--tls-cert-file", cert, "--tls-key-file", key),
		"judge":        {"gateway", "--judge"},
		"server":       {"serve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := serving(t, append(flags, "--data", storeFile(t))...)
			listen := []string{"--listen", strings.TrimPrefix(o.clients, "http://"), "--admin-listen", strings.TrimPrefix(o.operators, "http://")}
			args := append(append([]string{}, flags[1:]...), listen...)
			var environ []string
			for i := 0; i < len(args); i++ {
				value := "true" // of a flag that needs none
				option := args[i]
				if i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
					i++
					value = args[i]
				}
				environ = append(environ, "OAUTH_"+strings.ToUpper(strings.ReplaceAll(option[2:], "-", "_"))+"="+value)
			}
			container := containerOf(t, append([]string{"/oauth-server", flags[0]}, args...)...)
			for way, ask := range map[string]func() (string, int){
				"flags":         func() (string, int) { return checkHealth(t, "", nil, args...) },
				"admin address": func() (string, int) { return checkHealth(t, "", nil, append(listen, args[len(args)-4:]...)...) },
				"environment":   func() (string, int) { return checkHealth(t, "", environ) },
				"container":     func() (string, int) { return checkHealth(t, container, []string{"OAUTH_LISTEN=0.0.0.0:9096"}) },
			} {
				if way == "admin address" && strings.Contains(name, "TLS") {
					continue // which is not said
				}
				if out, status := ask(); status != command.ExitOK || out != healthy {
					t.Errorf("by the %s: status %d: %s", way, status, out)
				}
			}
			o.stop(t)
			if out, status := checkHealth(t, "", environ); status != command.ExitFailed || !strings.Contains(out, "refused") || !strings.Contains(out, "--admin-listen") {
				t.Errorf("after its stop: status %d: %s", status, out)
			}
		})
	}
}

// containerOf returns the root of a container in which this program is process 1 with that command line.
func containerOf(t *testing.T, line ...string) string {
	t.Helper()
	root := t.TempDir()
	self, err := os.Executable()
	check.OK(t, err)
	for _, process := range []string{"1", "self"} {
		dir := filepath.Join(root, "proc", process)
		check.OK(t, os.MkdirAll(dir, 0o755))
		check.OK(t, os.Symlink(self, filepath.Join(dir, "exe")))
	}
	check.OK(t, os.WriteFile(filepath.Join(root, "proc/1/cmdline"), []byte(strings.Join(line, "\x00")+"\x00"), 0o600))
	return root
}

// TestHealth: what a server answers, and what is asked if nothing is there, as the error says it.
func TestHealth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			_, _ = w.Write([]byte(healthy))
		case "/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"down"}`))
		}
	}))
	t.Cleanup(server.Close)
	cert, key := selfSigned(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte("admin_listen: 127.0.0.1:1\nstore: { mongodb: { uri_file: /no/such } }\n"), 0o600))
	const gateway = "--upstream http://127.0.0.1:2 --token-path /token "
	for name, tc := range map[string]struct {
		args, environ, container string
		status                   int
		says                     string
	}{
		"well":                   {args: "--url " + server.URL + "/healthz", status: command.ExitOK, says: healthy},
		"not well":               {args: "--url " + server.URL + "/readyz", status: command.ExitFailed, says: `the server is not healthy: 503 Service Unavailable {"status":"down"}`},
		"no answer":              {args: "--timeout 10ms --url " + server.URL + "/slow", status: command.ExitFailed, says: "deadline exceeded"},
		"nobody there":           {args: "--url http://127.0.0.1:1/healthz", status: command.ExitFailed, says: "refused"},
		"no URL":                 {args: "--url :", status: command.ExitUsage, says: `--url: ":" is not a URL, such as http://127.0.0.1:9097/readyz`},
		"no scheme":              {args: "--url 127.0.0.1/healthz", status: command.ExitUsage, says: `--url: "127.0.0.1/healthz" is not a URL`},
		"admin address":          {args: "--admin-listen 127.0.0.1:1", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"every address":          {args: "--admin-listen 0.0.0.0:1", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"every address, IPv6":    {args: "--admin-listen [::]:1", status: command.ExitFailed, says: "http://[::1]:1/healthz"},
		"no host":                {args: "--admin-listen :1", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"file":                   {args: "--config " + file, status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"file of a variable":     {environ: "OAUTH_CONFIG=" + file, status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"second server":          {args: "--listen 127.0.0.1:1", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"second gateway":         {args: gateway + "--listen 127.0.0.1:1 --admin-listen 127.0.0.1:3", status: command.ExitFailed, says: "http://127.0.0.1:3/healthz"},
		"server without":         {args: "--listen 127.0.0.1:1 --admin-listen=", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"gateway without":        {args: gateway + "--admin-listen=", status: command.ExitUsage, says: "set admin_listen, or give --url"},
		"judge without":          {environ: "OAUTH_JUDGE=true", args: "--admin-listen=", status: command.ExitUsage, says: "set admin_listen, or give --url"},
		"container without":      {container: "/oauth-server gateway --admin-listen=", status: command.ExitUsage, says: "set admin_listen, or give --url"},
		"container and flags":    {container: "/oauth-server gateway --admin-listen=", args: "--admin-listen 127.0.0.1:1", status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"container of a command": {container: "/oauth-server client list --listen 127.0.0.1:1", environ: "OAUTH_ADMIN_LISTEN=127.0.0.1:3", status: command.ExitFailed, says: "http://127.0.0.1:3/healthz"},
		"client CA":              {args: "--listen 127.0.0.1:1 --admin-listen 127.0.0.1:3 --admin-client-ca " + cert, status: command.ExitFailed, says: "http://127.0.0.1:1/healthz"},
		"client CA, gateway":     {args: gateway + "--admin-client-ca " + cert, status: command.ExitUsage, says: "admin_client_ca is set"},
		"client certificate": {
			args:   gateway + "--admin-listen 127.0.0.1:3 --tls-cert-file " + cert + " --tls-key-file " + key + " --admin-client-ca " + cert + " --cert-file " + cert + " --key-file " + key,
			status: command.ExitFailed, says: "https://127.0.0.1:3/healthz",
		},
		"no address": {args: "--admin-listen 9097", status: command.ExitUsage, says: `admin_listen: "9097" is not host:port`},
	} {
		t.Run(name, func(t *testing.T) {
			root := ""
			if tc.container != "" {
				root = containerOf(t, strings.Fields(tc.container)...)
			}
			out, status := checkHealth(t, root, strings.Fields(tc.environ), strings.Fields(tc.args)...)
			if status != tc.status || !strings.Contains(out, tc.says) {
				t.Errorf("status %d: %s", status, out)
			}
		})
	}
}
