package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// pageOrigin is the public URL of docs/gateway/providers.md.
const pageOrigin = "https://auth.example.com"

// pageGateway runs the gateway of docs/gateway/providers.md before the realm: with the flags of the page, but for the upstream.
// What kc.sh is told there, the realm is told by its frontendUrl, which is a --hostname for one realm.
func pageGateway(t *testing.T, r *realm) *server {
	t.Helper()
	text, err := os.ReadFile("../../docs/gateway/providers.md")
	check.OK(t, err)
	line := regexp.MustCompile(`(?m)^oauth-server gateway (--upstream .*)$`).FindSubmatch(text)
	check.Equal(t, "the page has a command", len(line), 2)
	check.Equal(t, "the page fixes the hostname", strings.Contains(string(text), "kc.sh start --hostname "+pageOrigin+" --proxy-headers xforwarded "), true)
	args := strings.Fields(strings.ReplaceAll(string(line[1]), "'", ""))
	check.Equal(t, "the page names the public URL", slices.Contains(args, pageOrigin), true)
	args[slices.Index(args, "--upstream")+1] = r.base
	return gatewayBefore(t, r.base, "/token", "", append([]string{"--data", filepath.Join(t.TempDir(), "store.db")}, args...)...)
}

// visitor is a browser at the public URL, or what pretends to be one.
type visitor struct {
	t       *testing.T
	gateway *server
	host    string
	header  http.Header // of every request
	cookies map[string]string
}

// ask sends a request, with a form unless that is empty.
func (v *visitor) ask(path, form string) reply {
	v.t.Helper()
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.gateway.Issuer+path, strings.NewReader(form))
	check.OK(v.t, err)
	req.Host, req.Header = v.host, v.header.Clone()
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range v.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	got := send(v.t, newHTTPClient(v.t), req)
	for _, c := range (&http.Response{Header: got.header}).Cookies() {
		v.cookies[c.Name] = c.Value
	}
	return got
}

// link returns the path of the first link on a page that has a word in it. All links lead to the public URL.
func (v *visitor) link(page reply, word string) string {
	v.t.Helper()
	m := regexp.MustCompile(`(?:href|action)="([^"]*` + word + `[^"]*)"`).FindStringSubmatch(page.body)
	if m == nil {
		v.t.Fatalf("no link with %s, status %d:\n%s", word, page.status, page.body)
	}
	link := html.UnescapeString(m[1])
	path, public := strings.CutPrefix(link, pageOrigin)
	check.Equal(v.t, link+" is public", public || strings.HasPrefix(link, "/"), true)
	return path
}

// resetPassword has a mail sent to the user.
func (v *visitor) resetPassword(r *realm) {
	v.t.Helper()
	query := url.Values{"client_id": {"app"}, "response_type": {"code"}, "scope": {"openid"}, "redirect_uri": {loopbackURI}}
	page := v.ask(r.path("/protocol/openid-connect/auth?")+query.Encode(), "")
	page = v.ask(v.link(page, "reset-credentials"), "")
	v.ask(v.link(page, "reset-credentials"), "username="+user)
}

// mailbox takes one mail over SMTP and returns where to send it, and its text.
func mailbox(t *testing.T) (port int, mail <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "220 mail\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			switch strings.ToUpper(in.Text()) {
			case "DATA":
				_, _ = io.WriteString(conn, "354 go\r\n")
				var text bytes.Buffer
				for in.Scan() && in.Text() != "." {
					text.WriteString(in.Text() + "\r\n")
				}
				plain, _ := io.ReadAll(quotedprintable.NewReader(&text))
				got <- string(plain)
			case "QUIT":
				return
			}
			_, _ = io.WriteString(conn, "250 ok\r\n")
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, got //nolint:forcetypeassert // of tcp
}

// TestKeycloakPage: with the settings of the page no stranger's host gets into what Keycloak says, also where Keycloak itself
// would take it from the request.
func TestKeycloakPage(t *testing.T) {
	t.Parallel()
	r := newRealm(t, "app")
	earlier := 0 // events
	for name, fixed := range map[string]string{"a fixed hostname": pageOrigin, "hostname-strict false": ""} {
		t.Run(name, func(t *testing.T) {
			port, mail := mailbox(t)
			r.call(t.Context(), t, http.MethodPut, "/admin/realms/"+r.name, map[string]any{
				"resetPasswordAllowed": true, "enabledEventTypes": []string{"SEND_RESET_PASSWORD"}, "attributes": map[string]string{"frontendUrl": fixed},
				"smtpServer": map[string]string{"host": "127.0.0.1", "port": fmt.Sprint(port), "from": "idp@shop.example"},
			}, nil)
			g := pageGateway(t, r)
			evil := http.Header{}
			for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Original-Url"} {
				evil.Set(name, "evil.example")
			}
			evil.Set("Forwarded", "for=203.0.113.9;host=evil.example;proto=http")
			evil.Set("X-Forwarded-For", "203.0.113.9")

			stranger := &visitor{t, g, "evil.example", evil, map[string]string{}}
			discovery := r.path("/.well-known/openid-configuration")
			check.Equal(t, "another host", stranger.ask(discovery, "").status, http.StatusMisdirectedRequest)

			attacker := &visitor{t, g, "auth.example.com", evil, map[string]string{}}
			got := attacker.ask(discovery, "")
			check.Equal(t, "issuer", got.object(t)["issuer"], any(pageOrigin+"/realms/"+r.name))
			check.Equal(t, "evil.example is nowhere", strings.Contains(got.body, "evil.example"), false)
			attacker.resetPassword(r)
			text := <-mail
			links := regexp.MustCompile(`https?://[^\s"<]*`).FindAllString(text, -1)
			check.Equal(t, "the mail has a link", len(links) > 0, true)
			for _, link := range links {
				check.Equal(t, link+" is public", strings.HasPrefix(link, pageOrigin+"/"), true)
			}
			events := r.events(t, "app")
			check.Equal(t, "events", len(events), earlier+1)
			earlier = len(events)
			check.Equal(t, "the address that Keycloak sees", events[0].IPAddress, "127.0.0.1")
		})
	}
}
