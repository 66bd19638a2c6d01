package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

//go:embed templates
var templates embed.FS

// pageSet holds one parsed template per page, including the layout.
type pageSet map[string]*template.Template

func parsePages(base string) (pageSet, error) {
	set := pageSet{}
	funcs := template.FuncMap{
		"base":    func() string { return base },
		"style":   func() string { return base + stylePath },
		"icon":    func() string { return base + iconPath },
		"initial": initial,
		"day":     day,
	}
	for _, name := range []string{"sign-in", "consent", "consents", "index", "failure", "rate-limits"} {
		t, err := template.New("layout.html").Funcs(funcs).ParseFS(templates, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("httpapi: page %s: %w", name, err)
		}
		set[name] = t
	}
	return set, nil
}

// signInPage is the data of the sign-in page.
type signInPage struct {
	Authorization string // the form-encoded request to continue with
	Then          string // where to continue without a request: thenConsents, or empty for the index page
	Username      string // as typed before, or from the client's login_hint
	Alert         string
	prompt        *grants.Prompt // nil without a client
}

// ClientName returns the name of the client that the user will return to, or an empty string.
func (p *signInPage) ClientName() string {
	if p.prompt == nil {
		return ""
	}
	return p.prompt.Client.DisplayName()
}

func (s *Server) showSignIn(c *call, status int, p *signInPage) error {
	return s.show(c, status, "sign-in", p, p.prompt)
}

// consentPage is the data of the consent page.
type consentPage struct {
	Authorization string
	Binding       string
	Alert         string
	ScopeTexts    []scopeText
	prompt        *grants.Prompt
	session       accounts.Session
	known         []string // scopes that the user allowed before
}

// Widens reports whether the user has already allowed some, but not all, of the requested scopes.
func (p *consentPage) Widens() bool { return len(p.known) > 0 && len(p.known) < len(p.prompt.Scopes) }

// Remembered reports whether the decision is stored, so the page need not be shown again.
func (p *consentPage) Remembered() bool { return p.prompt.Proven() }

// ClientName returns the name of the client.
func (p *consentPage) ClientName() string { return p.prompt.Client.DisplayName() }

// ClientID returns the registered ID of the client. The page shows it because a name can be
// anything.
func (p *consentPage) ClientID() string { return p.prompt.Client.ID }

// Username returns the name of the signed-in user.
func (p *consentPage) Username() string { return p.session.Username }

// Target describes where the browser goes next.
func (p *consentPage) Target() string {
	u, err := url.Parse(p.prompt.RedirectURI)
	switch {
	case err != nil:
		return p.prompt.RedirectURI
	case u.Scheme != "http" && u.Scheme != "https":
		return "the app " + u.Scheme + " on this device"
	case redirecturi.IsLoopback(u.Hostname()):
		return "a program on this device (" + u.Host + ")"
	}
	return u.Host
}

func (s *Server) showConsent(c *call, status int, p *consentPage) error {
	p.Binding = grants.NewConsentPage(time.Now(), s.cookieValue(c), p.Authorization)
	p.ScopeTexts = s.scopeTexts(p.prompt.Scopes)
	for i, scope := range p.prompt.Scopes {
		p.ScopeTexts[i].New = p.Widens() && !slices.Contains(p.known, scope)
	}
	return s.show(c, status, "consent", p, p.prompt)
}

// failurePage is the data of the page for a failed request.
type failurePage struct {
	Title, Description, RequestID string
}

func (s *Server) failPage(c *call, a oautherr.Answer) {
	page := &failurePage{Title: "This page is unavailable", Description: a.Body.Description, RequestID: accesslog.RequestID(c.ctx())}
	if a.Limited != nil {
		page.Description = a.Limited.ForPeople()
	}
	switch s.routeOf(c) {
	case "/authorize":
		page.Title = "This request cannot be authorized"
	case "/consent":
		page.Title = "Your decision was not recorded"
	case withdrawPath:
		page.Title = "The access was not withdrawn"
	case "/sign-in":
		page.Title = "Sign-in failed"
	case "/sign-out":
		page.Title = "Sign-out failed"
	case "":
		page.Title = "Page not found"
	}
	if a.Status == http.StatusUnauthorized {
		a.Status = http.StatusBadRequest // a 401 would need a challenge, and the browser would ask for a password
	}
	a.SetRetry(c.Response().Header())
	if err := s.show(c, a.Status, "failure", page, nil); err != nil {
		s.failJSON(c, a)
	}
}

// indexPage is the data of the index page.
type indexPage struct {
	Issuer, Username string
}

// index handles GET /.
func (s *Server) index(c *call) error {
	page := &indexPage{Issuer: s.url}
	if session, err := s.session(c); err == nil {
		page.Username = session.Username
	}
	return s.show(c, http.StatusOK, "index", page, nil)
}

// rateLimitsPath is the path in the error_uri of a 429.
const rateLimitsPath = "/docs/rate-limits"

// limitsPage is the data of the page about rate limits, which shows actual answers.
type limitsPage struct {
	Issuer string
	Code   oautherr.Code // of a 429
	Type   string        // problem type of a 429
	Banned string        // problem type of a 429 because of a ban
	Fields ratelimit.FieldNames
}

// rateLimitsPage handles GET /docs/rate-limits, for developers of clients.
func (s *Server) rateLimitsPage(c *call) error {
	page := &limitsPage{Issuer: s.url, Code: s.o.LimitedCode(), Type: oautherr.QuotaExceeded, Banned: oautherr.AbnormalUsage, Fields: ratelimit.Fields()}
	return s.show(c, http.StatusOK, "rate-limits", page, nil)
}

// show renders a page. It renders the whole page before it sends the first byte, so an error cannot
// leave half a page.
func (s *Server) show(c *call, status int, name string, data any, prompt *grants.Prompt) error {
	var b bytes.Buffer
	if err := s.pages[name].Execute(&b, data); err != nil {
		return fmt.Errorf("httpapi: page %s: %w", name, err)
	}
	h := c.Response().Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentSecurityPolicy(prompt))
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers would post the forms with Origin: null.
	h.Set("Referrer-Policy", "same-origin")
	oautherr.NoStore(h)
	c.Response().WriteHeader(status)
	c.write(b.Bytes())
	return nil
}

// wantsPage reports whether an error is shown as a page. The endpoints for clients never show
// pages. Elsewhere the Accept header decides.
func (s *Server) wantsPage(c *call) bool {
	accept := c.Request().Header.Get("Accept")
	switch {
	case s.machine[c.Request().URL.Path]:
		return false
	case strings.Contains(accept, "text/html"):
		return true
	case strings.Contains(accept, "application/json"):
		return false
	}
	return c.Path() != "" // a page is registered at the address
}

// day formats a date for a page.
func day(t time.Time) string { return t.Format("2 January 2006") }

// initial returns the letter for a client's badge.
func initial(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.ToUpper(name))
	return string(r)
}

//go:embed assets/style.css
var style []byte

//go:embed assets/icon.svg
var icon []byte

// The paths of the assets contain a hash of their content, so browsers may cache them forever.
var (
	stylePath = "/assets/style-" + fingerprint(style) + ".css"
	iconPath  = "/assets/icon-" + fingerprint(icon) + ".svg"
)

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func (s *Server) serveAsset(content []byte, contentType string) handler {
	return func(c *call) error {
		h := c.Response().Header()
		h.Set("Content-Type", contentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		c.Response().WriteHeader(http.StatusOK)
		c.write(content)
		return nil
	}
}
