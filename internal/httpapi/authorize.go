package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// maxQuery bounds an authorization request in bytes. The request travels through URLs and hidden
// fields, and browsers and proxies have limits for these too.
const maxQuery = 16 << 10

// authorize handles GET /authorize (RFC 6749 3.1, 4.1.1). It shows the sign-in page, or the consent
// page if the user is signed in. If the user need not be asked, it redirects with a code.
func (s *Server) authorize(c *call) error {
	q, err := parseAuthorization(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	prompt, err := s.prompt(c, &q)
	if prompt == nil {
		return err
	}
	if c.Request().Method == http.MethodHead {
		prompt.Silent, prompt.Consent = false, true // HEAD must not issue a code
	}
	if err := s.enter(c); err != nil { // only now is it known whether the client allows a page
		return s.silently(c, prompt, err)
	}
	defer s.o.Service.EndRequest()
	session, err := s.session(c)
	if err != nil && !errors.Is(err, errSignedOut) {
		return s.silently(c, prompt, err)
	}
	page := &consentPage{Authorization: q.encode(), prompt: prompt, session: session}
	return s.proceed(c, http.StatusOK, page, err == nil)
}

// proceed takes the next step of an authorization request. page is the consent page to show if
// consent is needed.
func (s *Server) proceed(c *call, status int, page *consentPage, signedIn bool) error {
	p, session := page.prompt, &page.session
	if !signedIn {
		session = nil
	}
	next, err := s.o.Service.Proceed(c.ctx(), p, session)
	var refused *grants.RedirectError
	switch {
	case errors.As(err, &refused):
		return s.redirectError(c, p.RedirectURI, p.State, refused.Err)
	case err != nil:
		return s.silently(c, p, err)
	case next.SignIn:
		return s.showSignIn(c, http.StatusOK, &signInPage{Authorization: page.Authorization, Username: p.Hint, prompt: p})
	case next.Code != "":
		return s.redirectToClient(c, p.RedirectURI, p.State, url.Values{"code": {next.Code}})
	}
	page.known = next.Known
	return s.showConsent(c, status, page)
}

// silently returns an error, or redirects to the client with it if the client allows no page.
func (s *Server) silently(c *call, p *grants.Prompt, err error) error {
	if !p.Silent {
		return err
	}
	if shedBy(err) == "" { // requests refused under overload are too many to log here; the access log has them
		s.log.LogAttrs(c.ctx(), slog.LevelError, "silent authorization failed", slog.String("client_id", c.clientID), slog.Any("error", err))
	}
	return s.redirectError(c, p.RedirectURI, p.State, &grants.Error{
		Code: oautherr.TemporarilyUnavailable, Description: "The server is temporarily unavailable. Try again.", Cause: err,
	})
}

// authorizeByPost handles POST /authorize, which RFC 6749 3.1 allows. It redirects to the same
// address by GET, so the browser sends its cookie even if the form was on another site.
func (s *Server) authorizeByPost(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	return s.seeAuthorize(c, &p)
}

// seeAuthorize redirects to the authorization request.
func (s *Server) seeAuthorize(c *call, q *params) error {
	return seeOther(c, s.base+"/authorize?"+q.encode())
}

// parseAuthorization parses an authorization request, from the query or from the hidden field of a
// page.
func parseAuthorization(raw string) (params, error) {
	if len(raw) > maxQuery {
		return params{}, invalidRequest("The authorization request is longer than %d bytes.", maxQuery)
	}
	return parseParams(raw)
}

// prompt validates the request. If the request is invalid, it returns a nil prompt, and either an
// error or, if it has already written the answer, nil. It redirects errors to the client only after
// it has verified the redirect URI, so it checks everything else after that.
func (s *Server) prompt(c *call, q *params) (*grants.Prompt, error) {
	c.clientID = q.get("client_id")
	if q.twice("client_id") || q.twice("redirect_uri") {
		return nil, q.once()
	}
	prompt, err := s.o.Service.Authorize(c.ctx(), grants.AuthorizeRequest{
		ResponseType:        q.get("response_type"),
		ClientID:            q.get("client_id"),
		RedirectURI:         q.get("redirect_uri"),
		Scope:               q.get("scope"),
		State:               q.get("state"),
		CodeChallenge:       q.get("code_challenge"),
		CodeChallengeMethod: q.get("code_challenge_method"),
		Prompt:              q.get("prompt"),
		MaxAge:              q.get("max_age"),
		LoginHint:           q.get("login_hint"),
	})
	var failed *grants.RedirectError
	switch {
	case errors.As(err, &failed):
		if worse := unfit(q); worse != nil {
			failed.Err = worse
		}
		return nil, s.redirectError(c, failed.RedirectURI, state(q), failed.Err)
	case err != nil:
		return nil, err
	}
	if e := unfit(q); e != nil {
		return nil, s.redirectError(c, prompt.RedirectURI, state(q), e)
	}
	return prompt, nil
}

// unfit returns the error in the form of the request, or nil.
func unfit(q *params) *grants.Error {
	if len(q.repeated) > 0 {
		return invalidRequest("The parameter %s is repeated.", printable(q.repeated[0]))
	}
	if mode := q.get("response_mode"); mode != "" && mode != "query" {
		return invalidRequest("The only response_mode is query.")
	}
	return nil
}

// state returns the state to send back to the client, or an empty string if the client sent it
// twice.
func state(q *params) string {
	if q.twice("state") {
		return ""
	}
	return q.get("state")
}

// consent handles POST /consent: the user pressed allow or deny.
func (s *Server) consent(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	q, err := parseAuthorization(p.get("authorization"))
	if err != nil {
		return err
	}
	session, err := s.session(c)
	switch {
	case errors.Is(err, errSignedOut):
		return s.seeAuthorize(c, &q)
	case err != nil:
		return err
	}
	prompt, err := s.prompt(c, &q)
	if prompt == nil {
		return err
	}
	a := answered{
		consentPage: consentPage{Authorization: q.encode(), prompt: prompt, session: session},
		consent:     grants.Consent{Cookie: s.cookieValue(c), Request: q.encode(), Page: p.get("binding")},
	}
	if !a.consent.Genuine() {
		return s.askAgain(c, &a, "The page you answered belongs to another user or request. Check this one and decide again.")
	}
	return s.decide(c, p.get("decision"), &a)
}

// answered is a consent page that the user has answered.
type answered struct {
	consentPage
	consent grants.Consent
}

// askAgain shows the consent page again. It does so even if the user need not be asked, because the
// user may have denied.
func (s *Server) askAgain(c *call, a *answered, why string) error {
	a.Alert, a.prompt.Consent = why, true
	return s.proceed(c, http.StatusForbidden, &a.consentPage, true)
}

func (s *Server) decide(c *call, decision string, a *answered) error {
	switch decision {
	case "allow":
		return s.approve(c, a)
	case "deny":
		return s.redirectError(c, a.prompt.RedirectURI, a.prompt.State, &grants.Error{Code: oautherr.AccessDenied, Description: "The user denied access."})
	}
	return invalidRequest("The decision must be allow or deny.")
}

// approve issues the code. It redirects internal errors to the client, which waits for an answer
// and can start again, while the user could do nothing (RFC 6749 4.1.2.1 defines server_error for
// this purpose). It shows errors in the user's answer to the user, because the client may already
// have the code of this page.
func (s *Server) approve(c *call, a *answered) error {
	p := a.prompt
	code, err := s.o.Service.Approve(c.ctx(), p, a.session, a.consent)
	var limited *oautherr.LimitedError
	switch {
	case err == nil:
		return s.redirectToClient(c, p.RedirectURI, p.State, url.Values{"code": {code}})
	case errors.Is(err, grants.ErrConsentPage):
		return s.askAgain(c, a, "The page you answered has expired. Check this one and decide again.")
	case errors.Is(err, grants.ErrConsentUsed):
		return invalidRequest("This page was already answered.")
	case errors.As(err, &limited):
		return limited
	}
	if shedBy(err) == "" {
		s.log.LogAttrs(c.ctx(), slog.LevelError, "approval failed", slog.String("client_id", c.clientID), slog.Any("error", err))
	}
	known := &grants.Error{Code: oautherr.ServerError, Description: "The authorization could not be recorded."}
	errors.As(err, &known)
	return s.redirectError(c, p.RedirectURI, p.State, known)
}
