package deploycheck

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/lab/servers"
)

// nginxThatAsks runs nginx with the configuration of docs/gateway/proxies.md, in which only the addresses are replaced.
func nginxThatAsks(t *testing.T, judge, idp string) (address string) {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "docs/gateway/proxies.md"), "```nginx\n")
	text, _, ended := strings.Cut(rest, "```\n")
	check.Equal(t, "docs/gateway/proxies.md has a configuration of nginx", found && ended, true)
	return runNginxThatAsks(t, "events {}\nhttp {\n"+text+"}\n", judge, idp, nil)
}

// runNginxThatAsks runs nginx with that configuration, in which the addresses and what else is given are replaced.
func runNginxThatAsks(t *testing.T, text, judge, idp string, more map[string]string) (address string) {
	t.Helper()
	address = testworld.FreeAddress(t)
	replaced := map[string]string{
		"server 127.0.0.1:9096;": "server " + judge + ";", "server 127.0.0.1:8081;": "server " + idp + ";", "listen 8080;": "listen " + address + ";",
	}
	maps.Copy(replaced, more)
	for old, by := range replaced {
		check.Equal(t, old, strings.Count(text, old), 1)
		text = strings.Replace(text, old, by, 1)
	}
	runNginx(t, text, address)
	return address
}

// startJudge runs oauth-server gateway --judge, with two requests an hour for every client and user.
func startJudge(t *testing.T) (address string, stop func()) {
	t.Helper()
	address = testworld.FreeAddress(t)
	p := run(t, address, servers.Binary(t), "gateway", "--judge", "--listen="+address, "--admin-listen=", "--drain-delay=0s",
		"--trusted-proxies=127.0.0.1", "--config="+configured(t, "judge.yaml", limitsOfTheJudge), "--data="+filepath.Join(t.TempDir(), "oauth.db"))
	return address, func() { check.OK(t, p.Stop()) }
}

const limitsOfTheJudge = `rate_limit:
  default:
    client: [ { name: tight, requests: 2, window: 1h } ]
    user: [ { name: personal, requests: 2, window: 1h } ]
`

func basic(id string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(id+":secret"))}}
}

// TestNginxAsksTheJudge is the example of docs/gateway/proxies.md.
func TestNginxAsksTheJudge(t *testing.T) {
	findNginx(t) // before the server is built
	var came atomic.Int32
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		body, err := io.ReadAll(r.Body)
		check.OK(t, err)
		if string(body) != "grant_type=client_credentials" {
			t.Errorf("the body at the token endpoint is %q", body)
		}
		if r.Host != "auth.example.com" || r.Header.Get("X-Forwarded-For") != "127.0.0.1" {
			t.Errorf("at the token endpoint: Host %s, %v", r.Host, r.Header)
		}
		w.WriteHeader(http.StatusInternalServerError) // which nginx does not take for one of the judge
	}))
	t.Cleanup(idp.Close)
	judge, stop := startJudge(t)
	to := "http://" + nginxThatAsks(t, judge, idp.Listener.Addr().String()) + "/oauth2/token"
	client, form := clientAt(t, "127.0.0.1"), url.Values{"grant_type": {"client_credentials"}}
	script := basic("shop")
	script.Set("Origin", "https://app.example")
	script.Set("X-Forwarded-For", "203.0.113.9")
	for i, want := range []int{500, 500, 429, 429} {
		status, h := send(t, client, http.MethodPost, to, script, form)
		check.Equal(t, "status", status, want)
		if want == http.StatusTooManyRequests {
			check.Equal(t, "RateLimit-Policy", h.Get("RateLimit-Policy"), `"tight";q=2;w=3600`)
			check.Equal(t, "Retry-After is set", h.Get("Retry-After") != "", true)
			check.Equal(t, "type", h.Get("Content-Type"), "application/json")
			check.Equal(t, "scripts of", h["Access-Control-Allow-Origin"], []string{"https://app.example"})
			check.Equal(t, "Retry-After is exposed", strings.HasPrefix(h.Get("Access-Control-Expose-Headers"), "Retry-After, "), true)
		}
		check.Equal(t, "requests at the token endpoint", int(came.Load()), min(i+1, 2))
	}
	status, _ := send(t, client, http.MethodPost, to, basic("other"), form)
	check.Equal(t, "another client", status, 500)
	status, _ = send(t, client, http.MethodPost, to, http.Header{}, url.Values{"client_id": {"shop"}})
	check.Equal(t, "without Basic", status, 401)
	status, _ = send(t, client, http.MethodPost, to, basic("%zz"), form)
	check.Equal(t, "a client that can be read in two ways", status, 400)
	for path, want := range map[string]int{
		"/oauth2/token/x": 429, "/oauth2/token.json": 429, "/oauth2/token%20": 429, "/index.php/oauth2/token": 429, "/web/index.php/oauth2/token": 429,
		"/OAuth2/Token": 429, "/oauth2/token/": 429, "/oauth2;x/token;y": 429, "//oauth2/./token": 429, "/x/..;/oauth2/token": 400,
		"/oauth2;x%2fy/token": 400, "/oauth2//../token": 400, "/oauth2//%2e./token": 400,
	} {
		status, _ = send(t, client, http.MethodPost, strings.Replace(to, "/oauth2/token", path, 1), basic("shop"), form)
		check.Equal(t, "over the limit at "+path, status, want)
	}
	status, _ = send(t, client, http.MethodPost, strings.Replace(to, "/oauth2/token", "/judge", 1), basic("shop"), nil)
	check.Equal(t, "from outside", status, 404)
	stop()
	status, _ = send(t, client, http.MethodPost, to, basic("shop"), form)
	check.Equal(t, "without a judge", status, 500)
	check.Equal(t, "requests at the token endpoint", int(came.Load()), 4)
}
