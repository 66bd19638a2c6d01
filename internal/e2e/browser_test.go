package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"oauth-server/internal/check"
)

// browser submits the forms of pages, as a person without JavaScript does, and stops where the
// server redirects it to another host.
type browser struct {
	tb     testing.TB
	client *http.Client
	page   page
}

// page is what the browser shows.
type page struct {
	status int
	url    *url.URL
	text   string
	forms  []pageForm
	// left is the address of another site that the server sent us to.
	left *url.URL
}

type pageForm struct {
	action string
	fields url.Values
}

func newBrowser(tb testing.TB) *browser {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	check.OK(tb, err)
	client := newHTTPClient(tb)
	client.Jar = jar
	return &browser{tb: tb, client: client}
}

func (b *browser) open(address string) {
	b.tb.Helper()
	req, err := http.NewRequestWithContext(b.tb.Context(), http.MethodGet, address, http.NoBody)
	check.OK(b.tb, err)
	b.do(req)
}

// submit presses the button of the form whose action ends like this, with the
// values typed in.
func (b *browser) submit(action string, typed ...string) {
	b.tb.Helper()
	f := b.form(action)
	fields := url.Values{}
	for name, v := range f.fields {
		fields[name] = v
	}
	for i := 0; i < len(typed); i += 2 {
		fields.Set(typed[i], typed[i+1])
	}
	target, err := b.page.url.Parse(f.action)
	check.OK(b.tb, err)
	req, err := http.NewRequestWithContext(b.tb.Context(), http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	check.OK(b.tb, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.page.url.Scheme+"://"+b.page.url.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	b.do(req)
}

func (b *browser) form(action string) pageForm {
	b.tb.Helper()
	for _, f := range b.page.forms {
		if strings.HasSuffix(f.action, action) {
			return f
		}
	}
	b.tb.Fatalf("no form %s on the page:\n%s", action, b.page.text)
	return pageForm{}
}

func (b *browser) has(action string) bool {
	for _, f := range b.page.forms {
		if strings.HasSuffix(f.action, action) {
			return true
		}
	}
	return false
}

// do sends the request and follows redirects, but not to another host.
func (b *browser) do(req *http.Request) {
	b.tb.Helper()
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	res, err := b.client.Do(req)
	check.OK(b.tb, err)
	body, err := io.ReadAll(res.Body)
	check.OK(b.tb, err)
	check.OK(b.tb, res.Body.Close())
	b.page = page{status: res.StatusCode, url: req.URL, text: string(body), forms: parseForms(b.tb, string(body))}
	if res.StatusCode < 300 || res.StatusCode > 399 {
		return
	}
	next, err := res.Location()
	check.OK(b.tb, err)
	if next.Host != req.URL.Host {
		b.page.left = next
		return
	}
	b.open(next.String())
}

// signInAndAgree goes the whole way from the authorization request to the
// client's address, signing in only if asked to, and returns what the server
// sent along.
func (b *browser) signInAndAgree(address string) url.Values {
	b.tb.Helper()
	b.open(address)
	if b.has("/sign-in") {
		b.submit("/sign-in", "username", user, "password", password)
	}
	if b.has("/consent") {
		b.submit("/consent", "decision", "allow")
	}
	return b.sentTo().Query()
}

// sentTo is the address of another site that the server sent the browser to.
func (b *browser) sentTo() *url.URL {
	b.tb.Helper()
	if b.page.left == nil {
		b.tb.Fatalf("not sent to the client; status %d:\n%s", b.page.status, b.page.text)
	}
	return b.page.left
}

func parseForms(tb testing.TB, text string) (forms []pageForm) {
	tb.Helper()
	root, err := html.Parse(strings.NewReader(text))
	check.OK(tb, err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "form":
			check.Equal(tb, "method of the form", strings.ToLower(attribute(n, "method")), "post")
			forms = append(forms, pageForm{action: attribute(n, "action"), fields: url.Values{}})
		case "input":
			if len(forms) > 0 && attribute(n, "name") != "" {
				forms[len(forms)-1].fields.Set(attribute(n, "name"), attribute(n, "value"))
			}
		}
	}
	return forms
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
