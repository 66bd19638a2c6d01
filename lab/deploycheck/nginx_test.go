package deploycheck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/lab/servers"
)

// startNginx runs nginx with the shipped file in front of the servers, and returns the addresses on which
// it listens, of 127.0.0.1 and ::1. In the file only addresses and directories are replaced.
func startNginx(t *testing.T, servers ...string) (ipv4, ipv6 string) {
	t.Helper()
	ipv4, ipv6 = testworld.FreeAddress(t), testworld.FreeAddressOf(t, "::1")
	text := read(t, "deploy/nginx/nginx.conf")
	replace := func(old, by string) {
		t.Helper()
		if strings.Count(text, old) != 1 {
			t.Fatalf("%q is not once in nginx.conf", old)
		}
		text = strings.Replace(text, old, by, 1)
	}
	for i, name := range []string{"oauth-1", "oauth-2", "oauth-3"} {
		replace(name+":9096", servers[i%len(servers)])
	}
	replace("listen 8080;", "listen "+ipv4+"; listen "+ipv6+";")
	runNginx(t, text, ipv6)
	return ipv4, ipv6
}

// runNginx runs nginx with that configuration, which listens on the address among others, until the test ends.
func runNginx(t *testing.T, text, address string) {
	t.Helper()
	dir, temporary := t.TempDir(), "http {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	text = strings.Replace(text, "http {\n", temporary, 1)
	run(t, address, findNginx(t), "-p", dir, "-c", configured(t, "nginx.conf", text), "-e", "stderr",
		"-g", "daemon off; master_process off; error_log stderr; pid "+filepath.Join(dir, "pid")+";")
}

// findNginx skips the test where there is no nginx. CI has to have one.
func findNginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no nginx on this machine: apt-get install nginx")
	}
	t.Skip("no nginx on this machine: its configuration is not tried")
	return ""
}

// clientAt is an HTTP client that connects from an address of its own.
func clientAt(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// forgeries are headers by which a caller can try to appear as another, under another request id.
func forgeries() map[string]http.Header {
	const forged = "203.0.113.9"
	return map[string]http.Header{
		"none":                    {},
		"X-Forwarded-For":         {"X-Forwarded-For": {forged}},
		"several hops":            {"X-Forwarded-For": {forged + ", 198.51.100.7, 127.0.0.1"}},
		"several lines":           {"X-Forwarded-For": {forged, "127.0.0.1", "10.0.0.1"}},
		"IPv6":                    {"X-Forwarded-For": {"2001:db8::9"}},
		"IPv6 in brackets":        {"X-Forwarded-For": {"[2001:db8::9]:4711"}},
		"empty":                   {"X-Forwarded-For": {""}},
		"nonsense":                {"X-Forwarded-For": {"unknown, \", for=" + forged}},
		"a long chain":            {"X-Forwarded-For": {strings.Repeat(forged+",", 200) + forged}},
		"lower case":              {"x-forwarded-for": {forged}},
		"underscores":             {"X_Forwarded_For": {forged}},
		"Forwarded":               {"Forwarded": {"for=" + forged}},
		"Forwarded, open quote":   {"Forwarded": {`for=` + forged + `;x="`}},
		"Forwarded, IPv6":         {"Forwarded": {`for="[2001:db8::9]:4711"`}},
		"both":                    {"X-Forwarded-For": {forged}, "Forwarded": {"for=" + forged}},
		"X-Real-IP and relatives": {"X-Real-Ip": {forged}, "X-Client-Ip": {forged}, "True-Client-Ip": {forged}, "Cf-Connecting-Ip": {forged}, "X-Forwarded": {forged}},
		"request id":              {"X-Request-Id": {"forged-request-id"}},
		"named in Connection":     {"Connection": {"close, X-Forwarded-For, X-Request-Id"}, "X-Forwarded-For": {forged}},
	}
}

// TestNginxOverwritesWhatCallersClaim looks at what reaches a server behind the load balancer.
func TestNginxOverwritesWhatCallersClaim(t *testing.T) {
	type arrived struct{ forwardedFor, forwarded, requestID []string }
	seen := make(chan arrived, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- arrived{r.Header["X-Forwarded-For"], r.Header["Forwarded"], r.Header["X-Request-Id"]}
	}))
	t.Cleanup(server.Close)
	ipv4, ipv6 := startNginx(t, server.Listener.Addr().String())
	fresh := regexp.MustCompile("^[0-9a-f]{32}$")
	for name, header := range forgeries() {
		for from, to := range map[string]string{"127.0.0.2": ipv4, "::1": ipv6} {
			t.Run(name+" from "+from, func(t *testing.T) {
				send(t, clientAt(t, from), http.MethodGet, "http://"+to+"/", header, nil)
				got := <-seen
				check.Equal(t, "X-Forwarded-For", got.forwardedFor, []string{from})
				check.Equal(t, "Forwarded", len(got.forwarded), 0)
				if len(got.requestID) != 1 || !fresh.MatchString(got.requestID[0]) {
					t.Errorf("request id %q, want a fresh one", got.requestID)
				}
			})
		}
	}
}

