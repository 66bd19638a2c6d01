package httpapi

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

//go:embed templates
var templates embed.FS

// pageSet holds one parsed template per page, each with the layout around it.
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

// signInPage is what the sign-in page shows.
type signInPage struct {
	Authorization string // the request to continue with, form-encoded
	Then          string // where to continue without a request: thenConsents, or the index page
	Username      string // as typed before, or as the client expects
	Alert         string
	prompt        *grants.Prompt // nil without a client
}

// ClientName is the client that the user will return to, empty if there is none.
func (p *signInPage) ClientName() string {
	if p.prompt == nil {
		return ""
	}
	return p.prompt.Client.DisplayName()
}

func (s *Server) showSignIn(c *call, status int, p *signInPage) error {
	return s.show(c, status, "sign-in", p, p.prompt)
}

// consentPage is what the consent page shows.
type consentPage struct {
	Authorization string
	Binding       string
	Alert         string
	ScopeTexts    []scopeText
	prompt        *grants.Prompt
	session       grants.Session
	known         []string // scopes that the user allowed before
}

// Widens reports whether the client may do some of what it asks for already.
func (p *consentPage) Widens() bool { return len(p.known) > 0 && len(p.known) < len(p.prompt.Scopes) }

// Remembered reports whether the answer is remembered so far that the page need not be shown again.
func (p *consentPage) Remembered() bool { return p.prompt.Proven() }

// ClientName is the name of the client.
func (p *consentPage) ClientName() string { return p.prompt.Client.DisplayName() }

// ClientID is the client as registered, because a name can be anything.
func (p *consentPage) ClientID() string { return p.prompt.Client.ID }

// Username is who is signed in.
func (p *consentPage) Username() string { return p.session.Username }

// Target describes where the browser goes next.
func (p *consentPage) Target() string {
	u, err := url.Parse(p.prompt.RedirectURI)
	switch {
	case err != nil:
		return p.prompt.RedirectURI
	case u.Scheme != "http" && u.Scheme != "https":
		return "the app " + u.Scheme + " on this device"
	case clientcfg.IsLoopback(u.Hostname()):
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

// failurePage is what a person sees when a request failed.
type failurePage struct {
	Title, Description, RequestID string
}

func (s *Server) failPage(c *call, a answer) {
	page := &failurePage{Title: "This page cannot be shown", Description: a.body.Description, RequestID: accesslog.RequestID(c.ctx())}
	if a.limited != nil {
		page.Description = a.limited.ForPeople()
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
	if a.status == http.StatusUnauthorized {
		a.status = http.StatusBadRequest // a 401 would need a challenge, and the browser would ask for a password
	}
	a.setRetry(c.Response().Header())
	if err := s.show(c, a.status, "failure", page, nil); err != nil {
		s.failJSON(c, a)
	}
}

// indexPage is what the index page shows.
type indexPage struct {
	Issuer, Username string
}

// index is GET /.
func (s *Server) index(c *call) error {
	page := &indexPage{Issuer: s.url}
	if session, err := s.session(c); err == nil {
		page.Username = session.Username
	}
	return s.show(c, http.StatusOK, "index", page, nil)
}

// rateLimitsPath is where the error_uri of a 429 points.
const rateLimitsPath = "/docs/rate-limits"

// limitsPage is what the page on rate limits shows: answers as they are.
type limitsPage struct {
	Issuer string
	Code   grants.ErrorCode // of a 429
	Type   string           // problem type of a 429
	Fields ratelimit.FieldNames
}

// rateLimitsPage is GET /docs/rate-limits, for developers of clients.
func (s *Server) rateLimitsPage(c *call) error {
	page := &limitsPage{Issuer: s.url, Code: s.o.LimitedCode(), Type: quotaExceeded, Fields: ratelimit.Fields()}
	return s.show(c, http.StatusOK, "rate-limits", page, nil)
}

// show renders a page. It is rendered in full before the first byte is sent, so that an error in it
// cannot leave half a page.
func (s *Server) show(c *call, status int, name string, data any, prompt *grants.Prompt) error {
	var b bytes.Buffer
	if err := s.pages[name].Execute(&b, data); err != nil {
		return fmt.Errorf("httpapi: page %s: %w", name, err)
	}
	h := c.Response().Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentSecurityPolicy(prompt))
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: browsers would then post the forms with Origin: null.
	h.Set("Referrer-Policy", "same-origin")
	h["Cache-Control"] = headerNoStore
	h["Pragma"] = headerNoCache
	c.Response().WriteHeader(status)
	c.write(b.Bytes())
	return nil
}

// wantsPage reports whether a failure is shown as a page: never at the endpoints for clients,
// elsewhere by what the caller accepts.
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
	return c.Path() != "" // the address of a page
}

// day is how a page shows a date.
func day(t time.Time) string { return t.Format("2 January 2006") }

// initial is the letter in a client's badge.
func initial(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.ToUpper(name))
	return string(r)
}
