package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"oauth-server/internal/accounts"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// signInForm handles GET /sign-in, for a person without a client.
func (s *Server) signInForm(c *call) error {
	return s.showSignIn(c, http.StatusOK, &signInPage{})
}

// signIn handles POST /sign-in. Afterwards the browser continues with the authorization request in
// the form, or goes to the index page.
func (s *Server) signIn(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	q, err := parseAuthorization(p.get("authorization"))
	if err != nil {
		return err
	}
	// Phones add a space after a completed word.
	username := strings.TrimSpace(p.get("username"))
	page := &signInPage{Authorization: q.encode(), Username: username}
	if p.get("then") == thenConsents {
		page.Then = thenConsents
	}
	value, session, err := s.o.Service.SignIn(c.ctx(), accounts.SignIn{
		Username: username, Password: p.get("password"), Remote: c.remote,
	})
	if err != nil {
		return s.signInAgain(c, &q, page, err)
	}
	s.endSession(c) // the session of the user who was signed in before, if any
	s.setCookie(c, value, session)
	if page.Then != "" {
		return seeOther(c, s.base+consentsPath)
	}
	q.signedIn()
	return s.goOn(c, &q)
}

// signInAgain shows the form again after a wrong password, after too many attempts, or under
// overload.
func (s *Server) signInAgain(c *call, q *params, page *signInPage, cause error) error {
	page.Alert = "The user name and the password do not match. Try again."
	status, outcome := http.StatusForbidden, oautherr.AccessDenied
	if busy := grants.Overloaded(cause); busy != nil {
		cause = busy
	}
	var limited *oautherr.LimitedError
	var failed *grants.Error
	switch {
	case errors.As(cause, &limited):
		status, outcome, page.Alert = http.StatusTooManyRequests, s.o.LimitedCode(), limited.ForPeople()
		oautherr.SetRetryAfter(c.Response().Header(), limited.RetryAfter)
		limited.RateLimit.Set(c.Response().Header())
	case errors.As(cause, &failed) && failed.RetryAfter > 0:
		status, outcome, page.Alert = http.StatusServiceUnavailable, failed.Code, failed.Description
		oautherr.SetRetryAfter(c.Response().Header(), failed.RetryAfter)
		c.busy, c.shed = true, shedBy(cause)
	case errors.Is(cause, accounts.ErrUsername):
		page.Alert = "The user name and the password do not match. Check the user name: it is empty or too long, or contains a space, a symbol or another unusual character. Try again."
	case !errors.Is(cause, accounts.ErrSignIn):
		return cause
	}
	c.outcome = string(outcome)
	if len(q.pairs) > 0 {
		prompt, err := s.prompt(c, q)
		if prompt == nil {
			return err
		}
		page.prompt = prompt
	}
	return s.showSignIn(c, status, page)
}

// signOut handles POST /sign-out. It ends the session, also to switch to another account.
func (s *Server) signOut(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	q, err := parseAuthorization(p.get("authorization"))
	if err != nil {
		return err
	}
	if value := s.cookieValue(c); value != "" {
		if err := s.o.Service.SignOut(c.ctx(), value); err != nil {
			return err
		}
	}
	s.clearCookie(c)
	return s.goOn(c, &q)
}

// endSession ends the session that a new one replaces. If that fails, the old session stays until
// it expires, and the new sign-in still succeeds.
func (s *Server) endSession(c *call) {
	value := s.cookieValue(c)
	if value == "" {
		return
	}
	if err := s.o.Service.SignOut(c.ctx(), value); err != nil {
		s.log.LogAttrs(c.ctx(), slog.LevelWarn, "end old session failed; it stays until it expires", slog.Any("error", err))
	}
}

// goOn redirects to the authorization request, or to the index page without one.
func (s *Server) goOn(c *call, q *params) error {
	if len(q.pairs) > 0 {
		return s.seeAuthorize(c, q)
	}
	return seeOther(c, s.base+"/")
}