func send(t *testing.T, c *http.Client, method, address string, header http.Header, form url.Values) (status int, answer http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	check.OK(t, err)
	req.Header = header.Clone()
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := c.Do(req)
	check.OK(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	return res.StatusCode, res.Header
}

// behind is a server behind the load balancer, with the user ada.
type behind struct {
	ipv4, ipv6 string
	log        string // file
}

const adasPassword = "correct horse battery staple"

// startBehind starts both. The server trusts these proxies.
func startBehind(t *testing.T, trusted ...string) *behind {
	t.Helper()
	store, listen := servers.InFile(servers.Binary(t), t.TempDir(), "oauth"), testworld.FreeAddress(t)
	check.OK(t, store.CreateClient(t.Context(), "shop"))
	check.OK(t, store.CreateUser(t.Context(), "ada", adasPassword))
	args := slices.Concat([]string{
		store.Binary, "serve", "--listen=" + listen, "--admin-listen=", "--log-format=json", "--issuer=https://auth.example.com", "--drain-delay=0s",
		"--overload-mode=off", "--passwords-processes=off",
	}, store.Flags(), trusted) // other tests may have the processors
	b := &behind{log: run(t, listen, args...).Log()}
	b.ipv4, b.ipv6 = startNginx(t, listen)
	return b
}

// signIn sends a password and returns the status, and the address that the server logs for it.
func (b *behind) signIn(t *testing.T, from, name, password string, header http.Header) (status int, remote string) {
	t.Helper()
	to := b.ipv4
	if strings.Contains(from, ":") {
		to = b.ipv6
	}
	status, answer := send(t, clientAt(t, from), http.MethodPost, "http://"+to+"/sign-in", header,
		url.Values{"username": {name}, "password": {password}})
	id := answer.Get("X-Request-Id")
	check.Eventually(t, "the request is logged", func() bool {
		var ok bool
		remote, ok = remoteOf(t, b.log, id)
		return ok
	})
	return status, remote
}

// TestForgedAddressesThroughNginx is a server that trusts too much behind the load balancer: whole
// ranges, and more hops than there are. It still counts callers by their own address.
func TestForgedAddressesThroughNginx(t *testing.T) {
	for _, trusted := range [][]string{
		{"--trusted-proxies=127.0.0.1"},
		{"--trusted-proxies=127.0.0.0/8", "--trusted-proxies=10.0.0.0/8", "--trusted-proxies=::1"},
		{"--trusted-proxies=127.0.0.0/8", "--trusted-proxies=10.0.0.0/8", "--trusted-proxies=::1", "--trusted-hops=5"},
	} {
		b := startBehind(t, trusted...)
		for name, header := range forgeries() {
			for _, from := range []string{"127.0.0.2", "::1"} {
				_, remote := b.signIn(t, from, "", "", header)
				check.Equal(t, name+", trusting "+strings.Join(trusted, " "), remote, from)
			}
		}
	}
}

// TestWrongPasswordsLockOnlyTheirAddress sends more than the limit of an address allows.
func TestWrongPasswordsLockOnlyTheirAddress(t *testing.T) {
	const attacker, other, limit = "127.0.0.2", "127.0.0.3", 20
	b := startBehind(t, "--trusted-proxies=127.0.0.1", fmt.Sprint("--failed-attempts-users-per-address=", limit))
	wrong, status := 0, http.StatusForbidden
	for ; status == http.StatusForbidden && wrong <= 2*limit; wrong++ {
		status, _ = b.signIn(t, attacker, "user-"+strconv.Itoa(wrong), "wrong", http.Header{"X-Forwarded-For": {"198.51.100." + strconv.Itoa(wrong)}})
	}
	check.Equal(t, "the last answer to a wrong password", status, http.StatusTooManyRequests)
	if wrong <= limit { // where a frame of the limit ends meanwhile, a few more pass
		t.Errorf("the address is locked after %d", wrong)
	}
	for from, want := range map[string]int{attacker: http.StatusTooManyRequests, other: http.StatusSeeOther, "::1": http.StatusSeeOther} {
		status, remote := b.signIn(t, from, "ada", adasPassword, http.Header{"X-Forwarded-For": {other}})
		check.Equal(t, "address", remote, from)
		check.Equal(t, "answer to the right password from "+from, status, want)
	}
}

// TestComposeTrustsTheLoadBalancerOnly: the servers see it under this address in every network that
// they share with it, and no container can be given the address.
func TestComposeTrustsTheLoadBalancerOnly(t *testing.T) {
	p := project(t)
	lb := p.Services["lb"]
	shared := 0
	for _, name := range []string{"oauth-1", "oauth-2", "oauth-3"} {
		server := p.Services[name]
		trusted := slices.DeleteFunc(slices.Clone(server.Command), func(arg string) bool { return !strings.HasPrefix(arg, "--trusted-") })
		for network := range server.Networks {
			at, ok := lb.Networks[network]
			if !ok {
				continue
			}
			shared++
			if at == nil || at.Ipv4Address == "" {
				t.Fatalf("lb has no fixed address in %s", network)
			}
			check.Equal(t, "trusted by "+name, []string(trusted), []string{"--trusted-proxies=" + at.Ipv4Address})
			pools := p.Networks[network].Ipam.Config
			if len(pools) != 1 || !contains(t, pools[0].Subnet, at.Ipv4Address) || contains(t, cmp.Or(pools[0].IPRange, pools[0].Subnet), at.Ipv4Address) {
				t.Errorf("%s can give the address of lb to another container: %+v", network, pools)
			}
		}
	}
	check.Equal(t, "ways from lb to the servers", shared, 3)
}

func contains(t *testing.T, network, address string) bool {
	t.Helper()
	_, n, err := net.ParseCIDR(network)
	check.OK(t, err)
	return n.Contains(net.ParseIP(address))
}

// remoteOf returns the address that is logged for a request, once it is.
func remoteOf(t *testing.T, log, requestID string) (remote string, ok bool) {
	t.Helper()
	text, err := os.ReadFile(log)
	check.OK(t, err)
	for line := range bytes.Lines(text) {
		var entry struct {
			Msg, Remote string
			RequestID   string `json:"request_id"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "request" && entry.RequestID == requestID {
			return entry.Remote, true
		}
	}
	return "", false
}
